#!/usr/bin/env python3
"""kill -9 of the server under load, again and again: what it acknowledged is there, exactly once.

    test_crash.py PROGRAM [ROUNDS]

Senders post batches over HTTP, one function name each, and note which were acknowledged. What was
under way when the server died is sent again, the same bytes, to the next one: it must be there once
too, whether the first attempt had been stored or not.
"""

import http.client
import random
import shutil
import sys
import tempfile
import threading
import time

import firn
import otlp

SENDERS = 4
KILL_AFTER_SECONDS = (0.05, 1.2)
TYPE = "crash:samples:count:cpu:nanoseconds:delta"


class Sender(threading.Thread):
    """Posts numbered batches until told to stop; keeps the one that got no answer."""

    def __init__(self, number):
        super().__init__()
        self.number, self.sequence = number, 0
        self.acknowledged, self.refused, self.pending = [], [], None
        self.address = None
        self.stopping = threading.Event()

    def next_batch(self):
        name = f"batch-{self.number}-{self.sequence}"
        self.sequence += 1
        stacks = [([name, "work", "main"], 1)] + [([f"f{i}", "work", "main"], 2) for i in range(20)]
        resource = {"host.name": f"host-{self.number}"}
        return name, otlp.request("crash", stacks, resource, time.time_ns())

    def run_against(self, address):
        """One server's life: ends when the connection breaks."""
        connection = http.client.HTTPConnection(address, timeout=30)
        headers = {"Content-Type": "application/x-protobuf"}
        try:
            while not self.stopping.is_set():
                name, body = self.pending or self.next_batch()
                self.pending = (name, body)
                connection.request("POST", "/v1development/profiles", body, headers)
                answer = connection.getresponse()
                answer.read()
                if answer.status == 200:
                    self.acknowledged.append(name)
                elif answer.status in (429, 503):
                    time.sleep(0.05)
                    continue
                else:
                    self.refused.append((name, answer.status))
                self.pending = None
        except (OSError, http.client.HTTPException):
            pass
        finally:
            connection.close()


def main():
    program = sys.argv[1]
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    checks = firn.Checks()
    storage = tempfile.mkdtemp(prefix="firn-test-crash-")
    senders = [Sender(i) for i in range(SENDERS)]
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    moments = random.Random(seed)
    try:
        for _ in range(rounds):
            server = firn.Firn(program, "server", storage)
            threads = [threading.Thread(target=s.run_against, args=(server.address,)) for s in senders]
            for thread in threads:
                thread.start()
            time.sleep(moments.uniform(*KILL_AFTER_SECONDS))
            server.kill()
            for thread in threads:
                thread.join()
        server = firn.Firn(program, "server", storage)
        for sender in senders:
            if sender.pending:
                name, body = sender.pending
                sender.stopping.clear()
                connection = http.client.HTTPConnection(server.address, timeout=30)
                connection.request(
                    "POST", "/v1development/profiles", body, {"Content-Type": "application/x-protobuf"}
                )
                if connection.getresponse().status == 200:
                    sender.acknowledged.append(name)
                connection.close()
        rows = server.json("/api/top", query=TYPE, **{"from": "now-1h", "to": "now", "limit": 0})["rows"]
        found = {row["name"]: row["self"] for row in rows}
        acknowledged = [name for s in senders for name in s.acknowledged]
        lost = [name for name in acknowledged if name not in found]
        twice = [name for name in found if name.startswith("batch-") and found[name] != 1]
        refused = [r for s in senders for r in s.refused]
        checks.check(len(acknowledged) > rounds, f"{len(acknowledged)} batches acknowledged in {rounds} lives")
        checks.check(not lost, f"every acknowledged batch is there (lost: {lost[:5]})")
        checks.check(not twice, f"every batch is there once (others: {twice[:5]})")
        checks.check(not refused, f"no batch was refused ({refused[:3]})")
        checks.check(server.metric("firn_store_quarantined_total") == 0, "no part was unreadable")
        total = sum(1 for name in found if name.startswith("batch-"))
        checks.check(sum(found.get(f"f{i}", 0) for i in range(20)) == total * 40, "sums agree with the batches")
        checks.check(server.stop() == 0, "the last server stops cleanly")
    finally:
        shutil.rmtree(storage, ignore_errors=True)
    checks.finish()


if __name__ == "__main__":
    main()
