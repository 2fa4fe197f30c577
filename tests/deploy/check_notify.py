#!/usr/bin/env python3
"""What `firn server` and `firn agent` tell a service manager, and that /ready fails first.

usage: check_notify.py FIRN
"""

import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

FIRN = str(pathlib.Path(sys.argv[1]).resolve())
SECONDS = 60  # for anything that does not depend on a clock of firn's
problems = []


def expect(good, what):
    if not good:
        problems.append(what)


def start(folder, *words):
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.settimeout(SECONDS)
    path = str(folder / "notify")
    manager.bind(path)
    environment = {**os.environ, "NOTIFY_SOCKET": path, "WATCHDOG_USEC": "2000000"}
    process = subprocess.Popen([FIRN, *words], env=environment, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return manager, process


def hear(manager, process, wanted):
    """The next message that is `wanted`; those before it."""
    before = []
    while process.poll() is None or before == []:
        try:
            message = manager.recv(4096).decode()
        except TimeoutError:
            break
        if message == wanted:
            return before
        before.append(message)
    problems.append(f"{wanted} did not come, but {before}")
    return before


def status(url):
    try:
        return urllib.request.urlopen(url, timeout=SECONDS).status
    except urllib.error.HTTPError as answer:
        return answer.code


def check_server(folder):
    manager, process = start(folder, "server", "--http-address", "127.0.0.1:0", "--storage-path",
                             str(folder / "data"), "--shutdown-delay", "3s")
    expect(hear(manager, process, "READY=1") == [], "told something before it was ready")
    said = [process.stdout.readline() for _ in range(3)]
    url = re.search(r"http://\S+", said[1])[0]
    expect(status(url + "/ready") == 200, "/ready when it is ready")
    hear(manager, process, "WATCHDOG=1")
    hear(manager, process, "WATCHDOG=1")
    process.send_signal(signal.SIGTERM)
    told = time.monotonic()
    hear(manager, process, "STOPPING=1")
    codes = [0]
    while codes[-1] != 503 and time.monotonic() - told < 2:
        codes.append(status(url + "/ready"))
    expect(codes[-1] == 503, f"/ready before the stop: {codes[-3:]}")
    expect(status(url + "/healthy") == 200, "/healthy before the stop")
    expect(process.wait(SECONDS) == 0, f"status {process.returncode}: {process.stderr.read()}")


def check_agent(folder):
    manager, process = start(folder, "agent", "--offline-mode-storage-path", str(folder / "kept"),
                             "--cache-path", str(folder / "cache"), "--http-address", "")
    try:
        process.wait(2)
        print(f"skipped: the agent: {process.stderr.read().strip()}")
        return
    except subprocess.TimeoutExpired:
        pass
    hear(manager, process, "READY=1")
    hear(manager, process, "WATCHDOG=1")
    process.send_signal(signal.SIGTERM)
    hear(manager, process, "STOPPING=1")
    expect(process.wait(SECONDS) == 0, f"agent: {process.stderr.read()}")


def main():
    for check in (check_server, check_agent):
        with tempfile.TemporaryDirectory() as temporary:
            check(pathlib.Path(temporary))
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
