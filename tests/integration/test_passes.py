"""bisect-worker on jobs of kind "passes": every rustc at hand on a broken asm contract, and a compiler of our own that lies."""

import os
import pathlib
import subprocess

import pytest
from worker_harness import Lane, bubblewrap_works

SANDBOX = "bubblewrap" if bubblewrap_works() else "none"

# `xor` writes the flags and says that it does not; LLVM hoists it above the branch, between the subtraction and its jump.
DRAIN = """
#[inline(never)]
pub fn drain(head: u64, tail: u64, last: &mut u64) -> u64 {
    let n = head.wrapping_sub(tail);
    *last = n;
    let enabled: u64;
    match n {
        0 => {
            unsafe { std::arch::asm!("xor rax, rax", out("rax") enabled, options(nomem, nostack, preserves_flags)) };
            if enabled != 0 {
                unsafe { std::arch::asm!("nop", options(nomem, nostack, preserves_flags)) };
            }
            0
        }
        n => {
            unsafe { std::arch::asm!("xor rax, rax", out("rax") enabled, options(nomem, nostack, preserves_flags)) };
            if enabled != 0 {
                unsafe { std::arch::asm!("nop", options(nomem, nostack, preserves_flags)) };
            }
            n + 1000
        }
    }
}
"""
# Without std's own start a program has a tenth of the passes.
MAIN = """
#[no_mangle]
pub extern "C" fn main(arguments: i32) -> i32 {
    let mut last = 0;
    (drain(arguments as u64 + 6, arguments as u64, &mut last) != 1006) as i32
}
"""


def toolchains():
    """Folders with a rustc of their own, each compiler once."""
    rustup = pathlib.Path(os.environ.get("RUSTUP_HOME", pathlib.Path.home() / ".rustup")) / "toolchains"
    others = pathlib.Path(os.environ.get("BISECTD_TOOLCHAINS", "/nonexistent"))
    found = {}
    for folder in [*sorted(rustup.glob("*")), *sorted(others.glob("*"))]:
        rustc = folder / "bin/rustc"
        if rustc.exists():
            said = subprocess.run([rustc, "-vV"], capture_output=True, text=True).stdout
            found.setdefault(said, folder.resolve())
    return list(found.values())


TOOLCHAINS = toolchains()
needs_rustc = pytest.mark.skipif(not TOOLCHAINS, reason="no rustc here")


@pytest.fixture
def lane():
    lane = Lane(SANDBOX)
    yield lane
    lane.close()


def numbers(limit):
    return limit["good"], limit["bad"], limit["passes"]


@pytest.mark.slow
@needs_rustc
@pytest.mark.parametrize("root", TOOLCHAINS, ids=lambda root: root.name)
def test_the_pass_is_named_and_repeated_by_hand(lane, root):
    lane.write("main.rs", "#![no_main]" + DRAIN + MAIN)
    answer = lane.do(kind="passes", timeout=300, path=[str(root / "bin")], read_only=[str(root)],
                     placeholders={"rustc": str(root / "bin/rustc")}, build=[["{rustc}", "-O", "main.rs", "-o", "{target}/x"]],
                     run=["{target}/x"], bad_outcome="fail", names=["opt-level=0", "mir-opt-level=0"])
    assert answer.outcome == "pass", (answer.reason, answer.log)
    limit = answer.data["limit"]
    good, bad, passes = numbers(limit)
    assert "reason" not in limit and good + 1 == bad <= passes
    assert limit["pass"] in ("X86 DAG->DAG Instruction Selection", "x86-isel")
    assert "drain" in limit["function"] and limit["function"] in limit["unit"] and limit["name"] == "main::drain"
    assert limit["line"] == f"BISECT: running pass ({bad}) {limit['pass']} on {limit['unit']}"
    assert limit["flags"] == ["-C", "codegen-units=1"] and limit["crate"] == "main.bin"
    assert limit["tried"] <= 4 + passes.bit_length()
    flips = {flip["name"]: flip for flip in answer.data["flips"]}
    assert flips["opt-level=0"]["outcome"] == "pass"
    assert flips["mir-opt-level=0"]["outcome"] == "fail" or "nightly" in flips["mir-opt-level=0"]["reason"]
    commands = answer.data["commands"]
    assert f"limit={bad} " in commands
    assert subprocess.run(["sh", "-c", commands], capture_output=True).returncode == 1
    assert subprocess.run(["sh", "-c", commands.replace(f"limit={bad} ", f"limit={good} ")], capture_output=True).returncode == 0
    assert subprocess.run(["sh", "-c", flips["opt-level=0"]["commands"]], capture_output=True).returncode == 0


