"""A Debian in a folder, booted by systemd-nspawn with systemd as process 1, for the prove_* scripts beside this."""

import os
import pathlib
import shutil
import subprocess
import sys
import time

WAIT_SECONDS = 120
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
NAME = pathlib.Path(sys.argv[0]).name


def say(text):
    print(f"{NAME}: {text}", flush=True)


def fail(text):
    sys.exit(f"{NAME}: {text}")


def needs():
    if os.geteuid() != 0 or not shutil.which("systemd-nspawn"):
        print("skipped: it takes root and systemd-nspawn")
        sys.exit(77)


def prepare(root, *commands):
    """Commands in ROOT before it is booted, with the network of this host."""
    for words in commands:
        done = subprocess.run(["chroot", root, *words], env=ENVIRONMENT, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            fail(f"{' '.join(words)}: {done.stdout[-500:]}{done.stderr[-500:]}")


class Machine:
    def __init__(self, root, *options):
        self.root = root
        # No output of the boot is wanted; a pipe that nobody reads would stop it.
        self.process = subprocess.Popen(
            ["systemd-nspawn", "-q", "--register=no", "--keep-unit", *options, "-D", root, "-b"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def leader(self):
        path = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
        return pathlib.Path(path).read_text().split()[0]

    def words(self, *words):
        assignments = [f"{name}={value}" for name, value in ENVIRONMENT.items()]
        return ["nsenter", "-t", self.leader(), "-m", "-p", "-u", "-i", "-n", "env", "-i", *assignments, *words]

    def inside(self, *words):
        return subprocess.run(self.words(*words), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=WAIT_SECONDS, check=False)

    def must(self, *words):
        """What it prints."""
        done = self.inside(*words)
        if done.returncode != 0:
            fail(f"{' '.join(words)}: exit code {done.returncode}: {done.stdout[-500:]}{done.stderr[-500:]}")
        return done.stdout.strip()

    def wait_for(self, what, *words):
        until, said = time.monotonic() + WAIT_SECONDS, ""
        while time.monotonic() < until:
            if self.process.poll() is not None:
                fail("systemd-nspawn ended")
            try:
                done = self.inside(*words)
                if done.returncode == 0:
                    return
                said = done.stdout[-500:] + done.stderr[-500:]
            except (OSError, IndexError):
                pass  # it has just begun
            time.sleep(0.5)
        fail(f"{what}: {said}")

    def install(self, package):
        """Seconds that it took until the server was up again."""
        begun = time.monotonic()
        self.must("dpkg", "-i", "--force-confold", package)
        self.wait_for("firn-server.service", "systemctl", "is-active", "firn-server.service")
        return time.monotonic() - begun

    def stop(self):
        if self.process.poll() is None:
            try:
                self.inside("systemctl", "--no-block", "poweroff")
                self.process.wait(30)
            except (OSError, IndexError, subprocess.TimeoutExpired):
                self.process.kill()
                self.process.wait()
