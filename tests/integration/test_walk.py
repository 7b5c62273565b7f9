"""The walk with a worker that answers by rules: outcomes, confirmation, boundaries, resuming, exit statuses."""

import json


def test_a_matrix_without_a_bad_cell_ends_with_status_1(place, letters):
    result = place.run("run", letters([]), check=1)
    assert set(place.outcomes().values()) == {"pass"}
    assert len(place.outcomes()) == 12
    assert place.query("SELECT * FROM first_bad") == []
    assert "First bad combination\n  none" in result.stdout


def test_the_first_bad_combination_is_the_first_in_walk_order(place, letters):
    result = place.run("run", letters([["number=[34]", "fail"], ["number=2 letter=c", "fail"]]), check=0)
    (first,) = place.query("SELECT * FROM first_bad")
    assert first["combination"] == "number=2 letter=c"
    assert (first["final"], first["confirmed"], first["outcome"]) == (1, 1, "fail")
    assert first["commands"] == "echo repeat"
    assert "number=2 letter=c" in result.stdout


def test_the_first_bad_combination_waits_for_a_slow_earlier_cell(place, letters):
    rules = [["number=1 letter=a", {"outcome": "fail", "seconds": 1}], ["letter=b", "fail"]]
    place.run("run", letters(rules), check=0)
    findings = place.query("SELECT body FROM finding WHERE kind = 'first-bad'")
    assert [json.loads(row["body"])["combination"] for row in findings] == ["number=1 letter=a"]


def test_confirmation_is_one_clean_build_with_the_configured_runs(place, letters):
    place.run("run", letters([["number=2 letter=b", "fail"]], confirm=3), check=0)
    clean = [job for job in place.jobs() if job["clean"]]
    assert "number=2 letter=b" in [job["id"] for job in clean]
    assert {job["runs"] for job in clean} == {3}
    walk = [job for job in place.jobs() if not job["clean"]]
    assert len(walk) == 12


def test_a_failure_that_a_clean_build_does_not_repeat_is_flaky_and_not_first_bad(place, letters):
    rules = [["number=1 letter=b", {"outcome": "fail", "clean": "pass"}], ["number=3", "fail"]]
    place.run("run", letters(rules), check=0)
    assert place.outcomes()["number=1 letter=b"] == "flaky"
    assert place.query("SELECT combination FROM first_bad")[0]["combination"] == "number=3 letter=a"
    (flaky,) = place.query("SELECT * FROM flaky")
    assert (flaky["bad_runs"], flaky["runs"]) == (1, 2)
    assert flaky["reason"] == "fail at first, pass when built clean and run again"


def test_boundaries_are_grouped_counted_and_confirmed(place, letters):
    place.run("run", letters([["number=[34] letter=[ab]", "fail"]]), check=0)
    (boundary,) = place.query("SELECT * FROM boundaries")
    assert (boundary["axis"], boundary["change"], boundary["from_value"], boundary["to_value"]) == \
        ("number", "introduced", "2", "3")
    assert (boundary["pairs"], boundary["gap"], boundary["confirmed"]) == (2, 0, 1)
    assert boundary["from_combination"] == "number=2 letter=a"
    assert boundary["to_combination"] == "number=3 letter=a"


def test_more_than_one_transition_is_seen(place, letters):
    place.run("run", letters([["number=[24]", "fail"]]), check=0)
    changes = [(row["change"], row["from_value"], row["to_value"]) for row in place.query("SELECT * FROM boundaries")]
    assert changes == [("introduced", "1", "2"), ("fixed", "2", "3"), ("introduced", "3", "4")]


def test_a_boundary_passes_over_cells_without_evidence(place, letters):
    place.run("run", letters([["number=2", "build-fail"], ["number=[34]", "fail"]]), check=0)
    (boundary,) = place.query("SELECT * FROM boundaries")
    assert (boundary["from_value"], boundary["to_value"], boundary["gap"]) == ("1", "3", 1)


def test_build_fail_and_skip_are_neither_good_nor_bad(place, letters):
    result = place.run("run", letters([["letter=a", "build-fail"], ["letter=b", "skip"]]), check=1)
    (row,) = place.query("SELECT * FROM investigations")
    assert (row["cells"], row["decided"], row["bad"], row["good"]) == (12, 12, 0, 4)
    assert "4 cells build-fail: as told" in result.stdout


def test_finished_cells_are_not_repeated(place, letters):
    file = letters([["number=3", "fail"]])
    place.run("run", file, check=0)
    before = len(place.jobs())
    place.run("run", file, check=0)
    assert len(place.jobs()) == before
    assert len(place.query("SELECT * FROM finding WHERE kind = 'first-bad'")) == 1


