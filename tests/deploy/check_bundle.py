#!/usr/bin/env python3
"""The tarball and the images: the same bytes twice, what is in them, and that the program runs.

usage: check_bundle.py FIRN
tests/deploy/prove_images runs the images.
"""

import gzip
import hashlib
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.request

SKIPPED = 77
ROOT = pathlib.Path(__file__).resolve().parents[2]
FIRN = str(pathlib.Path(sys.argv[1]).resolve())
problems = []


def run(*words, **more):
    return subprocess.run(words, capture_output=True, text=True, timeout=300, cwd=ROOT, **more)


def expect(good, what):
    if not good:
        problems.append(what)


def has_loaded_libraries(names):
    """Libraries that firn loads when it needs them, so that ldd does not name them."""
    return all(any(f"/{kind}.so." in name for name in names) for kind in ("libcurl", "libcapstone"))


def check_tarball(path, folder):
    with tarfile.open(path) as archive:
        expect(all(m.uid == 0 and m.mtime == 1700000000 for m in archive), "owner or time in the tarball")
        expect(has_loaded_libraries(archive.getnames()), "a library that firn loads is missing in the tarball")
        archive.extractall(folder)
    (place,) = folder.iterdir()
    moved = place.rename(folder / "any where")
    said = run(str(moved / "firn"), "--version", env={"PATH": os.environ["PATH"]})
    expect(said.returncode == 0 and "firn" in said.stdout, f"the tarball's firn: {said.stderr}")
    for licence in ("firn/LICENSE", "libc6/copyright"):
        expect((moved / "licences" / licence).exists(), f"no {licence}")
    check_symbols(moved)


def check_symbols(place):
    """firn starts itself again to read ELF files: here the loader is what it starts."""
    server = subprocess.Popen([str(place / "firn"), "server", "--http-address", "127.0.0.1:0",
                               "--storage-path", str(place / "data")],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        said = [server.stdout.readline() for _ in range(3)]
        url = re.search(r"http://(\S+)", said[1])[1]
        sent = run(str(place / "firn"), "debuginfo", "upload", "--store-address", url, "--insecure",
                   os.path.realpath("/bin/true"))
        expect(sent.returncode == 0, f"upload: {sent.stderr}")
        until = time.monotonic() + 60
        built = ""
        while "tables_built_total 1\n" not in built and time.monotonic() < until:
            time.sleep(0.1)
            built = urllib.request.urlopen(f"http://{url}/metrics", timeout=60).read().decode()
        expect("tables_built_total 1\n" in built, "no symbol table was built")
    finally:
        server.terminate()
        server.wait(60)


def layers_of(image, folder):
    with tarfile.open(image) as archive:
        archive.extractall(folder)
    index = json.loads((folder / "index.json").read_text())
    digest = index["manifests"][0]["digest"].split(":")[1]
    manifest = json.loads((folder / "blobs/sha256" / digest).read_text())
    for name in (folder / "blobs/sha256").iterdir():
        expect(hashlib.sha256(name.read_bytes()).hexdigest() == name.name, f"{image}: digest of {name.name}")
    config = json.loads((folder / "blobs/sha256" / manifest["config"]["digest"].split(":")[1]).read_text())
    return config, [folder / "blobs/sha256" / b["digest"].split(":")[1] for b in manifest["layers"]]


def check_image(role, image, folder):
    config, layers = layers_of(image, folder)
    expect(config["config"]["User"] == ("65532:65532" if role == "server" else "0:0"), f"{role}: user")
    members = {}
    for layer, digest in zip(layers, config["rootfs"]["diff_ids"], strict=True):
        plain = gzip.decompress(layer.read_bytes())
        expect("sha256:" + hashlib.sha256(plain).hexdigest() == digest, f"{role}: {digest}")
        with tarfile.open(fileobj=io.BytesIO(plain)) as archive:
            members |= {m.name: m for m in archive}
    expect(not [n for n in members if n.endswith(("/sh", "/bash", "/dash"))], f"{role}: a shell")
    expect({"usr/bin/firn", "etc/ssl/certs/ca-certificates.crt"} <= set(members), f"{role}: files")
    expect(has_loaded_libraries(members), f"{role}: a library that firn loads is missing")
    expect(members["var/lib/firn"].uid == (65532 if role == "server" else 0), f"{role}: its data's owner")


def check_seccomp():
    """What the agent allows itself is allowed by the profile that an engine loads."""
    text = (ROOT / "src/agent/broker/sandbox.c").read_text()
    own = set(re.findall(r"SCMP_SYS\((\w+)\)", text[:text.index("deadly_calls")]))
    for role in ("agent", "server"):
        profile = json.loads((ROOT / f"deploy/seccomp/firn-{role}.json").read_text())
        allowed = {name for rule in profile["syscalls"] for name in rule["names"]}
        expect({"execve", "seccomp", "mmap", "clone"} <= allowed, f"{role}: too little")
        expect(not {"mount", "init_module", "ptrace", "kexec_load"} & allowed, f"{role}: too much")
        expect(role == "server" or own <= allowed, f"agent: lacks {own - allowed}")


def make(out):
    made = run("tools/make_bundle", "--fast", FIRN, str(out),
               env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"})
    if made.returncode:
        sys.exit(f"make_bundle: {made.stderr}")
    return [pathlib.Path(line) for line in made.stdout.split()]


def main():
    for tool in ("dpkg-query", "strip"):
        if not shutil.which(tool):
            print(f"skipped: no {tool}")
            return SKIPPED
    check_seccomp()
    with tempfile.TemporaryDirectory() as temporary:
        out = pathlib.Path(temporary)
        files, again = make(out / "a"), make(out / "b")
        expect([f.read_bytes() for f in files] == [f.read_bytes() for f in again], "two makes differ")
        listing = json.loads(next(f for f in files if f.suffix == ".json").read_text())
        expect({"firn", "libc6", "libbpf1", "libiberty-dev"} <= {p["name"] for p in listing["packages"]}, "packages of the SBOM")
        check_tarball(next(f for f in files if f.name.endswith(".tar.xz")), out / "tarball")
        for role in ("server", "agent"):
            check_image(role, next(f for f in files if f"firn-{role}-" in f.name), out / role)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
