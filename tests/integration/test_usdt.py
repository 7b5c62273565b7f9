"""The real thing in small: the real usdt and tokio crates of the registry, real compilers, real release and dev builds."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT
from test_sources import git

pytestmark = pytest.mark.slow

CONFIG = ROOT / "config/usdt-86"
TOOLCHAINS = Path(os.environ.get("BISECTD_TOOLCHAINS", ROOT / "var/toolchains")).resolve()


def toolchain(version):
    """A folder with that compiler: one that was unpacked, or rustup's."""
    for folder in sorted(TOOLCHAINS.glob("rustc*")) if TOOLCHAINS.is_dir() else []:
        if folder.name.endswith("-" + version):
            return folder
    which = subprocess.run(["rustup", "which", "--toolchain", version, "rustc"], capture_output=True, text=True, check=False) \
        if shutil.which("rustup") else None
    return Path(which.stdout.strip()).parents[1] if which and which.returncode == 0 else None


def compilers(*wanted):
    found = [toolchain(version) for version in wanted]
    if None in found:
        pytest.skip(f"not all of the compilers {', '.join(wanted)} are here (see contrib/toolchains)")
    return found


def newest():
    for version in ("1.96.0", "1.95.0", "1.85.0"):
        if toolchain(version):
            return toolchain(version)
    pytest.skip("no compiler from 1.85 on is here (see contrib/toolchains)")


def overrides():
    """The overrides of the shipped investigation, as they are written there."""
    text = (CONFIG / "investigation.yaml").read_text()
    return re.search(r"^overrides:\n(?:(?: .*)?\n)*", text, re.MULTILINE).group(0)


def investigation(place, axes, sources="", more=""):
    return place.write("small.yaml", f"""\
name: small
confirm: 1
workers: 2
{sources}
axes:
{axes}
{overrides()}
{more}
reproducer:
  path: {CONFIG}/reproducer
  build: [cargo, build, --locked, --profile, "{{profile}}", --features, "{{features}}"]
  run: ["{{target}}/{{profile_dir}}/usdt-86-reproducer"]
  expect: {{exit: 0, output: "read [0-9]+ of [0-9]+ bytes"}}
  limits: {{build: 30m, run: 30s}}
""")


SHAPE = "  - {name: shape, type: choice, values: [{name: subtraction, features: [subtraction]}]}\n"


def placements(*names):
    return "  - {name: placement, type: choice, values: [" + \
        ", ".join(f"{{name: {name}, features: [{name}]}}" for name in names) + "]}\n"


def test_a_reduced_usdt_86_matrix(place):
    """Given the bad and the good release, both profiles and three placements on the oldest and a new compiler, when the matrix is
    walked, then only release builds of the bad release with the probe in both arms fail, whatever the compiler."""
    old, new = compilers("1.63.0", newest().name.rsplit("-", 1)[1])
    axes = (f"  - {{name: toolchain, type: toolchain, values: ['{old}', '{new}']}}\n"
            "  - {name: usdt, type: crate, values: ['0.5.0', '0.6.0']}\n"
            "  - {name: tokio, type: crate, values: ['1.24.2']}\n" + SHAPE +
            "  - {name: profile, type: profile, values: [dev, release]}\n" + placements("both-arms", "hoisted", "none"))
    result = place.run("run", investigation(place, axes), timeout=2400, check=0)
    labels = [row["label"] for row in place.query(
        "SELECT v.label FROM value v JOIN axis a ON a.id = v.axis_id WHERE a.name = 'toolchain' ORDER BY v.position")]
    assert labels[0] == "1.63.0"
    expected = {}
    for label in labels:
        for usdt in ("0.5.0", "0.6.0"):
            for profile in ("dev", "release"):
                for placement in ("both-arms", "hoisted", "none"):
                    outcome = "fail" if (usdt, profile, placement) == ("0.5.0", "release", "both-arms") else "pass"
                    if usdt == "0.6.0" and label == "1.63.0":
                        outcome = "build-fail"
                    expected[f"toolchain={label} usdt={usdt} tokio=1.24.2 shape=subtraction profile={profile} "
                             f"placement={placement}"] = outcome
    assert place.outcomes() == expected
    (first,) = place.query("SELECT * FROM first_bad")
    assert first["combination"] == \
        "toolchain=1.63.0 usdt=0.5.0 tokio=1.24.2 shape=subtraction profile=release placement=both-arms"
    assert (first["final"], first["confirmed"]) == (1, 1)
    (boundary,) = place.query("SELECT * FROM boundaries")
    assert (boundary["axis"], boundary["change"], boundary["from_value"], boundary["to_value"]) == \
        ("usdt", "fixed", "0.5.0", "0.6.0")
    assert "Override in force: standard backend on Linux" in result.stdout
    repeated = subprocess.run(["sh", "-c", first["commands"]], capture_output=True, text=True, timeout=900, check=False)
    assert repeated.returncode == 1, repeated.stdout + repeated.stderr
    assert "left the loop early" in repeated.stdout
    check_the_verdict(place)