def test_outcomes_are_shared_between_investigations_by_key(place, letters):
    file = letters([["number=3", "fail"]])
    place.run("run", file, check=0)
    before = len(place.jobs())
    other = place.write("other.yaml", file.read_text().replace("name: letters", "name: other"))
    place.run("run", other, check=0)
    assert len(place.jobs()) == before
    assert len(place.query("SELECT * FROM first_bad")) == 2


def test_a_changed_command_is_another_cell(place, letters):
    file = letters([])
    place.run("run", file, check=1)
    file.write_text(file.read_text().replace('run: ["true",', 'run: ["false",'))
    place.run("run", file, check=1)
    assert len(place.jobs()) == 24


def test_a_changed_reproducer_is_another_cell(place, letters):
    file = letters([])
    place.run("run", file, check=1)
    place.write("reproducer/readme", "changed\n")
    place.run("run", file, check=1)
    assert len(place.jobs()) == 24


def test_a_new_value_tries_only_the_new_cells(place, letters):
    file = letters([])
    place.run("run", file, check=1)
    file.write_text(file.read_text().replace('"3", "4"]', '"3", "4", "5"]'))
    place.run("run", file, check=1)
    assert len(place.jobs()) == 15
    assert len(place.outcomes()) == 15


def test_an_error_is_tried_again_and_then_left_undecided(place, letters):
    result = place.run("run", letters([["number=2 letter=a", "error"]], more="retries: 2\n"), check=3)
    assert len([job for job in place.jobs() if job["id"] == "number=2 letter=a"]) == 3
    assert place.outcomes()["number=2 letter=a"] == "error"
    assert "could not be decided" in result.stderr


def test_errors_are_tried_again_by_the_next_run(place, letters):
    file = letters([["number=2 letter=a", "error"]], more="retries: 0\n")
    place.run("run", file, check=3)
    place.rules([])
    place.run("run", file, check=1)
    assert place.outcomes()["number=2 letter=a"] == "pass"


def test_a_bad_cell_after_an_undecided_one_is_provisional(place, letters):
    rules = [["number=1 letter=a", "error"], ["number=2", "fail"]]
    result = place.run("run", letters(rules, more="retries: 0\n"), check=3)
    (first,) = place.query("SELECT * FROM first_bad")
    assert (first["combination"], first["final"]) == ("number=2 letter=a", 0)
    assert "provisional" in result.stdout


def test_which_outcomes_are_bad_is_the_investigations_choice(place, letters):
    place.run("run", letters([["number=2", "timeout"]], more="bad: [timeout]\n"), check=0)
    assert place.query("SELECT combination FROM first_bad")[0]["combination"] == "number=2 letter=a"


def test_exclude_and_include_cut_the_matrix(place, letters):
    more = 'exclude:\n  - {number: "*"}\ninclude:\n  - {number: "@last", letter: [a, c]}\n  - {number: "1", letter: "!c"}\n'
    place.run("run", letters([], more=more), check=1)
    assert sorted(place.outcomes()) == ["number=1 letter=a", "number=1 letter=b", "number=4 letter=a", "number=4 letter=c"]


def test_a_pattern_that_matches_nothing_is_pointed_out(place, letters):
    result = place.run("run", letters([], more='exclude:\n  - {letter: "q*"}\n'), check=2)
    assert 'letters.yaml:12:14: "q*" matches no value of axis "letter"' in result.stderr


def test_two_workers_work_at_once(place, letters):
    place.run("run", letters([[".", {"outcome": "pass", "seconds": 0.5}]], workers=2), check=1)
    starts = sorted(job["at"] for job in place.jobs())
    assert any(later - earlier < 0.5 for earlier, later in zip(starts, starts[1:]))


def test_one_worker_works_on_one_cell_after_the_other(place, letters):
    place.run("run", letters([[".", {"outcome": "pass", "seconds": 0.2}]], workers=1), check=1)
    starts = sorted(job["at"] for job in place.jobs())
    assert all(later - earlier >= 0.2 for earlier, later in zip(starts, starts[1:]))


def test_check_prints_the_plan_and_tries_nothing(place, letters):
    result = place.run("check", letters([], more='exclude:\n  - {letter: b, number: "2"}\n'), check=0)
    assert "11 cells of 12 combinations, 1 excluded" in result.stdout
    assert place.jobs() == []


def test_report_repeats_what_the_run_printed(place, letters):
    run = place.run("run", letters([["number=3", "fail"]]), check=0)
    report = place.run("report", check=0)
    assert report.stdout == run.stdout


def test_a_worker_that_is_missing_is_one_clear_line(place, letters):
    file = letters([])
    place.fake = False
    result = place.run("run", "--worker", "/nonexistent/worker", file)
    assert result.returncode == 3
    assert "cannot run the worker /nonexistent/worker: No such file or directory" in result.stderr


