#!/usr/bin/env python3
"""Full ingest over the network, with questions beside it: memory stays flat, and under the flag.

    test_soak.py PROGRAM [SECONDS [STORAGE_MEMORY_MIB]]

Senders post as fast as the server answers: batches of a fleet of hosts, thousands of stacks of some
thirty frames, each batch with new times, and now and then with a function, a process and a host
that nobody saw before. Ends with one JSON line: by how much the resident memory grew from the second
quarter of the run to the last. At the end every sample that was acknowledged is counted.
"""

import collections
import http.client
import json
import random
import re
import shutil
import sys
import tempfile
import threading
import time
import urllib.error

import firn
import otlp

HOSTS = 16
SENDERS = 4
SAMPLES = 1500  # of a batch
STACKS = 50_000
FUNCTIONS = 8_000
DEPTH = (8, 52)
TYPE = "soak:samples:count:cpu:nanoseconds:delta"
PLACEHOLDER = "churn-00000000"
RETENTION_SIZE = "1GB"
SAMPLE_SECONDS = 1.0
GROWTH_MAX_MIB = 16
SHORT_SECONDS = 300  # below, the run says nothing about growth
RECENT = "now-4m"  # so that questions are about as much from the second quarter of 20 minutes on


def make_stacks(dice):
    """A call tree, as programs have: most stacks share their callers with others."""
    names = [f"module_{i % 97}::function_{i}" for i in range(FUNCTIONS)]
    stacks = []
    for i in range(STACKS):
        if stacks and i % 4:
            base = stacks[int(len(stacks) * dice.random() ** 2)]
            keep = base[dice.randrange(len(base)) :]
        else:
            keep = ["main"]
        depth = dice.randint(*DEPTH)
        stacks.append([dice.choice(names) for _ in range(max(1, depth - len(keep)))] + keep)
    return stacks


class Template:
    """One host's batch, encoded once; what differs from batch to batch is patched in place."""

    TIME = 0x1122334455667788

    def __init__(self, host, stacks, dice):
        chosen = [stacks[int(STACKS * dice.random() ** 3)] for _ in range(SAMPLES - 1)]
        resource = {"host.name": f"host-{host}", "process.executable.name": f"service-{host % 7}"}
        resource["container.id"] = PLACEHOLDER
        pairs = [(names, 1) for names in chosen] + [([PLACEHOLDER, "main"], 1)]
        body = otlp.request("soak", pairs, resource, self.TIME)
        self.body = bytearray(body)
        self.times = self._places(self.TIME.to_bytes(8, "little"), 1)
        self.churn = self._places(PLACEHOLDER.encode(), 2)

    def _places(self, what, count):
        found, at = [], self.body.find(what)
        while at >= 0:
            found.append(at)
            at = self.body.find(what, at + 1)
        assert len(found) >= count, f"{len(found)} of {what}"
        return found

    def batch(self, time_ns, churn):
        for at in self.times:
            self.body[at : at + 8] = time_ns.to_bytes(8, "little")
        for at in self.churn:
            self.body[at + 6 : at + 14] = f"{churn:08d}".encode()
        return bytes(self.body)


class Sender(threading.Thread):
    def __init__(self, number, address, templates):
        super().__init__()
        self.number, self.address, self.templates = number, address, templates
        self.acknowledged = self.refused = self.sent = 0
        self.errors = []
        self.stopping = threading.Event()

    def run(self):
        connection = http.client.HTTPConnection(self.address, timeout=60)
        headers = {"Content-Type": "application/x-protobuf"}
        while not self.stopping.is_set():
            template = self.templates[self.sent % len(self.templates)]
            churn = self.number * 10_000_000 + self.sent // 20
            body = template.batch(time.time_ns(), churn)
            self.sent += 1
            while not self.stopping.is_set():
                try:
                    connection.request("POST", "/v1development/profiles", body, headers)
                    answer = connection.getresponse()
                    text = answer.read()
                except (OSError, http.client.HTTPException) as error:
                    self.errors.append(repr(error))
                    return
                if answer.status == 200:
                    self.acknowledged += 1
                    break
                if answer.status not in (429, 503):
                    self.errors.append(f"{answer.status} {text[:200]}")
                    return
                self.refused += 1
                time.sleep(0.05)
        connection.close()


class Asker(threading.Thread):
    QUESTIONS = [
        ("/api/flamegraph", {"query": TYPE, "from": RECENT, "to": "now"}),
        ("/api/series", {"query": TYPE, "from": RECENT, "to": "now", "by": "host_name", "step": "10s"}),
        ("/api/top", {"query": TYPE + '{host_name="host-3"}', "from": RECENT, "to": "now", "limit": 100}),
        ("/api/labels/host_name/values", {"query": TYPE}),
        ("/api/types", {}),
        ("/api/pprof", {"query": TYPE, "from": "now-1m", "to": "now"}),
        ("/metrics", {}),
    ]

    def __init__(self, server):
        super().__init__()
        self.server, self.answered, self.refused, self.slowest = server, 0, 0, 0.0
        self.reasons = collections.Counter()
        self.errors = []
        self.stopping = threading.Event()

    def run(self):
        while not self.stopping.is_set():
            path, parameters = self.QUESTIONS[(self.answered + self.refused) % len(self.QUESTIONS)]
            begun = time.monotonic()
            try:
                self.server.get(path, **parameters)
                self.answered += 1
            except urllib.error.HTTPError as error:
                text = error.read()[:200]
                if error.code in (404, 422, 503):  # nothing yet, or over the budget: said so
                    self.refused += 1
                    words = re.sub(r"[0-9.]+", "N", text.decode(errors="replace"))
                    self.reasons[f"{path}: {error.code} {words}"] += 1
                else:
                    self.errors.append(f"{path}: {error.code} {text}")
            except OSError as error:
                self.errors.append(f"{path}: {error!r}")
            self.slowest = max(self.slowest, time.monotonic() - begun)
            self.stopping.wait(0.2)


