"""bisect-worker on jobs of kind "cell": every outcome, every limit, and what the sandbox hides."""

import hashlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

import pytest
from worker_harness import WORKER, Lane, bubblewrap_works

BUBBLEWRAP = pytest.param(
    "bubblewrap", marks=pytest.mark.skipif(not bubblewrap_works(), reason="bubblewrap does not work here")
)
MIB = 1 << 20
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture(params=[BUBBLEWRAP, "none"])
def lane(request):
    lane = Lane(request.param)
    yield lane
    lane.close()


@pytest.fixture(params=[BUBBLEWRAP])
def walled(request):
    lane = Lane(request.param)
    yield lane
    lane.close()


@pytest.fixture
def bare():
    lane = Lane("none")
    yield lane
    lane.close()


def compiled(lane, source, flags=()):
    """The build command of a C program; `run` is ["{target}/program"]."""
    lane.write("program.c", source)
    return [["cc", "-O1", *flags, "-o", "{target}/program", "program.c"]]


# Outcomes of a run.

RUNS = [
    # script, fields of the job, outcome, exit, signal
    ("exit 0", {}, "pass", 0, 0),
    ("exit 1", {}, "fail", 1, 0),
    ("exit 3", {"expect_exit": 3}, "pass", 3, 0),
    ("exit 0", {"expect_exit": 3}, "fail", 0, 0),
    ("exit 139", {}, "fail", 139, 0),  # a shell's words for a signal, but nobody was killed
    ("exit 255", {}, "fail", 255, 0),
    ("kill -SEGV $$", {}, "crash", -1, signal.SIGSEGV),
    ("kill -ABRT $$", {}, "crash", -1, signal.SIGABRT),
    ("kill -TERM $$", {}, "crash", -1, signal.SIGTERM),
    ("kill -KILL $$", {}, "crash", -1, signal.SIGKILL),
    ("exit 125", {}, "skip", 125, 0),
    ("exit 126", {}, "error", 126, 0),
    ("exit 127", {}, "error", 127, 0),
    ("no-such-program", {}, "error", 127, 0),
    ("no-such-program", {"expect_exit": 127}, "pass", 127, 0),
    ("exit 125", {"expect_exit": 125}, "pass", 125, 0),
    ("echo one; echo two >&2", {"expect_output": "^two$"}, "pass", 0, 0),
    ("echo one", {"expect_output": "^two$"}, "fail", 0, 0),
    (r"printf 'a\000b\ntwo\n'", {"expect_output": "^two$"}, "pass", 0, 0),
    ("sleep 30", {"run_ms": 300}, "timeout", -1, 0),
    ("trap '' TERM; while :; do sleep 1; done", {"run_ms": 300}, "timeout", -1, 0),
]


@pytest.mark.parametrize("script,fields,outcome,exit_status,number", RUNS)
def test_outcome_of_a_run(lane, script, fields, outcome, exit_status, number):
    answer = lane.shell(script, **fields)
    assert (answer.outcome, answer.exit_status, answer.signal) == (outcome, exit_status, number), (answer.reason, answer.log)
    assert answer.status == 0
    assert answer.sandbox == lane.sandbox
    assert (answer.reason is None) == (outcome == "pass")
    assert answer.runs == [{"outcome": outcome, "exit": exit_status, "signal": number, "ms": answer.run_ms}]


def test_a_program_that_cannot_be_run_is_an_error_with_its_name(lane):
    answer = lane.do(run=["no-such-program"])
    assert answer.outcome == "error"
    assert "cannot run no-such-program: No such file or directory" in answer.reason
    lane.write("text", "no program", 0o644)
    answer = lane.do(run=["./text"])
    assert answer.outcome == "error"
    assert "cannot run ./text: Permission denied" in answer.reason


COUNTED = "n=$(cat count 2>/dev/null || echo 0); n=$((n + 1)); echo $n > count; "
SEVERAL = [
    ("exit 0", "pass", None, 0, 5),
    ("[ $n != 2 ] && [ $n != 4 ]", "flaky", "failed 2 of 5 runs", 1, 5),
    ("exit 1", "fail", "failed 5 of 5 runs", 1, 5),
    ("[ $n = 3 ] && kill -SEGV $$; exit 0", "flaky", "failed 1 of 5 runs", -1, 5),
    ("[ $n = 3 ] && kill -SEGV $$; exit 1", "crash", "signal 11", -1, 5),
    ("[ $n = 3 ] && exit 125; exit 0", "skip", "125", 125, 3),
    ("[ $n = 2 ] && exit 127; exit 1", "error", "127", 127, 2),
]


