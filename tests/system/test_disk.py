#!/usr/bin/env python3
"""Disks that are full, read-only, slow, gone, or lose their power, under a server with senders.

    test_disk.py PROGRAM SLOW_DISK_LIBRARY [ROUNDS]

File systems of their own (tmpfs, ext4 in a file) where this may be done. Everywhere: what was
acknowledged is there once, what cannot be kept is refused with a status that tells the sender to try
again, and the server goes on when the disk does.
"""

import ctypes
import fcntl
import http.client
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import firn
import otlp
from test_crash import TYPE, Sender

EXT4_IOC_SHUTDOWN = 0x8004587D  # _IOR('X', 125, __u32)
SHUTDOWN_WITHOUT_LOG = 2
EXT4_MIB = 256
FULL_MIB = 80


def run(*command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


class Mount:
    """A file system that goes with the test; `failed` says why there is none."""

    def __init__(self, kind, size_mib):
        self.directory = tempfile.mkdtemp(prefix="firn-test-disk-")
        self.image = self.failed = None
        try:
            if kind == "tmpfs":
                run("mount", "-t", "tmpfs", "-o", f"size={size_mib}m", "tmpfs", self.directory)
            else:
                self.image = tempfile.mktemp(prefix="firn-test-disk-", suffix=".img")
                with open(self.image, "wb") as file:
                    file.truncate(size_mib << 20)
                run("mkfs.ext4", "-q", "-F", self.image)
                self.mount()
        except (OSError, subprocess.CalledProcessError) as error:
            self.failed = (getattr(error, "stderr", None) or str(error).encode()).decode().strip()

    def mount(self):
        run("mount", "-o", "loop", self.image, self.directory)

    def unmount(self):
        run("umount", self.directory)

    def cut_power(self):
        """Nothing more reaches the disk, not even what the kernel had promised itself to write."""
        fd = os.open(self.directory, os.O_RDONLY)
        try:
            fcntl.ioctl(fd, EXT4_IOC_SHUTDOWN, ctypes.c_uint32(SHUTDOWN_WITHOUT_LOG))
        finally:
            os.close(fd)

    def close(self):
        subprocess.run(["umount", "-l", self.directory], check=False, stderr=subprocess.DEVNULL)
        shutil.rmtree(self.directory, ignore_errors=True)
        if self.image:
            os.unlink(self.image)


def post(address, body, timeout=30):
    """(status, text) of one batch."""
    connection = http.client.HTTPConnection(address, timeout=timeout)
    try:
        connection.request("POST", "/v1development/profiles", body, {"Content-Type": "application/x-protobuf"})
        answer = connection.getresponse()
        return answer.status, answer.read().decode(errors="replace")
    finally:
        connection.close()


class Numbered:
    """Batches that can be told apart, with a note of those that were acknowledged."""

    def __init__(self, width=1):
        self.next, self.width, self.acknowledged = 0, width, []

    def make(self, index):
        stacks = [([f"batch-n-{index}", "main"], 1)]
        stacks += [([f"leaf-{index}-{i}-{'x' * 60}", f"mid-{index}-{i % 99}", "main"], 1) for i in range(self.width)]
        return otlp.request("crash", stacks, {"host.name": "h"}, time.time_ns())

    def send(self, server):
        """Status of a new batch."""
        status, text = post(server.address, self.make(self.next))
        if status == 200:
            self.acknowledged.append(f"batch-n-{self.next}")
            self.next += 1
        return status, text


def found_batches(server):
    rows = server.json("/api/top", query=TYPE, **{"from": "now-1h", "to": "now", "limit": 0})["rows"]
    return {row["name"]: row["self"] for row in rows if row["name"].startswith("batch-")}


def check_batches(checks, server, acknowledged, what):
    found = found_batches(server)
    lost = [name for name in acknowledged if name not in found]
    twice = [name for name, value in found.items() if value != 1]
    checks.check(
        acknowledged and not lost and not twice,
        f"{what}: all {len(acknowledged)} acknowledged batches are there once (lost {lost[:3]}, twice {twice[:3]})",
    )


def full(program, checks):
    disk = Mount("tmpfs", FULL_MIB)
    if disk.failed:
        checks.skip("full disk", disk.failed)
        disk.close()
        return
    ballast = os.path.join(disk.directory, "ballast")
    server = None
    try:
        server = firn.Firn(program, "server", disk.directory, "--storage-memory=128MiB")
        batches = Numbered(width=1500)
        checks.check(batches.send(server)[0] == 200, "full disk: a batch is taken while there is room")
        with open(ballast, "wb") as file:
            try:
                while True:
                    file.write(b"x" * 65536)
            except OSError:
                pass
        status, text = 200, ""
        for _ in range(300):
            status, text = batches.send(server)
            if status != 200:
                break
        checks.check(status == 503, f"full disk: a batch is refused with 503 ({status})")
        checks.check("No space left" in text, f"full disk: the answer says why ({text[:160]!r})")
        check_batches(checks, server, batches.acknowledged, "full disk")
        server.kill()
        server = firn.Firn(program, "server", disk.directory, "--storage-memory=128MiB")
        check_batches(checks, server, batches.acknowledged, "full disk, killed and started")
        os.unlink(ballast)
        before, deadline = len(batches.acknowledged), time.monotonic() + 120
        while len(batches.acknowledged) < before + 10 and time.monotonic() < deadline:
            if batches.send(server)[0] != 200:  # what waits for the disk is written every five seconds
                time.sleep(0.2)
        checks.check(len(batches.acknowledged) == before + 10, "full disk: it heals when there is room")
        check_batches(checks, server, batches.acknowledged, "full disk, with room again")
        checks.check(server.metric("firn_store_quarantined_total") == 0, "full disk: nothing was set aside")
        checks.check(server.stop() == 0, "full disk: the server stops cleanly")
        server = None
    finally:
        if server:
            server.kill()
        disk.close()


def read_only(program, checks):
    disk = Mount("ext4", EXT4_MIB)
    if disk.failed:
        checks.skip("read-only disk", disk.failed)
        disk.close()
        return
    server = logs = None
    try:
        logs = tempfile.mkdtemp(prefix="firn-test-disk-log-")
        os.symlink(disk.directory, os.path.join(logs, "data"))
        server = firn.Firn(program, "server", logs)
        batches = Numbered(width=100)
        for _ in range(20):
            batches.send(server)
        run("mount", "-o", "remount,abort", disk.directory)
        status, text = batches.send(server)
        checks.check(status == 503, f"read-only disk: a batch is refused with 503 ({status} {text[:160]!r})")
        check_batches(checks, server, batches.acknowledged, "read-only disk")
        server.kill()
        disk.unmount()
        disk.mount()
        server = firn.Firn(program, "server", logs)
        check_batches(checks, server, batches.acknowledged, "read-only disk, mounted anew")
        checks.check(batches.send(server)[0] == 200, "read-only disk: it goes on after that")
        checks.check(server.stop() == 0, "read-only disk: the server stops cleanly")
        server = None
        run("mount", "-o", "remount,ro", disk.directory)
        refused = subprocess.run(
            [program, "server", "--http-address=127.0.0.1:0", f"--storage-path={logs}/data"],
            capture_output=True,
            timeout=60,
            check=False,
        )
        said = (refused.stdout + refused.stderr).decode(errors="replace")
        checks.check(
            refused.returncode != 0 and "Read-only file system" in said,
            f"read-only disk: a server does not start on it, and says why ({said.strip()[-120:]!r})",
        )
    finally:
        if server:
            server.kill()
        disk.close()
        shutil.rmtree(logs, ignore_errors=True)


def power(program, checks, rounds):
    """The file system stops at a random moment; what it had not written is gone.

    A batch whose sync was under way at that moment does not count: ext4 was seen to answer fdatasync() with
    success up to 2.5 ms behind the ioctl, and to have lost the bytes, for a program that only appends and
    syncs as well.
    """
    disk = Mount("ext4", EXT4_MIB)
    if disk.failed:
        checks.skip("power cut", disk.failed)
        disk.close()
        return
    logs = tempfile.mkdtemp(prefix="firn-test-disk-log-")
    os.symlink(disk.directory, os.path.join(logs, "data"))
    moments = random.Random()
    senders = [Sender(i) for i in range(4)]
    server, doubted = None, set()

    def acknowledged():
        return {name for s in senders for name in list(s.acknowledged)}

    try:
        for _ in range(rounds):
            server = firn.Firn(program, "server", logs, "--storage-memory=128MiB")
            threads = [threading.Thread(target=s.run_against, args=(server.address,)) for s in senders]
            for thread in threads:
                thread.start()
            time.sleep(moments.uniform(0.1, 2.0))
            before = acknowledged()
            disk.cut_power()
            time.sleep(0.1)
            server.kill()
            server = None
            for thread in threads:
                thread.join()
            doubted |= acknowledged() - before
            disk.unmount()
            disk.mount()
        server = firn.Firn(program, "server", logs)
        check_batches(checks, server, sorted(acknowledged() - doubted), f"power cut, {rounds} times")
        checks.check(server.metric("firn_store_quarantined_total") == 0, "power cut: nothing was set aside")
        checks.check(server.stop() == 0, "power cut: the server stops cleanly")
        server = None
    except OSError as error:
        checks.skip("power cut", f"the file system cannot be stopped: {error}")
    finally:
        if server:
            server.kill()
        disk.close()
        shutil.rmtree(logs, ignore_errors=True)


def resident_mib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmRSS"))


def slow(program, checks, library):
    """Far more is sent than the disk takes: senders wait, or are refused, and nothing piles up."""
    storage = tempfile.mkdtemp(prefix="firn-test-disk-")
    environment = ["env", f"LD_PRELOAD={library}", "SLOW_SYNC_MS=200", "SLOW_WRITE_KIB=256"]
    stop, lock, counts, peak = threading.Event(), threading.Lock(), {}, 0.0
    acknowledged, limit_mib, waits = [], 128, []
    bodies = Numbered(width=2500)
    server = firn.Firn([*environment, program], "server", storage, f"--storage-memory={limit_mib}MiB")

    def send(number):
        body, fresh, index = None, True, 0
        while not stop.is_set():
            if fresh:
                with lock:
                    index = bodies.next
                    bodies.next += 1
                    body = bodies.make(index)
            sent = time.monotonic()
            try:
                status, _ = post(server.address, body, 120)
            except OSError:
                status = 0
            fresh = status == 200
            with lock:
                waits.append(time.monotonic() - sent)
                counts[status] = counts.get(status, 0) + 1
                if fresh:
                    acknowledged.append(f"batch-n-{index}")
            if not fresh:
                stop.wait(0.2 + number * 0.01)

    threads = [threading.Thread(target=send, args=(i,)) for i in range(24)]
    try:
        for thread in threads:
            thread.start()
        begun, slowest = time.monotonic(), 0.0
        while time.monotonic() - begun < 20:
            asked = time.monotonic()
            server.get("/healthy")
            slowest = max(slowest, time.monotonic() - asked)
            peak = max(peak, resident_mib(server.process.pid))
            time.sleep(0.2)
        stop.set()
        for thread in threads:
            thread.join()
        print(f"slow disk: answers {counts}, at most {peak:.0f} MiB, /healthy within {slowest:.2f} s")
        checks.check(set(counts) <= {200, 503}, f"slow disk: batches are taken, or refused with 503 ({counts})")
        checks.check(counts.get(200, 0) > 0, "slow disk: some are taken")
        longest = max(waits)
        held = counts.get(503, 0) > 0 or longest > 1
        checks.check(held, f"slow disk: senders are slowed down or refused (one waited {longest:.1f} s)")
        checks.check(peak <= limit_mib, f"slow disk: resident at most {peak:.0f} MiB, the flag allows {limit_mib}")
        server.kill()  # and a budget that takes a question about every function there is
        server = firn.Firn(program, "server", storage, "--storage-memory=1GiB")
        check_batches(checks, server, acknowledged, "slow disk, killed and started")
        checks.check(server.stop() == 0, "slow disk: the server stops cleanly")
        server = None
    finally:
        stop.set()
        if server:
            server.kill()
        shutil.rmtree(storage, ignore_errors=True)


def second_server(program, checks):
    storage = tempfile.mkdtemp(prefix="firn-test-disk-")
    server = firn.Firn(program, "server", storage)
    try:
        command = [program, "server", "--http-address=127.0.0.1:0", f"--storage-path={storage}/data"]
        second = subprocess.run(command, capture_output=True, timeout=60, check=False)
        said = (second.stdout + second.stderr).decode(errors="replace")
        checks.check(second.returncode != 0, "two servers: the second does not start")
        wanted = f"in use by another firn, process {server.process.pid}"
        checks.check(wanted in said, f"two servers: it says who is there ({said.strip()[-120:]!r})")
        batches = Numbered()
        checks.check(batches.send(server)[0] == 200, "two servers: the first goes on")
        server.stop()
        server = firn.Firn(program, "server", storage)
        check_batches(checks, server, batches.acknowledged, "two servers")
    finally:
        server.kill()
        shutil.rmtree(storage, ignore_errors=True)


def removed(program, checks):
    storage = tempfile.mkdtemp(prefix="firn-test-disk-")
    server = firn.Firn(program, "server", storage)
    try:
        batches = Numbered()
        checks.check(batches.send(server)[0] == 200, "removed: a batch is taken")
        shutil.rmtree(os.path.join(storage, "data"))
        answers = [batches.send(server) for _ in range(3)]
        checks.check(all(a[0] == 503 for a in answers), f"removed: nothing is acknowledged any more ({answers[0]})")
        checks.check("removed" in answers[0][1], "removed: the answer says why")
        checks.check(not os.path.exists(os.path.join(storage, "data")), "removed: nothing is made again behind it")
        again = firn.Firn(program, "server", storage)
        status = batches.send(server)
        checks.check(status[0] == 503, f"removed: the old server stays out of a new one's directory ({status})")
        checks.check(batches.send(again)[0] == 200, "removed: the new one takes batches")
        server.stop()
        names = os.listdir(os.path.join(storage, "data", "parts"))
        checks.check(not names, f"removed: the old one left nothing in it when it stopped ({names})")
        check_batches(checks, again, batches.acknowledged[-1:], "removed")
        again.kill()
    finally:
        if server.process.poll() is None:
            server.kill()
        shutil.rmtree(storage, ignore_errors=True)


def main():
    program, library = sys.argv[1], sys.argv[2]
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 4
    checks = firn.Checks()
    full(program, checks)
    read_only(program, checks)
    power(program, checks, rounds)
    slow(program, checks, library)
    second_server(program, checks)
    removed(program, checks)
    checks.finish()


if __name__ == "__main__":
    main()
