#!/usr/bin/env python3
"""A thousand new programs a second, with the whole agent: complete stacks, losses, growth of memory.

    bench_agent_storm.py [SECONDS [PER_SECOND]]

The load is tests/workloads/execstorm.c: static programs of a quarter of a millisecond, started by vfork,
posix_spawn and fork. It runs first alone, to find the rate of the machine, then for a minute (or SECONDS) with
an agent that sends to a server on the same host, at 199 Hz so that there are enough samples. Each sample taken
must have arrived in the end, or be counted as lost. Needs root.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time

import bench_agent_whole as whole

FREQUENCY = "199"
ALONE_SECONDS = 5
WARM_SECONDS = 10  # of the storm, before growth is measured
DRAIN_SECONDS = 60


def storm(build, per_second, seconds):
    program = os.path.join(build, "bench", "workload_execstorm")
    return subprocess.Popen([program, str(per_second), str(seconds)], stdout=subprocess.PIPE, text=True)


def started(process):
    """(programs, a second), as the load says at its end."""
    words = process.communicate()[0].split()
    return int(words[0]), float(words[-3])


def lost(values):
    return sum(v for k, v in values.items() if k.startswith("firn_agent_samples_lost_total"))


def missing(values):
    """Samples that were taken, and neither arrived nor are counted as lost."""
    sent = values["firn_agent_sent_samples_total"]
    refused = sum(v for k, v in values.items() if k.startswith("firn_agent_send_lost_total"))
    return values["firn_agent_samples_taken_total"] - lost(values) - sent - refused


def drained(address):
    """The metrics after the taken samples were sent; sampling goes on, so a few are always on their way."""
    deadline = time.monotonic() + DRAIN_SECONDS
    values = whole.metrics(address)
    least = values
    while time.monotonic() < deadline and missing(least) > 0:
        time.sleep(0.2)
        values = whole.metrics(address)
        least = min(least, values, key=missing)
    return least


def ends_between(a, b):
    names = [k for k in b if k.startswith("firn_agent_stacks_total")]
    return {k: b[k] - a.get(k, 0) for k in names}


def run(build, home, seconds, per_second):
    server_at, agent_at = whole.free_address(), whole.free_address()
    firn = os.path.join(build, "firn")
    server = whole.start([firn, "server", "--http-address", server_at, "--storage-path", f"{home}/store"], home, "server.log")
    time.sleep(1)
    command = [firn, "agent", "--remote-store-address", server_at, "--remote-store-insecure"]
    command += ["--debuginfo-upload-disable"]  # debug files are sent only once, so they are not part of the cost
    command += ["--http-address", agent_at, "--spool-path", f"{home}/spool", "--cache-path", f"{home}/cache"]
    command += ["--profiling-cpu-sampling-frequency", FREQUENCY, "--agent-cpu-limit", "0"]
    agent = whole.start(command, home, "agent.log")
    load = None
    try:
        whole.wait_sampling(agent, agent_at, home)
        load = storm(build, per_second, seconds + WARM_SECONDS)
        time.sleep(WARM_SECONDS)
        pids = whole.with_descendants(agent.pid)
        before, resident, cpu = whole.metrics(agent_at), whole.resident_mib(pids), whole.cpu_seconds(pids)
        begin = time.monotonic()
        time.sleep(max(seconds - 1, 1))
        pids = whole.with_descendants(agent.pid)
        after = whole.metrics(agent_at)
        percent = (whole.cpu_seconds(pids) - cpu) / (time.monotonic() - begin) * 100
        growth = whole.resident_mib(pids) - resident
        programs = started(load)
        return before, after, drained(agent_at), growth, percent, programs
    finally:
        if load and load.poll() is None:
            load.kill()
            load.wait()
        whole.stop(agent)
        whole.stop(server)


def report(result, alone, seconds, per_second):
    before, after, end, growth, percent, (count, rate) = result
    load = f"{rate:.0f} programs a second for {seconds} s ({per_second} asked for; {alone:.0f} without firn), {FREQUENCY} Hz"
    share, others = whole.whole_percent(ends_between(before, after))
    taken = after["firn_agent_samples_taken_total"] - before["firn_agent_samples_taken_total"]
    events = after["firn_agent_process_events_lost_total"]
    note = f"{load}: {taken:.0f} samples; not whole: {others}; {lost(end):.0f} lost, {events:.0f} process events lost"
    whole.figure("agent.whole_stacks_churn", share, "%", "99 %", share / 99, note)
    whole.figure("agent.storm_unaccounted", missing(end), "samples", "samples taken", missing(end) / taken, load)
    kernel = (after["firn_agent_kernel_bytes"] - before["firn_agent_kernel_bytes"]) / (1 << 20)
    note = f"{load}; {kernel:.2f} MiB of kernel memory; {count} programs in all, {after['firn_agent_processes']:.0f} remembered"
    whole.figure("agent.storm_growth_mib", growth, "MiB", f"{WARM_SECONDS} s into the storm", 0, note)
    read = after["firn_agent_processes_read_total"] - before["firn_agent_processes_read_total"]
    note = f"{load}; {read / seconds:.0f} processes a second looked up in /proc"
    whole.figure("agent.storm_cpu_percent", percent, "%", "one CPU", percent / 100, note)


def main():
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else int(os.environ.get("FIRN_BENCH_SECONDS", "60"))
    per_second = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    if os.geteuid() != 0:
        sys.exit("skipped: needs root to load BPF programs")
    build = os.environ.get("FIRN_BUILD") or os.path.join(os.path.dirname(__file__), "..", "build-release")
    home = tempfile.mkdtemp(prefix="firn-bench-storm-")
    try:
        alone = started(storm(build, per_second, ALONE_SECONDS))[1]
        report(run(build, home, seconds, per_second), alone, seconds, per_second)
    finally:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
