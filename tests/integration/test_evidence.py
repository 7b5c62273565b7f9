"""After the walk: what is gathered about the first bad cell, in which order, once; and what it comes to."""

import json
import time

import pytest

QUESTION = """\
name: tools
workers: {workers}
confirm: 1
axes:
  - {{name: toolchain, type: toolchain, values: [one, two, three]}}
  - {{name: usdt, type: crate, values: ["1.0.0", "2.0.0"]}}
  - {{name: letter, type: choice, values: [a, b, c]}}
{more}
reproducer:
  path: reproducer
  run: ["true", "{{letter}}"]
"""

CORRECTION = {"name": "usdt-impl: src/probe.rs:4 without preserves_flags", "crate": "usdt-impl", "version": "1.0.1",
              "file": "src/probe.rs", "line": 4, "find": "options(preserves_flags)", "replace": "options()", "min": 1, "max": 1,
              "promise": "preserves_flags"}


def block(violations):
    return {"function": "f", "location": {"file": "src/main.rs", "line": 7}, "judged": True, "violations": violations}


def data(violations=(), paths=(), twins=()):
    return {"build": {"outcome": "fail"}, "artifacts": [], "not_done": [], "functions": [], "paths": list(paths), "twins": list(twins),
            "audit": {"files": 1, "judged": 1, "not_judged": 0, "violations": len(violations), "blocks": [block(list(violations))]}}


VIOLATION = {"kind": "flags", "promise": "preserves_flags", "text": "xor rax, rax changes ZF"}
BROKEN = {"function": "f", "name": "task", "state": "broken", "consequence": "je always jumps",
          "chain": [{"role": "definition", "text": "cmp"}, {"role": "destroyer", "text": "xor"}, {"role": "reader", "text": "je"}]}
PASSES = {"limit": {"passes": 100, "good": 6, "bad": 7, "pass": "isel", "unit": "f", "tried": 9}, "flips": []}


@pytest.fixture
def tools(place):
    """An investigation in which two/1.0.0/b is the first bad cell; what is gathered is made up."""

    def make(build, rules=(), workers=2, more="", neighbour=None, passes=None):
        place.write("reproducer/Cargo.toml", '[package]\nname = "reproducer"\n')
        place.rules([*rules, ["toolchain=two usdt=1.0.0 letter=b", "fail"]])
        path = place.write("evidence.json", json.dumps({"build": build, "neighbour": neighbour or data(), "passes": passes or PASSES}))
        place.environment["FAKE_WORKER_EVIDENCE"] = str(path)
        return place.write("tools.yaml", QUESTION.format(workers=workers, more=more))

    return make


def verdict(place):
    (row,) = place.query("SELECT verdict, title, text FROM verdicts")
    return row


def test_a_corrected_declaration_that_cures_convicts_the_crate(place, tools):
    file = tools(data([VIOLATION], [BROKEN], [CORRECTION]), [["overrides=.*without preserves_flags", "pass"]])
    place.run("run", file, check=0)
    assert verdict(place)["verdict"] == "crate"
    assert "usdt-impl 1.0.1" in verdict(place)["title"]
    (twin,) = place.query("SELECT * FROM twins")
    assert (twin["outcome"], twin["origin"], twin["commands"]) == ("pass", "audit", "echo repeat")
    assert json.loads(twin["edit"])["edits"][0]["replace"] == "options()"
    # a twin is confirmed as a bad cell is: built clean, in a folder that stays
    (job,) = [job for job in place.jobs() if "/kept/" in job["target"] and job["at"] > place.jobs("evidence")[0]["at"]]
    assert job["clean"] is True


def test_a_twin_has_the_lock_file_of_its_cell(place, tools):
    place.run("run", tools(data([VIOLATION], [BROKEN], [CORRECTION])), check=0)
    last = max(place.jobs("prepare"), key=lambda job: job["at"])
    assert last["lock"] == "# lock"


def test_no_cure_is_evidence_against(place, tools):
    place.run("run", tools(data([VIOLATION], [BROKEN], [CORRECTION])), check=0)
    assert verdict(place)["verdict"] == "inconclusive"
    assert [row["outcome"] for row in place.query("SELECT outcome FROM twins")] == ["fail"]


def test_good_neighbours_are_one_step_away_and_compared_with_the_bad_cell(place, tools):
    place.run("run", tools(data([VIOLATION], [BROKEN])), check=0)
    bad, *others = sorted(place.jobs("evidence"), key=lambda job: job["at"])
    assert bad["id"] == "toolchain=two usdt=1.0.0 letter=b" and bad["compare"] is None
    assert all(job["compare"].endswith("/build-%d" % place.query("SELECT cell FROM first_bad")[0]["cell"]) for job in others)
    assert {job["id"] for job in others} >= {"toolchain=three usdt=1.0.0 letter=b", "toolchain=two usdt=2.0.0 letter=b",
                                             "toolchain=two usdt=1.0.0 letter=c"}
    kinds = [row["kind"] for row in place.query("SELECT kind FROM evidence ORDER BY kind")]
    assert kinds == ["build"] + ["neighbour"] * len(others) + ["passes"]


