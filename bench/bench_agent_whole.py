#!/usr/bin/env python3
"""The cost of the whole agent on a host with many processes and two busy CPUs, compared with perf.

    bench_agent_whole.py [SECONDS [PROCESSES [THREADS]]]

The agent sends to a server on the same host, at 19 Hz; its CPU is that of its processes and of its
BPF programs, which run in interrupts and are counted by the kernel. Then `perf record -F 19 -a -g
--call-graph dwarf` runs as long on the same load: of it only the process counts, the copying of
stacks in interrupts comes on top. Default: 60 seconds (600 for the figure that is held), 500
processes of one thread. Needs root; without perf there is no comparison.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

PAGE = os.sysconf("SC_PAGESIZE")
STATS = "/proc/sys/kernel/bpf_stats_enabled"
SETTLE_SECONDS = 20
PROGRAMS = ("sample_cpu", "process_exec", "process_exit")
SOURCE = "#include <map>\n#include <regex>\n#include <string>\n" + "".join(
    f"int f{i}(const std::string &s) {{ std::map<int, std::regex> m; m.emplace({i}, s); int n = 0;"
    f" for (auto &e : m) n += std::regex_match(s, e.second); return n; }}\n"
    for i in range(3)
)


def figure(name, value, unit, against, ratio, note):
    row = {"name": name, "value": round(value, 4), "unit": unit, "against": against}
    print(json.dumps({**row, "ratio": round(ratio, 4), "note": note}), flush=True)


def cpu_seconds(pids):
    """CPU time of the threads of these processes, to a nanosecond."""
    total = 0
    for pid in pids:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/schedstat", encoding="utf-8") as file:
                total += int(file.read().split()[0])
    return total / 1e9


def resident_mib(pids):
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/statm", encoding="utf-8") as file:
            total += int(file.read().split()[1]) * PAGE
    return total / (1 << 20)


def with_descendants(pid):
    found = [pid]
    for parent in found:
        for task in os.listdir(f"/proc/{parent}/task"):
            with open(f"/proc/{parent}/task/{task}/children", encoding="utf-8") as file:
                found += [int(x) for x in file.read().split()]
    return found


def bpf_seconds():
    """Run time of our programs so far, as the kernel counts it."""
    said = subprocess.run(["bpftool", "-j", "prog", "show"], capture_output=True, text=True, check=True).stdout
    return sum(p.get("run_time_ns", 0) for p in json.loads(said) if p.get("name") in PROGRAMS) / 1e9


def metrics(address):
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    values = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            values[name] = float(value)
    return values


class Load:
    """Processes that mostly sleep, and two that never do: one deep in its own calls, one compiler
    after the other."""

    def __init__(self, build, home, processes, threads):
        source = os.path.join(home, "source.cc")
        pathlib.Path(source).write_text(SOURCE, encoding="utf-8")
        compile_on = f"while :; do c++ -O2 -c -o /dev/null {source} 2>/dev/null || sleep 1; done"
        crowd = os.path.join(build, "bench", "workload_crowd")
        deep = os.path.join(build, "bench", "workload_deep")
        self.running = [
            subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE)
            for command in (
                [crowd, str(processes), str(threads), "100000"],
                [deep, "40", "100000"],
                ["sh", "-c", compile_on],
            )
        ]
        self.running[0].stdout.readline()  # "ready"

    def stop(self):
        for process in self.running:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            process.stdout.close()


def start(command, home, name):
    with open(os.path.join(home, name), "wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)


def stop(process):
    process.send_signal(signal.SIGINT)
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def free_address():
    import socket

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{s.getsockname()[1]}"


def wait_sampling(agent, address, home):
    """Waits until the agent samples; prints its log if it does not."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and agent.poll() is None:
        try:
            with urllib.request.urlopen(f"http://{address}/ready", timeout=10):
                return
        except OSError:
            time.sleep(0.1)
    sys.exit(pathlib.Path(home, "agent.log").read_text(encoding="utf-8"))


