#!/usr/bin/env python3
"""What firn costs on an idle host: CPU and resident memory of each of its processes.

    test_idle.py PROGRAM [SECONDS]

A figure for people, and a bound that only a real fault passes: on a shared machine a short window
says little. SECONDS: 600 for the figure in the documentation.
"""

import os
import shutil
import sys
import tempfile
import time

import firn

TICK = os.sysconf("SC_CLK_TCK")
OTHERS_PERCENT_MAX = 15
SETTLE_SECONDS = 20  # the symbol tables of what runs are made once, at the first start
WINDOWS_MAX = 3  # tables may still be made in the first; what costs too much in each is a fault
PAGE = os.sysconf("SC_PAGESIZE")


def usage(pid):
    """(CPU seconds with those of ended children, resident MiB, name) of a process."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rpartition(")")[2].split()
    with open(f"/proc/{pid}/statm", encoding="utf-8") as file:
        resident = int(file.read().split()[1]) * PAGE / (1 << 20)
    with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
        name = file.read().strip()
    return sum(map(int, fields[11:15])) / TICK, resident, name


def busy_seconds():
    """CPU time that the whole host has used, in seconds."""
    with open("/proc/stat", encoding="utf-8") as file:
        fields = [int(x) for x in file.readline().split()[1:]]
    idle = fields[3] + fields[4]
    return (sum(fields[:8]) - idle) / TICK


def measure(pids, seconds):
    """(CPU percent of all without what was stolen, their MiB, CPU percent of others, a sentence) of a window."""
    before = {pid: usage(pid)[0] for pid in pids}
    begin, busy, stolen = time.monotonic(), busy_seconds(), firn.stolen_seconds()
    time.sleep(seconds)
    busy, stolen = busy_seconds() - busy, firn.stolen_seconds() - stolen
    elapsed = time.monotonic() - begin
    cpu = memory = 0.0
    for pid in pids:
        used, resident, name = usage(pid)
        share = (used - before[pid]) / elapsed * 100
        print(f"{name:16} pid {pid:7}  {share:6.3f} % of a CPU  {resident:7.1f} MiB resident")
        cpu, memory = cpu + share, memory + resident
    others = busy / elapsed * 100 - cpu
    what = f"{cpu:.3f} % of one CPU in {elapsed:.0f} s, in which {stolen:.2f} s were stolen"
    return cpu - stolen / elapsed * 100, memory, others, what


def main():
    program = sys.argv[1]
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 30
    checks = firn.Checks()
    if os.geteuid() != 0:
        checks.skip("cost of the whole", "needs root to load BPF programs")
        checks.finish()
    storage = tempfile.mkdtemp(prefix="firn-test-idle-")
    try:
        server = firn.Firn(program, "up", storage)
        time.sleep(SETTLE_SECONDS)
        pids = [server.process.pid, *firn.children(server.process.pid)]
        for _ in range(WINDOWS_MAX):
            cpu, memory, others, what = measure(pids, seconds)
            if cpu < 1 or others > OTHERS_PERCENT_MAX:
                break
        if others > OTHERS_PERCENT_MAX:
            checks.skip(what, f"the host is not idle: the others took {others:.0f} % of a CPU")
        else:
            checks.check(cpu < 1, what)
        checks.check(memory < 100, f"{memory:.1f} MiB resident")
        checks.check(server.stop() == 0, "stops cleanly")
    finally:
        shutil.rmtree(storage, ignore_errors=True)
    checks.finish()


if __name__ == "__main__":
    main()
