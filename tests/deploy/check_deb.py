#!/usr/bin/env python3
"""The package without a network: its files, its fields, the same bytes twice, its units.

usage: check_deb.py FIRN
tests/deploy/prove installs it in an empty Debian.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
UNITS = ("firn", "firn-server", "firn-agent")
ROOT = pathlib.Path(__file__).resolve().parents[2]
FIRN = str(pathlib.Path(sys.argv[1]).resolve())
problems = []


def run(*words, **more):
    return subprocess.run(words, capture_output=True, text=True, timeout=120, cwd=ROOT, **more)


def expect(good, what):
    if not good:
        problems.append(what)


def make(firn, out):
    made = run("tools/make_deb", firn, str(out), env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"})
    if made.returncode:
        sys.exit(f"make_deb: {made.stderr}")
    return pathlib.Path(made.stdout.strip())


def check_files(package, firn):
    rows = [row.split(None, 5) for row in run("dpkg-deb", "-c", str(package)).stdout.splitlines()]
    files = {row[5]: row for row in rows if not row[5].endswith("/")}
    verbs = run(firn, "manual", str(package.parent / "share"))
    expect(verbs.returncode == 0, verbs.stderr)
    wanted = {"./usr/bin/firn", "./usr/share/bash-completion/completions/firn",
              "./usr/share/zsh/vendor-completions/_firn", "./usr/share/doc/firn/copyright",
              "./usr/share/fish/vendor_completions.d/firn.fish",
              "./usr/share/man/man1/firn-up.1.gz", "./usr/share/man/man5/firn.yaml.5.gz"}
    wanted |= {f"./usr/share/doc/firn/{p.relative_to(ROOT)}" for p in (ROOT / "LICENSES").iterdir()}
    wanted |= {"./usr/share/doc/firn/html/" + re.sub(r"\.md$", ".html", str(p.relative_to(ROOT / "docs")))
               for p in (ROOT / "docs").rglob("*") if p.suffix in (".md", ".png")}
    wanted |= {f"./usr/share/doc/firn/html/{name}" for name in ("style.css", "index.html", "ARCHITECTURE.html",
                                                               "CONTRIBUTING.html", "STYLE.html")}
    wanted |= {f"./etc/firn/{name}.yaml" for name in ("firn", "server", "agent")}
    wanted |= {f"./usr/lib/systemd/system/{unit}.service" for unit in UNITS}
    wanted |= {f"./usr/share/{p.relative_to(package.parent / 'share')}.gz"
               for p in (package.parent / "share/man").rglob("*.[157]")}
    expect(set(files) == wanted, f"missing {wanted - set(files)}, too many {set(files) - wanted}")
    expect(all(row[1] == "root/root" for row in rows), "a file is not root's")
    expect(all(row[3] == "2023-11-14" for row in rows), "a time is not SOURCE_DATE_EPOCH's")
    expect(files["./usr/bin/firn"][0] == "-rwxr-xr-x", "mode of the program")
    expect(files["./etc/firn/server.yaml"][0] == "-rw-r--r--", "mode of the configuration")


def check_control(package):
    fields = run("dpkg-deb", "-f", str(package)).stdout
    for part in ("Package: firn\n", f"Version: {(ROOT / 'VERSION').read_text().strip()}\n", "libc6 (",
                 "libbpf1 (", "passwd\n"):
        expect(part in fields, f"control has no {part!r}: {fields}")
    expect("@" not in fields.replace("@localhost", ""), f"control: {fields}")
    info = package.parent / "control"
    run("dpkg-deb", "-e", str(package), str(info))
    conffiles = (info / "conffiles").read_text().split()
    expect(conffiles == [f"/etc/firn/{n}.yaml" for n in ("agent", "firn", "server")], conffiles)
    for script in ("postinst", "prerm", "postrm"):
        read = run("sh", "-n", str(info / script))
        expect(os.access(info / script, os.X_OK) and not read.returncode, f"{script}: {read.stderr}")


def check_installed(package):
    """As it lies on the disk: configuration that the program takes, units that systemd takes."""
    root = package.parent / "root"
    run("dpkg-deb", "-x", str(package), str(root))
    for name in ("firn", "server", "agent"):
        checked = run(str(root / "usr/bin/firn"), "config", "check", str(root / f"etc/firn/{name}.yaml"))
        expect(checked.returncode == 0, f"{name}.yaml: {checked.stderr}")
    if not shutil.which("systemd-analyze"):
        print("systemd-analyze is not here: the units were not verified")
        return
    units = []
    for unit in UNITS:
        text = (root / f"usr/lib/systemd/system/{unit}.service").read_text()
        expect("ExecStart=/usr/bin/firn " in text, f"{unit}: ExecStart")
        units.append(package.parent / f"{unit}.service")
        units[-1].write_text(text.replace("/usr/bin/firn", str(root / "usr/bin/firn")).replace(
            "Documentation=", "# "))
    read = run("systemd-analyze", "verify", "--man=no", *map(str, units))
    said = "\n".join(line for line in read.stderr.splitlines() if "firn" in line)
    expect(not said, f"units: {said}")


def main():
    for tool in ("dpkg-deb", "dpkg-shlibdeps", "lowdown"):
        if not shutil.which(tool):
            print(f"skipped: no {tool}")
            return SKIPPED
    with tempfile.TemporaryDirectory() as temporary:
        first = make(FIRN, pathlib.Path(temporary) / "a")
        second = make(FIRN, pathlib.Path(temporary) / "b")
        expect(first.read_bytes() == second.read_bytes(), "two packages of one program differ")
        check_files(first, FIRN)
        check_control(first)
        check_installed(first)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
