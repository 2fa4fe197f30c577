#!/usr/bin/env python3
"""ingest.push, ingest.jfr, query.pyroscope_merge_ms: what Pyroscope's clients send and query.

  bench_pyroscope.py [FIRN [PEER_URL PEER_PID]]

Pushes pprof files of 2,000 stacks (five services, 60 files a second of their time) by push.v1.PusherService for
10 seconds from two connections, then one recording of the JDK 200 times (it is made by `java`; without one that
part is skipped), and asks for the flame graph of 200 such files. A rate is samples for each second of the
server's processor time, so that other work on the machine does not matter. With a peer that has the same
protocol, such as Pyroscope, the same is sent to it in turns, and "ratio" is firn's value divided by the peer's.
One JSON object a line, as in scripts/bench.
"""

import gzip
import http.client
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request

SECONDS = 10
STACKS, DEPTH, FILES, SERVICES, MERGES = 2000, 30, 40, 5, 21
CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
JAVA = """
import java.util.*;
public class Load {
    static int f(int n) { return n == 0 ? new int[1000].length : f(n - 1) + 1; }
    public static void main(String[] a) {
        long end = System.currentTimeMillis() + 8000;
        Map<Integer, String> m = new HashMap<>();
        for (int i = 0; System.currentTimeMillis() < end; i++) { f(i % 60); m.put(i % 999, "x" + i); }
    }
}
"""


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def data(field, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(value)) + value


def pprof(chance):
    """profile.proto of STACKS stacks through 3,000 functions."""
    strings = ["", "cpu", "nanoseconds"] + [f"package.function{i}" for i in range(3000)]
    out = data(1, number(1, 1) + number(2, 2)) + data(11, number(1, 1) + number(2, 2)) + number(12, 10**7)
    for i in range(3000):
        out += data(4, number(1, i + 1) + data(4, number(1, i + 1) + number(2, i % 97)))
        out += data(5, number(1, i + 1) + number(2, i + 3))
    trunks = [[chance.randrange(3000) + 1 for _ in range(DEPTH)] for _ in range(100)]
    for _ in range(STACKS):
        trunk = chance.choice(trunks)
        path = [chance.randrange(3000) + 1 for _ in range(4)] + trunk[chance.randrange(10) :]
        out += data(2, data(1, b"".join(map(varint, path))) + data(2, varint(10**7 * chance.randrange(1, 9))))
    return out + b"".join(data(6, s) for s in strings) + number(10, 10**10)


def label(name, value):
    return data(1, data(1, name) + data(2, value))


def push_request(profile, service, time_ns):
    labels = label("__name__", "process_cpu") + label("service_name", service) + label("__delta__", "false")
    body = gzip.compress(profile + number(9, time_ns), 1)
    return data(1, labels + data(2, data(1, body)))


