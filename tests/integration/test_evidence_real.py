"""Evidence from real compilers, in small: one file, whose own macro declares an asm! block falsely."""

import json
import shutil

import pytest
from test_passes import TOOLCHAINS

pytestmark = pytest.mark.skipif(not TOOLCHAINS or not shutil.which("clang"), reason="no rustc or no clang here")

# Both arms begin with the same block; LLVM keeps one copy, above the branch and behind the subtraction that sets its flags.
MAIN = """
macro_rules! probe {
    () => {{
        let enabled: u64;
        unsafe { std::arch::asm!("xor rax, rax", out("rax") enabled, options(nomem, nostack, PROMISE)) };
        if enabled != 0 {
            unsafe { std::arch::asm!("nop", options(nomem, nostack, preserves_flags)) };
        }
    }};
}

#[inline(never)]
pub fn drain(head: u64, tail: u64, last: &mut u64) -> u64 {
    let n = head.wrapping_sub(tail);
    *last = n;
    match n {
        0 => {
            probe!();
            0
        }
        n => {
            probe!();
            n + 1000
        }
    }
}

fn main() {
    let arguments = std::env::args().count() as u64;
    let mut last = 0;
    let got = drain(arguments + 6, arguments, &mut last);
    println!("{}", if got == 1006 { "read all" } else { "left early" });
    std::process::exit((got != 1006) as i32);
}
"""

QUESTION = """\
name: small
confirm: 1
axes:
  - {{name: toolchain, type: toolchain, values: [{toolchains}]}}
  - {{name: level, type: choice, values: [{{name: "0", placeholders: {{optimize: "0"}}}}, {{name: "3", placeholders: {{optimize: "3"}}}}]}}
{more}reproducer:
  path: reproducer
  build: ["{{rustc}}", -C, "opt-level={{optimize}}", main.rs, -o, "{{target}}/small"]
  run: ["{{target}}/small"]
"""


@pytest.fixture
def small(place):
    def make(promise="preserves_flags", more=""):
        place.write("reproducer/main.rs", MAIN.replace("PROMISE", promise))
        names = ", ".join(f"'{root}'" for root in (TOOLCHAINS[0], TOOLCHAINS[-1]))
        return place.write("small.yaml", QUESTION.format(toolchains=names, more=more))

    return make


def evidence(place, kind):
    return [json.loads(row["data"]) for row in place.query("SELECT data FROM evidence WHERE kind = ?", kind)]


def test_all_five_kinds_of_evidence_and_the_verdict(place, small):
    place.run("run", small(), timeout=600, check=0)
    (build,) = evidence(place, "build")
    assert build["build"]["outcome"] == "fail"
    accused = [block for block in build["audit"]["blocks"] if block["violations"]]
    assert accused and {violation["promise"] for block in accused for violation in block["violations"]} == {"preserves_flags"}
    (path,) = [path for path in build["paths"] if path["state"] == "broken"]
    assert [step["role"] for step in path["chain"]] == ["definition", "destroyer", "reader"]
    assert path["chain"][0]["text"].startswith("sub ") and path["chain"][1]["text"] == "xor rax, rax"
    assert path["name"].endswith("drain")
    (twin,) = place.query("SELECT * FROM twins")
    assert twin["outcome"] == "pass" and "main.rs:5 without preserves_flags" in twin["name"]
    (passes,) = evidence(place, "passes")
    assert "pass" in passes["limit"] or "reason" in passes["limit"]
    neighbours = evidence(place, "neighbour")
    assert neighbours and any("comparison" in neighbour for neighbour in neighbours)
    kinds = {artifact["kind"] for artifact in build["artifacts"]}
    assert kinds >= {"disassembly", "ir", "mir", "binary"}, build["not_done"]
    cell = place.query("SELECT cell FROM first_bad")[0]["cell"]
    for artifact in build["artifacts"]:
        assert (place.state / f"evidence/{cell}/build-{cell}" / artifact["path"]).stat().st_size > 0
    listing = next(artifact for artifact in build["artifacts"] if artifact["kind"] == "disassembly")
    assert (place.state / f"evidence/{cell}/build-{cell}" / listing["path"]).read_text().count("=>") == 3
    (verdict,) = place.query("SELECT * FROM verdicts")
    assert (verdict["verdict"], verdict["title"]) == ("reproducer", "small: verdict: reproducer: reproducer")


def test_with_the_declaration_right_nothing_is_bad(place, small):
    place.run("run", small(promise="nostack"), timeout=600, check=1)
    assert evidence(place, "build") == []


def test_a_function_is_listed_by_its_name(place, small):
    place.run("run", small(more="evidence: {function: 'small.*main$|^main::main$'}\n"), timeout=600, check=0)
    (build,) = evidence(place, "build")
    assert [function["name"] for function in build["functions"]] == ["main::main"]
