#!/usr/bin/env python3
"""--enable-oom-prof: programs in a control group of their own, with little memory, until the kernel ends them. What
firn says that a Go program held is compared with what it said itself.

    test_oom.py PROGRAM WORKLOADS_DIR SOURCES_DIR
"""

import os
import shutil
import subprocess
import sys
import tempfile
import urllib.error

import firn

LIMIT = 64 << 20
MANY_LIMIT = 160 << 20
BUCKETS = 50000
BUCKET_BYTES = 64
STEP = 1 << 20
RUNTIME = 16384  # what the runtime itself allocates meanwhile
TYPE = "memory:{}:{}:space:bytes"
FLAGS = ["--enable-oom-prof", "--enable-oom-prof-allocs", "--profiling-duration=1s", "--log-level=debug"]


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


class Group:
    """A control group with a limit of memory, of version 1 or 2."""

    def __init__(self, name):
        old = "/sys/fs/cgroup/memory"
        self.is_old = os.path.isdir(old) and os.path.exists(f"{old}/memory.limit_in_bytes")
        self.path = os.path.join(old if self.is_old else "/sys/fs/cgroup", name)
        os.mkdir(self.path)
        self.limit(LIMIT)

    def limit(self, size):
        write(f"{self.path}/" + ("memory.limit_in_bytes" if self.is_old else "memory.max"), str(size))
        swap = f"{self.path}/memory.swap.max"
        if os.path.exists(swap):
            write(swap, "0")

    def start(self, *command):
        """Its own limit is what ends it: the host has more memory than that."""
        inside = 'echo $$ > "$0/cgroup.procs" && exec "$@"'
        return subprocess.Popen(
            ["sh", "-c", inside, self.path, *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def remove(self):
        firn.wait_until(self._is_removed)

    def _is_removed(self):
        try:
            os.rmdir(self.path)
        except OSError:
            return False
        return True


def why_not():
    if os.geteuid() != 0:
        return "needs root"
    name = f"firn-test-oom-{os.getpid()}"
    try:
        return Group(name)
    except OSError as error:
        for path in (f"/sys/fs/cgroup/{name}", f"/sys/fs/cgroup/memory/{name}"):
            if os.path.isdir(path):
                os.rmdir(path)
        return f"no control group with a limit of memory: {error}"


class Host:
    def __init__(self, checks, up, group, folder, workloads):
        self.checks, self.up, self.group, self.folder, self.workloads = checks, up, group, folder, workloads
        self.number = 0

    def metric(self, name):
        return self.up.metric(f"firn_agent_oom_{name}") or 0

    def values(self, kind, executable, what="self"):
        """By function."""
        unit = "bytes" if kind.endswith("space") else "count"
        selector = TYPE.format(kind, unit) + f'{{job="oomprof",executable="{executable}"}}'
        top = self.up.json("/api/top", query=selector, limit=0, **{"from": "now-1h", "to": "now"})
        found = {}
        for row in top["rows"]:
            found[row["name"]] = found.get(row["name"], 0) + row[what]
        return found

    def kill(self, program, *arguments):
        """Runs a copy of a program until it is ended: what it said, and the copy's name. It waits until the agent has
        read its file."""
        self.number += 1
        name = f"victim{os.getpid()}-{self.number}"
        path = os.path.join(self.folder, name)
        go = path + ".go-on"
        shutil.copy(program, path)
        victims = self.metric("victims_total")
        victim = self.group.start(path, *arguments, *(["-wait", go] if os.path.basename(program) == "heap" else [go]))
        known = firn.wait_until(lambda: f'{path}"' in self.up.log_text() or victim.poll() is not None)
        write(go, "")
        said, _ = victim.communicate()
        self.checks.check(known and victim.returncode == -9, f"{name} is known, and was ended ({victim.returncode})")
        firn.wait_until(lambda: self.metric("victims_total") > victims)
        return said, name

    def sent(self, before):
        """A heap more than `before` has come to the server."""
        return firn.wait_until(lambda: self.metric("profiles_total") > before)


def held(said):
    """What it had when it last said so: it had asked for a step more at most."""
    words = [line.split() for line in said.splitlines() if line.startswith("held ")]
    return int(words[-1][1]), int(words[-1][2]), int(words[-1][3])


def check_heap(host, program, what, *arguments):
    checks = host.checks
    before = host.metric("profiles_total")
    said, name = host.kill(program, "-rate", "1", "-step", str(STEP), *arguments)
    large, small, _ = held(said)
    host.sent(before)
    firn.wait_until(lambda: "main.holdLarge" in host.values("inuse_space", name))  # names come a little later
    own = host.values("inuse_space", name)
    total = host.values("inuse_space", name, "total")
    found = own.get("main.holdLarge", 0), own.get("main.holdSmall", 0)
    checks.check(large <= found[0] <= large + STEP + RUNTIME, f"{what}: holdLarge {found[0]}, and it said {large}")
    checks.check(small <= found[1] <= small + STEP / 2 + RUNTIME, f"{what}: holdSmall {found[1]}, and it said {small}")
    checks.check(total.get("main.caller") == found[0], f"{what}: all of it below main.caller")
    checks.check(total.get("main.deep") == found[1], f"{what}: all of it below main.deep")
    checks.check(total.get("main.main", 0) >= sum(found), f"{what}: and below main.main")
    return name


def check_types(host, name):
    space = host.values("inuse_space", name)["main.holdSmall"]
    objects = host.values("inuse_objects", name)["main.holdSmall"]
    host.checks.check(abs(space - objects * 1024) <= RUNTIME, f"{objects} objects of 1024 bytes are {space} bytes")
    for kind in ("alloc_space", "alloc_objects"):
        host.checks.check(host.values(kind, name).get("main.holdSmall", 0) > 0, f"{kind} is there")


def check_many(host, program):
    """Losses are allowed, where nobody read the ring in time, and are counted."""
    before = {n: host.metric(n) for n in ("profiles_total", "buckets_total", "empty_total", "sent_total", "lost_total")}
    host.group.limit(MANY_LIMIT)
    _, name = host.kill(program, "-rate", "1", "-threads", "40", "-buckets", str(BUCKETS))
    host.group.limit(LIMIT)
    host.sent(before["profiles_total"])
    now = {n: host.metric(n) - before[n] for n in before}
    host.checks.check(
        now["buckets_total"] >= BUCKETS
        and now["buckets_total"] == now["empty_total"] + now["sent_total"] + now["lost_total"],
        f"each of {now['buckets_total']:.0f} buckets is sent or counted ({now})",
    )
    firn.wait_until(lambda: "main.zero" in host.values("inuse_objects", name))
    own = host.values("inuse_objects", name)
    leaves = own.get("main.zero", 0) + own.get("main.one", 0)
    lost = now["lost_total"] + host.metric("buckets_unused_total")
    host.checks.check(BUCKETS - lost <= leaves <= BUCKETS + RUNTIME / BUCKET_BYTES, f"{leaves} of {BUCKETS} objects, {lost:.0f} buckets lost")


def page_says(up, text):
    try:
        return text in up.get("/agent").decode()
    except urllib.error.HTTPError:  # the agent has sent none yet
        return False


def check_memory(host):
    """All else but unwind tables takes some 3 MiB, and the ring of heaps 16 by itself."""
    firn.wait_until(lambda: host.up.metric("firn_agent_kernel_bytes"))
    kernel = int(host.up.metric("firn_agent_kernel_bytes") or 0)
    kernel -= int(host.up.metric("firn_agent_unwind_table_bytes"))
    host.checks.check(kernel > (18 << 20), f"its maps are part of firn_agent_kernel_bytes ({kernel >> 10} KiB)")
    says = firn.wait_until(lambda: page_says(host.up, "--enable-oom-prof among it"))
    host.checks.check(says, "and of the sum on the status page")


def check_false(host):
    """Lists that Go would not make end the walk, and nothing else."""
    program = os.path.join(host.workloads, "false_heap")
    for how, counter in (
        ("cycle", "cut_total"),
        ("wild", "damaged_total"),
        ("kernel", "damaged_total"),
        ("type", "damaged_total"),
        ("stack", "damaged_total"),
        ("deep", "whole_total"),
    ):
        before = host.metric(counter)
        host.kill(program, how)
        counted = firn.wait_until(lambda c=counter, b=before: host.metric(c) > b)
        host.checks.check(counted, f"a false list ({how}) is counted: {counter}")
    host.checks.check(host.metric("deep_total") > 0, "a stack that is too deep is cut, and counted")


def check_others(host, stripped):
    before = host.metric("without_buckets_total"), host.metric("profiles_total")
    host.kill(stripped)
    counted = firn.wait_until(lambda: host.metric("without_buckets_total") > before[0])
    host.checks.check(counted, "a Go program without symbols is counted")
    others = host.metric("others_total")
    victim = host.group.start(sys.executable, "-c", "x = []\nwhile True: x.append(bytearray(1 << 20))")
    victim.communicate()
    counted = firn.wait_until(lambda: host.metric("others_total") > others)
    host.checks.check(counted and victim.returncode == -9, "a victim that is no Go program is counted")
    host.checks.check(host.metric("profiles_total") == before[1], "and nothing is sent of either")


def build(go, sources, out, *flags):
    """False where this Go cannot make such a program."""
    command = [go, "build", *flags, "-o", out, os.path.abspath(os.path.join(sources, "heap.go"))]
    environment = dict(os.environ, GO111MODULE="off", CGO_ENABLED="0", GOFLAGS="", GOTOOLCHAIN="local")
    environment.setdefault("GOCACHE", "/tmp/firn-test-go-cache")
    run = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=sources)
    if run.returncode:
        print(run.stderr)
    return run.returncode == 0


def run(checks, program, workloads, sources, group, folder):
    up = firn.Firn(program, "up", folder, "--agent-http-address=", *FLAGS)
    host = Host(checks, up, group, folder, workloads)
    try:
        check_memory(host)
        check_false(host)
        go = shutil.which("go")
        if not go:
            checks.skip("heaps of Go programs", "no go")
            return
        heap, pie, stripped = (os.path.join(folder, kind, "heap") for kind in ("exec", "pie", "stripped"))
        if checks.check(build(go, sources, heap, "-buildmode=exe"), "go build"):
            name = check_heap(host, heap, "a Go program")
            check_types(host, name)
            check_many(host, heap)
        if build(go, sources, pie, "-buildmode=pie"):
            check_heap(host, pie, "a Go program anywhere in memory")
        else:
            checks.skip("a Go program anywhere in memory", "this go builds none")
        if checks.check(build(go, sources, stripped, "-ldflags=-s -w"), "go build, stripped"):
            check_others(host, stripped)
        checks.check(up.metric("firn_agent_oom_profiles_lost_total") == 0, "no heap is lost")
    finally:
        up.stop()


def main():
    program, workloads, sources = sys.argv[1:4]
    checks = firn.Checks()
    group = why_not()
    if isinstance(group, str):
        checks.skip("heaps of victims", group)
        checks.finish()
    folder = tempfile.mkdtemp(prefix="firn-test-oom-")
    try:
        run(checks, program, workloads, sources, group, folder)
    finally:
        group.remove()
        shutil.rmtree(folder)
    checks.finish()


if __name__ == "__main__":
    main()
