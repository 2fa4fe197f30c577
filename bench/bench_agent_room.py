#!/usr/bin/env python3
"""Hundreds of distinct programs in use: which stacks are cut because there is no room for their unwind tables?

    bench_agent_room.py [SECONDS [SIZE]]

Copies of the installed compilers and interpreters work in turns; at the same time 200 programs of /usr/bin and
the like print their version, all as user nobody and nice: some 300 distinct executables in 500 processes. SIZE
is --bpf-table-memory; without it the default. 97 Hz, so that there is something to count. Needs root, and 5 GB
in the folder for temporary files.
"""

import glob
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile

import time

import bench_agent_whole as whole

FREQUENCY = "97"
COPIES = 25
VERSIONS = 200
BYTES_MIN = 30000  # smaller ones have hardly a table
NOBODY = "65534"
LOAD_SECONDS_MORE = 300  # to start and to stop in
AS_NOBODY = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "nice", "-n", "19"]
FOLDERS = ("/usr/bin", "/usr/lib/llvm-*/bin", "/usr/lib/git-core", "/usr/local/go/pkg/tool/*")
# Programs that would start working even with the option for their version.
NEVER = ("yes", "sleep", "init", "reboot", "halt", "poweroff", "shutdown", "firn", "chromium")
PERL = 'for my $i (1..300) { my %h; $h{$_} = $_ x 3 for 1..8000; my $s = join ",", sort keys %h; $s =~ s/1+/x/g }'
PYTHON = "import json\nfor i in range(300): json.loads(json.dumps([{'a': x, 'b': str(x)} for x in range(5000)]))"
NODE = "for (let i = 0; i < 200; i++) JSON.parse(JSON.stringify([...Array(20000).keys()].map((x) => ({ a: '' + x }))));"


def sources(home):
    """A large source in C++, preprocessed."""
    plain, out = os.path.join(home, "source.cc"), os.path.join(home, "source.ii")
    pathlib.Path(plain).write_text(whole.SOURCE, encoding="utf-8")
    subprocess.run(["c++", "-E", plain, "-o", out], check=True)
    return out


def busy_commands(home):
    """Commands of copies, each an executable of its own."""
    source = sources(home)
    kinds = [(p, ["-O2", "-quiet", source, "-o", "/dev/null"]) for p in glob.glob("/usr/lib/gcc/*/*/cc1plus")]
    for name, args in (("perl", ["-e", PERL]), ("python3", ["-c", PYTHON]), ("node", ["-e", NODE])):
        if shutil.which(name, path="/usr/bin"):
            kinds.append((os.path.join("/usr/bin", name), args))
    for path, args in kinds:
        for i in range(COPIES):
            copy = os.path.join(home, f"{os.path.basename(path)}_{i}")
            shutil.copy(os.path.realpath(path), copy)
            yield [copy, *args]


def is_program(path):
    if os.path.basename(path) in NEVER or not os.path.isfile(path) or os.path.getsize(path) < BYTES_MIN:
        return False
    with open(path, "rb") as file:
        return os.access(path, os.X_OK) and file.read(4) == b"\x7fELF"


def version_commands():
    """Programs of this host, from large to small."""
    paths = {os.path.realpath(p) for folder in FOLDERS for p in glob.glob(folder + "/*")}
    paths = sorted(filter(is_program, paths), key=os.path.getsize, reverse=True)
    return [[p, "--version"] for p in paths[:: max(1, len(paths) // VERSIONS)][:VERSIONS]]


def start_load(home, seconds):
    """All in one session, which is one group for the scheduler, too. It ends by itself, at the latest."""
    os.chmod(home, 0o755)
    lines = [(c, 3, 12) for c in busy_commands(home)] + [(c, 2, 4) for c in version_commands()]
    script = "".join(
        f"(sleep {i % 12}; while [ $(date +%s) -lt $end ]; do timeout --foreground {most} {shlex.join(c)}; sleep {rest}; done) &\n"
        for i, (c, most, rest) in enumerate(lines)
    )
    path = os.path.join(home, "load.sh")
    pathlib.Path(path).write_text(f"end=$(($(date +%s) + {seconds + LOAD_SECONDS_MORE}))\n{script}wait\n", encoding="utf-8")
    null = subprocess.DEVNULL
    load = subprocess.Popen(
        [*AS_NOBODY, "sh", path], start_new_session=True, stdin=null, stdout=null, stderr=null, cwd=home
    )
    return load, len(lines)


def stop_load(load):
    os.killpg(load.pid, signal.SIGKILL)
    load.wait()


def run(build, home, seconds, size):
    """(programs, processes, first metrics, last metrics)"""
    server_at, agent_at = whole.free_address(), whole.free_address()
    firn = os.path.join(build, "firn")
    started = []
    load, count = start_load(home, seconds)
    command = [firn, "agent", "--remote-store-address", server_at, "--remote-store-insecure"]
    command += ["--debuginfo-upload-disable", "--http-address", agent_at, "--profiling-cpu-sampling-frequency", FREQUENCY]
    command += ["--spool-path", f"{home}/spool", "--cache-path", f"{home}/cache", "--agent-cpu-limit", "0"]
    command += ["--bpf-table-memory", size] if size else []
    try:
        time.sleep(15)
        server = [firn, "server", "--http-address", server_at, "--storage-path", f"{home}/store"]
        started.append(whole.start(server, home, "server.log"))
        agent = whole.start(command, home, "agent.log")
        started.append(agent)
        whole.wait_sampling(agent, agent_at, home)
        time.sleep(seconds)
        processes = sum(name.isdigit() for name in os.listdir("/proc"))
        return count, processes, whole.metrics(agent_at)
    finally:
        stop_load(load)
        for process in reversed(started):
            whole.stop(process)


def report(result, seconds, size):
    count, processes, values = result
    ends = {k: v for k, v in values.items() if k.startswith("firn_agent_stacks_total")}
    taken = sum(ends.values()) or 1
    cut = values.get('firn_agent_stacks_total{end="NO_ROOM"}', 0)
    load = f"{count} programs in use, {processes} processes, {seconds} s, --bpf-table-memory {size or 'by default'}"
    note = f"{load}: {cut:.0f} of {taken:.0f} stacks; {values['firn_agent_unwind_tables_evicted_total']:.0f} evicted"
    whole.figure("agent.cut_for_room", 100 * cut / taken, "%", "0.1 %", 100 * cut / taken / 0.1, note)
    share, others = whole.whole_percent(values)
    whole.figure("agent.whole_stacks_room", share, "%", "all samples", share / 100, f"{load}; not whole: {others}")
    mib = values["firn_agent_unwind_table_bytes"] / (1 << 20)
    most = values["firn_agent_unwind_table_bytes_max"] / (1 << 20)
    note = f"{load}; {values['firn_agent_kernel_bytes'] / (1 << 20):.1f} MiB in the kernel, {values['firn_agent_resident_bytes'] / (1 << 20):.1f} resident"
    whole.figure("agent.table_mib", mib, "MiB", f"{most:.0f} MiB", mib / most, note)


def main():
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else int(os.environ.get("FIRN_BENCH_SECONDS", "60"))
    size = sys.argv[2] if len(sys.argv) > 2 else ""
    if os.geteuid() != 0:
        sys.exit("skipped: needs root to load BPF programs")
    build = os.environ.get("FIRN_BUILD") or os.path.join(os.path.dirname(__file__), "..", "build-release")
    home = tempfile.mkdtemp(prefix="firn-bench-room-")
    try:
        report(run(build, home, seconds, size), seconds, size)
    finally:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
