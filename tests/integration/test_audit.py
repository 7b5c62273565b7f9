"""`bisectd audit`: right on every case of tests/integration/audit/cases.py, with every compiler at hand."""

import functools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import BISECTD, ROOT

sys.path.insert(0, str(Path(__file__).with_name("audit")))
import cases  # noqa: E402  (a table beside the tests)


@functools.lru_cache
def rust_compilers():
    """name -> rustc: of the test run's toolchain folder, of rustup, on PATH.  Each compiler once."""
    found = {}
    folder = Path(os.environ.get("BISECTD_TOOLCHAINS", ROOT / "var/toolchains"))
    for child in sorted(folder.iterdir()) if folder.is_dir() else []:
        if (child / "bin/rustc").exists():
            found[child.name] = str(child / "bin/rustc")
    if shutil.which("rustup"):
        names = subprocess.run(["rustup", "toolchain", "list"], capture_output=True, text=True, check=False).stdout
        for name in [line.split()[0] for line in names.splitlines() if line.strip()]:
            place = subprocess.run(["rustup", "which", "--toolchain", name, "rustc"], capture_output=True, text=True, check=False)
            if place.returncode == 0:
                found[name] = place.stdout.strip()
    elif shutil.which("rustc"):
        found["rustc"] = shutil.which("rustc")
    versions = {}
    for name, rustc in found.items():
        said = subprocess.run([rustc, "-vV"], capture_output=True, text=True, check=False).stdout
        versions.setdefault(said, (name, rustc))
    return dict(versions.values())


def audit(*words, cwd=None):
    done = subprocess.run([str(BISECTD), "audit", *map(str, words)], cwd=cwd, capture_output=True, text=True, timeout=120, check=False)
    return done


def audit_json(*words, cwd=None):
    done = audit("--json", *words, cwd=cwd)
    assert done.returncode in (0, 1, 3), done.stderr
    return json.loads(done.stdout)


def found_in(report):
    """function -> kinds of its violations."""
    kinds = {}
    for block in report["blocks"]:
        assert block["judged"], f"{block['function']}: {block.get('reason')}"
        kinds.setdefault(block["function"], set()).update(violation["kind"] for violation in block["violations"])
    return kinds


def compare(table, clean, kinds):
    wrong = []
    for name, expected, *_ in table:
        if kinds.get(f"bad_{name}") != set(expected.split()):
            wrong.append(f"bad_{name}: {kinds.get(f'bad_{name}')} instead of {expected}")
        if kinds.get(f"good_{name}") != set():
            wrong.append(f"good_{name}: {kinds.get(f'good_{name}')} instead of nothing")
    for name, *_ in clean:
        if f"clean_{name}" in kinds and kinds[f"clean_{name}"]:
            wrong.append(f"clean_{name}: {kinds[f'clean_{name}']} instead of nothing")
    assert wrong == []


