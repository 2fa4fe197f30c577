#!/usr/bin/env python3
"""Run every test of the tree and print one closing line: N passed, N failed, N skipped.

Counts test functions, not programs: cmocka's summary of each program, and the line "N passed,
N failed" of the others. A program that fails without saying which of its tests did counts as one
failure; a build that fails is one too.

Tests of a live machine (LIVE) see whatever else happens on it. When a few of them fail, each is run
once more, alone: one that passes then counts as passed, with both logs printed, and is named as
unsteady before the closing line. That is a fault of the test or of firn, to be mended, but not one
of the change at hand.

    run_tests.py [quick] [SUITE...]
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time

# Crashes and faults of a store, one operation after another: hours under the thread sanitizer, and
# one thread at a time.
NOT_IN_TSAN = {"store/io", "store/recover"}

# name, meson options, environment, suites (None: all)
BUILDS = [
    ("build", [], {}, None),
    (
        "build-asan",
        ["-Db_sanitize=address,undefined", "-Db_lundef=false", "-Dsystem_tests=false"],
        {"CC": "clang", "CXX": "clang++"},
        None,
    ),
    (
        "build-tsan",
        ["-Db_sanitize=thread", "-Db_lundef=false", "-Dsystem_tests=false"],
        {"CC": "clang", "CXX": "clang++"},
        ["os", "net", "store", "symbolize", "server", "agent"],
    ),
]

# The limits of single tests are for a hang, not for a slow machine.
PATIENCE = ["--timeout-multiplier", "3"]

LIVE = {"agent", "e2e", "system"}
AGAIN_MAX = 5  # more failures than this are no accident

RUNTIME = {
    "ASAN_OPTIONS": "detect_leaks=1",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1",
}

TOTAL = re.compile(r"^\[==========\] (\d+) test\(s\) run\.", re.M)
PASSED = re.compile(r"^\[  PASSED  \] (\d+) test\(s\)\.", re.M)
SKIPPED = re.compile(r"^\[  SKIPPED \] (\d+) test\(s\)", re.M)
PLAIN = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", re.M)


def counts_of(record):
    """(passed, failed, skipped) of one program's record in meson's testlog.json."""
    text = (record.get("stdout") or "") + "\n" + (record.get("stderr") or "")
    bad = record["result"] not in ("OK", "SKIP")
    plain = PLAIN.findall(text)
    if plain:
        passed, failed, skipped = (int(x or 0) for x in plain[-1])
    elif record["result"] == "SKIP":
        passed, failed, skipped = 0, 0, 1
    elif TOTAL.search(text):
        total = sum(map(int, TOTAL.findall(text)))
        passed = sum(map(int, PASSED.findall(text)))
        skipped = sum(map(int, SKIPPED.findall(text)))
        failed = total - passed - skipped
    else:
        passed, failed, skipped = (0, 0, 0) if bad else (1, 0, 0)
    if bad and not failed:
        failed = 1
    return passed, failed, skipped


def tests_but(name, suites, left_out):
    """Names of the tests of these suites in a build directory, but for some."""
    command = ["meson", "test", "-C", name, "--no-rebuild", "--list"]
    for suite in suites or []:
        command += ["--suite", suite]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    names = [line.rpartition(" / ")[2].strip() for line in listed.splitlines() if " / " in line]
    return [n for n in names if n not in left_out]


def run_tests(name, env, arguments):
    """Run tests of a build directory: (their records by name, whether meson was content)."""
    log = os.path.join(name, "meson-logs", "testlog.json")
    if os.path.exists(log):
        os.unlink(log)
    command = ["meson", "test", "-C", name, "--no-rebuild", "--print-errorlogs", *PATIENCE, *arguments]
    run = subprocess.run(command, env=dict(env, **RUNTIME))
    records = {}
    if os.path.exists(log):
        for line in open(log, encoding="utf-8"):
            record = json.loads(line)
            records[record["name"].rpartition(" / ")[2]] = record
    return records, run.returncode == 0


def run_again(name, env, records):
    """Run the failed tests of a live machine once more; returns those that passed now."""
    failed = [test for test, record in records.items() if record["result"] not in ("OK", "SKIP")]
    if len(failed) > AGAIN_MAX:
        return []
    steady = [test for test in failed if test.partition("/")[0] not in LIVE]
    passed = []
    for test in failed if not steady else []:
        print(f"{name}: {test} failed; once more, alone:", flush=True)
        again, good = run_tests(name, env, [test])
        if good and test in again:
            records[test] = again[test]
            passed.append(f"{name}: {test}")
    return passed


def run_build(name, options, environment, suites, unsteady):
    """Build and test one directory; returns (passed, failed, skipped)."""
    env = dict(os.environ, **environment)
    if not os.path.exists(os.path.join(name, "build.ninja")):
        setup = ["meson", "setup", name, *options]
        if shutil.which("ccache"):  # which meson finds by itself for its own choice of compiler alone
            compilers = {k: f"ccache {v}" for k, v in environment.items() if k in ("CC", "CXX")}
        else:
            compilers = {}
        subprocess.run(setup, env=dict(env, **compilers), check=True, stdout=subprocess.DEVNULL)
    started = time.monotonic()
    built = subprocess.run(["ninja", "-C", name], env=env, capture_output=True, text=True)
    if built.returncode:
        print(built.stdout[-8000:])
        print(f"{name}: the build failed")
        return 0, 1, 0
    chosen = [word for suite in suites or [] for word in ("--suite", suite)]
    if name == "build-tsan":
        chosen += tests_but(name, suites, NOT_IN_TSAN)
    records, good = run_tests(name, env, chosen)
    if not good:
        unsteady += run_again(name, env, records)
    passed = failed = skipped = 0
    for record in records.values():
        p, f, s = counts_of(record)
        passed, failed, skipped = passed + p, failed + f, skipped + s
    if not good and not failed and not any(n.startswith(f"{name}: ") for n in unsteady):
        failed = 1
    if passed + failed == 0:
        print(f"{name}: no test ran")
        failed = 1
    seconds = time.monotonic() - started
    print(f"{name}: {passed} passed, {failed} failed, {skipped} skipped in {seconds:.0f} s\n")
    return passed, failed, skipped


def run_command(title, command, cwd):
    """A test program outside meson that ends with "N passed, N failed"."""
    print(f"{title}:")
    run = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    sys.stdout.write(run.stdout + run.stderr)
    found = PLAIN.findall(run.stdout)
    if not found:
        return 0, 1, 0
    passed, failed, skipped = (int(x or 0) for x in found[-1])
    if run.returncode and not failed:
        failed = 1
    return passed, failed, skipped


def main(arguments):
    quick = "quick" in arguments
    only = [a for a in arguments if a != "quick"]
    totals = [0, 0, 0]
    unsteady = []

    def add(result):
        for i in range(3):
            totals[i] += result[i]

    for name, options, environment, suites in BUILDS[:1] if quick or only else BUILDS:
        add(run_build(name, options, environment, only or suites, unsteady))
    if not only:
        add(run_command("checks", ["tools/check", "fast"], "."))
        if os.path.exists("ui/package.json"):
            add(run_command("page, unit tests", ["npm", "test", "--silent"], "ui"))
    for test in unsteady:
        print(f"unsteady: {test} (failed, and passed when it was run again)")
    passed, failed, skipped = totals
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
