"""Faults: kills at any instant, workers that misbehave, a full disk, two daemons, damaged databases, stops."""

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import time

import pytest


@pytest.mark.parametrize("behaviour, reason", [
    ("garbage", "the worker printed something that is no JSON event"),
    ("no-event", "the worker printed JSON that is no event"),
    ("flood", "the worker flooded its output"),
    ("silent", "the worker ended with status 0 and without a result"),
    ("die", "the worker was killed by signal 9 (Killed)"),
    ("wrong-type", 'the result: "outcome" has a value of the wrong type'),
])
def test_a_worker_that_misbehaves_gives_an_error_and_the_walk_goes_on(place, letters, behaviour, reason):
    rules = [["number=2 letter=b", {"behave": behaviour}]]
    place.run("run", letters(rules, more="retries: 0\n"), check=3)
    (row,) = place.query("SELECT * FROM matrix WHERE combination = 'number=2 letter=b'")
    assert (row["outcome"], row["reason"]) == ("error", reason)
    assert sum(outcome == "pass" for outcome in place.outcomes().values()) == 11


def test_a_flood_on_the_log_is_capped(place, letters):
    place.run("run", letters([["number=2 letter=b", {"behave": "flood-log"}]]), check=1)
    sizes = [file.stat().st_size for file in (place.state / "logs").rglob("*.log")]
    assert len(sizes) == 12
    assert 32 << 20 < max(sizes) <= 65 << 20


def test_a_worker_that_never_ends_is_killed_when_asked_to_stop(place, letters):
    process = place.start("run", letters([[".", {"behave": "never-end"}]]))
    while len(place.jobs()) < 2:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    output, errors = process.communicate(timeout=30)
    assert process.returncode == 3
    assert "stopped before the end: run the same command to go on" in errors
    assert place.query("SELECT DISTINCT state FROM attempt") == [{"state": "interrupted"}]


def test_sigterm_keeps_what_is_finished(place, letters):
    file = letters([[".", {"outcome": "pass", "seconds": 0.3}]], workers=1)
    process = place.start("run", file)
    while len(place.jobs()) < 4:
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    finished = place.query("SELECT count(*) AS n FROM attempt WHERE state = 'finished'")[0]["n"]
    assert finished >= 3
    place.rules([])
    place.run("run", file, check=1)
    assert place.query("SELECT count(*) AS n FROM attempt WHERE state = 'finished'")[0]["n"] == 12


def kill_at_random(place, file, instant):
    process = place.start("run", file)
    time.sleep(instant)
    process.kill()
    process.communicate(timeout=30)


def test_kill_9_at_fifty_instants_loses_and_repeats_nothing(place, letters):
    """Given a walk of two seconds, when it is killed at 50 random instants, then it still ends with every cell decided, no finished
    attempt repeated, and each finding recorded once."""
    seed = int(os.environ.get("BISECTD_TEST_SEED", "86"))
    chance = random.Random(seed)
    file = letters([["number=[34]", {"outcome": "fail", "seconds": 0.05}], [".", {"outcome": "pass", "seconds": 0.05}]])
    for _ in range(50):
        kill_at_random(place, file, chance.uniform(0.0, 0.4))
        if (place.state / "bisectd.db").exists() and place.query("SELECT name FROM sqlite_master WHERE name = 'attempt'"):
            done = place.query("SELECT cell_id, kind, count(*) AS n FROM attempt WHERE state = 'finished' GROUP BY 1, 2")
            assert all(row["n"] == 1 for row in done), f"seed {seed}: a finished attempt was repeated: {done}"
    place.run("run", file, check=0)
    assert set(place.outcomes().values()) == {"pass", "fail"}
    assert place.query("SELECT combination, final, confirmed FROM first_bad") == \
        [{"combination": "number=3 letter=a", "final": 1, "confirmed": 1}]
    kinds = [row["kind"] for row in place.query("SELECT kind FROM finding")]
    assert kinds.count("first-bad") == 1 and kinds.count("boundary") == 1 and kinds.count("verdict") == 1
    done = place.query("SELECT cell_id, kind, count(*) AS n FROM attempt WHERE state = 'finished' GROUP BY 1, 2")
    assert all(row["n"] == 1 for row in done)


