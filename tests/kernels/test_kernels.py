#!/usr/bin/env python3
"""The agent under another kernel, in an emulated machine: its BPF programs load there, and its
samples are right (test_guest.c); `firn record` works from end to end; and in a second machine, with
two CPUs, what happens to a host: a CPU goes and comes, all of it sleeps (test_host.c).

    test_kernels.py VERSION FIRN GUEST HOST INIT WORKLOADS_DIR [KERNELS_DIR]

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
    "burner", "deep", "deep_static", "dlopener", "false_heap", "jit", "libplugin.so", "signals", "storm", "threads",
    "waiter",
]  # fmt: skip
MEMORY_MIB = 1024
# What the kernel keeps for each CPU it keeps for all that might ever come.
HOST_CPUS = "2,maxcpus=128"
SECONDS_MAX = 1500


def needed_libraries(path):
    """The files that a program's loader will look for, as they are found here."""
    said = subprocess.run(["ldd", path], capture_output=True, text=True, check=False).stdout
    return re.findall(r"(/\S+) \(0x", said)


def loaded_by_name(library):
    """The same of a library that a program loads while it runs."""
    known = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=False).stdout
    found = re.findall(rf"^\s*{re.escape(library)} \(libc6,x86-64.*=> (\S+)$", known, re.M)[:1]
    return found + [needed for path in found for needed in needed_libraries(path)]


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


def make_archive(programs, init, workloads, commands):
    archive = Archive()
    archive.file("init", init)
    for name, path in programs.items():
        archive.program(name, path)
    for name in WORKLOADS:
        archive.program(f"workloads/{name}", os.path.join(workloads, name))
    archive.program("bin/cat", "/bin/cat")
    for library in loaded_by_name("libcurl.so.4"):
        archive.file(library, library)
    for name in ("proc", "sys", "dev", "tmp", "var/tmp"):
        archive.directory(name)
    archive.bytes("etc/passwd", b"root:x:0:0::/:/\nnobody:x:65534:65534::/:/\n", 0o100644)
    archive.bytes("commands", "".join(f"{c}\n" for c in commands).encode(), 0o100644)
    return archive.finish()


def boot(kernel, archive, log, cpus):
    """What the machine printed, until it turned itself off; on the way there it is in `log`."""
    command = ["qemu-system-x86_64", "-accel", "tcg", "-cpu", "max", "-m", str(MEMORY_MIB), "-smp", cpus]
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
    """Of the CPU time in a folded profile of `deep 100`: the share of stacks with all 101 calls. What whole
    stacks show of its beginning is left out: where little is let run that is most of it."""
    total = deep = 0
    for line in folded.splitlines():
        frames, _, value = line.strip().rpartition(" ")
        if not value.isdigit() or not ("recurse" in frames or "leaf" in frames or "[" in frames):
            continue
        total += int(value)
        deep += int(value) if frames.count(";recurse") == 101 else 0
    return deep / total if total else 0


def judge_tests(said, program):
    """(what, is it so) of each thing that must hold."""
    ran = re.search(r"\[==========\].*?(\d+) test\(s\) run", said)
    passed = re.search(r"\[  PASSED  \] (\d+) test\(s\)", said)
    yield f"{program}: the machine ran to its end", "init: done" in said
    yield f"{program}: its tests ran", bool(ran)
    ended = f"init: end /{program} 0" in said
    yield f"{program}: they passed", bool(ran and passed and ran[1] == passed[1]) and ended


def judge_record(said):
    yield "firn record succeeded", "init: end /firn 0" in said
    folded = said.partition("init: begin /bin/cat")[2].partition("init: end")[0]
    share = deep_share(folded)
    yield f"{share:.1%} of what it recorded are whole stacks with names", share > 0.9


def main():
    version, firn, guest, host, init, workloads = sys.argv[1:7]
    kernel = os.path.join(sys.argv[7] if len(sys.argv) > 7 else KERNELS, version)
    reason = None
    if not shutil.which("qemu-system-x86_64"):
        reason = "no qemu-system-x86_64: scripts/setup kernels installs it"
    elif not os.path.exists(kernel):
        reason = f"no kernel {version} in {os.path.dirname(kernel)}: scripts/setup kernels fetches it"
    if reason:
        print(f"skipped: {reason}\n0 passed, 0 failed, 1 skipped")
        return 0
    record = [
        "/firn record -F 199 -d 5s -o /tmp/out.folded -- /workloads/deep 100 20",
        "/bin/cat /tmp/out.folded",
    ]
    passed = failed = 0
    for name, program, cpus, further in (("guest", guest, "1", record), ("host", host, HOST_CPUS, [])):
        started = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="firn-test-kernels-") as home:
            archive = os.path.join(home, "archive")
            with open(archive, "wb") as file:
                file.write(make_archive({"firn": firn, name: program}, init, workloads, [f"/{name}", *further]))
            said = boot(kernel, archive, os.path.join(home, "log"), cpus)
        found = [*judge_tests(said, name), *(judge_record(said) if further else [])]
        for what, ok in found:
            print(f"{'ok  ' if ok else 'FAIL'} {version}: {what}")
            passed, failed = passed + ok, failed + (not ok)
        good = all(ok for _, ok in found)
        print(summary(said) if good else "\n".join(line[:300] for line in said.splitlines()[-4000:]))
        print(f"{time.monotonic() - started:.0f} s")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


def summary(said):
    told = r"^(?:init: kernel|loaded in|\w+: \d+ instructions|\[.*samples|.*by itself|.*beside tables|asleep|samples of).*$"
    return "\n".join(re.findall(told, said, re.M))


if __name__ == "__main__":
    sys.exit(main())
