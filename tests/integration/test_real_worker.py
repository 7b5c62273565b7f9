"""bisectd with its real worker and small C programs and scripts as reproducers."""

import signal
import subprocess
import time

from conftest import processes_below

PROGRAM = r"""
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int count, char **words)
{
	const char *what = count > 1 ? words[1] : "";
	printf("asked to %s at level %d\n", what, LEVEL);
	fflush(stdout);
	if (strcmp(what, "fail") == 0)
		return LEVEL > 1 ? 1 : 0;
	if (strcmp(what, "crash") == 0)
		raise(SIGSEGV);
	if (strcmp(what, "look-crashed") == 0)
		return 139;
	if (strcmp(what, "skip") == 0)
		return 125;
	if (strcmp(what, "hang") == 0)
		pause();
	return 0;
}
"""

INVESTIGATION = """\
name: small
workers: 2
confirm: 2
retries: 0
bad: [fail, crash]
axes:
  - {name: level, type: choice, ordered: true, values: ["1", "2"]}
  - {name: what, type: choice, values: [%s]}
reproducer:
  path: reproducer
  build: [cc, "-DLEVEL={level}", -o, "{target}/program", program.c]
  run: ["{target}/program", "{what}"]
  runs: 2
  expect: {exit: 0, output: "asked to"}
  limits: {build: 60s, run: 2s}
"""


def investigate(place, *whats, program=PROGRAM):
    place.write("reproducer/program.c", program)
    return place.write("small.yaml", INVESTIGATION % ", ".join(whats))


def test_each_outcome_is_told_apart(place):
    place.run("run", investigate(place, "pass", "fail", "crash", "look-crashed", "skip", "hang"), check=0)
    outcomes = place.outcomes()
    assert {what: outcomes[f"level=2 what={what}"] for what in ("pass", "fail", "crash", "look-crashed", "skip", "hang")} == \
        {"pass": "pass", "fail": "fail", "crash": "crash", "look-crashed": "fail", "skip": "skip", "hang": "timeout"}
    crashed = place.query("SELECT DISTINCT signal FROM attempt WHERE outcome = 'crash'")
    assert crashed == [{"signal": 11}]


def test_a_program_that_does_not_compile_is_build_fail_and_no_evidence(place):
    place.run("run", investigate(place, "pass", program="#if LEVEL > 1\n#error no\n#endif\n" + PROGRAM), check=1)
    assert place.outcomes() == {"level=1 what=pass": "pass", "level=2 what=pass": "build-fail"}


def test_the_commands_of_the_report_repeat_the_bad_cell(place):
    place.run("run", investigate(place, "fail"), check=0)
    (first,) = place.query("SELECT * FROM first_bad")
    assert first["combination"] == "level=2 what=fail"
    repeated = subprocess.run(["sh", "-c", first["commands"]], capture_output=True, text=True, timeout=60, check=False)
    assert repeated.returncode == 1
    assert "asked to fail at level 2" in repeated.stdout


def test_the_log_of_an_attempt_holds_commands_and_output(place):
    place.run("run", investigate(place, "fail"), check=0)
    (first,) = place.query("SELECT * FROM first_bad")
    log = (place.state / first["log"]).read_text()
    assert "cc -DLEVEL=2" in log and "asked to fail at level 2" in log and "exit status 1" in log


