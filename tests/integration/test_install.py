"""Installing: what `make install` puts where, that it works from there, and that `make uninstall` takes it all away."""

import subprocess

from conftest import BUILD, ROOT


def make(target, destination):
    subprocess.run(["make", "-s", target, f"BUILD={BUILD}", f"DESTDIR={destination}", "PREFIX=/usr", "-o", "all"], cwd=ROOT,
                   check=True, capture_output=True, text=True)


def test_an_installed_bisectd_finds_its_worker_and_uninstall_leaves_nothing(place, tmp_path):
    destination = tmp_path / "destination"
    make("install", destination)
    place.write("reproducer/readme", "nothing\n")
    file = place.write("small.yaml", "name: small\naxes:\n  - {name: status, type: choice, values: ['0', '1']}\n"
                                     "reproducer:\n  path: reproducer\n  run: [sh, -c, 'exit {status}']\n")
    program = destination / "usr/bin/bisectd"
    result = subprocess.run([str(program), "run", "--state", str(place.state), str(file)], capture_output=True, text=True,
                            timeout=120, check=False)
    assert result.returncode == 0, result.stderr
    assert place.outcomes() == {"status=0": "pass", "status=1": "fail"}
    assert (destination / "usr/share/doc/bisectd/README.md").exists()
    make("uninstall", destination)
    assert [path for path in destination.rglob("*") if not path.is_dir()] == []
