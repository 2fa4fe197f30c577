#!/usr/bin/env python3
"""Run the tests and print one closing line: N passed, N failed, N skipped.

    run_tests.py              all that CI runs
    run_tests.py quick        all tests of the ordinary build, no sanitizers
    run_tests.py changed      the ordinary build's tests of the folders that differ from HEAD, and of
                              those that may include them; without tests of the live machine
    run_tests.py SUITE...     the ordinary build's tests of these folders
    run_tests.py long         everything in every build: whole sweeps, soaks, 10 million fuzz runs

Each test runs in the build in which it finds most errors. Its suites in tests/<folder>/meson.build say which
(tests/meson.build explains them): the address sanitizer's build by default, the ordinary build for tests that
observe the live machine, and also the thread sanitizer's build for tests that start threads.

Test functions are counted, not programs: by cmocka's summary of each program, and by the line
"N passed, N failed" of the others. A program that fails without saying which of its tests did
counts as one failure; so does a build that fails. Each skipped test is named with its reason.
"""

import contextlib
import fcntl
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

# For the places in a sanitizer's report, not for a debugger.
LINES_ONLY = ["-Ddebug=false", "-Dc_args=-gline-tables-only", "-Dcpp_args=-gline-tables-only"]
# name, meson options, environment
ORDINARY = ("build", [], {})
ADDRESS = (
    "build-asan",
    ["-Db_sanitize=address,undefined", "-Db_lundef=false", "-Dsystem_tests=false", "-Doptimization=0", *LINES_ONLY],
    {"CC": "clang", "CXX": "clang++"},
)
THREAD = (
    "build-tsan",
    ["-Db_sanitize=thread", "-Db_lundef=false", "-Dsystem_tests=false", "-Doptimization=0", *LINES_ONLY],
    {"CC": "clang", "CXX": "clang++"},
)

# Time limits of single tests are for hangs, not for a slow machine.
PATIENCE = ["--timeout-multiplier", "3"]
# More tests than processors run at once, since many tests mostly wait.
PROCESSES = 2 * (os.cpu_count() or 1)
# The sanitizers' builds are compiled and tested beside the tests of the ordinary build, of which some measure.
BESIDE_PROCESSES = PROCESSES * 3 // 4
BESIDE_NICE = 10
CHILDREN = []

RUNTIME = {
    "ASAN_OPTIONS": "detect_leaks=1",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1",
}
LONG = {"FIRN_SWEEP": "all", "FIRN_TEST_HOTPLUG": "1"}
CHANGED = {"FIRN_SWEEP": "few"}

TOTAL = re.compile(r"^\[==========\] (\d+) test\(s\) run\.", re.M)
PASSED = re.compile(r"^\[  PASSED  \] (\d+) test\(s\)\.", re.M)
SKIPPED = re.compile(r"^\[  SKIPPED \] (\d+) test\(s\)", re.M)
PLAIN = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", re.M)
REASON = re.compile(r"^skipped(?: (?P<test>[^:]+))?: (?P<why>.+)$")
CASE = re.compile(r"^\[  SKIPPED \] (\w+)$")


def text_of(record):
    return (record.get("stdout") or "") + "\n" + (record.get("stderr") or "")


def counts_of(record):
    """(passed, failed, skipped) of one program's record in meson's testlog.json."""
    text = text_of(record)
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


def reasons_of(name, record):
    """A line for each test of a program that was skipped: its name and the reason."""
    lines, why = [], None
    for line in text_of(record).splitlines():
        said, case = REASON.match(line), CASE.match(line)
        if said and said["test"]:
            lines.append(f"{name}, {said['test']}: {said['why']}")
        elif said:
            if why:
                lines.append(f"{name}: {why}")
            why = said["why"]
        elif case and why:
            lines.append(f"{name}, {case[1]}: {why}")
            why = None
    if why:
        lines.append(f"{name}: {why}")
    return lines


