"""The worker's jobs that look around: toolchains, releases, preparations. Real cargo, a few small crates of the registry."""

import hashlib
import json
import os
import shutil
import signal
import stat
import subprocess
import time

import pytest

from conftest import WORKER

MAIN = """
cfg_if::cfg_if! { if #[cfg(unix)] { const PLACE: &str = "here"; } else { const PLACE: &str = "there"; } }
fn main() { println!("{} {}", itoa::Buffer::new().format(42), PLACE); }
"""
MANIFEST = """\
[package]
name = "reproducer"
version = "0.1.0"
edition = "2018"
rust-version = "1.56"

[workspace]

[dependencies]
itoa = "1"
cfg-if = "1"
"""


def start(job, environment=None):
    job = {"version": 1, **job}
    process = subprocess.Popen([str(WORKER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, env=environment)
    process.stdin.write(json.dumps(job) + "\n")
    process.stdin.flush()
    return process


def finish(process):
    lines = []
    for line in process.stdout:  # the worker stops when its input ends: leave it open until the result is there
        lines.append(json.loads(line))
        if lines[-1]["event"] == "result":
            break
    process.stdin.close()
    log = process.stderr.read()
    process.stdout.close()
    process.stderr.close()
    assert process.wait(60) == 0, log
    assert lines, log
    lines[-1]["log"] = log
    return lines[-1]


def work(job, environment=None):
    return finish(start(job, environment))


# ---- toolchains ----

RUSTC = """\
#!/bin/sh
case "$*" in
"-vV") cat <<'END'
rustc {release}
binary: rustc
commit-hash: unknown
host: x86_64-unknown-linux-gnu
release: {release}
LLVM version: {llvm}
END
;;
"--print sysroot") echo "{sysroot}" ;;
*) exit 1 ;;
esac
"""


def program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def toolchain(folder, release, llvm="14.0.6", driver="driver", cargo=True, deep=False):
    program(folder / "bin/rustc", RUSTC.format(release=release, llvm=llvm, sysroot=folder))
    if cargo:
        program(folder / "bin/cargo", "#!/bin/sh\n")
    libraries = folder / "lib/x86_64-linux-gnu" if deep else folder / "lib"
    libraries.mkdir(parents=True, exist_ok=True)
    (libraries / "librustc_driver-0123456789abcdef.so").write_text(driver)
    return folder


class Machine:
    """A machine with only the toolchains that a test makes."""

    def __init__(self, folder):
        self.folder = folder
        self.rustup = folder / "rustup/toolchains"
        self.search = folder / "search"
        self.bin = folder / "usr/bin"
        for made in (self.rustup, self.search, self.bin):
            made.mkdir(parents=True)
        self.environment = {**os.environ, "RUSTUP_HOME": str(folder / "rustup"), "PATH": f"{self.bin}:/usr/bin:/bin"}

    def ask(self, *names, **more):
        result = work({"kind": "toolchains", "names": list(names), "search": [str(self.search)], **more}, self.environment)
        assert result["outcome"] == "pass", result
        return [found for found in result["data"] if not found["name"].startswith("/usr/bin/")]


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def labels(found):
    return [entry["label"] for entry in found]


def test_auto_finds_every_toolchain_once_in_the_order_of_versions(machine):
    toolchain(machine.rustup / "1.100.0-x86_64", "1.100.0")
    toolchain(machine.rustup / "nightly-x86_64", "1.100.0-nightly", driver="nightly")
    toolchain(machine.rustup / "1.9.0-x86_64", "1.9.0")
    os.symlink(machine.rustup / "1.100.0-x86_64", machine.rustup / "stable-x86_64")
    toolchain(machine.search / "debian", "1.63.0", deep=True, cargo=False)
    toolchain(machine.folder / "usr", "1.70.0")
    (machine.search / "no-toolchain").mkdir()
    found = machine.ask("auto")
    assert labels(found) == ["1.9.0", "1.63.0", "1.70.0", "1.100.0-nightly", "1.100.0"]
    assert [entry["skip"] for entry in found] == [None] * 5
    debian = found[1]
    assert debian["cargo"] is None
    assert debian["path"] == str(machine.search / "debian/bin")
    assert debian["read_only"] == [str(machine.search / "debian")]
    driver = hashlib.sha256(b"driver").hexdigest()
    assert debian["identity"].startswith("rustc 1.63.0\nbinary: rustc\n")
    assert debian["identity"].endswith(f"LLVM version: 14.0.6\ndriver: {driver}")


def test_two_toolchains_of_one_version_are_told_apart(machine):
    toolchain(machine.search / "plain", "1.63.0", driver="one")
    toolchain(machine.search / "patched", "1.63.0", driver="two")
    toolchain(machine.search / "newer-llvm", "1.63.0", llvm="15.0.0", driver="three")
    assert labels(machine.ask("auto")) == ["1.63.0 (patched)", "1.63.0 (plain)", "1.63.0 (newer-llvm)"]


def test_a_broken_toolchain_is_skipped_with_its_reason(machine):
    toolchain(machine.search / "good", "1.63.0")
    program(machine.search / "a/bin/rustc", "#!/bin/sh\necho no library >&2\nexit 127\n")
    program(machine.search / "b/bin/rustc", "#!/bin/sh\necho hello\n")
    program(machine.search / "c/bin/rustc", "no program")
    (machine.search / "d/bin").mkdir(parents=True)
    (machine.search / "d/bin/rustc").write_text("not executable")
    found = machine.ask("auto", str(machine.search / "nothing"))
    skips = {entry["name"].rsplit("/", 1)[1]: entry["skip"] for entry in found}
    assert skips["good"] is None
    assert "exit status 127: no library" in skips["a"]
    assert "does not answer as a rustc" in skips["b"]
    assert "cannot run" in skips["c"]
    assert "holds no rustc" in skips["d"]
    assert skips["nothing"] == "there is no such folder"
    assert all("path" not in entry for entry in found if entry["skip"])


@pytest.mark.parametrize("hang", ["sleep 60", "exec >&- 2>&-; sleep 60", "sleep 60 & exit 0", "yes"])
def test_a_hanging_toolchain_is_skipped_in_time(machine, hang):
    toolchain(machine.search / "good", "1.63.0")
    program(machine.search / "hangs/bin/rustc", f"#!/bin/sh\n{hang}\n")
    begin = time.monotonic()
    found = machine.ask("auto", run_ms=1000)
    assert time.monotonic() - begin < 20
    assert sorted(entry["skip"] is None for entry in found) == [False, True]
    assert "did not end within 1 s" in [entry["skip"] for entry in found if entry["skip"]][0]


def test_a_shim_of_rustup_is_never_taken_for_a_toolchain(machine):
    program(machine.folder / "shims/bin/rustup", "#!/bin/sh\nexit 1\n")
    os.symlink("rustup", machine.folder / "shims/bin/rustc")
    os.link(machine.folder / "shims/bin/rustup", machine.folder / "shims/bin/cargo")
    machine.environment["PATH"] = f"{machine.folder / 'shims/bin'}:/usr/bin:/bin"
    found = machine.ask(str(machine.folder / "shims"), "command:rustc", "auto")
    assert ["rustup's shim" in entry["skip"] for entry in found[:2]] == [True, True]
    assert [entry["name"] for entry in found[2:] if entry["skip"] is None] == []


def test_names_go_through_rustup_and_nothing_is_installed(machine):
    folder = toolchain(machine.rustup / "1.63.0-x86_64", "1.63.0")
    program(machine.bin / "rustup", f"""#!/bin/sh
[ "$RUSTUP_AUTO_INSTALL" = 0 ] || exit 9
[ "$*" = "which --toolchain 1.63.0 rustc" ] && echo {folder}/bin/rustc && exit 0
echo "error: toolchain '$3' is not installed" >&2; exit 1
""")
    found = machine.ask("1.63.0", "1.64.0", "auto")
    assert [entry["name"] for entry in found] == ["1.63.0", "1.64.0"]
    assert found[0]["rustc"] == str(folder / "bin/rustc")
    assert found[1]["skip"] == "rustup has no toolchain 1.64.0: toolchain '1.64.0' is not installed"


def test_the_same_toolchain_under_two_names_is_tried_once(machine):
    folder = toolchain(machine.search / "one", "1.63.0")
    os.symlink(folder, machine.search / "two")
    found = machine.ask(str(machine.search / "one"), str(machine.search / "two"))
    assert found[0]["skip"] is None and found[0]["label"] == "1.63.0"
    assert found[1]["skip"] == f"it is the same toolchain as {machine.search / 'one'}"


def test_any_other_compiler_is_identified_by_what_it_says_and_is(machine):
    cc = program(machine.bin / "my-cc", "#!/bin/sh\necho 'my-cc 3.2'\necho second\necho third\necho fourth\n")
    found = machine.ask("command:my-cc", "command:none-such")
    digest = hashlib.sha256(cc.read_bytes()).hexdigest()
    assert found[0]["label"] == "my-cc"
    assert found[0]["identity"] == f"my-cc 3.2\nsecond\nthird\nprogram: {digest}"
    assert found[0]["program"] == str(cc)
    assert found[1]["skip"] == "there is no program none-such"


def test_a_driver_is_hashed_anew_when_it_changes(machine):
    folder = toolchain(machine.search / "one", "1.63.0", driver="first")
    edited = str(machine.folder / "edited")
    first = machine.ask("auto", edited=edited)[0]["identity"]
    assert machine.ask("auto", edited=edited)[0]["identity"] == first
    toolchain(folder, "1.63.0", driver="other")
    assert machine.ask("auto", edited=edited)[0]["identity"] != first
    (machine.folder / "edited/toolchain-hashes.json").write_text("rubbish")
    assert machine.ask("auto", edited=edited)[0]["skip"] is None


# ---- releases ----


def real_cargo():
    asked = subprocess.run(["rustup", "which", "cargo"], capture_output=True, text=True, check=False) if shutil.which("rustup") else None
    return asked.stdout.strip() if asked and asked.returncode == 0 else shutil.which("cargo")


CARGO = real_cargo()
needs_cargo = pytest.mark.skipif(CARGO is None, reason="there is no cargo")


@pytest.fixture
def away(tmp_path):
    """The environment of a machine whose registry does not answer."""
    return {**os.environ, "CARGO_HOME": str(tmp_path / "cargo-home"), "CARGO_HTTP_PROXY": "http://127.0.0.1:9",
            "CARGO_NET_RETRY": "0"}


@needs_cargo
def test_releases_have_the_registrys_checksums():
    result = work({"kind": "releases", "cargo": CARGO, "crate": "itoa", "names": ["1.0.9", "9.9.9", "no version"]})
    good, missing, wrong = result["data"]
    assert len(good["identity"]) == 64 and good["skip"] is None and good["error"] is None
    assert missing["identity"] is None and "failed to select a version" in missing["skip"] and "\n" not in missing["skip"]
    assert wrong["skip"] == "'no version' is no version"


@needs_cargo
def test_a_yanked_release_can_still_be_named():
    (release,) = work({"kind": "releases", "cargo": CARGO, "crate": "futures-util", "names": ["0.3.30"]})["data"]
    assert release["yanked"] and len(release["identity"]) == 64


@needs_cargo
def test_a_crate_that_is_not_there_is_an_answer():
    result = work({"kind": "releases", "cargo": CARGO, "crate": "bisectd-there-is-no-such-crate", "names": ["1.0.0"]})
    assert "no matching package" in result["data"][0]["skip"]


@needs_cargo
def test_a_registry_that_is_away_is_no_answer(away):
    result = work({"kind": "releases", "cargo": CARGO, "crate": "itoa", "names": ["1.0.9"]}, away)
    (release,) = result["data"]
    assert release["identity"] is None and release["skip"] is None and release["error"]


# ---- preparations ----


def cargo(folder, *arguments):
    environment = {**os.environ, "CARGO_TARGET_DIR": str(folder / "target")}
    return subprocess.run([CARGO, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def shipped_lock(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lock")
    write_reproducer(folder)
    cargo(folder, "generate-lockfile")
    cargo(folder, "update", "-p", "itoa", "--precise", "1.0.5")
    cargo(folder, "update", "-p", "cfg-if", "--precise", "1.0.0")
    return (folder / "Cargo.lock").read_text()


def write_reproducer(folder, manifest=MANIFEST):
    (folder / "src").mkdir(parents=True, exist_ok=True)
    (folder / "Cargo.toml").write_text(manifest)
    (folder / "src/main.rs").write_text(MAIN)


class Bench:
    def __init__(self, folder, lock):
        self.folder = folder
        self.reproducer = folder / "reproducer"
        write_reproducer(self.reproducer)
        (self.reproducer / "Cargo.lock").write_text(lock)

    def job(self, name="one", crates=(), overrides=(), **more):
        return {"kind": "prepare", "reproducer": str(self.reproducer), "prepared": str(self.folder / "prepared" / name),
                "vendor": str(self.folder / "vendor"), "edited": str(self.folder / "edited"), "cargo": CARGO,
                "crates": list(crates), "overrides": list(overrides), **more}

    def prepare(self, *arguments, environment=None, **more):
        result = work(self.job(*arguments, **more), environment)
        if result["outcome"] != "pass":
            prepared = self.folder / "prepared"
            assert not prepared.exists() or not list(prepared.glob("*.tmp-*"))
        return result

    def versions(self, name="one"):
        lines = (self.folder / "prepared" / name / "Cargo.lock").read_text().splitlines()
        return {line.split('"')[1]: lines[i + 1].split('"')[1] for i, line in enumerate(lines) if line.startswith("name = ")}

    def build(self, name="one"):
        """Build and run as a cell does: offline, locked, with nothing but what was prepared."""
        prepared = self.folder / "prepared" / name
        workspace = self.folder / "workspace"
        shutil.rmtree(workspace, ignore_errors=True)
        shutil.copytree(self.reproducer, workspace)
        shutil.copy(prepared / "Cargo.lock", workspace)
        home = self.folder / "cargo-home"
        home.mkdir(exist_ok=True)
        shutil.copy(prepared / "cargo-config.toml", home / "config.toml")
        environment = {**os.environ, "CARGO_HOME": str(home), "CARGO_TARGET_DIR": str(self.folder / "target"),
                       "PATH": f"{os.path.dirname(CARGO)}:{os.environ['PATH']}"}
        done = subprocess.run([CARGO, "run", "--locked", "--offline"], cwd=workspace, env=environment, capture_output=True,
                              text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done


@pytest.fixture
def bench(tmp_path, shipped_lock):
    return Bench(tmp_path, shipped_lock)


def override(crate, file, find, replace, name="ours", **more):
    return {"name": name, "crate": crate, "edits": [{"file": file, "find": find, "replace": replace, **more}]}


FORMAT = {"file": "src/lib.rs", "find": "pub fn format<", "replace": "/* edited */ pub fn format<"}


@needs_cargo
def test_a_reproducer_that_is_no_crate_needs_nothing(bench):
    shutil.rmtree(bench.reproducer)
    bench.reproducer.mkdir()
    (bench.reproducer / "main.c").write_text("int main(void) { return 0; }\n")
    result = bench.prepare()
    assert result["outcome"] == "pass" and result["data"]["lock"] is None
    assert os.listdir(bench.folder / "prepared/one") == ["prepared.json"]


@needs_cargo
def test_a_release_is_locked_and_nothing_else_moves(bench, shipped_lock):
    result = bench.prepare(crates=[{"name": "itoa", "release": "1.0.9"}])
    assert result["outcome"] == "pass", result
    assert bench.versions() == {"reproducer": "0.1.0", "itoa": "1.0.9", "cfg-if": "1.0.0"}
    assert result["data"]["changed"] == [] and result["data"]["vendored"] == 2
    assert "\nversion = 3\n" in result["data"]["lock"]
    assert "42 here" in bench.build().stdout
    assert (bench.reproducer / "Cargo.lock").read_text() == shipped_lock
    assert list((bench.folder / "prepared").glob("*.tmp-*")) == []


@needs_cargo
def test_two_preparations_share_the_paths_of_their_sources(bench):
    """Another path would mean that every dependency is built again."""
    for name, release in (("one", "1.0.9"), ("two", "1.0.10")):
        assert bench.prepare(name, crates=[{"name": "itoa", "release": release}])["outcome"] == "pass"
    bench.build("one")
    again = bench.build("two").stderr
    assert "Compiling itoa v1.0.10" in again and "Compiling cfg-if" not in again


@needs_cargo
def test_a_release_that_is_not_there_is_a_skip(bench):
    result = bench.prepare(crates=[{"name": "itoa", "release": "1.99.0"}])
    assert result["outcome"] == "skip" and "itoa" in result["reason"]


@needs_cargo
def test_a_release_that_the_reproducer_cannot_take_is_a_skip(bench):
    result = bench.prepare(crates=[{"name": "itoa", "release": "0.4.8"}])
    assert result["outcome"] == "skip" and "itoa" in result["reason"]


@needs_cargo
def test_a_crate_that_the_reproducer_does_not_use_is_an_error(bench):
    result = bench.prepare(crates=[{"name": "serde", "release": "1.0.0"}])
    assert result["outcome"] == "error" and result["reason"] == "the reproducer does not depend on serde"


@needs_cargo
def test_a_registry_that_is_away_is_an_error(bench, away):
    result = bench.prepare(crates=[{"name": "itoa", "release": "1.0.9"}], environment=away)
    assert result["outcome"] == "error" and "registry" in result["reason"]
    assert bench.prepare(crates=[{"name": "itoa", "release": "1.0.9"}])["outcome"] == "pass"


@needs_cargo
def test_an_override_edits_the_registrys_sources(bench):
    edits = [{"file": "src/lib.rs", "find": "pub struct Buffer", "replace": "/* edited */ pub struct Buffer", "min": 1, "max": 1}]
    result = bench.prepare(crates=[{"name": "itoa", "release": "1.0.9"}],
                           overrides=[{"name": "ours", "crate": "itoa", "edits": edits}])
    assert result["outcome"] == "pass", result
    assert result["data"]["edits"] == [{"override": "ours", "crate": "itoa", "version": "1.0.9", "file": "src/lib.rs", "matches": 1}]
    assert result["data"]["changed"] == []
    done = bench.build()
    assert "Compiling itoa v1.0.9 (" in done.stderr and "42 here" in done.stdout
    (edited,) = (bench.folder / "edited").glob("*/itoa/src/lib.rs")
    assert "/* edited */ pub struct Buffer" in edited.read_text()
    assert "/* edited */" not in (bench.folder / "vendor/crates/itoa-1.0.9/src/lib.rs").read_text()


@needs_cargo
def test_two_overrides_of_one_crate_go_into_one_copy(bench):
    first = override("itoa", "src/lib.rs", "pub struct Buffer", "/* 1 */ pub struct Buffer")
    second = override("itoa", "src/lib.rs", "/* 1 */", "/* 2 */", name="more")
    result = bench.prepare(overrides=[first, second])
    assert [edit["override"] for edit in result["data"]["edits"]] == ["ours", "more"]
    (edited,) = (bench.folder / "edited").glob("*/itoa/src/lib.rs")
    assert "/* 2 */ pub struct Buffer" in edited.read_text()


@needs_cargo
@pytest.mark.parametrize("wrong, message", [
    (override("itoa", "src/lib.rs", "no such text", ""), "override ours: file src/lib.rs: found 0 times, wanted at least 1: 'no such text'"),
    (override("itoa", "src/gone.rs", "x", ""), "override ours: file src/gone.rs: there is no such file, wanted at least 1 of: 'x'"),
    (override("itoa", "../escaped", "x", "", min=0), "override ours: file ../escaped: it leaves the folder that is edited"),
    (override("serde", "a", "x", ""), "override ours: crate serde is neither in Cargo.lock as a registry's crate nor in a checkout"),
    ({"name": "ours", "checkout": "usdt", "edits": []}, "override ours: this combination has no checkout usdt"),
    ({"name": "ours", "edits": []}, 'each of "overrides" needs a name, edits, and either a crate or a checkout'),
])
def test_an_override_that_does_not_fit_is_an_error_and_leaves_nothing(bench, wrong, message):
    result = bench.prepare(overrides=[wrong])
    assert result["outcome"] == "error"
    assert result["reason"] == message
    assert not (bench.folder / "prepared/one").exists()
    assert list((bench.folder / "edited").glob("*")) == []


def checkout(bench, version="1.0.77", name="itoa", workspace=True):
    """A repository's tree: a workspace whose member `itoa` takes its text from a sibling."""
    tree = bench.folder / "trees/first"
    member = tree / "crates/itoa" if workspace else tree / "deep/down/itoa"
    sibling = tree / "crates/text" if workspace else tree / "deep/down/text"
    for folder in (member, sibling):
        (folder / "src").mkdir(parents=True)
    if workspace:
        (tree / "Cargo.toml").write_text('[workspace]\nmembers = ["crates/*"]\n')
    (tree / "rust-toolchain.toml").write_text('[toolchain]\nchannel = "1.2.3"\n')
    (member / "Cargo.toml").write_text(f'[package]\nname = "{name}"\nversion = "{version}"\nedition = "2018"\n\n'
                                       '[dependencies]\ntext = { path = "../text" }\n')
    (member / "src/lib.rs").write_text("pub struct Buffer;\nimpl Buffer { pub fn new() -> Self { Buffer }\n"
                                       "pub fn format(&mut self, _: i32) -> &'static str { text::TEXT } }\n")
    (sibling / "Cargo.toml").write_text('[package]\nname = "text"\nversion = "0.0.1"\nedition = "2018"\n')
    (sibling / "src/lib.rs").write_text('pub const TEXT: &str = "from the checkout";\n')
    return {"name": "itoa", "tree": str(tree), "oid": "1234", "source": "itoa-git"}


@needs_cargo
@pytest.mark.parametrize("workspace", [True, False])
@pytest.mark.parametrize("version", ["1.0.77", "1.0.5"])
def test_a_checkout_takes_the_place_of_the_release(bench, workspace, version):
    result = bench.prepare(crates=[checkout(bench, version, workspace=workspace)])
    assert result["outcome"] == "pass", result
    assert "from the checkout here" in bench.build().stdout
    assert bench.versions()["cfg-if"] == "1.0.0" and result["data"]["changed"] == []


@needs_cargo
def test_overrides_reach_all_crates_of_a_checkout_and_the_checkout_itself(bench):
    taken = checkout(bench)
    by_crate = override("text", "src/lib.rs", "from the checkout", "edited once", min=1, max=1)
    by_source = {"name": "whole", "checkout": "itoa-git",
                 "edits": [{"file": "crates/text/src/lib.rs", "find": "once", "replace": "twice"}]}
    result = bench.prepare(crates=[taken], overrides=[by_crate, by_source])
    assert result["outcome"] == "pass", result
    assert [(edit["crate"], edit["matches"]) for edit in result["data"]["edits"]] == [("text", 1), ("itoa", 1)]
    assert "edited twice here" in bench.build().stdout


@needs_cargo
def test_an_edited_checkout_is_made_once_and_never_touched_again(bench):
    taken = checkout(bench)
    assert bench.prepare("one", crates=[taken])["outcome"] == "pass"
    times = {path: path.stat().st_mtime_ns for path in (bench.folder / "edited").rglob("*")}
    assert times
    assert bench.prepare("two", crates=[taken, {"name": "cfg-if", "release": "1.0.1"}])["outcome"] == "pass"
    assert {path: path.stat().st_mtime_ns for path in (bench.folder / "edited").rglob("*")} == times


@needs_cargo
def test_a_checkout_without_the_crate_is_a_skip(bench):
    result = bench.prepare(crates=[checkout(bench, name="other")])
    assert result["outcome"] == "skip"
    assert result["reason"] == "itoa-git (commit 1234) holds no crate itoa"


@needs_cargo
def test_a_checkout_that_cargo_cannot_read_is_a_skip(bench):
    taken = checkout(bench)
    (bench.folder / "trees/first/crates/text/Cargo.toml").write_text("[package\n")
    assert bench.prepare(crates=[taken])["outcome"] == "skip"


@needs_cargo
def test_plain_checkouts_are_edited_into_the_preparation(bench):
    tree = bench.folder / "trees/plain"
    (tree / "a").mkdir(parents=True)
    (tree / "a/file").write_text("old\n")
    wrong = {"name": "plain", "checkout": "elsewhere", "edits": [{"file": "a/file", "find": "old", "replace": "new"}]}
    result = bench.prepare(overrides=[wrong], checkouts={"elsewhere": str(tree)})
    assert result["outcome"] == "pass", result
    assert (bench.folder / "prepared/one/checkouts/elsewhere/a/file").read_text() == "new\n"
    assert (tree / "a/file").read_text() == "old\n"


@needs_cargo
def test_a_given_lock_is_used_as_it_is(bench):
    crates = [{"name": "itoa", "release": "1.0.9"}]
    ours = override("itoa", "src/lib.rs", "pub struct Buffer", "/* edited */ pub struct Buffer")
    lock = bench.prepare("one", crates=crates, overrides=[ours])["data"]["lock"]
    assert lock.count("checksum") == 2
    result = bench.prepare("two", crates=crates, overrides=[ours], lock=lock)
    assert result["outcome"] == "pass" and result["data"]["lock"] == lock
    assert bench.versions("two") == bench.versions("one")


@needs_cargo
def test_a_given_lock_that_says_something_else_is_an_error(bench, shipped_lock):
    result = bench.prepare(crates=[{"name": "itoa", "release": "1.0.9"}], lock=shipped_lock)
    assert result["outcome"] == "error"
    assert result["reason"] == "itoa 1.0.9 was asked for, and the given Cargo.lock has 1.0.5"


@needs_cargo
def test_a_repetition_answers_at_once_and_another_question_anew(bench, away):
    crates = [{"name": "itoa", "release": "1.0.9"}]
    first = bench.prepare(crates=crates)
    made = (bench.folder / "prepared/one").stat().st_ino
    again = bench.prepare(crates=crates, environment=away)
    assert again["data"] == first["data"] and (bench.folder / "prepared/one").stat().st_ino == made
    assert bench.prepare(crates=crates, lock=first["data"]["lock"], environment=away)["outcome"] == "pass"
    other = bench.prepare(crates=[{"name": "itoa", "release": "1.0.10"}])
    assert other["outcome"] == "pass" and bench.versions()["itoa"] == "1.0.10"


@needs_cargo
def test_preparations_at_once_do_not_disturb_each_other(bench):
    ours = override("itoa", "src/lib.rs", "pub struct Buffer", "/* edited */ pub struct Buffer")
    jobs = [bench.job(name, crates=[{"name": "itoa", "release": release}], overrides=[ours])
            for name, release in (("one", "1.0.9"), ("two", "1.0.9"), ("three", "1.0.10"), ("one", "1.0.9"))]
    results = [finish(process) for process in [start(job) for job in jobs]]
    assert [result["outcome"] for result in results] == ["pass"] * 4, results
    for name in ("one", "two", "three"):
        bench.build(name)
    assert sorted(os.listdir(bench.folder / "prepared")) == ["one", "three", "two"]


@needs_cargo
def test_a_killed_preparation_leaves_nothing_that_disturbs_the_next(bench):
    ours = override("itoa", "src/lib.rs", "pub struct Buffer", "/* edited */ pub struct Buffer")
    job = bench.job(crates=[{"name": "itoa", "release": "1.0.9"}], overrides=[ours])
    for step in range(12):
        process = start(job)
        time.sleep(0.01 + step * 0.08)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert work(job)["outcome"] == "pass"
    assert os.listdir(bench.folder / "prepared") == ["one"]
    assert "42 here" in bench.build().stdout


@needs_cargo
def test_a_lock_for_new_cargos_only_is_made_readable_for_old_ones(bench):
    lock = (bench.reproducer / "Cargo.lock").read_text().replace("\nversion = 3\n", "\nversion = 4\n")
    (bench.reproducer / "Cargo.lock").write_text(lock)
    assert "\nversion = 3\n" in bench.prepare()["data"]["lock"]
    bench.build()


@needs_cargo
def test_a_reproducer_without_a_lock_gets_one(bench):
    (bench.reproducer / "Cargo.lock").unlink()
    result = bench.prepare(crates=[{"name": "itoa", "release": "1.0.9"}])
    assert result["outcome"] == "pass" and result["data"]["changed"] == []
    assert bench.versions()["itoa"] == "1.0.9"


@needs_cargo
def test_git_dependencies_are_vendored_for_their_lock_alone(bench):
    repository = bench.folder / "repository"
    (repository / "src").mkdir(parents=True)
    (repository / "Cargo.toml").write_text('[package]\nname = "words"\nversion = "0.3.0"\nedition = "2018"\n')
    (repository / "src/lib.rs").write_text("")
    for command in (["init", "-q"], ["add", "."], ["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "first"]):
        subprocess.run(["git", *command], cwd=repository, check=True)
    write_reproducer(bench.reproducer, MANIFEST + f'words = {{ git = "file://{repository}" }}\n')
    cargo(bench.reproducer, "update", "-w")
    shutil.rmtree(bench.reproducer / "target", ignore_errors=True)
    result = bench.prepare(crates=[{"name": "itoa", "release": "1.0.9"}])
    assert result["outcome"] == "pass", result
    assert not (bench.folder / "vendor/crates").exists()
    shutil.rmtree(repository)
    assert "42 here" in bench.build().stdout


@needs_cargo
def test_a_folder_that_cannot_be_written_is_an_error(bench):
    if os.geteuid() == 0:
        blocked = bench.folder / "vendor"
        blocked.write_text("a file where the folder should be")
    else:
        blocked = bench.folder / "vendor"
        blocked.mkdir(mode=stat.S_IRUSR | stat.S_IXUSR)
    result = bench.prepare()
    assert result["outcome"] == "error" and "vendor" in result["reason"]
