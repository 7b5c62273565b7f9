"""contrib/toolchains/debian against an archive made on the spot: apt-get, apt-cache, dpkg and ldd are small fakes.

A fake package is a text file that says what it is; unpacking it lays out the few files that the script looks at.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import time

import pytest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "contrib" / "toolchains" / "debian"
TOOLS = "awk basename cat chmod cut env find flock grep head id mkdir mv paste readlink rm sed sh sleep sort tr".split()

FAKES = {
    # the offers are the lines of $FAKE/offers: "package version"
    "apt-cache": """
        while [ "$1" != madison ]; do shift; done
        while read -r name version; do
            [ "$name" != "$2" ] || echo " $name | $version | mirror: stable/main amd64 Packages"
        done <"$FAKE/offers"
    """,
    # packages named in $FAKE/gone are offered but no longer there; $FAKE/slow makes a download take for ever
    "apt-get": """
        while [ "$1" != download ] && [ "$1" != update ]; do shift; done
        echo "$*" >>"$FAKE/calls"
        [ "$1" = download ] || exit 0
        [ ! -e "$FAKE/slow" ] || { : >"$FAKE/started"; exec sleep 60; }
        if grep -qxF "$2" "$FAKE/gone"; then
            echo "W: something else" >&2
            echo "E: Failed to fetch proto://mirror/$2.deb  404  Not Found [IP: 1.2.3.4 80]" >&2
            echo "E: Unable to fetch some archives" >&2
            exit 100
        fi
        echo "$2" >"${2%%=*}_1_amd64.deb"
    """,
    "dpkg": """
        case $1 in
            --print-architecture) echo amd64 ;;
            -s) exit 1 ;;
            -c)
                case $(cat "$2") in
                    libhttp-parser2.9*) echo "x ./usr/lib/fake-gnu/libhttp_parser.so.2.9 -> y" ;;
                esac ;;
            -f)
                package=$(cat "$2")
                case $package in
                    rustc*=*) echo "Depends: libc6 (>= 2), libstd-rust-dev (= ${package#*=}), gcc | clang" ;;
                    libstd-rust-dev=*) echo "Depends: libllvm14" ;;
                    cargo*=*) echo "Depends: libfirst1, libhttp-parser2.9 (>= 2.1)" ;;
                esac ;;
            -x)
                mkdir -p "$3/usr/bin" "$3/usr/lib/fake-gnu"
                package=$(cat "$2")
                program() {
                    printf '#!/bin/sh\\necho "%s ($LD_LIBRARY_PATH)"\\n' "$1" >"$2"
                    chmod 755 "$2"
                }
                case $package in
                    rustc*=*)
                        program "rustc ${package#*=}" "$3/usr/bin/rustc"
                        program "rustdoc ${package#*=}" "$3/usr/bin/rustdoc" ;;
                    cargo*=*) program "cargo ${package#*=} with \\$RUSTC" "$3/usr/bin/cargo" ;;
                    libstd-rust-dev=*) : >"$3/usr/lib/fake-gnu/librustc_driver-1.so" ;;
                    *) : >"$3/usr/lib/fake-gnu/${package%%=*}.so" ;;
                esac
                case $package in libhttp-parser2.9*) : >"$3/usr/lib/fake-gnu/libhttp_parser.so.2.9" ;; esac ;;
        esac
    """,
    # cargo alone lacks something
    "ldd": """
        case "$*" in
            */cargo)
                [ -e "${LD_LIBRARY_PATH%%:*}/libhttp_parser.so.2.9" ] || echo " libhttp_parser.so.2.9 => not found" ;;
        esac
    """,
}


class Archive:
    def __init__(self, place):
        self.place = place
        self.bin = place / "bin"
        self.toolchains = place / "toolchains"
        self.bin.mkdir(parents=True)
        for tool in TOOLS:
            (self.bin / tool).symlink_to(shutil.which(tool))
        for name, text in FAKES.items():
            path = self.bin / name
            path.write_text("#!/bin/sh\n" + text)
            path.chmod(0o755)
        self.offers("dpkg 1", "rustc 1.63.0+dfsg1-2", "cargo 0.66.0+ds1-1")
        self.gone()
        (place / "calls").touch()

    def offers(self, *lines):
        (self.place / "offers").write_text("".join(f"{line}\n" for line in lines))

    def gone(self, *packages):
        (self.place / "gone").write_text("".join(f"{package}\n" for package in packages))

    def calls(self):
        return (self.place / "calls").read_text().splitlines()

    def start(self, **more):
        return subprocess.Popen(
            [SCRIPT, self.toolchains], env={"PATH": str(self.bin), "FAKE": str(self.place)}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)

    def run(self):
        process = self.start()
        out, err = process.communicate(timeout=60)
        return process.returncode, out.splitlines(), err.splitlines()

    def left_overs(self):
        return list(self.toolchains.glob(".tmp-*"))


@pytest.fixture
def archive(tmp_path):
    return Archive(tmp_path / "with space")


def test_a_toolchain_holds_what_only_it_needs_and_its_programs_find_it_wherever_it_is(archive):
    status, out, err = archive.run()
    assert (status, err) == (0, [])
    assert len(out) == 1 and out[0].startswith("rustc-1.63.0: made: rustc 1.63.0+dfsg1-2 ")
    assert sorted(call.split()[1] for call in archive.calls()) == [
        "cargo=0.66.0+ds1-1", "libhttp-parser2.9", "libllvm14", "libstd-rust-dev=1.63.0+dfsg1-2",
        "rustc=1.63.0+dfsg1-2"]
    assert not archive.left_overs()
    assert not list(archive.toolchains.rglob("*.deb"))

    moved = archive.place / "moved"
    (archive.toolchains / "rustc-1.63.0").rename(moved)
    link = archive.place / "link"
    link.symlink_to(moved / "bin" / "rustc")
    bare = {"env": {"PATH": str(archive.bin)}, "text": True}
    for rustc in moved / "bin" / "rustc", link:
        said = subprocess.check_output([rustc, "-V"], **bare)
        assert said == f"rustc 1.63.0+dfsg1-2 ({moved}/bin/../usr/lib/fake-gnu)\n"
    said = subprocess.check_output([moved / "bin" / "cargo", "-V"], **bare)
    assert said == (f"cargo 0.66.0+ds1-1 with {moved}/bin/rustc ({moved}/bin/../cargo-libraries/usr/lib/fake-gnu)\n")


@pytest.mark.parametrize("name", ["rustc-web", "cargo-web", "libstd-rust-dev"])
def test_a_version_that_the_archive_no_longer_has_is_left_out_with_one_line(archive, name):
    package = f"{name}=1.96.0+dfsg1-1"
    archive.offers("dpkg 1", "rustc 1.63.0+dfsg1-2", "cargo 0.66.0+ds1-1", "rustc-web 1.96.0+dfsg1-1",
                   "cargo-web 1.96.0+dfsg1-1", "rustc-web 1.85.0+dfsg3-1~deb12u3", "cargo-web 1.85.0+dfsg3-1~deb12u3")
    archive.gone(package)
    status, out, err = archive.run()
    assert status == 0
    assert [line.split(": ")[:2] for line in out] == [["rustc-1.63.0", "made"], ["rustc-web-1.85.0", "made"]]
    assert err == [f"toolchains/debian: rustc-web-1.96.0: left out: the archive does not give {package}: "
                   "Failed to fetch 404  Not Found"]
    assert not archive.left_overs()


def test_of_two_revisions_of_a_version_the_newest_that_can_be_had_is_taken(archive):
    archive.offers("dpkg 1", "rustc 1.63.0+dfsg1-3", "rustc 1.63.0+dfsg1-2", "rustc 1.63.0+dfsg1-1",
                   "cargo 0.66.0+ds1-1")
    archive.gone("rustc=1.63.0+dfsg1-3")
    status, out, err = archive.run()
    assert status == 0 and len(err) == 1
    assert [line.split(" (")[0] for line in out] == ["rustc-1.63.0: made: rustc 1.63.0+dfsg1-2"]


def test_nothing_made_and_nothing_there_is_a_failure(archive):
    archive.gone("rustc=1.63.0+dfsg1-2")
    status, out, err = archive.run()
    assert status == 1 and out == [] and len(err) == 2
    archive.offers()
    status, out, err = archive.run()
    assert status == 1 and out == [] and len(err) == 1


def test_a_complete_directory_is_left_alone(archive):
    assert archive.run()[0] == 0
    rustc = archive.toolchains / "rustc-1.63.0" / "bin" / "rustc"
    before, calls = rustc.stat(), archive.calls()
    archive.gone("rustc=1.63.0+dfsg1-2")
    status, out, err = archive.run()
    assert (status, err) == (0, [])
    assert len(out) == 1 and out[0].startswith("rustc-1.63.0: complete: rustc 1.63.0")
    assert (rustc.stat().st_ino, rustc.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert archive.calls() == calls


def test_a_directory_without_a_stamp_is_made_anew(archive):
    half = archive.toolchains / "rustc-1.63.0"
    (half / "usr").mkdir(parents=True)
    (half / "usr" / "old").touch()
    status, out, err = archive.run()
    assert (status, err) == (0, []) and ": made: " in out[0]
    assert (half / ".complete").exists() and not (half / "usr" / "old").exists()


@pytest.mark.parametrize("user, offers, updates", [(0, [], 1), (1000, [], 0), (0, ["dpkg 1"], 0)])
def test_package_lists_are_fetched_by_root_and_only_where_there_are_none(archive, user, offers, updates):
    archive.offers(*offers)
    (archive.bin / "id").unlink()
    (archive.bin / "id").write_text(f"#!/bin/sh\necho {user}\n")
    (archive.bin / "id").chmod(0o755)
    assert archive.run()[0] == 1
    assert archive.calls() == ["update"] * updates


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_call_that_was_killed_half_way_leaves_nothing_that_counts(archive, how):
    (archive.place / "slow").touch()
    process = archive.start(start_new_session=True)
    deadline = time.monotonic() + 30
    while not (archive.place / "started").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.killpg(process.pid, how)
    assert process.wait(timeout=30) != 0
    process.stdout.close()
    process.stderr.close()
    assert not (archive.toolchains / "rustc-1.63.0").exists()
    assert bool(archive.left_overs()) == (how == signal.SIGKILL)
    (archive.place / "slow").unlink()
    status, out, err = archive.run()
    assert (status, err) == (0, []) and ": made: " in out[0]
    assert not archive.left_overs()


def test_calls_at_once_make_a_toolchain_once(archive):
    processes = [archive.start() for _ in range(4)]
    said = [process.communicate(timeout=60) for process in processes]
    assert [process.returncode for process in processes] == [0] * 4
    assert [err for _, err in said] == [""] * 4
    assert sum(out.count(": made: ") for out, _ in said) == 1
    assert sum(out.count(": complete: ") for out, _ in said) == 3
    assert not archive.left_overs()


@pytest.mark.parametrize("tool", ["apt-get", "apt-cache", "dpkg"])
def test_a_system_without_apt_has_nothing_to_offer(archive, tool):
    (archive.bin / tool).unlink()
    status, out, err = archive.run()
    assert status == 0 and err == []
    assert out == [f"toolchains/debian: no {tool} here: "
                   "this system's archive offers no compilers that could be unpacked"]
    assert not archive.toolchains.exists()