def test_a_fix_is_named_by_the_boundary_behind_which_the_promise_is_kept(place, tools):
    file = tools(data([VIOLATION], [BROKEN], [CORRECTION]), [["overrides=.*without preserves_flags", "pass"]])
    place.run("run", file, check=0)
    assert "fixed by usdt=2.0.0" in verdict(place)["title"]
    assert "toolchain" not in verdict(place)["title"]


def test_what_was_gathered_is_not_gathered_again(place, tools):
    file = tools(data([VIOLATION], [BROKEN], [CORRECTION]))
    place.run("run", file, check=0)
    before = [len(place.jobs(kind)) for kind in ("cell", "evidence", "passes")]
    place.run("run", file, check=0)
    assert [len(place.jobs(kind)) for kind in ("cell", "evidence", "passes")] == before
    assert len(place.query("SELECT 1 FROM evidence")) == before[1] + before[2]


def test_killed_while_it_gathers_it_goes_on_where_it_was(place, tools):
    file = tools(data([VIOLATION], [BROKEN], [CORRECTION]), passes=dict(PASSES, seconds=600))
    process = place.start("run", file)
    while not place.jobs("passes") or len(place.jobs("evidence")) < 4:
        assert process.poll() is None
        time.sleep(0.02)
    process.kill()
    process.communicate(timeout=30)
    place.write("evidence.json", json.dumps({"build": data([VIOLATION], [BROKEN], [CORRECTION]), "neighbour": data(), "passes": PASSES}))
    done = [job["id"] for job in place.jobs("evidence")]
    place.run("run", file, check=0)
    again = [job["id"] for job in place.jobs("evidence")][len(done):]
    assert done[0] not in again, "the bad cell was looked at before"
    rows = place.query("SELECT kind, outcome, reason FROM evidence")
    assert len(rows) >= 5 and all(row["outcome"] == "pass" for row in rows), rows


def test_trouble_while_gathering_is_tried_again_and_then_said(place, tools):
    place.run("run", tools({"behave": "die"}), check=0)
    assert len(place.jobs("evidence")) >= 3
    assert verdict(place)["verdict"] == "inconclusive"
    (row,) = place.query("SELECT outcome, reason FROM evidence WHERE kind = 'build'")
    assert row["outcome"] == "error" and row["reason"]
    report = place.run("report", check=0).stdout
    assert row["reason"][:20] in report


def test_twins_of_the_users_own_are_tried_but_convict_nobody(place, tools):
    more = ("twins:\n"
            "  - {name: other probe, crate: usdt, edits: [{file: src/lib.rs, find: a, replace: b}]}\n"
            "  - {name: other code, edits: [{file: src/main.rs, find: a, replace: b}]}\n")
    place.run("run", tools(data(), [["overrides=other probe", "pass"], [" twin", "crash"]], more=more), check=0)
    assert {row["name"]: row["outcome"] for row in place.query("SELECT name, outcome FROM twins")} == {
        "other probe": "pass", "other code": "crash"}
    assert verdict(place)["verdict"] == "inconclusive"


def test_never_means_never(place, tools):
    place.run("run", tools(data([VIOLATION], [BROKEN]), more="evidence: {gather: never}"), check=0)
    assert place.jobs("evidence") == [] and place.jobs("passes") == []
    assert "none was gathered" in place.run("report", check=0).stdout
    assert verdict(place)["verdict"] == "inconclusive"


def test_an_idle_worker_does_not_close_the_question_while_the_first_bad_cell_is_being_confirmed(place, tools):
    file = tools(data([VIOLATION], [BROKEN]), [["^toolchain=two usdt=1.0.0 letter=b", {"outcome": "fail", "seconds": 0.5}]], workers=8)
    place.run("run", file, check=0)
    assert len(place.jobs("evidence")) >= 1


def test_one_worker_does_it_all(place, tools):
    place.run("run", tools(data([VIOLATION], [BROKEN], [CORRECTION]), workers=1), check=0)
    assert {row["kind"] for row in place.query("SELECT kind FROM evidence")} == {"build", "neighbour", "passes"}


def test_stopped_while_it_gathers_it_ends_and_keeps_what_it_has(place, tools):
    file = tools(data([VIOLATION], [BROKEN]), passes=dict(PASSES, seconds=600))
    process = place.start("run", file)
    while not place.jobs("passes"):
        time.sleep(0.02)
    process.send_signal(2)
    process.communicate(timeout=30)
    assert [row["kind"] for row in place.query("SELECT kind FROM evidence")].count("build") == 1