@pytest.mark.parametrize("script,outcome,reason,exit_status,done", SEVERAL)
def test_several_runs(lane, script, outcome, reason, exit_status, done):
    answer = lane.shell(COUNTED + script, runs=5)
    assert (answer.outcome, answer.exit_status, len(answer.runs)) == (outcome, exit_status, done), answer.log
    assert reason is None or reason in answer.reason
    assert [e for e in answer.events if e["phase"] == "run"][-1] == {
        "event": "phase", "phase": "run", "number": done, "of": 5}


def test_the_signature_is_the_first_line_of_the_first_run_that_is_no_pass(lane):
    script = COUNTED + "[ $n = 1 ] && exit 0; echo; printf '  lost\\tbytes of run %d\\n' $n; echo more; exit 1"
    answer = lane.shell(script, runs=3)
    assert answer.signature == "lost bytes of run 2"
    long = lane.shell("printf 'x%.0s' $(seq 199); printf '\\303\\244tail\\n'; exit 1")
    assert long.signature == "x" * 199


# Outcomes of a build.

BUILDS = [
    ("exit 0", {}, "pass", None),
    ("exit 1", {}, "build-fail", "exit status 1"),
    ("exit 101", {}, "build-fail", "exit status 101"),
    ("exit 125", {}, "skip", "125"),
    ("no-such-compiler", {}, "error", "127"),
    ("sleep 30", {"build_ms": 1000}, "build-fail", "the build did not end within 1 s"),
    ("kill -SEGV $$", {}, "ice", "signal 11"),
    ("kill -TERM $$", {}, "build-fail", "signal 15"),
    ("echo 'error: internal compiler error: oh'; exit 101", {}, "ice", "internal compiler error: oh"),
    ("echo 'x.c:1:2: internal compiler error: in foo, at bar.c:3'; exit 4", {}, "ice", "in foo"),
    ("echo ' 12 | // internal compiler error: only quoted'; exit 1", {}, "build-fail", "exit status 1"),
    ("echo 'PLEASE submit a bug report to https://example'; exit 1", {}, "ice", "PLEASE"),
    ("echo \"note: the compiler unexpectedly panicked. this is a bug.\"; exit 101", {}, "ice", "panicked"),
    ("echo \"  process didn't exit successfully: \\`/t/bin/rustc --crate-name x\\` (signal: 11, SIGSEGV: invalid)\"; exit 101",
     {}, "ice", "rustc"),
    ("echo \"  process didn't exit successfully: \\`/t/build-script-build\\` (signal: 11, SIGSEGV: invalid)\"; exit 101",
     {}, "build-fail", "101"),
    ("echo \"  process didn't exit successfully: \\`/t/bin/rustc --crate-name x\\` (signal: 9, SIGKILL: kill)\"; exit 101",
     {}, "build-fail", "101"),
    ("echo 'ld: final link failed: No space left on device'; exit 1", {}, "error", "disk is full"),
    ("echo 'internal compiler error: in the notes of a build that works'", {}, "pass", None),
]


@pytest.mark.parametrize("script,fields,outcome,reason", BUILDS)
def test_outcome_of_a_build(lane, script, fields, outcome, reason):
    answer = lane.do(build=[["sh", "-c", script]], run=["true"], **fields)
    assert answer.outcome == outcome, answer.log
    assert reason is None or reason in answer.reason
    assert (answer.runs is None) == (outcome != "pass")


def test_a_build_program_that_is_missing_is_an_error_with_its_name(lane):
    answer = lane.do(build=[["no-such-cargo", "build"]], run=["true"])
    assert answer.outcome == "error"
    assert "cannot run no-such-cargo: No such file or directory" in answer.reason


def test_a_compilers_error_is_the_signature(lane):
    answer = lane.do(build=compiled(lane, "int main(void) { return x; }\n"), run=["{target}/program"])
    assert answer.outcome == "build-fail"
    assert "'x' undeclared" in answer.signature.replace("‘", "'").replace("’", "'")


def test_build_commands_go_in_order_and_stop_at_the_first_failure(lane):
    answer = lane.do(build=[["sh", "-c", "echo a >> order"], ["sh", "-c", "echo b >> order; exit 1"],
                            ["sh", "-c", "echo c >> order"]], run=["true"])
    assert answer.outcome == "build-fail"
    assert "build 2 of 3" in answer.reason
    assert (lane.workspace / "reproducer/order").read_text() == "a\nb\n"
    assert [e["phase"] for e in answer.events] == ["workspace", "build", "build"]


# Limits.

HOG = """
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    size_t size = (size_t)atoi(argv[1]) << 20;
    char *memory = malloc(size);
    if (memory == NULL) return 7;
    memset(memory, 1, size);
    sleep(30);
    return memory[size / 2] - 1;
}
"""


