"""Start a firn under test, ask it over its API, and count checks: shared by the system tests.

Python's standard library only. Every server listens on a free port of 127.0.0.1 and keeps its data
in a temporary directory that is removed at the end.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

READY_SECONDS = 120
SETTLE_SECONDS = 120  # for samples to come through, on a machine that has no time
CPU_TYPE = "parca_agent:samples:count:cpu:nanoseconds:delta"
# A sample of a file not known yet is finished from a copy of its stack; without one it is not whole.
NOT_COPIED = (
    "firn_agent_stacks_not_copied_total",
    "firn_agent_stacks_refused_total",
    "firn_agent_deferred_refused_total",
)


class Checks:
    """Counts, and ends with the line that tools/run_tests.py reads."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def check(self, ok, what):
        if ok:
            self.passed += 1
        else:
            self.failed += 1
        print(("ok      " if ok else "FAILED  ") + what, flush=True)
        return ok

    def skip(self, what, reason):
        self.skipped += 1
        print(f"skipped {what}: {reason}", flush=True)

    def finish(self):
        print(f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped")
        sys.exit(1 if self.failed or not self.passed + self.skipped else 0)


class Firn:
    """One `firn VERB` process; its standard output and error go to a log file."""

    def __init__(self, program, verb, storage, *arguments, context=None):
        self.context = context  # of TLS, for a server that speaks it
        self.log_path = os.path.join(storage, f"{verb}.log")
        os.makedirs(storage, exist_ok=True)
        self.log = open(self.log_path, "ab")
        head = program if isinstance(program, list) else [program]
        command = [*head, verb, "--http-address=127.0.0.1:0"]
        command += [f"--storage-path={os.path.join(storage, 'data')}", *arguments]
        self.log_from = self.log.tell()
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log)
        self.address = self._wait_ready()

    def log_text(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            file.seek(self.log_from)
            return file.read()

    def _wait_ready(self):
        """The address it listens on, from its log; ready when /ready says so."""
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            found = re.search(r"(?:https?://|address=)(127\.0\.0\.1:\d+)", self.log_text())
            if found and self._is_ready(found.group(1)):
                return found.group(1)
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        raise RuntimeError(f"not ready: {self.log_text()[-4000:]}")

    def _url(self, address):
        if self.context:
            return "https://" + address
        return "http://" + address

    def _is_ready(self, address):
        try:
            url = self._url(address) + "/ready"
            with urllib.request.urlopen(url, timeout=5, context=self.context) as answer:
                return answer.status == 200
        except (OSError, urllib.error.URLError):
            return False

    def get(self, path, **parameters):
        """Body of a GET as bytes. Raises urllib.error.HTTPError on an error status."""
        query = urllib.parse.urlencode(parameters, doseq=True)
        url = self._url(self.address) + path + (f"?{query}" if query else "")
        with urllib.request.urlopen(url, timeout=60, context=self.context) as answer:
            return answer.read()

    def json(self, path, **parameters):
        return json.loads(self.get(path, **parameters))

    def metric(self, name):
        """Sum of a metric over its labels, None when absent."""
        found = re.findall(rf"^{re.escape(name)}(?:{{[^}}]*}})? (\S+)$", self.get("/metrics").decode(), re.M)
        return sum(map(float, found)) if found else None

    def not_copied(self):
        """Samples that the agent could not finish, and says so."""
        return sum(self.metric(name) or 0 for name in NOT_COPIED)

    def settle(self, end):
        """Until the agent's samples up to the time `end` are stored: those taken later are, and batches come in
        order. Burns CPU time, so that there are later ones."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while time.monotonic() < deadline:
            burn = time.monotonic() + 0.2
            while time.monotonic() < burn:
                pass
            try:
                later = self.json("/api/top", query=CPU_TYPE, limit=1, **{"from": end + 0.001, "to": "now"})
            except urllib.error.HTTPError:
                continue
            if later["total"] > 0:
                time.sleep(1)
                return

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.log.close()

    def stop(self, seconds=60):
        """As Ctrl-C does; returns the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None
        finally:
            self.log.close()


def stolen_seconds():
    """CPU time that the machine below took, of all CPUs, from boot: "steal" of proc_stat(5). A thread's own clock
    may count it, and no timer interrupts meanwhile: there are no samples of it."""
    with open("/proc/stat", encoding="utf-8") as file:
        return int(file.readline().split()[8]) / os.sysconf("SC_CLK_TCK")


def wait_until(good, seconds=90):
    """What `good` says in the end; asked until it is true."""
    deadline = time.monotonic() + seconds
    while True:
        said = good()
        if said or time.monotonic() > deadline:
            return said
        time.sleep(0.1)


def parents():
    """Parent of each process there is."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                    parent = int(file.read().rpartition(")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue
            found[int(name)] = parent
    return found


def children(pid):
    """Process ids right below `pid`."""
    return [child for child, parent in parents().items() if parent == pid]


def descendants(pid):
    """Process ids below `pid`, at any depth."""
    found = children(pid)
    for child in found:
        found += children(child)
    return found