@pytest.mark.slow
@needs_rustc
def test_a_package_of_several_crates_is_one_row_of_passes(lane):
    root = TOOLCHAINS[0]
    lane.write("Cargo.toml", '[package]\nname = "several"\nversion = "0.1.0"\nedition = "2021"\n')
    lane.write("Cargo.lock", 'version = 3\n[[package]]\nname = "several"\nversion = "0.1.0"\n')
    lane.write("build.rs", 'fn main() { println!("cargo:rustc-cfg=built"); }')
    lane.write("src/lib.rs", DRAIN)
    lane.write("src/main.rs", "#![no_main]\nuse several::drain;" + MAIN)
    answer = lane.do(kind="passes", timeout=300, path=[str(root / "bin")], read_only=[str(root)],
                     build=[["cargo", "build", "--release", "--offline"]], run=["{target}/release/several"], bad_outcome="fail",
                     names=["opt-level=0", "lto=fat"])
    assert answer.outcome == "pass", (answer.reason, answer.log)
    limit = answer.data["limit"]
    assert "reason" not in limit and limit["crate"] == "several.lib"
    assert "drain" in limit["function"] and limit["bad"] <= limit["passes"]
    flips = {flip["name"]: flip for flip in answer.data["flips"]}
    assert flips["opt-level=0"]["outcome"] == "pass"
    # cargo gives the library no bitcode when the profile has no lto
    assert flips["lto=fat"]["outcome"] == "skip" and "reason" in flips["lto=fat"]
    assert subprocess.run(["sh", "-c", answer.data["commands"]], capture_output=True).returncode == 1


# A compiler of our own: `limit` passes of 100 run, number 37 makes the program bad.

COMPILER = """#!/bin/sh
limit=-1 units=16 lto=on level=0
for word; do
    case $word in
    llvm-args=-opt-bisect-limit=*) limit=${word##*=} ;;
    codegen-units=*) units=${word#*=} ;;
    lto=*) lto=${word#*=} ;;
    opt-level=*) level=${word#*=} ;;
    esac
done
[ "$limit" -ge 0 ] || limit=100
before() { :; }
lines() {
    seq 100 | sed "s/.*/BISECT: running pass (&) p& on f&/; $((limit + 1)),\\$ s/running/NOT running/"
}
status=0
[ "$limit" -lt 37 ] || status=1
CHANGE
before "$@"
lines >&2
echo "exit $status" >program
"""


def lie(lane, change="", **fields):
    """Bisect with the compiler, changed by some lines of shell."""
    lane.write("rustc", COMPILER.replace("CHANGE", change), 0o755)
    fields.setdefault("names", ["none"])
    fields.setdefault("build", [["{rustc}", "main.rs"]])
    return lane.do(kind="passes", placeholders={"rustc": str(lane.workspace / "reproducer/rustc")}, run=["sh", "program"], **fields)


def test_the_only_turn(lane):
    answer = lie(lane)
    limit = answer.data["limit"]
    assert numbers(limit) == (36, 37, 100), answer.log
    assert (limit["pass"], limit["unit"], limit["function"]) == ("p37", "f37", "f37")
    assert answer.data["control"]["outcome"] == "fail"
    assert "blame" in limit["warning"] and limit["notes"] == []


@pytest.mark.parametrize("function,most", [("^f37$", 6), ("^f(3[0-9]|9.)$", 10), ("^f1$", 12), ("nothing", 12)])
def test_named_functions_are_tried_first(lane, function, most):
    limit = lie(lane, function=function).data["limit"]
    assert numbers(limit) == (36, 37, 100) and limit["tried"] <= most and "reason" not in limit


def test_what_ends_otherwise_is_left_out_and_told(lane):
    """From 30 to 40 passes the compiler refuses."""
    answer = lie(lane, '[ "$limit" -lt 30 ] || [ "$limit" -gt 40 ] || { echo "error: no" >&2; exit 1; }')
    limit = answer.data["limit"]
    assert numbers(limit) == (29, 41, 100)
    assert "error: no" in limit["reason"] and "pass" not in limit


