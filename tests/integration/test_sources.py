"""Commit axes over real git repositories made on the spot, with the fake worker and, where trees matter, with the real one."""

import os
import subprocess

import pytest


def git(folder, *words, date=None):
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "A",
                   "GIT_AUTHOR_EMAIL": "a@example.invalid", "GIT_COMMITTER_NAME": "A",
                   "GIT_COMMITTER_EMAIL": "a@example.invalid"}
    if date:
        environment["GIT_AUTHOR_DATE"] = environment["GIT_COMMITTER_DATE"] = f"{date} 12:00:00 +0000"
    return subprocess.run(["git", *words], cwd=folder, env=environment, check=True, capture_output=True,
                          text=True).stdout.strip()


@pytest.fixture
def repository(tmp_path):
    """Six commits on one line; `limit` counts up in limit.txt, every second commit touches docs/ as well; tags v1 and v6."""
    folder = tmp_path / "upstream"
    (folder / "docs").mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    for number in range(1, 7):
        (folder / "limit.txt").write_text(f"{number}\n")
        if number % 2 == 0:
            (folder / "docs" / "notes").write_text(f"{number}\n")
        git(folder, "add", ".")
        git(folder, "commit", "-q", "-m", f"set the limit to {number}", date=f"2024-01-0{number}")
    git(folder, "tag", "v6")
    git(folder, "tag", "v1", "HEAD~5")
    return folder


INVESTIGATION = """\
name: limits
confirm: 1
retries: 0
sources:
  upstream:
    url: {url}
{alternates}
axes:
  - name: revision
    type: commit
    source: upstream
    values: [{values}]
  - {{name: letter, type: choice, values: [a, b]}}
{more}
reproducer:
  path: reproducer
  run: [sh, -c, 'test "$(cat {{checkout:upstream}}/limit.txt)" -lt 4']
"""


def investigate(place, url, values='v1, {commits: "v1..v6"}', alternates="", more=""):
    place.write("reproducer/readme", "nothing\n")
    return place.write("limits.yaml", INVESTIGATION.format(url=url, values=values, alternates=alternates, more=more))


def test_commits_of_a_range_are_checked_out_and_the_first_bad_one_is_found(place, repository):
    file = investigate(place, f"file://{repository}")
    place.run("run", file, check=0)
    (boundary,) = place.query("SELECT * FROM boundaries")
    culprit = git(repository, "rev-parse", "HEAD~2")
    assert boundary["to_value"] == culprit[:10]
    assert boundary["to_detail"] == "2024-01-04 set the limit to 4"
    assert (boundary["change"], boundary["pairs"], boundary["confirmed"]) == ("introduced", 2, 1)
    assert len(place.outcomes()) == 12


def test_a_paths_filter_leaves_only_commits_that_touch_them(place, repository):
    place.rules([])
    file = investigate(place, f"file://{repository}", values='{commits: "v1..v6", paths: [docs]}')
    place.run("run", file, check=1)
    assert len(place.outcomes()) == 2 * 3


def test_a_source_that_cannot_be_reached_makes_its_values_skip_with_the_reason(place, tmp_path):
    place.rules([])
    file = investigate(place, f"file://{tmp_path}/nothing-here", values='{commits: "v1..v6"}')
    result = place.run("run", file, check=1)
    rows = place.query("SELECT * FROM matrix")
    assert [row["outcome"] for row in rows] == ["skip", "skip"]
    assert "source upstream cannot be reached" in rows[0]["reason"] and "nothing-here" in rows[0]["reason"]
    assert "Not known" in result.stdout and "nothing-here" in result.stdout


def test_only_the_values_of_a_missing_source_are_skipped_and_come_alive_when_it_is_there(place, repository):
    place.rules([])
    hidden = repository.with_name("hidden")
    repository.rename(hidden)
    file = investigate(place, f"file://{repository}", values='{commits: "v1..v6"}')
    place.run("run", file, check=1)
    hidden.rename(repository)
    place.run("run", file, check=1)
    assert set(place.outcomes().values()) == {"pass"}
    assert len(place.outcomes()) == 10


def test_alternates_are_tried_in_order(place, repository, tmp_path):
    place.rules([])
    file = investigate(place, f"file://{tmp_path}/gone", alternates=f"    alternates: ['file://{repository}']")
    place.run("run", file, check=1)
    assert len(place.outcomes()) == 12