def run_agent(firn, home, seconds):
    """(percent of a CPU, of which BPF, resident MiB, metrics) of an agent at work."""
    server_at, agent_at = free_address(), free_address()
    storage = ["--storage-path", f"{home}/store"]
    server = start([firn, "server", "--http-address", server_at, *storage], home, "server.log")
    time.sleep(1)
    command = [firn, "agent", "--remote-store-address", server_at, "--remote-store-insecure"]
    command += ["--debuginfo-upload-disable"]  # debug files are sent only once, so they are not part of the cost
    command += ["--http-address", agent_at, "--spool-path", f"{home}/spool", "--cache-path", f"{home}/cache"]
    agent = start(command, home, "agent.log")
    try:
        time.sleep(SETTLE_SECONDS)
        if agent.poll() is not None:
            sys.exit(pathlib.Path(home, "agent.log").read_text(encoding="utf-8"))
        begin, before, bpf = time.monotonic(), cpu_seconds(with_descendants(agent.pid)), bpf_seconds()
        time.sleep(seconds)
        elapsed = time.monotonic() - begin
        pids = with_descendants(agent.pid)
        bpf = (bpf_seconds() - bpf) / elapsed * 100
        percent = (cpu_seconds(pids) - before) / elapsed * 100 + bpf
        return percent, bpf, resident_mib(pids), metrics(agent_at)
    finally:
        stop(agent)
        stop(server)


def run_perf(home, seconds):
    """(percent of a CPU, bytes written a second) of perf record."""
    out = os.path.join(home, "perf.data")
    command = ["perf", "record", "-q", "-F", "19", "-a", "-g", "--call-graph", "dwarf", "-o", out]
    perf = start(command, home, "perf.log")
    try:
        time.sleep(min(SETTLE_SECONDS, 5))
        if perf.poll() is not None:
            return None
        pids = with_descendants(perf.pid)
        begin, before, size = time.monotonic(), cpu_seconds(pids), os.path.getsize(out)
        time.sleep(seconds)
        elapsed = time.monotonic() - begin
        return (cpu_seconds(pids) - before) / elapsed * 100, (os.path.getsize(out) - size) / elapsed
    finally:
        stop(perf)


def whole_percent(values):
    """The share of complete stacks since the agent began, and how the others ended."""
    ends = {k: v for k, v in values.items() if k.startswith("firn_agent_stacks_total")}
    whole = ("NONE", "ROOT", "ROOT_NO_INFO", "ROOT_ZERO", "EXEC")
    total = sum(ends.values()) or 1
    others = {k.split('"')[1]: int(v) for k, v in ends.items() if v and k.split('"')[1] not in whole}
    return 100 - 100 * sum(others.values()) / total, others


def report(agent, perf, seconds, processes, threads):
    percent, bpf, resident, values = agent
    load = f"{seconds} s, {processes} processes of {threads} thread{'s' * (threads > 1)}, 2 busy CPUs, 19 Hz"
    against, ratio = "perf record: not there", 0
    if perf:
        against = f"perf record --call-graph dwarf: {perf[0]:.3f} % and {perf[1] / 1024:.0f} KiB a second to disk"
        ratio = percent / perf[0] if perf[0] else 0
    figure("agent.cpu_percent", percent, "%", against, ratio, f"{load}; {bpf:.3f} % of it in interrupts")
    figure("agent.rss_mib", resident, "MiB", "25 MiB", resident / 25, load)
    kernel = values.get("firn_agent_kernel_bytes", 0) / (1 << 20)
    note = f"{load}; {values.get('firn_agent_unwind_table_bytes', 0) / (1 << 20):.2f} MiB of unwind tables in it"
    figure("agent.kernel_maps_mib", kernel, "MiB", "16 MiB", kernel / 16, note)
    whole, others = whole_percent(values)
    lost = sum(v for k, v in values.items() if k.startswith("firn_agent_samples_lost_total"))
    note = f"{load}; {values.get('firn_agent_samples_taken_total', 0):.0f} samples taken, {lost:.0f} lost; not whole: {others}"
    figure("agent.whole_stacks", whole, "%", "all samples", whole / 100, note)


def main():
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else int(os.environ.get("FIRN_BENCH_SECONDS", "60"))
    processes = int(sys.argv[2]) if len(sys.argv) > 2 else 500
    threads = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    if os.geteuid() != 0:
        sys.exit("skipped: needs root to load BPF programs")
    build = os.environ.get("FIRN_BUILD") or os.path.join(os.path.dirname(__file__), "..", "build-release")
    home = tempfile.mkdtemp(prefix="firn-bench-agent-")
    old = pathlib.Path(STATS).read_text(encoding="utf-8")
    pathlib.Path(STATS).write_text("1", encoding="utf-8")
    load = Load(build, home, processes, threads)
    try:
        agent = run_agent(os.path.join(build, "firn"), home, seconds)
        perf = run_perf(home, seconds) if shutil.which("perf") else None
    finally:
        load.stop()
        pathlib.Path(STATS).write_text(old, encoding="utf-8")
        shutil.rmtree(home, ignore_errors=True)
    report(agent, perf, seconds, processes, threads)


if __name__ == "__main__":
    main()