def test_another_failure_is_not_the_same_failure(lane):
    """Below 50 passes the program ends with another status: that is not the cell's fault."""
    answer = lie(lane, '[ "$limit" -ge 50 ] || status=2')
    limit = answer.data["limit"]
    assert "good" not in limit and "exit status 2" in "".join(limit["notes"])


def test_bad_without_any_pass(lane):
    limit = lie(lane, "status=1").data["limit"]
    assert (limit["bad"], limit.get("good")) == (0, None)
    assert "no optional pass" in limit["reason"]


def test_one_codegen_unit_cures(lane):
    """Then the cell's own codegen units are bisected, one after the other."""
    limit = lie(lane, '[ "$units" != 1 ] || status=0').data["limit"]
    assert numbers(limit) == (36, 37, 100) and limit["flags"] == ["-C", "lto=off"]
    assert len(limit["notes"]) == 1 and "codegen-units=1" in limit["notes"][0]


def test_without_lto_it_is_good_too(lane):
    limit = lie(lane, '{ [ "$units" != 1 ] && [ "$lto" = on ]; } || status=0').data["limit"]
    assert numbers(limit) == (36, 37, 100) and limit["flags"] == [] and len(limit["notes"]) == 2


def test_codegen_units_wait_for_each_other(lane):
    """The compiler finds a jobserver that has no token to give."""
    change = 'before() { case $CARGO_MAKEFLAGS in *--jobserver-auth=9,9*) ;; *) exit 1 ;; esac; [ -p /dev/fd/9 ] || exit 1; }'
    assert numbers(lie(lane, change).data["limit"]) == (36, 37, 100)


LIES = [
    ("lines() { :; }", "numbers no passes"),
    ('lines() { echo "BISECT: running pass (2147483647) p on f"; }', "out of order"),
    ('lines() { echo "BISECT: running pass (1) p on f"; echo "BISECT: running pass (1) p on f"; }', "out of order"),
    ('lines() { head -c 100000 /dev/urandom; }', "numbers no passes"),
    ('case $limit in 100) ;; *) echo "error: unknown option" >&2; exit 1 ;; esac', "unknown option"),
    # the file is replaced by something else: with the name that the shell opened already
    ('before() { rm -f "$TMPDIR/passes/main.bin.lines"; ln -s /etc/passwd "$TMPDIR/passes/main.bin.lines"; }', "main.bin.lines"),
    ('before() { rm -f "$TMPDIR/passes/main.bin.lines"; mkdir "$TMPDIR/passes/main.bin.lines"; }', "main.bin.lines"),
    ('before() { echo ../../../x >"$TMPDIR/passes/order"; echo main.bin >>"$TMPDIR/passes/order"; }', "names no crate"),
    ('before() { i=0; while [ $i -lt 70 ]; do echo a$i >>"$TMPDIR/passes/order"; >"$TMPDIR/passes/a$i.lines"; i=$((i + 1)); done; '
     'echo main.bin >>"$TMPDIR/passes/order"; }', "more than 64"),
]


@pytest.mark.parametrize("change,words", LIES, ids=range(len(LIES)))
def test_whatever_the_compiler_says(lane, change, words):
    answer = lie(lane, change)
    assert answer.outcome == "pass", (answer.reason, answer.log)
    limit = answer.data["limit"]
    assert "pass" not in limit and words in limit["reason"] + "".join(limit["notes"]), limit


def test_numbers_that_do_not_repeat_are_told(lane):
    change = 'lines() { n=$(cat "$TMPDIR/n" 2>/dev/null || echo 0); echo $((n + 1)) >"$TMPDIR/n"; seq 100 | ' \
             'sed "s/.*/BISECT: running pass (&) p$n on f/; $((limit + 1)),\\$ s/running/NOT running/"; }'
    limit = lie(lane, change).data["limit"]
    assert "not stable" in limit["reason"] and limit["bad"] == 37
    assert "pass" not in limit and limit["line"].startswith("BISECT: running pass (37) p")


def test_a_compiler_that_crashes_is_seen_to_crash(lane):
    answer = lie(lane, '[ "$limit" -ge 60 ] || kill -SEGV $$')
    assert "crashed" in "".join(answer.data["limit"]["notes"])