def resident(pid):
    """(all, anonymous) in MiB."""
    found = {}
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        for line in file:
            key, _, value = line.partition(":")
            if key in ("VmRSS", "RssAnon"):
                found[key] = int(value.split()[0]) / 1024
    return found["VmRSS"], found["RssAnon"]


def watch(server, seconds, verbose):
    """Resident MiB once a second."""
    samples, begun = [], time.monotonic()
    while time.monotonic() - begun < seconds and server.process.poll() is None:
        samples.append(resident(server.process.pid))
        if verbose and samples[-1][0] > max((s[0] for s in samples[:-1]), default=0) + 10:
            names = ("memtable_bytes", "ingest_bytes", "query_bytes")
            held = ", ".join(f"{n} {(server.metric('firn_store_' + n) or 0) / 2**20:.0f}" for n in names)
            print(f"{len(samples):5d} s  {samples[-1][0]:6.0f} MiB is the most so far: {held} MiB", flush=True)
        if verbose and len(samples) % 10 == 0:
            figures = [server.metric("firn_store_" + n) or 0 for n in ("memtable_bytes", "parts", "samples_total")]
            print(
                f"{len(samples):5d} s  {samples[-1][0]:6.0f} MiB ({samples[-1][1]:.0f} anonymous), memtable "
                f"{figures[0] / 2**20:.0f} MiB, {figures[1]:.0f} parts, {figures[2] / 1e6:.1f} M samples",
                flush=True,
            )
        time.sleep(SAMPLE_SECONDS)
    return samples


def mean(values):
    return sum(values) / max(1, len(values))


def main():
    program = sys.argv[1]
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 20
    limit_mib = int(sys.argv[3]) if len(sys.argv) > 3 else 256
    checks = firn.Checks()
    storage = tempfile.mkdtemp(prefix="firn-test-soak-")
    dice = random.Random(4711)
    stacks = make_stacks(dice)
    templates = [Template(i, stacks, dice) for i in range(HOSTS)]
    print(f"{HOSTS} hosts, {SAMPLES} samples and {len(templates[0].body) / 1024:.0f} KiB a batch", flush=True)
    try:
        flags = [f"--storage-memory={limit_mib}MiB", f"--storage-retention-size={RETENTION_SIZE}"]
        server = firn.Firn(program, "server", storage, *flags)
        share = HOSTS // SENDERS
        senders = [Sender(i, server.address, templates[i * share : (i + 1) * share]) for i in range(SENDERS)]
        asker = Asker(server)
        for thread in [*senders, asker]:
            thread.start()
        samples = watch(server, seconds, seconds > 60)
        for thread in [*senders, asker]:
            thread.stopping.set()
        for thread in [*senders, asker]:
            thread.join()
        batches = sum(s.acknowledged for s in senders)
        refused = sum(s.refused for s in senders)
        errors = [e for s in senders for e in s.errors] + asker.errors
        rss = [s[0] for s in samples]
        quarter = len(rss) // 4
        growth = mean(rss[-quarter:]) - mean(rss[quarter : 2 * quarter])
        peak = max(rss)
        rate = batches * SAMPLES / seconds
        print(
            f"{batches} batches, {rate:.0f} samples a second, {refused} refused for now, "
            f"{asker.answered} questions answered and {asker.refused} refused, slowest {asker.slowest:.1f} s"
        )
        for reason, count in asker.reasons.most_common(9):
            print(f"{count} times {reason}")
        checks.check(not errors, f"nobody saw an error ({errors[:3]})")
        checks.check(batches > seconds, "batches were acknowledged all the time")
        stored = server.metric("firn_store_samples_total")
        checks.check(stored == batches * SAMPLES, f"what was acknowledged was stored ({stored:.0f})")
        checks.check(server.metric("firn_store_quarantined_total") == 0, "nothing was set aside")
        checks.check(peak <= limit_mib, f"resident at most {peak:.0f} MiB; the flag allows {limit_mib}")
        if seconds >= SHORT_SECONDS:
            checks.check(growth <= GROWTH_MAX_MIB, f"memory is flat (grew by {growth:.1f} MiB)")
        else:
            checks.skip("growth", f"needs {SHORT_SECONDS} s")
        note = (
            f"{seconds:.0f} s at {rate:.0f} samples/s over HTTP, {refused} refused for now, "
            f"{asker.answered} questions; resident at most {peak:.0f} of {limit_mib} MiB"
        )
        line = {"name": "store.soak_growth_mib", "value": round(growth, 1), "unit": "MiB"}
        line |= {"against": limit_mib, "ratio": round(growth / limit_mib, 4), "note": note}
        print(json.dumps(line))
        checks.check(server.stop() == 0, "the server stops cleanly")
    finally:
        shutil.rmtree(storage, ignore_errors=True)
    checks.finish()


if __name__ == "__main__":
    main()