class Server:
    def __init__(self, url, pid):
        self.address, self.pid = urllib.parse.urlsplit(url).netloc, pid

    def cpu(self):
        with open(f"/proc/{self.pid}/stat", encoding="ascii") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def post(self, path, body, kind, connection=None):
        own = connection or http.client.HTTPConnection(self.address, timeout=120)
        own.request("POST", path, body, {"Content-Type": kind})
        answer = own.getresponse()
        text = answer.read()
        if answer.status != 200:
            sys.exit(f"{self.address}{path}: {answer.status} {text[:300]}")
        return text

    def push(self, profiles, base_ns):
        """Samples by processor second."""
        sent, before = [0, 0], self.cpu()
        end = time.monotonic() + SECONDS

        def run(which):
            connection = http.client.HTTPConnection(self.address, timeout=120)
            i = which
            while time.monotonic() < end:
                body = push_request(profiles[i % len(profiles)], f"service{i % SERVICES}", base_ns + i * 10**7)
                self.post("/push.v1.PusherService/Push", body, "application/proto", connection)
                sent[which] += STACKS
                i += 2

        threads = [threading.Thread(target=run, args=(k,)) for k in range(2)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return sum(sent) / max(self.cpu() - before, 0.01)

    def recording(self, path, times):
        """Bytes of recordings by processor second."""
        with open(path, "rb") as f:
            body = f.read()
        before = self.cpu()
        now = int(time.time())
        for i in range(times):
            query = f"name=bench.jfr&format=jfr&from={now - 60 - i}&until={now - 50 - i}&sampleRate=100"
            self.post("/ingest?" + query, body, "application/octet-stream")
        return len(body) * times / max(self.cpu() - before, 0.01)

    def merge_ms(self, selector, start_ms, end_ms):
        ask = {"profileTypeID": CPU, "labelSelector": selector, "start": start_ms, "end": end_ms}
        times, total, before = [], 0, self.cpu()
        for _ in range(MERGES):
            begun = time.monotonic()
            answer = self.post(
                "/querier.v1.QuerierService/SelectMergeStacktraces", json.dumps(ask), "application/json"
            )
            times.append((time.monotonic() - begun) * 1000)
            total = int(json.loads(answer).get("flamegraph", {}).get("total", 0))
        return sorted(times)[MERGES // 2], (self.cpu() - before) * 1000 / MERGES, total


def say(name, value, unit, peer, note, more_is_better=True):
    line = {"name": name, "value": round(value, 1), "unit": unit}
    if peer:
        line["against"] = round(peer, 1)
        line["ratio"] = round(value / peer if more_is_better else peer / value, 2)
    print(json.dumps({**line, "note": note}), flush=True)


def make_recording(folder):
    if not shutil.which("javac"):
        return None
    with open(f"{folder}/Load.java", "w", encoding="utf-8") as f:
        f.write(JAVA)
    subprocess.run(["javac", "Load.java"], cwd=folder, check=True)
    flags = "-XX:StartFlightRecording=settings=profile,filename=load.jfr"
    subprocess.run(["java", flags, "Load"], cwd=folder, check=True, capture_output=True, timeout=120)
    return f"{folder}/load.jfr"


def free_port():
    import socket

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start_firn(program, folder):
    port = free_port()
    run = [program, "server", "--http-address", f"127.0.0.1:{port}", "--storage-path", f"{folder}/store"]
    process = subprocess.Popen(run, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(600):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=10):
                break
        except OSError:
            time.sleep(0.1)
    return process, Server(f"http://127.0.0.1:{port}", process.pid)


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    program = sys.argv[1] if len(sys.argv) > 1 else f"{here}/../build-release/firn"
    peer = Server(sys.argv[2], int(sys.argv[3])) if len(sys.argv) > 3 else None
    chance = random.Random(1)
    profiles = [pprof(chance) for _ in range(FILES)]
    with tempfile.TemporaryDirectory(prefix="bench-pyroscope-") as folder:
        process, firn = start_firn(program, folder)
        try:
            measure(firn, peer, profiles, folder)
        finally:
            process.terminate()
            process.wait()


def measure(firn, peer, profiles, folder):
    now = time.time_ns()
    base = now - 300 * 10**9
    rate = firn.push(profiles, base)
    other = peer.push(profiles, base) if peer else 0
    say("ingest.push", rate, "samples/s of a core", other, f"pprof files of {STACKS} stacks, gzip")
    path = make_recording(folder)
    if path:
        rate = firn.recording(path, 200) / 2**20
        other = peer.recording(path, 200) / 2**20 if peer else 0
        say("ingest.jfr", rate, "MiB/s of a core", other, f"a recording of the JDK, {os.path.getsize(path)} bytes")
    else:
        print(json.dumps({"name": "ingest.jfr", "note": "skipped: no javac"}), flush=True)
    start, end = base // 10**6 - 1000, time.time_ns() // 10**6
    # The same profiles go to both; above, each took as many as it could.
    for server in (firn, peer) if peer else (firn,):
        for i in range(200):
            body = push_request(profiles[i % FILES], "merged", base + i * 10**9)
            server.post("/push.v1.PusherService/Push", body, "application/proto")
    selector = '{service_name="merged"}'
    value, cpu, total = firn.merge_ms(selector, start, end)
    other, other_cpu, same = peer.merge_ms(selector, start, end) if peer else (0, 0, total)
    if same != total:
        sys.exit(f"the totals differ: {total} and {same}")
    say("query.pyroscope_merge_ms", value, "ms", other, f"200 profiles of {STACKS} stacks", False)
    say("query.pyroscope_merge_cpu_ms", cpu, "ms of a core", other_cpu, "the same", False)


if __name__ == "__main__":
    main()