def test_memory_in_use_is_limited(lane):
    build = compiled(lane, HOG)
    answer = lane.do(build=build, run=["{target}/program", "300"], memory_bytes=128 * MIB)
    assert answer.outcome == "fail", answer.log
    assert "more than 128 MiB of memory" in answer.reason
    assert answer.seconds < 10


def test_memory_of_a_build_is_limited(lane):
    build = compiled(lane, HOG) + [["{target}/program", "300"]]
    answer = lane.do(build=build, run=["true"], memory_bytes=128 * MIB)
    assert answer.outcome == "build-fail", answer.log
    assert "more than 128 MiB of memory" in answer.reason


def test_address_space_is_limited_at_eight_times_the_memory(lane):
    answer = lane.do(build=compiled(lane, HOG), run=["{target}/program", "1500"], memory_bytes=128 * MIB)
    assert (answer.outcome, answer.exit_status) == ("fail", 7), answer.log


BOMB = """
#include <unistd.h>
int main(void)
{
    for (;;)
        fork();
}
"""


def test_a_fork_bomb_is_bounded(lane):
    answer = lane.do(build=compiled(lane, BOMB), run=["{target}/program"], processes=64, run_ms=5000, timeout=50)
    assert answer.outcome == "fail", answer.log
    assert "more than 64 processes" in answer.reason
    assert answer.seconds < 30
    assert lane.survivors() == []


def test_a_flood_of_output_is_bounded(lane):
    answer = lane.shell("head -c 1000000000 /dev/zero | tr '\\0' x", output_bytes=MIB)
    assert answer.outcome == "fail"
    assert "printed more than" in answer.reason
    assert answer.seconds < 10
    assert len(answer.log) < 1.2 * MIB


def test_output_is_kept_at_both_ends(lane):
    answer = lane.shell("seq 1 100000; echo the last line; exit 1", output_bytes=16384)
    assert answer.outcome == "fail"
    assert "\n1\n2\n3\n" in answer.log
    assert "99999\n100000\nthe last line\n" in answer.log
    assert "bytes left out ...]\n" in answer.log
    assert len(answer.log) < 16384 + 16384 + 2000
    whole = 588895 + len("the last line\n")
    assert f"[... {whole - 16384 - 16384} bytes left out ...]" in answer.log


def test_the_expected_output_may_be_in_the_tail(lane):
    assert lane.shell("seq 1 100000", output_bytes=16384, expect_output="^100000$").outcome == "pass"


def test_file_size_is_limited(lane):
    answer = lane.do(run=["dd", "if=/dev/zero", "of=big", "bs=65536", "count=100"], file_bytes=MIB)
    assert answer.outcome == "fail", answer.log
    assert "file of more than 1 MiB" in answer.reason
    assert (lane.workspace / "reproducer/big").stat().st_size <= MIB


def test_no_core_files_and_bounded_descriptors(lane):
    answer = lane.shell("echo core $(ulimit -c) files $(ulimit -n)")
    assert "core 0 files 4096" in answer.log


@as_root
@pytest.mark.parametrize("sandbox", [BUBBLEWRAP, "none"])
def test_a_full_disk_is_an_error(sandbox):
    lane = Lane(sandbox)
    lane.lane.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=755", "tmpfs", lane.lane], check=True)
    try:
        fill = "cat /dev/zero > fill; exit 1"
        answer = lane.do(build=[["sh", "-c", fill]], run=["true"])
        assert (answer.outcome, "disk is full" in answer.reason) == ("error", True), answer.log
        answer = lane.shell(fill)
        assert (answer.outcome, "disk is full" in answer.reason) == ("error", True), answer.log
        lane.reproducer.joinpath("large").write_bytes(b"x" * 10 * MIB)
        answer = lane.do(run=["true"])
        assert (answer.outcome, "No space left" in answer.reason) == ("error", True), answer.log
    finally:
        subprocess.run(["umount", "-l", lane.lane], check=True)
        lane.close()


# What outlives nothing.

DAEMON = """
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
/* forks twice into a session of its own, keeps the pipes open, ignores polite signals */
int main(int argc, char **argv)
{
    if (fork() == 0) {
        setsid();
        if (fork() == 0) {
            for (int i = 1; i < 32; i++)
                signal(i, SIG_IGN);
            for (;;)
                sleep(1);
        }
        _exit(0);
    }
    sleep(atoi(argv[1]));
    return 0;
}
"""


