#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""store.sizing: what a server needs for fleets of several sizes, for docs/sizing.md.

    bench_store_sizing.py [FIRN [SECONDS [CPUS ...]]]

For each number of busy CPUs: hosts of four of them each send 19 samples a second and CPU in a batch every five
seconds, of the stacks of tests/system/test_soak.py, while one page asks for the last minutes every ten seconds.
One JSON object a line: the server's CPU as a share of one core, its largest resident memory, and the bytes on
disk for each sample at the end. By default 10 minutes each, with the server's default memory.
"""

import http.client
import json
import os
import pathlib
import random
import shutil
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/system"))
import firn  # noqa: E402
import test_soak as soak  # noqa: E402

CPUS_OF_HOST, RATE, INTERVAL, ASK_SECONDS = 4, 19, 5.0, 10
SENDERS = 4


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def send(address, templates, first, end, sent):
    """Sends for each host of this sender once in an interval, spread over it."""
    connection = http.client.HTTPConnection(address, timeout=60)
    headers = {"Content-Type": "application/x-protobuf"}
    mine = range(first, len(templates), SENDERS)
    due = time.monotonic()
    turn = 0
    while time.monotonic() < end:
        body = templates[mine[turn % len(mine)]].batch(time.time_ns(), turn // 20 * SENDERS + first)
        connection.request("POST", "/v1development/profiles", body, headers)
        answer = connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            sys.exit(f"{answer.status} {text[:200]}")
        sent[first] += soak.SAMPLES
        turn += 1
        due += INTERVAL / len(mine)
        time.sleep(max(0.0, due - time.monotonic()))


def measure(program, cpus, seconds):
    soak.SAMPLES = CPUS_OF_HOST * RATE * int(INTERVAL)
    dice = random.Random(4711)
    stacks = soak.make_stacks(dice)
    templates = [soak.Template(i, stacks, dice) for i in range(max(SENDERS, cpus // CPUS_OF_HOST))]
    storage = tempfile.mkdtemp(prefix="firn-bench-sizing-")
    server = firn.Firn(program, "server", storage)
    sent = [0] * SENDERS
    try:
        pid, begun, before = server.process.pid, time.monotonic(), cpu_seconds(server.process.pid)
        end = begun + seconds
        threads = [threading.Thread(target=send, args=(server.address, templates, i, end, sent)) for i in range(SENDERS)]
        for thread in threads:
            thread.start()
        most, asked = 0.0, begun
        while time.monotonic() < end:
            if time.monotonic() - asked > ASK_SECONDS:
                server.get("/api/flamegraph", query=soak.TYPE, **{"from": soak.RECENT, "to": "now"})
                asked = time.monotonic()
            most = max(most, soak.resident(pid)[0])
            time.sleep(0.5)
        for thread in threads:
            thread.join()
        took = time.monotonic() - begun
        used = (cpu_seconds(pid) - before) / took
        server.stop()
        disk = sum(f.stat().st_blocks * 512 for f in pathlib.Path(storage).rglob("*") if f.is_file())
        print(json.dumps({"name": "store.sizing", "cpus": cpus, "hosts": len(templates), "seconds": round(took),
            "samples_per_second": round(sum(sent) / took), "core": round(used, 4), "resident_mib": round(most),
            "disk_bytes_per_sample": round(disk / max(1, sum(sent)), 2)}), flush=True)
    finally:
        if server.process.poll() is None:
            server.stop()
        shutil.rmtree(storage, ignore_errors=True)


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "build-release/firn")
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 600
    for cpus in [int(a) for a in sys.argv[3:]] or [100, 1000]:
        measure(program, cpus, seconds)


if __name__ == "__main__":
    main()
