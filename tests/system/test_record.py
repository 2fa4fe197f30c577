#!/usr/bin/env python3
"""`firn record` on this host: a command with all that it starts, a process, everything.

    test_record.py PROGRAM WORKLOADS_DIR
"""

import glob
import gzip
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import firn


def record(program, *arguments, **options):
    return subprocess.run([program, "record", *arguments], capture_output=True, text=True, timeout=180, **options)


def stacks(path):
    """(frames from the root, value) of each line of a folded file."""
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("# "):
                continue
            frames, _, value = line.rstrip("\n").rpartition(" ")
            yield frames.split(";"), int(value)


def burned(path):
    return sum(value for frames, value in stacks(path) if any(f.startswith("burner+0x") for f in frames)) / 1e9


def cpu_of_children(output):
    """Seconds of CPU, user and system, from the second line of the shell's `times`."""
    minutes = re.findall(r"(\d+)m([\d.]+)s", output.splitlines()[-1])
    return sum(60 * int(m) + float(s) for m, s in minutes)


def run_and_record(program, out, *command):
    """Also how much the machine below took meanwhile: there are no samples of that."""
    stolen = firn.stolen_seconds()
    run = record(program, "-o", out, "--", *command)
    return run, firn.stolen_seconds() - stolen


def check_burned(checks, out, used, stolen, what):
    seen = burned(out)
    good = -0.1 * used - stolen < seen - used < 0.1 * used
    checks.check(good, f"{seen:.2f} s of {what} that used {used:.2f} s ({stolen:.2f} s stolen)")


def samples_of(home):
    """How many the recording that runs has stored, by its own server's socket; 0 before it listens."""
    for path in glob.glob(os.path.join(home, "firn-record*", "*")):
        try:
            with socket.socket(socket.AF_UNIX) as server:
                server.connect(path)
                server.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                text = b"".join(iter(lambda: server.recv(65536), b""))
        except OSError:
            continue
        found = re.search(rb"^firn_store_samples_total (\d+)", text, re.M)
        if found:
            return int(found[1])
    return 0


def check_command(checks, program, workloads, home):
    """Two burners one after the other, below a shell, and little else."""
    out = os.path.join(home, "command.folded")
    burner = os.path.join(workloads, "burner")
    run, stolen = run_and_record(
        program, out, "sh", "-c", f"{burner} 2 >/dev/null; {burner} 2 >/dev/null; times; exit 5"
    )
    checks.check(run.returncode == 5, f"the command's exit code is the recording's ({run.stderr.strip()})")
    total = sum(value for _, value in stacks(out)) / 1e9
    used = cpu_of_children(run.stdout)
    check_burned(checks, out, used, stolen, "two burners")
    checks.check(burned(out) > 0.9 * total, f"{burned(out) / total:.1%} of what was recorded is the command's")


def check_orphan(checks, program, workloads, home):
    """What the command has left behind is recorded as long as the command runs."""
    out = os.path.join(home, "orphan.folded")
    said = os.path.join(home, "times")
    burner = os.path.join(workloads, "burner")
    orphan = f"setsid sh -c '{burner} 2 >/dev/null; times >{said}.new; mv {said}.new {said}' &"
    wait = f"({orphan}); while [ ! -e {said} ]; do sleep 0.1; done"
    stolen = run_and_record(program, out, "sh", "-c", wait)[1]
    with open(said, encoding="utf-8") as times:
        used = cpu_of_children(times.read())
    check_burned(checks, out, used, stolen, "an orphan")


def check_never_met(checks, program, home):
    """A large program that ends before its unwind table is built: its samples wait for that."""
    out, empty = os.path.join(home, "never.folded"), {**os.environ, "XDG_CACHE_HOME": os.path.join(home, "cache")}
    run = record(program, "-F", "4999", "-o", out, "--", "clang", "--version", env=empty)
    checks.check(run.returncode == 0, f"a program that was never met ({run.stderr.strip()})")
    ends = [frames[0] for frames, _ in stacks(out)]
    cut = [end for end in ends if "not loaded yet" in end]
    checks.check(ends and not cut, f"{len(cut)} of its {len(ends)} stacks are cut for want of a table")


def check_process(checks, program, workloads, home):
    out = os.path.join(home, "process.pb.gz")
    child = subprocess.Popen([os.path.join(workloads, "burner"), "60"], stdout=subprocess.DEVNULL)
    run = record(program, "-p", str(child.pid), "-d", "1s", "-F", "99", "-o", out)
    child.kill()
    child.wait()
    checks.check(run.returncode == 0, f"a process for a time ({run.stderr.strip()})")
    with gzip.open(out) as f:
        checks.check(b"burner" in f.read(), "its binary is in the pprof file")
    ended = subprocess.Popen(["sleep", "2"])
    begin = time.monotonic()
    run = record(program, "-p", str(ended.pid), "-o", os.devnull, stdin=subprocess.DEVNULL)
    ended.wait()  # until here it is a zombie
    checks.check(run.returncode == 0 and time.monotonic() - begin < 60, "ends with the process")


def check_interrupt(checks, program, home):
    """Ctrl-C in a terminal goes to all of the group; the profile is written, nothing is left."""
    out = os.path.join(home, "all.folded")
    child = subprocess.Popen(
        [program, "record", "-a", "-F", "99", "-o", out], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    seen = firn.wait_until(lambda: child.poll() is not None or samples_of(home), 120)
    checks.check(seen and child.poll() is None, "a recording of everything has begun")
    children = firn.descendants(child.pid)
    os.killpg(child.pid, signal.SIGINT)
    said = child.communicate(timeout=120)[1]
    checks.check(child.returncode == 0, f"Ctrl-C ends a recording of everything ({said.strip()})")
    checks.check(sum(value for _, value in stacks(out)) > 0, "and its profile is there")
    alive = [pid for pid in children if os.path.exists(f"/proc/{pid}")]
    checks.check(not alive, f"no process is left behind ({alive})")


def check_pid_namespace(checks, program, home):
    """As in a container with pids of its own: samples would be of other processes."""
    out = f"{home}/within.pb.gz"
    run = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", program, "record", "-o", out, "--", "true"],
                         capture_output=True, text=True, timeout=60)
    checks.check(run.returncode == 1 and "PID namespace" in run.stderr and not os.path.exists(out),
                 f"in a PID namespace of its own it says so ({run.returncode}, {run.stderr.strip()})")


def main():
    program, workloads = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    checks = firn.Checks()
    if os.geteuid() != 0:
        checks.skip("recording on the real kernel", "needs root to load BPF programs")
        checks.finish()
    home = tempfile.mkdtemp(prefix="firn-test-record-")
    os.environ["TMPDIR"] = home
    try:
        check_command(checks, program, workloads, home)
        check_orphan(checks, program, workloads, home)
        check_never_met(checks, program, home)
        check_process(checks, program, workloads, home)
        check_interrupt(checks, program, home)
        check_pid_namespace(checks, program, home)
        left = [name for name in os.listdir(home) if name.startswith("firn-record")]
        checks.check(not left, f"no directory is left behind ({left})")
    finally:
        shutil.rmtree(home, ignore_errors=True)
    checks.finish()


if __name__ == "__main__":
    main()