def test_a_build_that_leaves_a_daemon_behind_does_not_hang_us(lane):
    build = compiled(lane, DAEMON) + [["{target}/program", "0"]]
    check = "for p in /proc/[0-9]*/cmdline; do tr '\\0' ' ' < $p; echo; done"
    answer = lane.do(build=build, run=["sh", "-c", check])
    assert answer.outcome == "pass", answer.log
    assert "target/program 0" not in answer.log.split("== run")[1]  # gone before the run began
    assert answer.seconds < 8
    assert lane.survivors() == []


def test_a_daemon_is_gone_after_a_timeout(lane):
    build = compiled(lane, DAEMON) + [["{target}/program", "100"]]
    answer = lane.do(build=build, run=["true"], build_ms=3000)
    assert answer.outcome == "build-fail", answer.log
    assert "did not end within 3 s" in answer.reason
    assert answer.seconds < 8
    assert lane.survivors() == []


def test_a_timeout_says_goodbye_first(lane):
    answer = lane.shell("trap 'echo goodbye; exit 0' TERM; echo ready; while :; do sleep 0.05; done", run_ms=500)
    assert answer.outcome == "timeout"
    assert "goodbye" in answer.log


def await_log(worker, text, seconds=10):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if text in open(worker.log.name, errors="replace").read():
            return
        time.sleep(0.01)
    raise AssertionError(f"no {text!r} in the log")


SLEEPER = "(setsid sh -c 'trap \"\" TERM HUP; while :; do sleep 1; done' &) ; echo ready; sleep 100"


def test_nothing_survives_the_end_of_standard_input(lane):
    worker = lane.start(lane.job(run=["sh", "-c", SLEEPER]))
    await_log(worker, "\nready\n")
    worker.stdin.close()
    worker.wait(2)
    assert worker.returncode == 3
    assert lane.survivors() == []
    assert b'"result"' not in worker.stdout.read()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_survives_the_death_of_the_worker(lane, number):
    worker = lane.start(lane.job(run=["sh", "-c", SLEEPER]))
    await_log(worker, "\nready\n")
    worker.send_signal(number)
    worker.wait(2)
    assert lane.wait_until_empty(2) == []


def test_nothing_survives_when_nobody_listens(lane):
    worker = lane.start(lane.job(run=["sh", "-c", "sleep 0.3"], runs=5))
    worker.stdout.close()
    worker.wait(5)
    assert worker.returncode == 3
    assert lane.wait_until_empty(2) == []