def test_a_mirror_serves_on_when_the_source_is_gone(place, repository):
    place.rules([])
    file = investigate(place, f"file://{repository}")
    place.run("run", file, check=1)
    repository.rename(repository.with_name("elsewhere"))
    result = place.run("run", file, check=1)
    assert "warning: source upstream" in result.stderr
    assert set(place.outcomes().values()) == {"pass"}


def test_new_commits_extend_the_axis(place, repository):
    place.rules([])
    file = investigate(place, f"file://{repository}", values='{commits: "v1..main"}')
    place.run("run", file, check=1)
    (repository / "limit.txt").write_text("7\n")
    git(repository, "commit", "-q", "-am", "set the limit to 7")
    place.run("run", file, check=1)
    assert len(place.outcomes()) == 12
    assert len(place.jobs()) == 12


def test_an_unknown_revision_is_skipped_with_its_name(place, repository):
    place.rules([])
    file = investigate(place, f"file://{repository}", values="v1, v99")
    place.run("run", file, check=1)
    rows = place.query("SELECT * FROM matrix WHERE combination LIKE '%v99%'")
    assert {row["outcome"] for row in rows} == {"skip"}
    assert "v99" in rows[0]["reason"]


OVERRIDE = """overrides:
  - name: lower limit
    source: upstream
    edits:
      - {{file: limit.txt, find: "{find}", replace: "1", matches: "{matches}"}}
"""


def test_an_override_edits_the_checkout(place, repository):
    file = investigate(place, f"file://{repository}", more=OVERRIDE.format(find="5", matches="0..1"))
    place.run("run", file, check=0)
    good = {row["label"] for row in place.query(
        "SELECT v.label FROM value v JOIN axis a ON a.id = v.axis_id WHERE a.name = 'revision'")
            if place.outcomes()[f"revision={row['label']} letter=a"] == "pass"}
    assert git(repository, "rev-parse", "HEAD~1")[:10] in good
    assert len(good) == 4


def test_an_edit_that_does_not_match_is_an_error_with_file_and_text(place, repository):
    file = investigate(place, f"file://{repository}", values="v1", more=OVERRIDE.format(find="no such text", matches="1"))
    place.run("run", file, check=3)
    for row in place.query("SELECT * FROM matrix"):
        assert row["outcome"] == "error"
        assert "limit.txt" in row["reason"] and "no such text" in row["reason"]


def test_what_a_value_stands_for_is_read_from_the_clone(place, repository):
    place.rules([])
    more = ""
    file = investigate(place, f"file://{repository}", values="v1", more=more)
    file.write_text(file.read_text().replace(
        "values: [a, b]", "values: [{name: a, stands_for: {source: upstream, commit: 'v6^', file: limit.txt, contains: '5'}}, b]"))
    result = place.run("run", file, check=1)
    oid = git(repository, "rev-parse", "v6^")
    assert f'letter a: stands for upstream {oid[:10]} (2024-01-05, A: "set the limit to 5"); its limit.txt holds the text' \
        in result.stdout


def test_notes_and_origins_are_shown_for_values_of_every_type(place, tmp_path, repository):
    """docs/config.md: `note` and `stands_for` belong to values of all types."""
    place.write("reproducer/readme", "nothing to build\n")
    place.rules([])
    file = place.write("notes.yaml", f"""\
name: notes
confirm: 0
sources:
  upstream: {{url: "file://{repository}"}}
axes:
  - name: toolchain
    type: toolchain
    values: [{{name: "1.70.0", note: the oldest, stands_for: {{source: upstream, commit: v1}}}}]
  - name: library
    type: commit
    source: upstream
    values: [{{name: v6, note: the newest, stands_for: {{source: upstream, commit: v6, file: limit.txt, contains: "6"}}}}]
reproducer:
  path: reproducer
  run: ["true"]
""")
    place.run("run", file, check=1)
    details = {row["label"]: row["detail"] for row in place.query("SELECT label, detail FROM value")}
    assert "the oldest" in details["1.70.0"] and 'stands for upstream' in details["1.70.0"]
    assert "set the limit to 6; the newest; stands for upstream" in details["v6"]
    assert "its limit.txt holds the text looked for" in details["v6"]
