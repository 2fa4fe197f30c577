#!/usr/bin/env python3
"""Names of code that programs make while they run: perf maps, jitdumps and what they register for
debuggers, recorded on this host.

    test_jit.py PROGRAM WORKLOADS_DIR
"""

import os
import subprocess
import sys
import tempfile

import firn

SECONDS = 6 # names of the first second may be missing on a busy machine
# name of its functions: memory, what it writes, what runs it
CASES = {
    "plain": ("private", "map", ""),
    "shared": ("shared", "map", ""),
    "memfd": ("memfd", "map", ""),
    "beside": ("memfd", "map", ""),
    "dump": ("private", "dump", ""),
    "objects": ("private", "objects", ""),
    "again": ("private", "again", ""),
    "within": ("private", "map", "unshare --mount --pid --fork"),
    "linked": ("private", "map", ""),
}
# As in a container: its own /tmp, and another pid than the host's.
WITHIN = "mount -t tmpfs tmpfs /tmp && exec "
# Its perf map is a link to a file of the same user.
LINKED = "rm -f /tmp/perf-$$.map; ln -s $PWD/elsewhere /tmp/perf-$$.map; exec "


def command(jit, name):
    memory, what, wrap = CASES[name]
    line = f"{jit} {SECONDS} {memory} {what} {name}"
    if name == "linked":
        line = LINKED + line
    if wrap:
        return f"{wrap} sh -c '{WITHIN}{line}' &"
    return f"sh -c '{line}' &"


def shares(path):
    """Of each case: samples with its outer function right above its inner one, and of all JIT code."""
    named, loops = {}, 0
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            frames, _, value = line.rstrip("\n").rpartition(" ")
            if line.startswith("# ") or ";run;" not in frames:
                continue
            after = frames.split(";run;", 1)[1].split(";")
            key = after[0].removesuffix("_outer") if after[-1].endswith("_inner") else "nameless"
            if len(after) == 2 and after[0].endswith("_outer") and not after[1].startswith(key):
                key = "wrong"
            named[key] = named.get(key, 0) + int(value)
            loops += int(value)
    return named, loops


def main():
    program, workloads = sys.argv[1:3]
    checks = firn.Checks()
    if os.geteuid() != 0:
        checks.skip("all", "only root samples this host")
        checks.finish()
    jit = os.path.abspath(os.path.join(workloads, "jit"))
    with tempfile.TemporaryDirectory(prefix="firn-test-") as folder:
        script = "\n".join(command(jit, name) for name in CASES) + "\nwait\n"
        out = os.path.join(folder, "out.folded")
        run = subprocess.run(
            [os.path.abspath(program), "record", "-F", "199", "-o", out, "--", "sh", "-c", script],
            capture_output=True, text=True, timeout=180, cwd=folder)
        checks.check(run.returncode == 0, f"recorded: {run.stderr[-300:]}")
        named, loops = shares(out)
        share = loops / len(CASES)
        for name in ("plain", "shared", "memfd", "beside", "dump", "objects", "within"):
            checks.check(named.get(name, 0) > 0.5 * share, f"{name}: named, {named.get(name, 0)} of about {share:.0f}")
        first, second = named.get("again", 0), named.get("again_again", 0)
        checks.check(min(first, second) > 0.25 * (first + second) > 0,
            f"code that was written over: {first} before, {second} after")
        checks.check(named.get("linked", 0) == 0, "a perf map that is a link is not read")
        checks.check(named.get("wrong", 0) == 0, "no inner function below another's outer")
        others = named.get("nameless", 0)
        checks.check(others < 1.5 * share, f"nameless: the link's, and few others: {others}")
        for name in os.listdir("/tmp"):
            path = os.path.join("/tmp", name)
            if name.startswith("perf-") and os.path.islink(path) and os.readlink(path).startswith(folder):
                os.unlink(path)
    checks.finish()


if __name__ == "__main__":
    main()