def test_a_state_folder_in_use_is_refused(place, letters):
    file = letters([[".", {"behave": "never-end"}]])
    process = place.start("run", file)
    while not place.jobs():
        time.sleep(0.05)
    second = place.run("run", file, check=3)
    assert f"is in use by another bisectd (process {process.pid})" in second.stderr
    assert "--state" in second.stderr
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)


def test_a_database_of_a_newer_version_is_refused(place, letters):
    file = letters([])
    place.run("run", file, check=1)
    connection = sqlite3.connect(place.state / "bisectd.db")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    result = place.run("run", file, check=3)
    assert "was written by a newer bisectd (schema 99" in result.stderr
    connection = sqlite3.connect(place.state / "bisectd.db")
    connection.execute("PRAGMA user_version = 2")
    connection.close()


def test_a_file_that_is_no_database_is_refused_and_left_alone(place, letters):
    place.state.mkdir()
    database = place.state / "bisectd.db"
    database.write_text("these are somebody's notes, " * 200)
    result = place.run("run", letters([]), check=3)
    assert "is no SQLite database: move it away" in result.stderr
    assert database.read_text().startswith("these are somebody's notes")
    database.unlink()


def test_the_database_of_another_program_is_refused_and_left_alone(place, letters):
    place.state.mkdir()
    connection = sqlite3.connect(place.state / "bisectd.db")
    connection.execute("CREATE TABLE theirs (x)")
    connection.commit()
    connection.close()
    result = place.run("run", letters([]), check=3)
    assert "is the database of another program" in result.stderr
    assert place.query("SELECT name FROM sqlite_master") == [{"name": "theirs"}]


def test_a_full_disk_is_trouble_of_our_own_and_no_outcome(place, letters):
    """On a tmpfs of 4 MiB that is full: errors, never a fail; with room again the same command ends the walk."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small tmpfs needs root")
    place.state.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(place.state)], check=False)
    if mounted.returncode != 0:
        pytest.skip("a tmpfs cannot be mounted here")
    try:
        file = letters([["number=3", "fail"]])
        place.run("run", file, check=0)
        shutil.rmtree(place.state / "logs")
        filler = place.state / "filler"
        try:
            with open(filler, "wb", buffering=0) as full:
                while True:
                    full.write(b"x" * 4096)
        except OSError:
            pass
        place.write("reproducer/readme", "so that all cells are new\n")
        result = place.run("run", file, check=3)
        assert "no space left" in result.stderr.lower()
        filler.unlink()
        place.run("run", file, check=0)
        assert sum(outcome == "fail" for outcome in place.outcomes().values()) == 3
        place.check_invariants()
    finally:
        subprocess.run(["umount", str(place.state)], check=True)


def test_usage_and_missing_files_are_one_clear_line(place):
    assert "no command" in place.run("frobnicate").stderr
    missing = place.run("run", "/nonexistent/file.yaml", check=2)
    assert missing.stderr.count("\n") == 1 and "/nonexistent/file.yaml" in missing.stderr
    assert "needs the file" in place.run("run", check=2).stderr
    assert "there is no investigation" in place.run("report").stderr or "cannot open" in place.run("report").stderr


def test_a_stop_is_for_all_files_that_were_named(place, letters):
    """Given two investigations on the command line, when the first is asked to stop, then the second is not started."""
    file = letters([[".", {"behave": "never-end"}]])
    other = place.write("other.yaml", file.read_text().replace("name: letters", "name: other"))
    process = place.start("run", file, other)
    while len(place.jobs()) < 2:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 3
    assert place.query("SELECT name FROM investigation") == [{"name": "letters"}]