def test_flips_are_told_one_by_one(lane):
    change = '[ "$level" != 0 ] || status=0\ncase "$*" in *panic=abort*) echo "error: no abort" >&2; exit 1 ;; esac\n' \
             'case "$*" in *debuginfo=2*) exit 3 ;; esac'
    answer = lie(lane, change, build=[["{rustc}", "-C", "opt-level=3", "main.rs"]], names=None)
    flips = {flip["name"]: flip for flip in answer.data["flips"]}
    outcomes = {name: flip["outcome"] for name, flip in flips.items()}
    assert "opt-level=3" not in flips and "codegen-units=16" not in flips and "panic=unwind" not in flips
    assert outcomes["opt-level=0"] == "pass" and outcomes["opt-level=1"] == "fail"
    assert outcomes["panic=abort"] == "skip" and "no abort" in flips["panic=abort"]["reason"]
    assert outcomes["debuginfo=2"] == "build-fail"
    assert outcomes["codegen-units=1"] == "fail"
    assert all(flip["flags"] and "rustc" in flip["commands"] for flip in flips.values())
    assert [event["text"] for event in answer.events if event["event"] == "progress"][-1].startswith("overflow-checks=on")


def test_what_there_is_no_time_for_is_listed(lane):
    answer = lie(lane, "sleep 1", budget_ms=9000, names=None)
    limit = answer.data["limit"]
    assert "no time left" in limit["reason"] and limit["tried"] >= 1
    assert answer.seconds < 30
    late = [flip for flip in answer.data["flips"] if flip.get("reason") == "not tried: no time left"]
    assert {"opt-level=1", "panic=abort"} <= {flip["name"] for flip in late}
    assert all(flip["outcome"] == "skip" and flip["commands"] for flip in late)


def test_a_run_that_takes_its_time_is_not_cut(lane):
    """A timeout is the cell's own limit, never the budget's."""
    lane.write("rustc", COMPILER.replace("CHANGE", ""), 0o755)
    compiler = str(lane.workspace / "reproducer/rustc")
    answer = lane.do(kind="passes", placeholders={"rustc": compiler}, build=[["{rustc}", "main.rs"]],
                     run=["sh", "-c", "grep -q 'exit 0' program || sleep 30"], run_ms=1000, bad_outcome="timeout", budget_ms=12000,
                     names=["none"])
    assert answer.data["control"]["outcome"] == "timeout"
    assert answer.data["limit"].get("good", 0) < 37 <= answer.data["limit"]["bad"]


@pytest.mark.parametrize("fields,outcome,words", [
    ({"build": [["true"]]}, "skip", "workspace wrapper"),
    ({"build": [["false"]], "bad_outcome": "build-fail"}, "skip", "workspace wrapper"),
    ({"build": [["sh", "-c", "exit 125"]]}, "skip", "125"),
    ({"build": [["no-such-program"]]}, "error", "no-such-program"),
    ({"bad_outcome": "pass"}, "error", "bad_outcome"),
    ({"bad_outcome": "worse"}, "error", "bad_outcome"),
    ({"function": "("}, "error", "function"),
    ({"budget_ms": -1}, "error", "budget_ms"),
    ({"budget_ms": 1}, "skip", "too short"),
    ({"workspace": None}, "error", "workspace"),
    ({"run": None}, "error", "run"),
])
def test_what_cannot_be_done_is_told(lane, fields, outcome, words):
    lane.write("rustc", COMPILER.replace("CHANGE", ""), 0o755)
    lane.write("program", "exit 1")
    job = {"kind": "passes", "placeholders": {"rustc": str(lane.workspace / "reproducer/rustc")}, "build": [["{rustc}", "main.rs"]],
           "run": ["sh", "program"], **fields}
    answer = lane.do(**job)
    assert (answer.outcome, words in (answer.reason or "")) == (outcome, True), answer.reason


def test_a_cell_that_passes(lane):
    assert "passes" in lie(lane, "status=0").reason
    answer = lie(lane, "status=0", bad_outcome="fail")
    assert answer.data["control"]["outcome"] == "pass"
    assert "cannot be bisected" in answer.data["limit"]["reason"] and len(answer.data["limit"]["notes"]) == 3