def test_a_log_that_nobody_reads_does_not_stop_the_clock(lane):
    read_end, write_end = os.pipe()
    worker = subprocess.Popen([WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=write_end, bufsize=0)
    os.close(write_end)
    worker.log = None
    lane.started.append(worker)
    worker.stdin.write((json.dumps(lane.job(run=["sh", "-c", "seq 1 100000; sleep 100"], run_ms=500)) + "\n").encode())
    worker.wait(15)
    os.close(read_end)
    assert json.loads(worker.stdout.read().splitlines()[-1])["outcome"] == "timeout"


def test_a_job_waits_for_the_lock_of_a_dying_worker(lane):
    first = lane.start(lane.job(run=["sleep", "1"]))
    await_log(first, "== run")
    begin = time.monotonic()
    second = lane.do(run=["true"])
    assert second.outcome == "pass"
    assert time.monotonic() - begin > 0.5
    assert first.wait(5) == 0


def test_after_a_kill_the_next_job_starts_at_once(lane):
    worker = lane.start(lane.job(run=["sh", "-c", SLEEPER]))
    await_log(worker, "\nready\n")
    worker.kill()
    answer = lane.do(run=["true"])
    assert answer.outcome == "pass"
    assert answer.seconds < 3


# The sandbox.

def test_homes_database_and_secrets_do_not_exist_inside(walled):
    secret = pathlib.Path.home() / f".bisectd-test-secret-{os.getpid()}"
    secret.write_text("hunter2")
    try:
        paths = [secret, walled.state / "bisectd.db", "/etc/shadow", walled.state / "reproducer"]
        for path in paths:
            answer = walled.do(run=["sh", "-c", '! cat "$0" && ! ls "$0"/', str(path)])
            assert answer.outcome == "pass", (path, answer.log)
            assert "hunter2" not in answer.log and "daemon's own" not in answer.log
    finally:
        secret.unlink()


def test_nothing_can_be_written_outside(walled):
    places = ["/", "/usr", "/etc", "/opt", "/var", "/proc/sys/kernel", "/sys", walled.state, walled.lane,
              walled.workspace.parent, walled.target.parent]
    for place in places:
        answer = walled.do(run=["sh", "-c", '! touch "$0/bisectd-was-here"', str(place)])
        assert answer.outcome == "pass", (place, answer.log)
        assert not (pathlib.Path(place) / "bisectd-was-here").exists()
    answer = walled.do(run=["sh", "-c", 'echo x > "$0"', str(walled.state / "bisectd.db")])
    assert (walled.state / "bisectd.db").read_text() == "the daemon's own"


def test_what_may_be_written_can_be_written(lane):
    answer = lane.shell('touch file "$HOME/x" "$TMPDIR/x" /tmp/bisectd-test-x "$CARGO_HOME/x" "$CARGO_TARGET_DIR/x"')
    assert answer.outcome == "pass", answer.log
    pathlib.Path("/tmp/bisectd-test-x").unlink(missing_ok=True)
    assert lane.target.joinpath("x").exists()


def test_other_processes_do_not_exist_inside(walled):
    answer = walled.shell("ls -d /proc/[0-9]* | wc -l")
    assert int(answer.log.splitlines()[2]) < 8
    answer = walled.shell(f"! kill -0 {os.getpid()}")
    assert answer.outcome == "pass"
    answer = walled.shell("kill -KILL 1; ! cat /proc/1/environ && ! ls /proc/1/fd/")
    assert answer.outcome == "pass", answer.log  # and the keeper still answers


def test_the_environment_is_ours_alone(lane):
    answer = lane.do(own_environment=dict(os.environ, BISECTD_SECRET="hunter2"), run=["env"], path=["/opt/first"])
    lines = [line for line in answer.log.splitlines() if not line.startswith("== ")]
    assert {line.split("=")[0] for line in lines} == {
        "PATH", "HOME", "TMPDIR", "LANG", "RUST_BACKTRACE", "CARGO_HOME", "CARGO_TARGET_DIR", "CARGO_INCREMENTAL",
        "CARGO_TERM_COLOR"}
    assert "PATH=/opt/first:/usr/local/sbin:" in answer.log
    everything = lane.shell("cat /proc/*/environ | tr '\\0' '\\n' | grep hunter2; exit 0",
                            own_environment={"BISECTD_SECRET": "hunter2", "PATH": os.environ["PATH"]})
    if lane.sandbox == "bubblewrap" or os.geteuid() == 0:
        assert "=hunter2" not in everything.log


CONNECT = """
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
int main(int argc, char **argv)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1]))};
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    int connected = connect(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr *)&address, sizeof address) == 0;
    puts(connected ? "connected" : "no way out");
    return 0;
}
"""


@pytest.fixture
def listener():
    server = socket.create_server(("127.0.0.1", 0))
    yield server.getsockname()[1]
    server.close()


def test_no_network_unless_the_build_may_have_it(lane, listener):
    if lane.sandbox == "none" and os.geteuid() != 0:
        pytest.skip("without bubblewrap only root can take the network away")
    build = compiled(lane, CONNECT) + [["{target}/program", str(listener)]]
    run = ["{target}/program", str(listener)]
    answer = lane.do(build=build, run=run)
    assert (answer.outcome, answer.log.count("no way out")) == ("pass", 2), answer.log
    answer = lane.do(build=build, run=run, network_for_build=True)
    before, after = answer.log.split("== run")
    assert ("connected" in before, "no way out" in after) == (True, True), answer.log


def test_named_folders_are_shown_read_only(walled):
    shown = walled.state / "toolchain"
    (shown / "bin").mkdir(parents=True)
    (shown / "bin/tool").write_text("#!/bin/sh\necho the tool\n")
    (shown / "bin/tool").chmod(0o755)
    answer = walled.do(run=["tool"], path=[str(shown / "bin")], read_only=[str(shown)], expect_output="the tool")
    assert answer.outcome == "pass", answer.log
    answer = walled.do(run=["sh", "-c", '! touch "$0/x"', str(shown)], read_only=[str(shown)])
    assert answer.outcome == "pass", answer.log
    assert walled.do(run=["sh", "-c", '! ls "$0"', str(shown)]).outcome == "pass"


def test_a_named_folder_around_the_state_does_not_show_the_state(walled):
    (walled.state / "beside").mkdir()
    outer = str(walled.state.parent)
    script = '! cat "$0/bisectd.db" && cat "$0/beside/x"'
    (walled.state / "beside/x").write_text("shown")
    answer = walled.do(run=["sh", "-c", script, str(walled.state)], read_only=[outer, str(walled.state / "beside")])
    assert answer.outcome == "pass", answer.log


@as_root
def test_commands_are_not_root(lane):
    answer = lane.shell("id -u; id -G; touch file")
    uid = int(answer.log.splitlines()[2])
    assert 61184 <= uid < 62184
    assert answer.log.splitlines()[3] == str(uid)
    assert (lane.workspace / "reproducer/file").stat().st_uid == uid


@as_root
def test_where_no_other_user_gets_in_commands_stay_roots(bare):
    bare.state.chmod(0o700)
    answer = bare.shell("id -u")
    assert answer.outcome == "pass", answer.log
    assert "commands stay root's" in answer.log
    bare.state.chmod(0o755)
    assert bare.shell("test $(id -u) -ne 0").outcome == "pass"  # and back


def test_without_bubblewrap_auto_goes_on_and_says_so():
    lane = Lane("auto")
    try:
        answer = lane.do(run=["true"], own_environment={"PATH": "/nonexistent"})
        assert (answer.outcome, answer.sandbox) == ("pass", "none"), answer.log
        assert answer.log.count("bubblewrap does not work here") == 1
        answer = lane.do(run=["true"], own_environment={"PATH": "/nonexistent"}, sandbox="bubblewrap")
        assert answer.outcome == "error"
        assert "cannot run bwrap" in answer.reason
        broken = lane.state / "bin"
        broken.mkdir()
        (broken / "bwrap").write_text("#!/bin/sh\necho 'bwrap: No permissions to create a namespace' >&2\nexit 1\n")
        (broken / "bwrap").chmod(0o755)
        answer = lane.do(run=["true"], own_environment={"PATH": f"{broken}:/usr/bin:/bin"})
        assert (answer.outcome, answer.sandbox) == ("pass", "none"), answer.log
        assert "No permissions to create a namespace" in answer.log
    finally:
        lane.close()


# The workspace.

def test_the_workspace_is_fresh_and_the_target_stays(lane):
    lane.write("data", "one")
    lane.write("target/old", "x")
    lane.write(".git/config", "x")
    lane.write("script", "#!/bin/sh\ntrue\n", 0o755)
    os.utime(lane.reproducer / "data", (1000, 1000))
    os.symlink("data", lane.reproducer / "link")
    begin = time.time() - 2
    assert lane.shell("./script && touch left $CARGO_TARGET_DIR/kept && cat link").outcome == "pass"
    copy = lane.workspace / "reproducer"
    assert (copy / "data").stat().st_mtime > begin
    assert not (copy / "target").exists() and not (copy / ".git").exists()
    lane.write("Cargo.toml", "")
    assert lane.shell("test ! -e left && touch $CARGO_TARGET_DIR/kept").outcome == "pass"
    assert lane.shell("test -e $CARGO_TARGET_DIR/kept").outcome == "pass"
    assert lane.shell("test ! -e $CARGO_TARGET_DIR/kept", clean=True).outcome == "pass"


def test_what_a_build_without_cargo_left_is_not_the_next_cells(lane):
    """Given a build that leaves a program in {target}, when the next build makes none, then the old one does not run."""
    assert lane.do(build=[["sh", "-c", "cp /bin/true {target}/program"]], run=["{target}/program"]).outcome == "pass"
    assert lane.do(build=[["true"]], run=["{target}/program"]).outcome == "error"


def test_checkouts_and_placeholders(lane):
    exported = lane.state / "export"
    exported.mkdir()
    (exported / "file").write_text("from the checkout")
    answer = lane.do(
        checkouts={"usdt": str(exported)},
        placeholders={"features": "both-arms"},
        environment={"FROM": "{checkout:usdt}/{features}", "KEPT": '{"a": 1}'},
        run=["sh", "-c", 'cat "$0"; echo; echo "$1" "$2" "$3"; echo "$FROM $KEPT"', "{checkout:usdt}/file", "{features}",
             "{workspace}", "{target}"])
    assert answer.outcome == "pass", answer.log
    assert f"from the checkout\nboth-arms {lane.workspace} {lane.target}\n" in answer.log
    assert f'{lane.workspace}/checkouts/usdt/both-arms {{"a": 1}}' in answer.log
    (exported / "file").unlink()  # a copy, not the export
    assert (lane.workspace / "checkouts/usdt/file").exists()


def test_the_preparation_is_put_in_place(lane):
    prepared = lane.state / "prepared"
    prepared.mkdir()
    (prepared / "Cargo.lock").write_text("theirs")
    (prepared / "cargo-config.toml").write_text("[net]\n")
    lane.write("Cargo.lock", "ours")
    answer = lane.shell("cat Cargo.lock ../.cargo/config.toml; echo offline $CARGO_NET_OFFLINE", prepared=str(prepared))
    assert "theirs[net]\noffline true\n" in answer.log
    answer = lane.do(run=["true"], prepared=str(lane.state / "nowhere"))
    assert (answer.outcome, "nowhere is missing" in answer.reason) == ("error", True)


def test_the_binary_is_the_program_that_ran(lane):
    answer = lane.do(build=compiled(lane, "int main(void) { return 0; }\n"), run=["{target}/program"])
    assert answer.binary == hashlib.sha256((lane.target / "program").read_bytes()).hexdigest()
    lane.write("script", "#!/bin/sh\n", 0o755)
    answer = lane.do(run=["./script"])
    assert answer.binary == hashlib.sha256(b"#!/bin/sh\n").hexdigest()
    assert lane.do(run=["/bin/true"]).binary is None
    assert lane.do(build=[["ln", "-s", "/bin/true", "sly"]], run=["./sly"]).binary is None


def test_the_commands_repeat_the_cell_by_hand(lane):
    build = compiled(lane, '#include <stdio.h>\n#include <stdlib.h>\nint main(int c, char **v)'
                           '{ printf("%s|%s|%s", v[1], getenv("QUOTED"), getenv("PATH")); return 42; }\n')
    answer = lane.do(build=build, run=["{target}/program", "it's $HOME \"`x`\"\nnew"], environment={"QUOTED": "a b'c"},
                     path=["/opt/first one"])
    assert (answer.outcome, answer.exit_status) == ("fail", 42), answer.log
    for name in lane.target.iterdir():
        name.unlink()
    again = subprocess.run(["sh", "-c", answer.commands], capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"})
    assert again.returncode == 42, again.stderr
    assert again.stdout.startswith("it's $HOME \"`x`\"\nnew|a b'c|/opt/first one:/usr/local/sbin:")
    assert again.stdout in answer.log
    assert all(len(line) < 400 for line in answer.commands.splitlines())


def test_the_log_has_a_heading_for_each_command(lane):
    answer = lane.do(build=[["echo", "hello there"]], run=["sh", "-c", "printf unfinished; exit 2"])
    assert f"== build: echo 'hello there' (in {lane.workspace}/reproducer)\nhello there\n== exit status 0 after " in answer.log
    assert "\nunfinished\n== exit status 2 after " in answer.log
    assert [e["phase"] for e in answer.events] == ["workspace", "build", "run"]


# Jobs that are none.

def test_version_help_and_usage():
    def run(*words):
        return subprocess.run([WORKER, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL)

    assert run("--version").stdout.startswith("bisect-worker ")
    assert "standard input" in run("--help").stdout
    assert run("--nonsense").returncode == 2


GARBAGE = [
    (b"\n", "no JSON"),
    (b"hello\n", "no JSON"),
    (b"[]\n", "no JSON object"),
    (b"{}\n", "protocol version"),
    (b'{"version": 99, "kind": "cell"}\n', "protocol version 99"),
    (b'{"version": 1}\n', 'no "kind"'),
    (b'{"version": 1, "kind": "dance"}\n', 'no job of kind "dance"'),
    (b'{"version": 1, "kind": "cell"}\n', 'no "reproducer"'),
    (b'{"version": 1, "kind": "cell", "runs": "many"}\n', "wrong type"),
    (b'{"version": 1, "kind": "cell", "kind": "cell"}\n', "no JSON"),
    (b"[" * 100000 + b"\n", "no JSON"),
    (b"x" * (5 << 20) + b"\n", "longer than"),
    (b'{"version": 1, "kind": "\xff"}\n', "no JSON"),
    (b'{"version": 1, "kind": "cell', "ended before"),
]


# named by hand: pytest puts the name of a test into the environment, where five megabytes do not fit
@pytest.mark.parametrize("line,reason", GARBAGE, ids=[f"{len(line)}-bytes-{reason}" for line, reason in GARBAGE])
def test_a_line_that_is_no_job_gets_one_clear_reason(bare, line, reason):
    begin = time.monotonic()
    worker = bare.start(line)
    if not line.endswith(b"\n"):
        worker.stdin.close()
    answer = bare.finish(worker, begin)
    assert (answer.status, answer.outcome) == (0, "error")
    assert reason in answer.reason


BAD = [
    ({"run": None}, 'no command to "run"'),
    ({"run": []}, 'no command to "run"'),
    ({"reproducer": "relative"}, "no absolute path"),
    ({"workspace": "/"}, "no absolute path"),
    ({"reproducer": "/no/such/folder"}, "cannot copy /no/such/folder"),
    ({"runs": 1000000}, '"runs"'),
    ({"runs": -1}, '"runs"'),
    ({"run_ms": -5}, '"run_ms"'),
    ({"memory_bytes": 1 << 62}, '"memory_bytes"'),
    ({"expect_exit": 256}, "no exit status"),
    ({"expect_output": "("}, '"expect_output"'),
    ({"sandbox": "chroot"}, "none of auto"),
    ({"build": "make"}, '"build"'),
    ({"build": [[]]}, "without words"),
    ({"build": [["a", 1]]}, "no text"),
    ({"build": [1]}, "without words"),
    ({"checkouts": {"../up": "/usr"}}, "no name for a checkout"),
    ({"checkouts": {"usdt": "/no/such/export"}}, "/no/such/export"),
]


@pytest.mark.parametrize("fields,reason", BAD)
def test_a_job_that_cannot_be_done_says_why(bare, fields, reason):
    answer = bare.do(**{"run": ["true"], **fields})
    assert answer.outcome == "error"
    assert reason in answer.reason


def test_hostile_trees_are_removed_by_the_next_job(lane):
    script = "i=0; while [ $i -lt 60 ]; do mkdir -p ddddddddddddddddddddddddddddddddddddddddd; chmod 755 .; " \
             "cd ddddddddddddddddddddddddddddddddddddddddd; i=$((i + 1)); done; touch x; chmod 0 ."
    assert lane.shell(script + "; cd /; ln -s / $HOME/root; mkfifo $HOME/pipe; chmod 0 $HOME").outcome == "pass"
    answer = lane.do(run=["true"])
    assert answer.outcome == "pass", answer.reason


def test_trees_deeper_than_a_path_is_long_are_removed(lane):
    source = """
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
int main(void)
{
    for (int i = 0; i < 1000; i++)
        if (mkdir("a_folder_with_a_long_name", 0700) < 0 || chdir("a_folder_with_a_long_name") < 0)
            return 1;
    return 0;
}
"""
    assert lane.do(build=compiled(lane, source), run=["{target}/program"]).outcome == "pass"
    answer = lane.do(run=["true"])
    assert answer.outcome == "pass", answer.reason


# With cargo.

def toolchain():
    cargo = shutil.which("cargo")
    if cargo is None:
        return None
    probe = subprocess.run(["rustc", "--print", "sysroot"], capture_output=True, text=True)
    return pathlib.Path(probe.stdout.strip()) if probe.returncode == 0 else None


needs_cargo = pytest.mark.skipif(toolchain() is None, reason="there is no cargo")


def crate(lane, main, build_script=None):
    lane.write("Cargo.toml", '[package]\nname = "tiny"\nversion = "0.1.0"\nedition = "2021"\n')
    lane.write("src/main.rs", main)
    if build_script is not None:
        lane.write("build.rs", build_script)
    root = toolchain()
    return {"path": [str(root / "bin")], "read_only": [str(root)], "build": [["cargo", "build"]],
            "run": ["{target}/debug/tiny"], "timeout": 120}


@needs_cargo
def test_cargo_builds_and_a_warm_build_does_less(lane):
    fields = crate(lane, 'fn main() { println!("hello"); }\n')
    answer = lane.do(**fields, expect_output="^hello$")
    assert answer.outcome == "pass", answer.log
    assert "Compiling tiny" in answer.log
    assert lane.do(**fields, expect_output="^hello$").outcome == "pass"
    lane.write("src/main.rs", "fn main() { std::process::exit(1) }\n")
    answer = lane.do(**fields)
    assert (answer.outcome, answer.exit_status) == ("fail", 1), answer.log  # a kept target may not hide a change


@needs_cargo
def test_cargo_errors_panics_and_aborts(lane):
    answer = lane.do(**crate(lane, "fn main() { nothing() }\n"))
    assert (answer.outcome, answer.signature) == ("build-fail", "error[E0425]: cannot find function `nothing` in this scope")
    answer = lane.do(**crate(lane, 'fn main() { panic!("at the disco") }\n'))
    assert (answer.outcome, answer.exit_status) == ("fail", 101)
    answer = lane.do(**crate(lane, "fn main() { std::process::abort() }\n"))
    assert (answer.outcome, answer.signal) == ("crash", signal.SIGABRT)


@needs_cargo
def test_a_build_script_that_daemonizes_is_gone(lane):
    lane.write("daemon.c", DAEMON)
    script = """
fn main() {
    let out = std::env::var("OUT_DIR").unwrap() + "/daemon";
    assert!(std::process::Command::new("cc").args(["-o", &out, "daemon.c"]).status().unwrap().success());
    std::process::Command::new(&out).arg("1000").status().unwrap();
}
"""
    answer = lane.do(**crate(lane, "fn main() {}\n", script), build_ms=8000)
    assert answer.outcome == "build-fail", answer.log
    assert "did not end within 8 s" in answer.reason
    assert lane.survivors() == []