def read_layers():
    """The top folders that each top folder may include, from src/LAYERS."""
    includes = {}
    for line in pathlib.Path("src/LAYERS").read_text().splitlines():
        words = line.split("#")[0].split()
        if words:
            folder, *names = (word.rstrip(":").split("/")[0] for word in words[1:])
            includes.setdefault(folder, set()).update(names)
    return includes


def changed_folders():
    """Folders that differ from HEAD, and those that may include one of them."""
    command = ["git", "status", "--porcelain", "--untracked-files=all", "--no-renames"]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    changed = set()
    for line in out.splitlines():
        parts = line[3:].split("/")
        if parts[0] in ("src", "tests", "fuzz") and len(parts) > 2 or parts[0] == "fuzz":
            changed.add("fuzz" if parts[0] == "fuzz" else parts[1])
    includes = read_layers()
    return changed | {folder for folder, of in includes.items() if of & changed}


def introspect(build, what):
    command = ["meson", "introspect", what, build]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def suites_of(test):
    return {suite.rpartition(":")[2] for suite in test["suite"]}


def wanted(build, mode, folders, suites):
    """Whether a test with these suites runs in this build."""
    name = build[0]
    if "long" in suites and mode != "long":
        return False
    if "emulated" in suites and mode not in ("long", "folders"):
        return False
    if name == "build":
        if mode == "changed":
            return bool(suites & folders) and "host" not in suites
        if mode == "folders":
            return bool(suites & folders)
        return mode in ("quick", "long") or bool(suites & {"host", "both"})
    if name == "build-tsan":
        return "threads" in suites
    return "host" not in suites


def configure(build):
    name, options, environment = build
    env = dict(os.environ, **environment)
    if os.path.exists(os.path.join(name, "build.ninja")):
        return env
    if shutil.which("ccache"):  # meson uses ccache by itself only for the compiler that it chooses
        env.update({k: f"ccache {v}" for k, v in environment.items() if k in ("CC", "CXX")})
    if shutil.which("ld.lld"):
        env.update({"CC_LD": "lld", "CXX_LD": "lld"})
    subprocess.run(["meson", "setup", name, *options], env=env, check=True, stdout=subprocess.DEVNULL)
    return env


def targets_of(name, tests):
    """The targets of ninja that these tests need."""
    files = {t["id"]: t["filename"] for t in introspect(name, "--targets")}
    top = os.path.abspath(name)
    targets = set()
    for test in tests:
        for target in test["depends"]:
            targets.update(os.path.relpath(f, top) for f in files[target])
    # Profiled programs belong to no single test; benchmarks are compiled to check that they compile.
    extra = {"build": ("bench", "tests/workloads"), "build-asan": ("tests/workloads",)}.get(name, ())
    for path in (os.path.relpath(f, top) for fs in files.values() for f in fs):
        if path.startswith(extra):
            targets.add(path)
    return sorted(targets)


def spawn(command, nice=0, **options):
    """A process of its own session, at a lower priority if `nice`; end_children() ends what is left
    of it. Between sessions the kernel may weigh the session, not its processes (sched_autogroup)."""
    if nice:
        line = f"echo {nice} 2>/dev/null >/proc/self/autogroup || :; exec {shlex.join(command)}"
        command = ["nice", "-n", str(nice), "sh", "-c", line]
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, **options)
    CHILDREN.append(child)
    return child


def end_children():
    for child in CHILDREN:
        if child.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGTERM)  # ninja removes what is half made
            child.wait()


def compile_tests(name, tests, env, nice):
    """Compile what these tests need; False, with the compiler's words, if that fails."""
    log = os.path.join(name, "last-build.log")
    print(f"{name}: compiling for {len(tests)} test programs; {log} has the details", flush=True)
    command = ["ninja", "-C", name, *targets_of(name, tests)]
    if sys.stdout.isatty() and not nice:
        return spawn(command, env=env).wait() == 0
    with open(log, "w", encoding="utf-8") as out:
        good = spawn(command, nice, env=env, stdout=out, stderr=subprocess.STDOUT).wait() == 0
    if not good:
        print(pathlib.Path(log).read_text(encoding="utf-8", errors="replace")[-8000:])
    return good


