"""`bisectd report` in its four formats, after a walk with the fake worker: shapes, links, hostile text, where it is written."""

import json
import os
import re
import subprocess
from html.parser import HTMLParser

import pytest

from conftest import ROOT

HOSTILE = "\x1b[31m</td><script>alert(1)</script> @octocat #123 https://evil.example/ ``` [a](b) | \u202e <!--"
VOID = {"meta", "link"}
ALLOWED = {"html", "head", "meta", "link", "title", "style", "body", "main", "footer", "header", "nav", "article", "section", "h1", "h2",
           "h3", "p", "a", "ul", "li", "dl", "dt", "dd", "div", "span", "strong", "b", "code", "pre", "details", "summary", "table", "caption",
           "thead", "tbody", "tr", "th", "td", "svg", "g", "rect", "text", "path"}

MORE = """\
webhooks:
  - {name: team, url: "http://127.0.0.1:9/", give_up_after: 1s}
"""


class Strict(HTMLParser):
    """Every element that is opened is closed, in order; only elements and attributes that a report has; every id is one, and there."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.ids, self.links, self.problems, self.tables = [], [], [], [], []
        self.text, self.cells = [], []

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        if tag not in ALLOWED:
            self.problems.append(f"<{tag}> at {self.getpos()}")
        for name, value in attrs:
            if name.startswith("on") or name == "style" or (name in ("src", "srcset", "action", "xlink:href")):
                self.problems.append(f"{name} at {self.getpos()}")
            if name == "href":
                self.links.append(value)
            if name == "id":
                self.ids.append(value)
        if tag == "th" and "scope" not in attributes:
            self.problems.append(f"<th> without scope at {self.getpos()}")
        if tag == "table":
            self.tables.append({"caption": False, "head": False})
        if tag == "caption":
            self.tables[-1]["caption"] = True
        if tag == "thead":
            self.tables[-1]["head"] = True
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open[-1] != tag:
            self.problems.append(f"</{tag}> closes {self.open[-1:]} at {self.getpos()}")
        else:
            self.open.pop()

    def handle_comment(self, data):
        self.problems.append(f"a comment at {self.getpos()}")

    def handle_data(self, data):
        self.text.append(data)


def parse(page):
    parser = Strict()
    parser.feed(page)
    parser.close()
    assert parser.problems == []
    assert parser.open == []
    assert len(parser.ids) == len(set(parser.ids))
    for link in parser.links:
        assert not re.match(r"[a-z]+:", link) or link == "data:,", link
        assert not link.startswith("//")
        if link.startswith("#"):
            assert link[1:] in parser.ids
    assert all(table["caption"] and table["head"] for table in parser.tables)
    assert "url(" not in page and "@import" not in page
    return parser


TEXT, NUMBER, FLAG, NULL = str, int, bool, type(None)
VALUE = {"label": TEXT, "identity": TEXT, "detail": (TEXT, NULL), "skip_reason": (TEXT, NULL)}
SHAPE = {
    "format": TEXT, "version": NUMBER, "bisectd": TEXT, "links": TEXT,
    "investigations": [{
        "name": TEXT, "question": (TEXT, NULL), "file": TEXT, "state": TEXT, "started_at": TEXT, "finished_at": (TEXT, NULL),
        "notes": [TEXT], "cells": {"all": NUMBER, "decided": NUMBER, "good": NUMBER, "bad": NUMBER},
        "axes": [{"name": TEXT, "type": TEXT, "ordered": FLAG, "values": [VALUE]}],
        "matrix": [{"walk_index": NUMBER, "position": [NUMBER], "outcome": (TEXT, NULL)}],
        "not_known": [{"outcome": (TEXT, NULL), "reason": (TEXT, NULL), "cells": NUMBER, "example": TEXT}],
        "boundaries": [{"axis": TEXT, "change": TEXT, "from": TEXT, "to": TEXT, "to_detail": (TEXT, NULL), "from_combination": TEXT,
                        "to_combination": TEXT, "gap": NUMBER, "pairs": NUMBER, "confirmed": FLAG}],
        "first_bad": (NULL, {"combination": TEXT, "walk_index": NUMBER, "outcome": TEXT, "reason": (TEXT, NULL), "signature": (TEXT, NULL),
                             "final": FLAG, "confirmed": FLAG, "commands": (TEXT, NULL), "log": (TEXT, NULL), "cell": TEXT}),
        "verdict": (NULL, {"verdict": TEXT, "blames": (TEXT, NULL), "title": TEXT,
                           "fixed_by": [{"axis": TEXT, "value": TEXT, "detail": (TEXT, NULL)}],
                           "reasons": [{"rule": TEXT, "kind": TEXT, "holds": (FLAG, NULL), "text": TEXT}],
                           "missing": [{"text": TEXT, "command": (TEXT, NULL)}]}),
        "recorded_verdict": (NULL, {"title": TEXT, "text": TEXT}),
        "evidence": (NULL, dict),
        "deliveries": [TEXT], "sandboxes": (TEXT, NULL), "state_folder": TEXT,
    }],
}


def problems_of(value, shape, where="report"):
    """What of a value is not as documented in docs/report.md: members that are missing, more than there should be, of another type."""
    if isinstance(shape, tuple):
        found = [problems_of(value, one, where) for one in shape]
        return [] if [] in found else min(found, key=len)
    if isinstance(shape, list):
        if not isinstance(value, list):
            return [f"{where} is no list"]
        return [problem for i, one in enumerate(value) for problem in problems_of(one, shape[0], f"{where}[{i}]")]
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return [f"{where} is no object"]
        wrong = [f"{where}.{key} is missing" for key in shape.keys() - value.keys()]
        wrong += [f"{where}.{key} is not documented" for key in value.keys() - shape.keys()]
        return wrong + [problem for key in shape.keys() & value.keys() for problem in problems_of(value[key], shape[key], f"{where}.{key}")]
    return [] if type(value) is shape else [f"{where} is {value!r}"]  # pylint: disable=unidiomatic-typecheck


def report(place, *arguments):
    return place.run("report", *arguments, check=0).stdout


RULES = [["number=[34] letter=[ab]", {"outcome": "fail", "reason": "exit status 1"}], ["number=2 letter=c", {"outcome": "build-fail"}],
         ["number=1 letter=c", {"outcome": "skip", "reason": "not here"}], ["number=4 letter=c", {"outcome": "skip", "reason": "nor here"}]]


def test_text_has_no_blanks_at_line_ends_and_groups_what_is_not_known(place, letters):
    run = place.run("run", letters(RULES), check=0)
    text = report(place)
    assert text == run.stdout == report(place, "--format", "text", "letters")
    assert [line for line in text.splitlines() if line != line.rstrip()] == []
    assert "  2 cells skip for 2 reasons, such as: not here\n    such as number=1 letter=c\n" in text
    assert "  1 cell build-fail: as told\n    it is number=2 letter=c\n" in text
    assert text.count("nor here") == 0


def test_json_is_as_documented(place, letters):
    place.run("run", letters(RULES), check=0)
    document = json.loads(report(place, "--format", "json"))
    assert problems_of(document, SHAPE) == []
    assert (document["format"], document["version"]) == ("bisectd-report", 1)
    (one,) = document["investigations"]
    outcomes = {row["walk_index"]: row["outcome"] for row in place.query("SELECT walk_index, outcome FROM matrix")}
    assert {cell["walk_index"]: cell["outcome"] for cell in one["matrix"]} == outcomes
    labels = [[value["label"] for value in axis["values"]] for axis in one["axes"]]
    first = one["first_bad"]
    (cell,) = [cell for cell in one["matrix"] if cell["walk_index"] == first["walk_index"]]
    assert [labels[axis][position] for axis, position in enumerate(cell["position"])] == ["3", "a"]
    assert [(row["outcome"], row["cells"]) for row in one["not_known"]] == [("skip", 1), ("build-fail", 1), ("skip", 1)]
    assert one["verdict"]["verdict"] == "inconclusive"


def test_json_of_a_matrix_without_a_bad_cell_is_as_documented_too(place, letters):
    place.run("run", letters([]), check=1)
    document = json.loads(report(place, "--format", "json"))
    assert problems_of(document, SHAPE) == []
    assert document["investigations"][0]["first_bad"] is None
    assert document["investigations"][0]["evidence"] is None


def test_html_is_whole_and_asks_for_nothing(place, letters):
    place.run("run", letters(RULES), check=0)
    page = report(place, "--format", "html")
    parser = parse(page)
    shown = "".join(parser.text)
    assert page.startswith("<!DOCTYPE html>\n<html lang=\"en\">")
    assert "default-src 'none'" in page
    assert "prefers-color-scheme:dark" in page
    for part in ("letters", "Which letters are bad?", "number=3 letter=a", "exit status 1", "echo repeat", "inconclusive"):
        assert part in shown or part.replace("number=", "") in shown, part
    # every square has its letter, and the table every word
    assert page.count("<rect") == 12
    squares = re.findall(r"<rect[^>]*/><text[^>]*>(.)</text>", page)
    assert sorted(squares) == sorted("..-" "..b" "FF." "FF-")
    table = page[page.index('<table class="matrix"'):]
    words = re.findall(r'<td[^>]*><span class="o [^"]*">([a-z -]*)</span>', table[:table.index("</table>")])
    assert words.count("fail") == 4 and words.count("build-fail") == 1 and len(words) == 12


def test_links_in_html_lead_to_the_log_from_where_it_is_written(place, letters):
    place.run("run", letters(RULES), check=0)
    target = place.folder / "out" / "report of letters.html"
    target.parent.mkdir()
    place.run("report", "--format", "html", "--output", target, check=0)
    links = [link for link in parse(target.read_text()).links if "logs" in link]
    assert links
    for link in links:
        assert (target.parent / link).exists(), link


def test_markdown_is_balanced_and_holds_the_commands(place, letters):
    place.run("run", letters(RULES), check=0)
    text = report(place, "--format", "markdown")
    assert text.startswith("## letters\n")
    assert sum(line.startswith("```") for line in text.splitlines()) % 2 == 0
    assert "```sh\necho repeat\n```\n" in text
    assert "| letter | `a` |" in text
    assert len(text) < 65536


def test_hostile_text_stays_text(place, letters):
    rules = [["number=[34]", {"outcome": "fail", "reason": HOSTILE}], ["number=2", {"outcome": "skip", "reason": HOSTILE}]]
    file = letters(rules, more=MORE)
    file.write_text(file.read_text().replace("question: Which letters are bad?", "question: " + json.dumps(HOSTILE))
                    .replace("[a, b, c]", json.dumps(["a", "<b>&\"'", "`c` @octocat #1"])))
    run = place.run("run", "--wait", "0", file, check=0)
    markdown = report(place, "--format", "markdown")
    for text in (run.stdout, markdown, report(place, "--format", "html")):
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", text)
    prose = re.sub(r"(`+)[^`].*?(?<!`)\1(?!`)", "", re.sub(r"(?ms)^(`{3,})\w*\n.*?^\1\n", "", markdown))
    for harmful in ("<", "@o", "#1", "://"):
        assert harmful not in prose, prose
    parse(report(place, "--format", "html"))
    document = json.loads(report(place, "--format", "json"))
    assert problems_of(document, SHAPE) == []
    assert document["investigations"][0]["first_bad"]["reason"].endswith(HOSTILE)


def test_two_investigations_are_one_document(place, letters):
    file = letters(RULES)
    place.run("run", file, check=0)
    other = place.write("other.yaml", file.read_text().replace("name: letters", "name: others"))
    place.run("run", other, check=0)
    names = [one["name"] for one in json.loads(report(place, "--format", "json"))["investigations"]]
    assert names == ["letters", "others"]
    parser = parse(report(place, "--format", "html"))
    assert "i1-verdict" in parser.ids and "i2-verdict" in parser.ids
    assert len(json.loads(report(place, "--format", "json", "others"))["investigations"]) == 1


EVIDENCE = """\
name: tools
workers: 2
axes:
  - {name: toolchain, type: toolchain, ordered: true, values: [one, two]}
  - {name: letter, type: choice, values: [a, b]}
