#!/usr/bin/env python3
"""The agent under another kernel, in an emulated machine: its BPF programs load there, and its
samples are right (test_guest.c); and `firn record` works from end to end.

    test_kernels.py VERSION FIRN GUEST INIT WORKLOADS_DIR [KERNELS_DIR]

VERSION: 5.10 or 6.1, a kernel that `scripts/setup kernels` has fetched. Without it, or without
qemu-system-x86_64, it says so and is skipped. A run takes some minutes: nothing is emulated by
hardware.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

KERNELS = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "firn", "kernels")
WORKLOADS = [
    "burner", "deep", "deep_static", "dlopener", "jit", "libplugin.so", "signals", "storm", "threads", "waiter",
]  # fmt: skip
MEMORY_MIB = 1024
SECONDS_MAX = 1500


def needed_libraries(path):
    """The files that a program's loader will look for, as they are found here."""
    said = subprocess.run(["ldd", path], capture_output=True, text=True, check=False).stdout
    return re.findall(r"(/\S+) \(0x", said)


class Archive:
    """An initial file system: a cpio archive of the "newc" form."""

    def __init__(self):
        self.parts = []
        self.names = set()
        self.inode = 0

    def _entry(self, name, mode, content):
        self.inode += 1
        fields = [self.inode, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0]
        head = b"070701" + b"".join(b"%08X" % f for f in fields) + name.encode() + b"\0"
        self.parts.append(head + b"\0" * (-len(head) % 4) + content + b"\0" * (-len(content) % 4))

    def directory(self, name):
        name = name.strip("/")
        if not name or name in self.names:
            return
        self.directory(os.path.dirname(name))
        self.names.add(name)
        self._entry(name, 0o40755, b"")

    def bytes(self, name, content, mode=0o100755):
        name = name.strip("/")
        if name in self.names:
            return
        self.directory(os.path.dirname(name))
        self.names.add(name)
        self._entry(name, mode, content)

    def file(self, name, path):
        with open(path, "rb") as file:
            self.bytes(name, file.read())

    def program(self, name, path):
        self.file(name, path)
        for library in needed_libraries(path):
            self.file(library, library)

    def finish(self):
        self._entry("TRAILER!!!", 0, b"")
        return b"".join(self.parts)


def make_archive(firn, guest, init, workloads, commands):
    archive = Archive()
    archive.file("init", init)
    archive.program("firn", firn)
    archive.program("guest", guest)
    for name in WORKLOADS:
        archive.program(f"workloads/{name}", os.path.join(workloads, name))
    archive.program("bin/cat", "/bin/cat")
    for name in ("proc", "sys", "dev", "tmp", "var/tmp"):
        archive.directory(name)
    archive.bytes("etc/passwd", b"root:x:0:0::/:/\nnobody:x:65534:65534::/:/\n", 0o100644)
    archive.bytes("commands", "".join(f"{c}\n" for c in commands).encode(), 0o100644)
    return archive.finish()


def boot(kernel, archive, log):
    """What the machine printed, until it turned itself off; on the way there it is in `log`."""
    command = ["qemu-system-x86_64", "-accel", "tcg", "-cpu", "max", "-m", str(MEMORY_MIB), "-smp", "1"]
    command += ["-kernel", kernel, "-initrd", archive, "-no-reboot", "-display", "none", "-monitor", "none"]
    command += ["-serial", "stdio", "-nic", "none"]
    # A kernel that is not let run for long enough finds its timer broken, and itself locked up.
    patience = "no_timer_check nowatchdog"
    command += ["-append", f"console=ttyS0 quiet panic=-1 mitigations=off {patience}"]
    late = ""
    with open(log, "wb") as out:
        try:
            streams = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": out}
            subprocess.run(command, timeout=SECONDS_MAX, check=False, **streams)
        except subprocess.TimeoutExpired:
            late = "\nthe machine did not turn itself off\n"
    with open(log, encoding="utf-8", errors="replace") as out:
        return out.read() + late


def deep_share(folded):
    """Of the CPU time in a folded profile of `deep 100`: the share of stacks with all 101 calls."""
    total = deep = 0
    for line in folded.splitlines():
        frames, _, value = line.strip().rpartition(" ")
        if not value.isdigit():
            continue
        total += int(value)
        deep += int(value) if frames.count(";recurse") == 101 else 0
    return deep / total if total else 0


def judge(said):
    """(what, is it so) of each thing that must hold."""
    guest = re.search(r"\[==========\].*?(\d+) test\(s\) run", said)
    passed = re.search(r"\[  PASSED  \] (\d+) test\(s\)", said)
    yield "the machine ran to its end", "init: done" in said
    yield "its tests ran", bool(guest)
    yield "they passed", bool(guest and passed and guest[1] == passed[1]) and "init: end /guest 0" in said
    yield "firn record succeeded", "init: end /firn 0" in said
    folded = said.partition("init: begin /bin/cat")[2].partition("init: end")[0]
    share = deep_share(folded)
    yield f"{share:.1%} of what it recorded are whole stacks with names", share > 0.9


def main():
    version, firn, guest, init, workloads = sys.argv[1:6]
    kernel = os.path.join(sys.argv[6] if len(sys.argv) > 6 else KERNELS, version)
    reason = None
    if not shutil.which("qemu-system-x86_64"):
        reason = "no qemu-system-x86_64: scripts/setup kernels installs it"
    elif not os.path.exists(kernel):
        reason = f"no kernel {version} in {os.path.dirname(kernel)}: scripts/setup kernels fetches it"
    if reason:
        print(f"skipped: {reason}\n0 passed, 0 failed, 1 skipped")
        return 0
    commands = [
        "/guest",
        "/firn record -F 199 -d 5s -o /tmp/out.folded -- /workloads/deep 100 20",
        "/bin/cat /tmp/out.folded",
    ]
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="firn-test-kernels-") as home:
        archive = os.path.join(home, "archive")
        with open(archive, "wb") as file:
            file.write(make_archive(firn, guest, init, workloads, commands))
        said = boot(kernel, archive, os.path.join(home, "log"))
    passed = failed = 0
    for what, ok in judge(said):
        print(f"{'ok  ' if ok else 'FAIL'} {version}: {what}")
        passed, failed = passed + ok, failed + (not ok)
    print("\n".join(line[:300] for line in said.splitlines()[-4000:]) if failed else summary(said))
    print(f"{time.monotonic() - started:.0f} s")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


def summary(said):
    kept = re.findall(r"^(?:init: kernel|loaded in|\w+: \d+ instructions|\[.*samples|.*by itself).*$", said, re.M)
    return "\n".join(kept)


if __name__ == "__main__":
    sys.exit(main())