def tests_of(build, mode, folders):
    return [t for t in introspect(build[0], "--tests") if wanted(build, mode, folders, suites_of(t))]


def start_programs(name, names, env, processes, nice, out, log):
    """Meson, which runs tests of a build directory; its words go to `out`, what it notes of each test
    to meson-logs/<log>.json."""
    path = os.path.join(name, "meson-logs", log + ".json")
    if os.path.exists(path):
        os.unlink(path)
    command = ["meson", "test", "-C", name, "--no-rebuild", "--print-errorlogs", *PATIENCE]
    command += ["--logbase", log, "--num-processes", str(processes), *names]
    return spawn(command, nice, env=env, stdout=out, stderr=subprocess.STDOUT)


def records_of(name, log):
    """What meson noted of each test program, by its name."""
    path = os.path.join(name, "meson-logs", log + ".json")
    records = {}
    if os.path.exists(path):
        for line in open(path, encoding="utf-8"):
            record = json.loads(line)
            records[record["name"].rpartition(" / ")[2]] = record
    return records


class Run:
    """One build's share of the tests, and what came of it."""

    def __init__(self, build, mode, folders):
        self.name = build[0]
        self.env = dict(configure(build), **RUNTIME)
        self.env.update({"long": LONG, "changed": CHANGED}.get(mode, {}))
        self.tests = tests_of(build, mode, folders)
        self.counts, self.skipped_lines = (0, 1, 0), []
        self.compiled = False
        self.compile_s = self.run_s = self.missing = 0
        self.started = None
        self.parts = []  # (meson, its log, the file of its words)

    def compile(self, nice=0):
        if not self.tests:
            return
        started = time.monotonic()
        self.compiled = compile_tests(self.name, self.tests, self.env, nice)
        self.compile_s = time.monotonic() - started
        if not self.compiled:
            print(f"{self.name}: the build failed")

    def start(self, tests, processes, beside=False):
        """Beside others: at a lower priority, and what is said waits for the end."""
        names = [t["name"] for t in tests]
        if not self.compiled or not names:
            return
        self.started = self.started or time.monotonic()
        log = f"testlog-{len(self.parts)}"
        out = tempfile.TemporaryFile("w+") if beside else None
        nice = BESIDE_NICE if beside else 0
        meson = start_programs(self.name, names, self.env, processes, nice, out, log)
        self.parts.append((meson, log, out))

    def finish(self):
        """Waits for the end, counts, and says so."""
        if not self.compiled:
            return
        good, records = True, {}
        for meson, log, out in self.parts:
            good = meson.wait() == 0 and good
            records.update(records_of(self.name, log))
            if out:
                out.seek(0)
                shutil.copyfileobj(out, sys.stdout)
        self.run_s = time.monotonic() - self.started
        passed = failed = skipped = 0
        for test, record in records.items():
            p, f, s = counts_of(record)
            passed, failed, skipped = passed + p, failed + f, skipped + s
            self.skipped_lines += [f"{self.name}: {line}" for line in reasons_of(test, record)]
        self.missing = len(self.tests) - len(records)
        if not good and not failed or self.missing:
            failed += 1
        self.counts = passed, failed, skipped
        self.tell()

    def tell(self):
        passed, failed, skipped = self.counts
        if self.missing:
            print(f"{self.name}: {self.missing} test programs did not run")
        took = f"{self.compile_s:.0f} s to compile, {self.run_s:.0f} s to run"
        print(f"{self.name}: {passed} passed, {failed} failed, {skipped} skipped; {took}\n", flush=True)


