#!/usr/bin/env python3
"""A busy host as in practice: `firn up` with its defaults, 300 distinct programs in use by more than 500
processes, and ten live pages, for half an hour.

    bench_busy_host.py [SECONDS [ADDRESS]]

SECONDS: 1800, or FIRN_BENCH_SECONDS. Prints the stacks by the reason of their end, the share that was cut for
want of room, refused answers, and the largest resident memory and the CPU time of agent, broker and server; a
line of progress each minute goes to standard error. The load (bench_agent_room.py) is nobody's, nice, and ends
by itself. Needs root, 5 GB in the folder for temporary files and 4 GB of memory.
"""

import os
import shutil
import signal
import sys
import tempfile
import time

import bench_agent_room as room
import bench_agent_whole as whole
from bench_server_pages import Pages

LOOK_SECONDS = 5
PARTS = {"firn-agent": "agent", "firn-broker": "broker", "firn-server": "server"}
GOAL_MIB = {"agent": 40, "broker": 0, "server": 0}


def parts_of(pid):
    """Pids of firn's processes by what they are, and of the readers of symbols."""
    found = {}
    for one in whole.with_descendants(pid):
        with open(f"/proc/{one}/comm", encoding="utf-8") as file:
            found.setdefault(PARTS.get(file.read().strip(), "others"), []).append(one)
    return found


class Look:
    """The CPU time and memory of firn's processes, read every five seconds."""

    def __init__(self, up):
        self.up, self.most = up, {}
        self.first = self.last = {}

    def again(self):
        try:
            parts = parts_of(self.up.pid)
            cpu = {name: whole.cpu_seconds(pids) for name, pids in parts.items() if name in GOAL_MIB}
            memory = {name: whole.resident_mib(pids) for name, pids in parts.items()}
        except OSError:  # one of them has just ended
            return
        self.first, self.last = self.first or cpu, cpu
        for name, mib in memory.items():
            self.most[name] = max(mib, self.most.get(name, 0))
        self.now = memory


def ends_of(values):
    prefix = 'firn_agent_stacks_total{end="'
    return {k[len(prefix) : -2]: int(v) for k, v in values.items() if k.startswith(prefix) and v}


def watch(up, address, seconds):
    """(pages, what the processes took, metrics, processes of the host)"""
    look, pages, processes = Look(up), Pages(f"http://{address}"), []
    begun = told = time.monotonic()
    try:
        while time.monotonic() - begun < seconds and up.poll() is None:
            time.sleep(LOOK_SECONDS)
            look.again()
            processes.append(sum(name.isdigit() for name in os.listdir("/proc")))
            if time.monotonic() - told >= 60:
                told = time.monotonic()
                values = whole.metrics(address)
                state = f"{values['firn_agent_unwind_table_bytes'] / (1 << 20):.0f} MiB of tables, {values['firn_agent_sampling_frequency_hz']:.0f} Hz"
                memory = {name: round(mib) for name, mib in look.now.items()}
                answers = f"{len(pages.refused)} of {len(pages.times)} answers refused"
                print(f"{told - begun:.0f} s: {ends_of(values)} {memory} {state}, {answers}", file=sys.stderr, flush=True)
        return pages, look, whole.metrics(address), sorted(processes)[len(processes) // 2]
    finally:
        pages.stop()


def report(result, programs, seconds):
    pages, look, values, processes = result
    ends = ends_of(values)
    taken = sum(ends.values()) or 1
    load = f"{programs} programs in use, {processes} processes, {seconds} s, defaults"
    cut = 100 * ends.get("NO_ROOM", 0) / taken
    whole.figure("host.cut_for_room", cut, "%", "0.1 %", cut / 0.1, f"{load}; by end, of {taken}: {ends}")
    others = 100 - whole.whole_percent(values)[0]
    whole.figure("host.cut_at_all", others, "%", "all stacks", others / 100, load)
    lost = {k: int(v) for k, v in values.items() if "_lost_total" in k and v}
    whole.figure("host.samples_lost", sum(lost.values()), "samples", f"{taken} stacks", sum(lost.values()) / taken, f"{lost}")
    refused = len(pages.refused)
    whole.figure("host.refused", refused, "answers", "answers", refused / max(1, len(pages.times)), pages.note())
    for name, cpu in look.last.items():
        percent = 100 * (cpu - look.first[name]) / seconds
        mib, goal = look.most[name], GOAL_MIB[name]
        note = f"{percent:.2f} % of a CPU; {look.now[name]:.1f} MiB at the end; readers of symbols and supervisor {look.most.get('others', 0):.1f}"
        whole.figure(f"host.{name}_mib", mib, "MiB", f"{goal} MiB" if goal else "-", mib / goal if goal else 0, note)
    tables = values["firn_agent_unwind_table_bytes"] / (1 << 20)
    most = values["firn_agent_unwind_table_bytes_max"] / (1 << 20)
    note = f"{values['firn_agent_kernel_bytes'] / (1 << 20):.1f} MiB in the kernel; {values['firn_agent_unwind_tables_evicted_total']:.0f} evicted"
    whole.figure("host.table_mib", tables, "MiB", f"{most:.0f} MiB", tables / most, note)
    for problem in pages.refused[:5]:
        print(problem, file=sys.stderr)


def main():
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else int(os.environ.get("FIRN_BENCH_SECONDS", "1800"))
    address = sys.argv[2] if len(sys.argv) > 2 else whole.free_address()
    if os.geteuid() != 0:
        print("skipped: needs root to load BPF programs", file=sys.stderr)
        return
    build = os.environ.get("FIRN_BUILD") or os.path.join(os.path.dirname(__file__), "..", "build-release")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # the load ends, too
    home = tempfile.mkdtemp(prefix="firn-bench-busy-")
    load = up = None
    try:
        load, programs = room.start_load(home, seconds)
        time.sleep(15)
        command = [os.path.join(build, "firn"), "up", "--http-address", address, "--storage-path", f"{home}/store"]
        command += ["--cache-path", f"{home}/cache"]  # no program is known already
        up = whole.start(command, home, "agent.log")
        whole.wait_sampling(up, address, home)
        report(watch(up, address, seconds), programs, seconds)
    finally:
        if load:
            room.stop_load(load)
        if up:
            whole.stop(up)
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