@pytest.mark.parametrize("name,rustc", sorted(rust_compilers().items()) or [("none", None)])
def test_rust_cases_are_judged_right_with_every_compiler(name, rustc, tmp_path):
    if rustc is None:
        pytest.skip("no Rust compiler")
    version = subprocess.run([rustc, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    source = tmp_path / "cases.rs"
    source.write_text(cases.rust_source(old=tuple(map(int, version.split("-")[0].split("."))) < (1, 66)))
    ir = tmp_path / "cases.ll"
    built = subprocess.run([rustc, "-O", "-g", "--emit=llvm-ir", "--crate-type=lib", "-o", str(ir), str(source)],
                           capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    report = audit_json(ir)[0]
    compare(cases.RUST, cases.RUST_CLEAN, found_in(report))
    lines = source.read_text().splitlines()
    for block in report["blocks"]:
        place = block["location"]
        assert f"fn {block['function']}(" in lines[place["line"] - 1], block
        assert place["file"].endswith("cases.rs") and place["crate"] == "cases"


def test_there_are_thirty_cases_and_every_kind_has_several():
    for kind in ("flags", "register", "input", "late-output", "memory-read", "memory-write", "stack", "stack-unbalanced", "pure"):
        assert sum(kind in case[1].split() for case in cases.RUST) >= 3, kind
    for kind in ("direction", "x87"):
        assert sum(kind in case[1].split() for case in cases.RUST) >= 2, kind
    assert len(cases.RUST) >= 30 and len(cases.C_X86) + len(cases.C_ARM) >= 30


@pytest.mark.parametrize("target,table,clean", [("x86_64-linux-gnu", cases.C_X86, cases.C_X86_CLEAN),
                                                ("aarch64-linux-gnu", cases.C_ARM, cases.C_ARM_CLEAN)])
def test_c_cases_are_judged_right(target, table, clean, tmp_path):
    source = tmp_path / "cases.c"
    source.write_text(cases.c_source(table, clean))
    report = audit_json("--clang", source, "--", f"--target={target}", "-ffreestanding")[0]
    assert report["target"].split("-")[0] == target.split("-")[0]
    compare(table, clean, found_in(report))


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_idioms_of_c_libraries_are_clean(level):
    done = audit("--clang", Path(cases.__file__).with_name("idioms.c"), "--", level)
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 1), done.stdout


PROBE = r"""
#![crate_type = "lib"]
use std::arch::asm;
#[no_mangle]
pub unsafe fn probe() -> u64 {
    let e: u64;
    asm!("990: clr rax", ".pushsection set_dtrace_probes,\"aw\",\"progbits\"", ".balign 8", "991: .4byte 992f-991b // length",
         ".byte 1", ".byte 0", ".2byte 1", ".8byte 990b // address", ".asciz \"serial\"", ".asciz \"uart-read\"", ".balign 8",
         "992: .popsection", out("rax") e, options(nomem, nostack, PROMISE));
    e
}
"""


def emit(folder, source, name="probe"):
    compilers = rust_compilers()
    if not compilers:
        pytest.skip("no Rust compiler")
    path = folder / f"{name}.rs"
    path.write_text(source)
    ir = folder / f"{name}.ll"
    subprocess.run([sorted(compilers.items())[0][1], "-O", "-g", "--emit=llvm-ir", "--crate-type=lib", "-o", str(ir), str(path)],
                   check=True, capture_output=True)
    return ir


def test_the_probe_that_breaks_its_promise_is_named_with_file_line_and_sentence(tmp_path):
    ir = emit(tmp_path, PROBE.replace("PROMISE", "preserves_flags"))
    done = audit(ir)
    assert done.returncode == 1
    first, summary = done.stdout.splitlines()
    assert first.startswith(f"{tmp_path}/probe.rs:7:")
    assert ": flags: `xor rax, rax` changes the flags" in first and "preserves_flags" in first
    assert "crate probe, probe serial:uart-read, in probe::probe" in first
    assert summary == "1 asm block judged, 1 violation, 0 not judged"
    block = audit_json(ir)[0]["blocks"][0]
    assert block["probe"] == "serial:uart-read" and block["promises"] == ["nomem", "preserves_flags", "nostack"]
    assert block["instructions"] == ["xor rax, rax"] and set(block["destroys"]["flags"]) >= {"ZF", "CF"}


def test_without_the_promise_nothing_is_found(tmp_path):
    done = audit(emit(tmp_path, PROBE.replace(", PROMISE", "")))
    assert (done.returncode, done.stdout) == (0, "1 asm block judged, 0 violations, 0 not judged\n")


HEAD = 'target triple = "x86_64-unknown-linux-gnu"\ndefine void @f() {\n'


@pytest.mark.parametrize("template,reason", [
    (".incbin \\22/etc/passwd\\22", "read a file"),
    (".INCLUDE \\22/etc/passwd\\22", "read a file"),
    (".macro m x\\0A.\\\\x \\22/etc/passwd\\22\\0A.endm\\0Am incbin", "read a file"),
    (".macro m a, b\\0A.\\\\a\\\\b \\22/etc/passwd\\22\\0A.endm\\0Am inc, bin", "macro"),
    ("frobnicate %rax", "the assembler refuses it"),
    (".byte 0x06", "no instruction known"),
    ("movl ${0:Z}, %eax", "operand"),
    (".if 0", "end"),
    ("/* movl $$1, %eax", "end"),
    (".end", "end"),
    (".fill 0x7fffffff, 8, 0", "more bytes"),
])
def test_what_cannot_be_judged_is_said_and_costs_the_others_nothing(tmp_path, template, reason):
    path = tmp_path / "odd.ll"
    path.write_text(HEAD + f'  call void asm sideeffect "{template}", "~{{dirflag}},~{{fpsr}},~{{flags}}"()\n'
                    '  call void asm sideeffect "std", "~{dirflag},~{fpsr},~{flags}"()\n'
                    '  call void asm sideeffect "nop", "~{dirflag},~{fpsr},~{flags}"()\n  ret void\n}\n')
    odd, bad, good = audit_json(path)[0]["blocks"]
    assert not odd["judged"] and reason in odd["reason"], odd
    assert [violation["kind"] for violation in bad["violations"]] == ["direction"]
    assert good["judged"] and good["violations"] == []


def test_without_a_violation_something_not_judged_is_status_3(tmp_path):
    path = tmp_path / "odd.ll"
    path.write_text(HEAD + '  call void asm sideeffect "frobnicate", ""()\n  ret void\n}\n')
    done = audit(path)
    assert done.returncode == 3
    assert "not judged: the assembler refuses it: invalid instruction mnemonic 'frobnicate'" in done.stdout


@pytest.mark.parametrize("content,says", [
    (b"BC\xc0\xde\x35\x14", "LLVM bitcode; give textual IR"),
    (b"\x7fELF\x02\x01\x01", "ELF"),
    (b"", "the file is empty"),
    (b"fn main() {}\n", "no textual LLVM IR"),
    (b"\x00\xff\xfe garbage", "no textual LLVM IR"),
])
def test_files_that_cannot_be_read_get_one_clear_line(tmp_path, content, says):
    path = tmp_path / "file"
    path.write_bytes(content)
    done = audit(path)
    assert done.returncode == 3 and says in done.stdout and len(done.stdout.splitlines()) == 2, done.stdout


def test_a_binary_without_probes_cannot_be_judged(tmp_path):
    (tmp_path / "main.c").write_text('int main(void) { __asm__ volatile("std; cld"); return 0; }\n')
    subprocess.run(["clang", "-g", "-o", tmp_path / "main", tmp_path / "main.c"], check=True)
    done = audit(tmp_path / "main")
    assert done.returncode == 3 and "give the LLVM IR that it was built from" in done.stdout, done.stdout


BROKEN = r"""
use std::arch::asm;
macro_rules! probe { ($x:expr) => {{ let e: u64; unsafe { asm!("990: clr rax", ".pushsection set_dtrace_probes,\"aw\",\"progbits\"", ".balign 8", "991: .4byte 992f-991b", ".byte 1", ".byte 0", ".2byte 1", ".8byte 990b", ".asciz \"serial\"", ".asciz \"read\"", ".balign 8", "992: .popsection", out("rax") e, options(nomem, nostack, preserves_flags)); } if e != 0 { unsafe { asm!("nop", in("rdi") $x as u64, options(nomem, nostack, preserves_flags)); } } }} }
#[inline(never)]
pub fn task(head: usize, tail: usize, last: &mut usize, total: &mut usize) -> bool {
    let n = head - tail; *last = n;
    match n { 0 => { probe!(0usize); true } n => { probe!(n); *total += n; false } }
}
fn main() { let (mut l, mut t) = (0, 0); let a: Vec<String> = std::env::args().collect(); println!("{}", task(a.len() + 3, a.len(), &mut l, &mut t)); }
"""


@pytest.mark.parametrize("name,rustc", sorted(rust_compilers().items()) or [("none", None)])
def test_the_path_behind_a_probe_of_a_binary_is_followed(name, rustc, tmp_path):
    if rustc is None:
        pytest.skip("no Rust compiler")
    (tmp_path / "broken.rs").write_text(BROKEN)
    subprocess.run([rustc, "-O", "-g", "-C", "link-arg=-Wl,--no-gc-sections", "-o", tmp_path / "broken", tmp_path / "broken.rs"], check=True,
                   capture_output=True)
    done = audit(tmp_path / "broken")
    assert done.returncode == 1, done.stdout
    first, summary = done.stdout.splitlines()
    assert ": broken: `sub r" in first and "`xor rax, rax` destroys it" in first and "(probe serial:read, in broken::task)" in first
    assert summary == "1 asm block judged, 1 violation, 0 not judged"


def test_a_truncated_file_is_judged_as_far_as_it_goes(tmp_path):
    path = tmp_path / "cut.ll"
    path.write_text(HEAD + '  call void asm sideeffect "nop", ""()\n')
    done = audit(path)
    assert done.returncode == 3 and "the file ends inside the function f" in done.stdout
    assert "1 asm block judged" in done.stdout


def test_an_unknown_machine_and_a_missing_file_are_told_apart(tmp_path):
    path = tmp_path / "other.ll"
    path.write_text(HEAD.replace("x86_64", "riscv64") + '  call void asm sideeffect "nop", ""()\n  ret void\n}\n')
    done = audit(path, tmp_path / "nowhere.ll")
    assert done.returncode == 3
    assert "riscv64" in done.stdout and "nowhere.ll: No such file" in done.stdout and "2 files not read" in done.stdout


def test_usage(tmp_path):
    assert audit().returncode == 2
    assert audit("--frobnicate").returncode == 2


def test_c_that_does_not_compile_says_what_clang_said(tmp_path):
    (tmp_path / "bad.c").write_text("int f( {\n")
    done = audit("--clang", tmp_path / "bad.c")
    assert done.returncode == 3 and "error: expected parameter declarator" in done.stdout, done.stdout


def test_cpp_is_audited_too(tmp_path):
    (tmp_path / "bad.cc").write_text('namespace space { struct S { void f() { asm volatile("std"); } }; void g(S &s) { s.f(); } }\n')
    done = audit("--clang", tmp_path / "bad.cc", "--", "-O2")
    assert done.returncode == 1 and "direction" in done.stdout, done.stdout


def test_a_cargo_package_is_built_in_a_copy_and_audited_with_what_it_depends_on(tmp_path):
    """Given a package whose dependency breaks a promise, when it is audited, then that place is named, and nothing is written into it."""
    state = ["--state", os.environ.get("BISECTD_TOOLCHAINS", str(ROOT / "var/toolchains")) + "/.."]
    package = tmp_path / "package"
    (package / "src").mkdir(parents=True)
    (package / "inner/src").mkdir(parents=True)
    (package / "Cargo.toml").write_text('[package]\nname = "outer"\nversion = "0.1.0"\n[dependencies]\ninner = {path = "inner"}\n')
    (package / "Cargo.lock").write_text('version = 3\n[[package]]\nname = "inner"\nversion = "0.1.0"\n\n[[package]]\nname = "outer"\n'
                                        'version = "0.1.0"\ndependencies = [\n "inner",\n]\n')
    (package / "src/main.rs").write_text("fn main() { inner::ask(); }\n")
    (package / "inner/Cargo.toml").write_text('[package]\nname = "inner"\nversion = "0.1.0"\n')
    (package / "inner/src/lib.rs").write_text("""#[inline(never)]
pub fn ask() -> u64 {
    let is: u64;
    unsafe { std::arch::asm!("xor rax, rax", out("rax") is, options(nomem, nostack, preserves_flags)) };
    is
}
""")
    before = sorted(path.relative_to(package) for path in package.rglob("*"))
    result = subprocess.run([BISECTD, "audit", *state, "--cargo", "package", "--", "--release"], cwd=tmp_path, capture_output=True,
                            text=True, timeout=300, check=False)
    if "no Rust toolchain with cargo was found" in result.stderr:
        pytest.skip("no Rust toolchain with cargo here")
    assert result.returncode == 1, result.stderr
    assert f"{package}/inner/src/lib.rs:4:14: flags: `xor rax, rax` changes the flags" in result.stdout
    assert sorted(path.relative_to(package) for path in package.rglob("*")) == before


def test_a_folder_that_is_no_package_is_said(tmp_path):
    result = subprocess.run([BISECTD, "audit", "--cargo", tmp_path], capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 3
    assert f"{tmp_path}/Cargo.toml does not exist: give the folder of a cargo package" in result.stderr