def start_beside(runs):
    """Compiles builds at a lower priority, and starts of each the tests that may run beside others."""
    for run in runs:
        run.compile(BESIDE_NICE)
        run.start([t for t in run.tests if t["is_parallel"]], BESIDE_PROCESSES, beside=True)


def run_builds(run, later, mode):
    """Run the tests of the ordinary build, of which many wait more than they compute, and beside them
    those of the later builds. Tests of later builds that must run alone come at the end. In long
    runs, which measure more, one build comes after the other."""
    beside = threading.Thread(target=start_beside, args=(later,), daemon=True)
    run.compile()
    if mode != "long":
        beside.start()
    run.start(run.tests, PROCESSES)
    run.finish()
    if mode == "long":
        beside.start()
    beside.join()
    for other in later:
        other.start([t for t in other.tests if not t["is_parallel"]], 1, beside=True)
    for other in later:
        other.finish()


def run_command(title, command, cwd):
    """A test program outside meson that ends with "N passed, N failed"."""
    print(f"{title}:", flush=True)
    run = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    sys.stdout.write(run.stdout + run.stderr)
    found = PLAIN.findall(run.stdout)
    if not found:
        return 0, 1, 0
    passed, failed, skipped = (int(x or 0) for x in found[-1])
    if run.returncode and not failed:
        failed = 1
    return passed, failed, skipped


def run_fuzzers():
    """Ten million runs of each fuzz target; one that finds something is a failure."""
    print("fuzzers, 10 million runs each:", flush=True)
    run = subprocess.run(["tools/fuzz", "--runs", "10000000"])
    return (1, 0, 0) if run.returncode == 0 else (0, 1, 0)


def parse(arguments):
    """(mode, folders)"""
    if arguments and arguments[0] in ("-h", "--help", "help"):
        print(__doc__.strip())
        sys.exit(0)
    arguments = [a for a in arguments if a]
    modes = {"quick", "long", "changed"}
    if len(arguments) == 1 and arguments[0] in modes:
        folders = changed_folders() if arguments[0] == "changed" else set()
        return arguments[0], folders
    if modes & set(arguments):
        sys.exit("quick, changed and long stand alone; see --help")
    return ("folders", set(arguments)) if arguments else ("all", set())


def main(arguments):
    mode, folders = parse(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # ends the background compilation too
    os.makedirs("build", exist_ok=True)
    lock = open("build/.tests-lock", "w", encoding="utf-8")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        sys.exit("these tests are already running in this checkout: wait for their end")
    if mode == "changed" and not folders:
        print("no folder of src, tests or fuzz differs from HEAD\n0 passed, 0 failed, 0 skipped")
        return 0
    totals, skipped_lines, results = [0, 0, 0], [], []
    with_sanitizers = mode in ("all", "long")
    run = Run(ORDINARY, mode, folders)
    if not run.tests:
        known = set().union(*(suites_of(t) for t in introspect("build", "--tests")))
        print(f"no tests of {' '.join(sorted(folders)) or 'no changed folder'}; there are: ", end="")
        print(" ".join(sorted(known)))
    runs = [run]
    if with_sanitizers:
        # The thread sanitizer's tests wait most, so they begin first.
        runs += [Run(THREAD, mode, folders), Run(ADDRESS, mode, folders)]
    run_builds(run, runs[1:], mode)
    for run in runs:
        results.append(run.counts)
        skipped_lines += run.skipped_lines
    if mode != "folders":
        results.append(run_command("checks", ["tools/check", "fast"], "."))
    if mode in ("all", "long", "quick"):
        results.append(run_command("page, unit tests", ["npm", "test", "--silent"], "ui"))
    if mode == "long":
        results.append(run_fuzzers())
    for result in results:
        totals = [a + b for a, b in zip(totals, result)]
    for line in skipped_lines:
        print(f"skipped in {line}")
    passed, failed, skipped = totals
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    finally:
        end_children()