reproducer:
  path: reproducer
  run: ["true", "{letter}"]
"""


@pytest.fixture
def gathered(place):
    """A walk whose evidence the fake worker makes up; each text in it is put through `change` first."""

    def run(change=lambda text: text):
        def changed(value, key=None):
            if isinstance(value, dict):
                return {name: changed(one, name) for name, one in value.items()}
            if isinstance(value, list):
                return [changed(one, key) for one in value]
            kept = ("state", "role", "kind", "outcome", "mark", "difference", "origin", "path", "file", "find", "replace")
            return change(value) if isinstance(value, str) and key not in kept else value

        rules = [["toolchain=two letter=b twin", "pass"], ["toolchain=two letter=b", "fail"]]
        evidence = json.loads((ROOT / "tests/unit/data/report/evidence.json").read_text())
        evidence["build"]["twins"] = [{"name": "preserves_flags taken off", "file": "main.rs", "line": 3, "min": 1, "max": 1, "block": 0,
                                       "find": "preserves_flags", "replace": "nostack", "promise": "preserves_flags"}]
        place.rules(rules)
        path = place.write("evidence.json", json.dumps(changed({"build": evidence["build"], "passes": evidence["passes"],
                                                                "neighbour": evidence["neighbours"][0]["data"]})))
        place.environment["FAKE_WORKER_EVIDENCE"] = str(path)
        place.write("reproducer/main.rs", "preserves_flags\n")
        return place.run("run", place.write("tools.yaml", EVIDENCE), check=0)

    return run


def test_a_reader_that_has_seen_enough_is_no_trouble(place, letters):
    place.run("run", letters([["number=3", "fail"]]), check=0)
    words = " ".join(str(word) for word in place.command("report", "--format", "html"))
    result = subprocess.run(["bash", "-c", f"{words} | true; exit ${{PIPESTATUS[0]}}"], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")


def test_the_evidence_is_in_every_format(place, gathered):
    run = gathered()
    page = report(place, "--format", "html")
    parser = parse(page)
    for text in (run.stdout, report(place, "--format", "markdown").replace("\\_", "_"), "".join(parser.text)):
        for part in ("src/no-linker.rs:94:13", "preserves_flags", "sub rdi, rsi", "xor rax, rax", "destroyer", "jne 0x401260",
                     "jne never jumps: ZF is always 1 here", "X86 DAG->DAG Instruction Selection", "lto=fat", "preserves_flags taken off",
                     "the assembler refuses it"):
            assert part in text or part.replace("->", "-\\>") in text, part
    assert "artifact of toolchain=two letter=b" in page
    for link in parser.links:
        if "evidence/" in link:
            assert (place.state / link).exists(), link
    assert place.state.joinpath("bisectd.db").exists() and "SQLite format" not in page
    document = json.loads(report(place, "--format", "json"))
    assert problems_of(document, SHAPE) == []
    (one,) = document["investigations"]
    assert [twin["outcome"] for twin in one["evidence"]["twins"]] == ["pass"]
    assert len(one["evidence"]["neighbours"]) >= 1


def test_hostile_evidence_stays_text(place, gathered):
    gathered(lambda text: HOSTILE + text)
    page = report(place, "--format", "html")
    parse(page)
    for text in (page, report(place), report(place, "--format", "markdown")):
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", text)
    assert problems_of(json.loads(report(place, "--format", "json")), SHAPE) == []


def one_line(result, status, *parts):
    assert result.returncode == status, result
    assert len(result.stderr.splitlines()) == 1, result.stderr
    for part in parts:
        assert part in result.stderr


@pytest.mark.parametrize("format_", ["text", "markdown", "json", "html"])
def test_what_cannot_be_written_is_one_clear_line(place, letters, format_):
    place.run("run", letters(RULES), check=0)
    place.write("full/file", "")
    none = place.folder / "none" / "report"
    one_line(place.run("report", "--format", format_, "--output", none), 3, str(none), "No such file")
    one_line(place.run("report", "--format", format_, "--output", place.folder / "full"), 3, "is a folder")
    one_line(place.run("report", "--format", format_, "--output", "/dev/full"), 3, "/dev/full", "No space left")
    assert not os.path.isfile("/dev/full")
    assert os.listdir(place.folder / "full") == ["file"]


def test_standard_output_that_is_full_is_one_clear_line(place, letters):
    place.run("run", letters(RULES), check=0)
    with open("/dev/full", "w", encoding="utf-8") as full:
        result = subprocess.run(place.command("report"), stdout=full, stderr=subprocess.PIPE, text=True, cwd=place.folder,
                                env=place.environment, check=False, timeout=60)
    one_line(result, 3, "standard output", "No space left")


def test_an_existing_file_is_replaced_whole_also_behind_a_link(place, letters):
    place.run("run", letters(RULES), check=0)
    real = place.write("real.json", "x" * 1000000)
    link = place.folder / "link.json"
    link.symlink_to(real)
    place.run("report", "--format", "json", "--output", link, check=0)
    assert link.is_symlink()
    assert problems_of(json.loads(real.read_text()), SHAPE) == []


def test_usage_is_refused_with_what_to_write_instead(place, letters):
    file = letters(RULES)
    one_line(place.run("report", "--format", "pdf"), 2, "text, markdown, json or html", "pdf")
    one_line(place.run("report", "--output", ""), 2, "--output")
    one_line(place.run("run", "--format", "html", file), 2, "bisectd report")
    one_line(place.run("check", "--output", "x", file), 2, "bisectd report")
    one_line(place.run("report", "--format", "json", "none"), 3)
    usage = place.run("report", "--help", check=0).stdout
    for word in ("text", "markdown", "json", "html", "--output"):
        assert word in usage