def test_an_error_while_confirming_changes_nothing_that_was_seen(place, letters):
    file = letters([["number=3 letter=a", {"outcome": "fail", "clean": "error"}], ["number=3", "fail"]], more="retries: 0\n")
    place.run("run", file, check=0)
    (cell,) = place.query("SELECT * FROM matrix WHERE combination = 'number=3 letter=a'")
    assert (cell["outcome"], cell["confirmed"], cell["reason"]) == ("fail", 0, "as told")


def test_what_is_confirmed_by_a_later_run_is_posted_then(place, letters):
    rules = [["number=3 letter=a", {"outcome": "fail", "clean": "error", "reason": "seen"}], ["number=3", "fail"]]
    file = letters(rules, more="retries: 0\n")
    place.run("run", file, check=0)
    place.rules([["number=3", "fail"]])
    place.run("run", file, check=0)
    bodies = [json.loads(row["body"]) for row in place.query("SELECT body FROM finding WHERE kind = 'first-bad' ORDER BY id")]
    assert [body["confirmed"] for body in bodies] == [False, True]


def test_a_provisional_first_bad_combination_is_confirmed_before_it_is_posted(place, letters):
    rules = [["number=1 letter=a", "error"], ["letter=b", "fail"]]
    place.run("run", letters(rules, more="retries: 0\n"), check=3)
    (body,) = [json.loads(row["body"]) for row in place.query("SELECT body FROM finding WHERE kind = 'first-bad'")]
    assert (body["combination"], body["final"], body["confirmed"]) == ("number=1 letter=b", False, True)


def test_the_first_bad_combination_can_be_repeated_also_where_it_was_confirmed_as_a_boundary(place, letters):
    """Given a cell that one investigation confirmed at a boundary, whose folder is gone by now, when it is the first bad
    combination of another, then it is confirmed once more in a folder that is kept."""
    file = letters([["number=[13]", "fail"]])
    place.run("run", file, check=0)
    (cell,) = place.query("SELECT c.* FROM cell c JOIN place p ON p.cell_id = c.id WHERE p.combination = 'number=3 letter=a'")
    assert (cell["confirmed"], cell["commands"]) == (1, None)
    other = place.write("other.yaml", file.read_text().replace("name: letters", "name: other") + 'exclude: [{number: "[12]"}]\n')
    place.run("run", other, check=0)
    (first,) = place.query("SELECT * FROM first_bad WHERE investigation = 'other'")
    assert (first["combination"], first["commands"]) == ("number=3 letter=a", "echo repeat")
    assert "/kept/" in [job["target"] for job in place.jobs() if job["id"] == "number=3 letter=a"][-1]
    before = len(place.jobs())
    place.run("run", other, check=0)
    assert len(place.jobs()) == before


def test_a_confirmation_that_cannot_be_repeated_ends_all_the_same(place, letters):
    file = letters([["number=[13]", "fail"]], more="retries: 1\n")
    place.run("run", file, check=0)
    place.rules([["number=3 letter=a", "error"], ["number=[13]", "fail"]])
    other = place.write("other.yaml", file.read_text().replace("name: letters", "name: other") + 'exclude: [{number: "[12]"}]\n')
    before = len(place.jobs())
    place.run("run", other, check=0, timeout=60)
    assert len(place.jobs()) == before + 2
    (first,) = place.query("SELECT * FROM first_bad WHERE investigation = 'other'")
    assert (first["outcome"], first["confirmed"], first["commands"]) == ("fail", 1, None)


def test_the_verdict_is_the_one_of_the_latest_run_also_when_it_was_given_before(place, letters):
    file = letters([])
    place.run("run", file, check=1)
    (first,) = place.query("SELECT text FROM verdicts")
    place.write("reproducer/readme", "changed\n")
    place.rules([["number=3", "fail"]])
    place.run("run", file, check=0)
    assert place.query("SELECT text FROM verdicts") != [first]
    place.write("reproducer/readme", "nothing to build\n")
    place.run("run", file, check=1)
    assert place.query("SELECT text FROM verdicts") == [first]


def test_a_clean_build_that_could_not_be_had_leaves_the_failure_as_it_was_seen(place, letters):
    rules = [["number=1 letter=b", {"outcome": "fail", "clean": "build-fail"}], ["number=3", "fail"]]
    place.run("run", letters(rules, more="retries: 1\n"), check=0)
    (first,) = place.query("SELECT * FROM first_bad")
    assert (first["combination"], first["outcome"], first["confirmed"]) == ("number=1 letter=b", "fail", 0)


def test_the_confirmation_runs_at_least_as_often_as_the_walk(place, letters):
    file = letters([["number=2 letter=b", "fail"]], confirm=2)
    file.write_text(file.read_text().replace("  path: reproducer", "  path: reproducer\n  runs: 5"))
    place.run("run", file, check=0)
    assert {job["runs"] for job in place.jobs() if job["clean"]} == {5}