def check_the_verdict(place):
    """The crate, because its declaration is false, what the block destroys is read, and the declaration alone cures."""
    (verdict,) = place.query("SELECT * FROM verdicts")
    assert (verdict["verdict"], verdict["title"]) == ("crate", "small: verdict: crate: usdt-impl 0.5.0, fixed by usdt=0.6.0")
    (twin,) = place.query("SELECT * FROM twins")
    assert (twin["origin"], twin["outcome"]) == ("audit", "pass")
    assert "preserves_flags" not in json.loads(twin["edit"])["edits"][0]["replace"]
    (build,) = place.query("SELECT data FROM evidence WHERE kind = 'build'")
    seen = json.loads(build["data"])
    assert seen["build"]["outcome"] == "fail" and seen["audit"]["not_judged"] == 0
    assert {violation["promise"] for block in seen["audit"]["blocks"] for violation in block["violations"]} == {"preserves_flags"}
    broken = [path for path in seen["paths"] if path["state"] == "broken"]
    assert broken and [step["role"] for step in broken[0]["chain"]] == ["definition", "destroyer", "reader"]
    assert broken[0]["chain"][1]["text"] == "xor rax, rax" and broken[0]["taken"] in ("always", "never")
    good = [json.loads(row["data"]) for row in place.query(
        "SELECT data FROM evidence WHERE kind = 'neighbour' AND other_combination LIKE '%usdt=0.6.0%'")]
    assert good and all(one["audit"]["violations"] == 0 for one in good)


MEMBERS = ("usdt", "usdt-impl", "usdt-macro", "usdt-attr-macro", "dtrace-parser")


def published_sources(folder, release):
    """The sources of a release of usdt and its companions, as cargo fetched them."""
    crate = folder / f"fetch-{release}"
    (crate / "src").mkdir(parents=True)
    (crate / "src/lib.rs").write_text("")
    (crate / "Cargo.toml").write_text(f'[package]\nname = "fetch"\nversion = "0.0.0"\nedition = "2021"\n'
                                      f'[dependencies]\nusdt = "={release}"\n')
    cargo = newest() / "bin/cargo"
    vendored = crate / "vendored"
    subprocess.run([str(cargo), "vendor", "-q", "--versioned-dirs", str(vendored)], cwd=crate, check=True,
                   capture_output=True)
    return {member: next(path for path in vendored.iterdir() if re.fullmatch(member + r"-\d[^-]*", path.name))
            for member in MEMBERS}


def commit_release(repository, sources, release):
    """One commit: the published crates side by side, joined by path dependencies as in usdt's own workspace."""
    for member, source in sources.items():
        shutil.rmtree(repository / member, ignore_errors=True)
        shutil.copytree(source, repository / member, ignore=shutil.ignore_patterns(".cargo-checksum.json", "Cargo.lock"))
        manifest = repository / member / "Cargo.toml"
        text = manifest.read_text()
        for other in MEMBERS:
            text = re.sub(rf"^(\[(?:build-|dev-)?dependencies\.{other}\])$", rf'\1\npath = "../{other}"', text,
                          flags=re.MULTILINE)
        manifest.write_text(text)
    (repository / "Cargo.toml").write_text("[workspace]\nmembers = [" + ", ".join(f'"{name}"' for name in MEMBERS) + "]\n")
    git(repository, "add", "-f", ".")
    git(repository, "commit", "-q", "-m", f"release {release}", date="2024-01-01")
    git(repository, "tag", f"v{release}")


def test_the_commit_that_fixed_it_is_found_between_two_releases(place, tmp_path):
    """Given a repository whose commits are published releases, when the axis holds a release and the commits after it, then
    the boundary is the commit that fixed it."""
    repository = tmp_path / "usdt"
    repository.mkdir()
    git(repository, "init", "-q", "-b", "main")
    for release in ("0.3.5", "0.5.0", "0.6.0"):
        commit_release(repository, published_sources(tmp_path, release), release)
    axes = (f"  - {{name: toolchain, type: toolchain, values: ['{newest()}']}}\n"
            "  - name: usdt\n    type: crate\n"
            "    values: ['0.3.5', {commits: 'v0.3.5..v0.6.0', source: usdt, paths: [usdt-impl]}]\n"
            "  - {name: tokio, type: crate, values: ['1.24.2']}\n" + SHAPE +
            "  - {name: profile, type: profile, values: [release]}\n" + placements("both-arms"))
    sources = f"sources:\n  usdt: {{url: 'file://{repository}'}}\n"
    place.run("run", investigation(place, axes, sources, "evidence: {gather: never}"), timeout=2400, check=0)
    assert sorted(place.outcomes().values()) == ["fail", "fail", "pass"]
    (boundary,) = place.query("SELECT * FROM boundaries")
    fixed = git(repository, "rev-parse", "v0.6.0")
    assert (boundary["change"], boundary["to_value"], boundary["to_detail"]) == \
        ("fixed", fixed[:10], "2024-01-01 release 0.6.0")
    assert boundary["gap"] == 0 and boundary["confirmed"] == 1
