"""contrib/cargo-show-asm with small fakes for cargo: the newest one builds it, once, and nothing fails where that cannot be."""

import pathlib
import subprocess

import pytest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "contrib" / "cargo-show-asm"

# says a version; "installs" a cargo-asm that says its own, or fails where $FAIL is set; notes each install
CARGO = """#!/bin/sh
if [ "$1" = -V ]; then echo "cargo 1.{minor}.0 (123 2026-01-01)"; exit 0; fi
echo "{minor} $*" >>"$CALLS"
if [ -n "${{FAIL-}}" ]; then echo "warning: x" >&2; echo "error: failed to fetch proto://registry/index: no route" >&2; exit 101; fi
while [ "$1" != --root ]; do shift; done
mkdir -p "$2/bin"
printf '#!/bin/sh\\necho Version: 0.2.64\\n' >"$2/bin/cargo-asm"
chmod +x "$2/bin/cargo-asm"
"""


class Shop:
    def __init__(self, folder):
        self.folder = folder
        self.tools = folder / "state" / "tools"
        self.toolchains = folder / "state" / "toolchains"
        self.toolchains.mkdir(parents=True)
        self.calls = folder / "calls"
        self.calls.touch()

    def add(self, name, minor, complete=True):
        program = self.toolchains / name / "bin" / "cargo"
        program.parent.mkdir(parents=True)
        program.write_text(CARGO.format(minor=minor))
        program.chmod(0o755)
        if complete:
            (self.toolchains / name / ".complete").touch()

    def run(self, **environment):
        result = subprocess.run([str(SCRIPT), str(self.tools), str(self.toolchains)], capture_output=True, text=True, check=False,
                                env={"PATH": "/usr/bin:/bin", "CALLS": str(self.calls), **environment})
        assert result.returncode == 0, result.stderr
        assert result.stderr == ""
        return result.stdout

    def left(self):
        return sorted(path.name for path in self.tools.iterdir()) if self.tools.exists() else []


@pytest.fixture
def shop(tmp_path):
    if pathlib.Path("/usr/bin/cargo").exists():
        pytest.skip("this system has a cargo in /usr/bin, which would be among those at hand")
    return Shop(tmp_path)


def test_the_newest_cargo_builds_it_once(shop):
    shop.add("old", 86)
    shop.add("newest", 100)
    shop.add("torn", 120, complete=False)
    shop.add("new", 96)
    said = shop.run()
    assert "building 0.2.64" in said and said.endswith(f"installed 0.2.64 in {shop.tools}/bin\n")
    calls = shop.calls.read_text().splitlines()
    assert len(calls) == 1 and calls[0].startswith("100 install --locked") and calls[0].endswith("cargo-show-asm@0.2.64")
    assert shop.left() == [".lock", "bin"]
    assert shop.run() == ""
    assert shop.calls.read_text().splitlines() == calls


def test_an_older_cargo_builds_the_release_that_it_can(shop):
    shop.add("old", 86)
    shop.run()
    assert shop.calls.read_text().rstrip().endswith("cargo-show-asm@0.2.62")


@pytest.mark.parametrize("minor, says", [(None, "there is none here"), (65, "the newest here is 1.65")])
def test_without_a_cargo_that_can_one_line_says_so(shop, minor, says):
    if minor:
        shop.add("only", minor)
    said = shop.run()
    assert said.count("\n") == 1 and says in said
    assert shop.calls.read_text() == ""
    assert shop.left() == []


def test_a_registry_that_is_away_is_one_line_and_leaves_nothing(shop):
    shop.add("new", 96)
    said = shop.run(FAIL="1")
    assert said.splitlines()[1].startswith("cargo-show-asm: not installed, evidence will lack one listing: error: failed to fetch")
    assert "registry/index" not in said
    assert shop.left() == [".lock"]
    assert "installed 0.2.64" in shop.run()
