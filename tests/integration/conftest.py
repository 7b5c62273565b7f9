"""What the integration tests share: the programs under test, a place to work, and the checks that end every test."""

import json
import os
import sqlite3
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BISECTD_BUILD", ROOT / "build")).resolve()
BISECTD = BUILD / "bisectd"
WORKER = BUILD / "bisect-worker"
FAKE_WORKER = Path(__file__).with_name("fake_worker.py")


def processes_below(folder):
    """Processes whose command line or working folder names the folder: nothing of a test may outlive it."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            place = os.readlink(entry / "cwd")
        except OSError:
            continue
        if str(folder) in command or place.startswith(str(folder)):
            found.append((int(entry.name), command))
    return found


class Place:
    """A folder with investigations, a state folder, and the means to run bisectd in it."""

    def __init__(self, folder):
        self.folder = folder
        self.state = folder / "state"
        self.environment = dict(os.environ)
        self.fake = False

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def rules(self, rules):
        """Use the fake worker, with these rules."""
        self.fake = True
        path = self.folder / "rules.json"
        path.write_text(json.dumps(rules))
        self.environment["FAKE_WORKER_RULES"] = str(path)
        self.environment["FAKE_WORKER_LOG"] = str(self.folder / "jobs.log")

    def jobs(self, kind="cell"):
        path = self.folder / "jobs.log"
        if not path.exists():
            return []
        jobs = [json.loads(line) for line in path.read_text().splitlines()]
        return [job for job in jobs if job["kind"] == kind]

    def command(self, *arguments):
        words = [str(BISECTD), arguments[0], "--state", str(self.state)]
        if self.fake:
            words += ["--worker", str(FAKE_WORKER)]
        return words + [str(argument) for argument in arguments[1:]]

    def run(self, *arguments, timeout=120, check=None):
        result = subprocess.run(self.command(*arguments), cwd=self.folder, env=self.environment, capture_output=True,
                                text=True, timeout=timeout, check=False)
        if check is not None:
            assert result.returncode == check, result.stderr + result.stdout
        return result

    def start(self, *arguments):
        return subprocess.Popen(self.command(*arguments), cwd=self.folder, env=self.environment, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def query(self, sql, *parameters):
        connection = sqlite3.connect(f"file:{self.state}/bisectd.db?mode=ro", uri=True)
        connection.row_factory = sqlite3.Row
        try:
            return [dict(row) for row in connection.execute(sql, parameters)]
        finally:
            connection.close()

    def outcomes(self):
        return {row["combination"]: row["outcome"] for row in self.query("SELECT combination, outcome FROM matrix")}

    def check_invariants(self):
        if (self.state / "bisectd.db").exists():
            connection = sqlite3.connect(f"file:{self.state}/bisectd.db?mode=ro", uri=True)
            try:
                assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
                assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
            finally:
                connection.close()
        deadline = time.monotonic() + 10
        while processes_below(self.folder) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert processes_below(self.folder) == []


@pytest.fixture
def place(tmp_path):
    made = Place(tmp_path)
    yield made
    made.check_invariants()


LETTERS = """\
name: letters
question: Which letters are bad?
workers: {workers}
confirm: {confirm}
axes:
  - {{name: number, type: choice, ordered: true, values: ["1", "2", "3", "4"]}}
  - {{name: letter, type: choice, values: [a, b, c]}}
reproducer:
  path: reproducer
  run: ["true", "{{number}}", "{{letter}}"]
{more}"""


@pytest.fixture
def letters(place):
    """An investigation over 4 numbers and 3 letters, tried by the fake worker."""

    def make(rules, workers=2, confirm=1, more=""):
        place.write("reproducer/readme", "nothing to build\n")
        place.rules(rules)
        return place.write("letters.yaml", LETTERS.format(workers=workers, confirm=confirm, more=more))

    return make
