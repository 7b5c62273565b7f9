"""Starts the real bisect-worker with handmade jobs, and looks for what it leaves behind."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

from conftest import WORKER




def bubblewrap_works():
    if shutil.which("bwrap") is None:
        return False
    probe = ["bwrap", "--ro-bind", "/", "/", "--unshare-pid", "--unshare-net", "--proc", "/proc", "true"]
    return subprocess.run(probe, capture_output=True).returncode == 0


class Answer:
    def __init__(self, worker, output, log, seconds):
        lines = [json.loads(line) for line in output.splitlines()]
        self.events = lines[:-1]
        self.result = lines[-1] if lines and lines[-1]["event"] == "result" else None
        self.log = log
        self.seconds = seconds
        self.status = worker.returncode

    def __getattr__(self, name):
        if name.startswith("__") or self.__dict__.get("result") is None:
            raise AttributeError(name)
        return self.result.get(name)


class Lane:
    """A state folder with one lane in it, as the daemon lays it out, and a reproducer."""

    def __init__(self, sandbox="none"):
        # not below /tmp, and open to others: the commands run as another user where we are root
        self.state = pathlib.Path(tempfile.mkdtemp(prefix="bisectd-test-", dir="/var/tmp"))
        self.state.chmod(0o755)
        self.sandbox = sandbox
        self.reproducer = self.state / "reproducer"
        self.reproducer.mkdir()
        self.lane = self.state / "lanes" / "0"
        self.workspace = self.lane / "workspace"
        self.target = self.lane / "targets" / "one" / "target"
        (self.state / "bisectd.db").write_text("the daemon's own")
        self.started = []

    def write(self, name, text, mode=0o644):
        path = self.reproducer / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path

    def job(self, **fields):
        job = {
            "version": 1,
            "kind": "cell",
            "id": "test",
            "reproducer": str(self.reproducer),
            "workspace": str(self.workspace),
            "target": str(self.target),
            "sandbox": self.sandbox,
            "runs": 1,
            "run_ms": 20000,
            "build_ms": 60000,
        }
        job.update(fields)
        return {key: value for key, value in job.items() if value is not None}

    def start(self, text, environment=None):
        log = open(self.state / f"log-{len(self.started)}", "w+")
        worker = subprocess.Popen(
            [WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=environment, bufsize=0
        )
        worker.log = log
        self.started.append(worker)
        try:
            worker.stdin.write(text if isinstance(text, bytes) else (json.dumps(text) + "\n").encode())
        except BrokenPipeError:
            pass
        return worker

    def do(self, own_environment=None, timeout=60, **fields):
        """One job to its end; `own_environment` is the worker's."""
        begin = time.monotonic()
        worker = self.start(self.job(**fields), own_environment)
        return self.finish(worker, begin, timeout)

    def finish(self, worker, begin, timeout=60):
        # standard input stays open: its end would stop the worker
        reader = threading_reader(worker.stdout)
        worker.wait(timeout)
        output = reader()
        worker.log.seek(0)
        log = open(worker.log.name, errors="replace").read()
        return Answer(worker, output, log, time.monotonic() - begin)

    def shell(self, script, **fields):
        """One run of a shell script."""
        return self.do(run=["sh", "-c", script], **fields)

    def survivors(self):
        """Every process that has this state folder in its environment, arguments or working folder."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
                seen = (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes()
                seen += os.readlink(entry / "cwd").encode()
            except OSError:
                continue
            if state != "Z" and str(self.state).encode() in seen:
                found.append((int(entry.name), (entry / "cmdline").read_bytes().replace(b"\0", b" ")))
        return found

    def wait_until_empty(self, seconds):
        end = time.monotonic() + seconds
        while self.survivors() and time.monotonic() < end:
            time.sleep(0.02)
        return self.survivors()

    def close(self):
        for worker in self.started:
            if worker.poll() is None:
                worker.kill()
                worker.wait()
        left = self.wait_until_empty(3)
        assert left == [], f"left alive: {left}"
        subprocess.run(["chmod", "-R", "u+rwX", self.state], stderr=subprocess.DEVNULL)
        shutil.rmtree(self.state)


def threading_reader(stream):
    """Read a pipe to its end beside us; calling the result waits for it."""
    import threading

    kept = []
    thread = threading.Thread(target=lambda: kept.append(stream.read()), daemon=True)
    thread.start()

    def finish():
        thread.join(10)
        return kept[0].decode() if kept else ""

    return finish