def wait_for(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert condition()


def hanging(place):
    process = place.start("run", investigate(place, "hang"))
    wait_for(lambda: sum("program" in command for _, command in processes_below(place.state)) >= 1)
    return process


def test_kill_9_of_the_daemon_takes_its_workers_and_their_programs_along(place):
    process = hanging(place)
    process.kill()
    process.communicate()
    wait_for(lambda: processes_below(place.folder) == [], seconds=5)
    place.run("run", place.folder / "small.yaml", check=1)
    assert place.outcomes() == {"level=1 what=hang": "timeout", "level=2 what=hang": "timeout"}
    states = place.query("SELECT state, count(*) AS n FROM attempt GROUP BY 1 ORDER BY 1")
    assert states[0] == {"state": "finished", "n": 2} and states[1]["state"] == "interrupted"


def test_sigterm_while_building_ends_soon_and_goes_on_later(place):
    file = investigate(place, "pass")
    slow = file.read_text().replace('build: [cc, ', 'build: [sh, -c, "sleep 5; exec cc \\"$@\\"", cc, ')
    file.write_text(slow)
    process = place.start("run", file)
    wait_for(lambda: any("sleep 5" in command for _, command in processes_below(place.folder)))
    started = time.monotonic()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 3
    assert time.monotonic() - started < 4
    assert processes_below(place.folder) == []
    place.run("run", file, check=1)
    assert set(place.outcomes().values()) == {"pass"}


DAEMONIZES = r"""
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	signal(SIGTERM, SIG_IGN);
	if (fork() > 0)
		pause(); /* the build never ends */
	setsid();
	if (fork() > 0)
		_exit(0);
	pause(); /* and this one does not belong to anybody */
}
"""


def test_a_build_that_daemonizes_leaves_nothing_behind_when_its_time_is_up(place):
    file = investigate(place, "pass", program=DAEMONIZES)
    text = file.read_text().replace("build: [cc, ", "build:\n    - [cc, ").replace(
        "program.c]\n", 'program.c]\n    - ["{target}/program"]\n').replace("build: 60s", "build: 3s")
    file.write_text(text)
    place.run("run", file, check=1)
    assert set(place.outcomes().values()) == {"build-fail"}
    assert "did not end" in place.query("SELECT reason FROM matrix")[0]["reason"]
    assert processes_below(place.folder) == []


def test_a_build_cannot_reach_the_database_the_home_or_the_network(place):
    script = """
for path in ../../../../bisectd.db ../../../../lock "$HOME_OUTSIDE/.profile" /etc/shadow; do
    if cat "$path" >/dev/null 2>&1; then echo "read $path"; exit 1; fi
done
if echo x 2>/dev/null > ../../../../bisectd.db; then echo "wrote the database"; exit 1; fi
if grep -qv -e lo: -e Inter -e face /proc/net/dev; then echo "has a network"; exit 1; fi
cp script.sh "$1"
"""
    place.write("reproducer/script.sh", script)
    place.write("small.yaml", """\
name: walls
axes:
  - {name: number, type: choice, values: ["1"]}
reproducer:
  path: reproducer
  build: [sh, script.sh, "{target}/program"]
  run: [sh, "{target}/program", /dev/null]
  environment: {HOME_OUTSIDE: /root}
  sandbox: bubblewrap
""")
    result = place.run("run", "small.yaml")
    (row,) = place.query("SELECT * FROM matrix")
    if row["outcome"] == "error" and "bubblewrap" in row["reason"]:
        import pytest
        pytest.skip(row["reason"])
    assert row["outcome"] == "pass", result.stdout


def test_any_compiler_can_be_an_axis(place):
    """Given two compilers that are no rustc, when a program tells which one built it, then the boundary is between them."""
    place.write("reproducer/program.c", "int main(void)\n{\n#ifdef __cplusplus\n\treturn 1;\n#endif\n\treturn 0;\n}\n")
    place.write("compilers.yaml", """\
name: compilers
confirm: 1
axes:
  - {name: compiler-axis, type: toolchain, values: [{name: gcc, command: gcc}, {name: g++, command: g++}]}
reproducer:
  path: reproducer
  build: ["{compiler}", -o, "{target}/program", program.c]
  run: ["{target}/program"]
""")
    place.run("run", "compilers.yaml", check=0)
    assert sorted(place.outcomes().values()) == ["fail", "pass"]
    (boundary,) = place.query("SELECT * FROM boundaries")
    assert boundary["axis"] == "compiler-axis" and boundary["confirmed"] == 1
    identities = place.query("SELECT identity FROM value")
    assert all("Free Software Foundation" in row["identity"] or "gcc" in row["identity"] for row in identities)


def test_a_plain_rustc_call_needs_no_cargo(place):
    import shutil
    import pytest
    if shutil.which("rustc") is None:
        pytest.skip("there is no rustc on PATH")
    place.write("reproducer/main.rs", 'fn main() { if cfg!(debug_assertions) { std::process::exit(3) } println!("fine"); }\n')
    place.write("plain.yaml", """\
name: plain
confirm: 1
axes:
  - {name: level, type: choice, ordered: true, values: ["0", "3"]}
reproducer:
  path: reproducer
  build: ["{rustc}", -C, "opt-level={level}", -o, "{target}/main", main.rs]
  run: ["{target}/main"]
  expect: {output: "^fine$"}
""")
    result = place.run("run", "plain.yaml", check=0)
    assert place.outcomes() == {"level=0": "fail", "level=3": "pass"}
    assert "Toolchain of all cells, the newest found" in result.stdout
