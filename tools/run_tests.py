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

import concurrent.futures
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
    # What the compiler says of a file's headers is enough for ccache: no preprocessor runs before it.
    env = dict(os.environ, CCACHE_DEPEND="1", **environment)
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


def compile_tests(name, tests, env):
    """Compiles what these tests need; prints the compiler's output and returns False if that fails."""
    log = os.path.join(name, "last-build.log")
    print(f"{name}: compiling for {len(tests)} test programs; {log} has the details", flush=True)
    command = ["ninja", "-C", name, *targets_of(name, tests)]
    if sys.stdout.isatty():
        return subprocess.run(command, env=env).returncode == 0
    with open(log, "w", encoding="utf-8") as out:
        # Between sessions the kernel shares the processors first (sched_autogroup): meson gives each test one, too.
        run = subprocess.run(command, env=env, stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
        good = run.returncode == 0
    if not good:
        print(pathlib.Path(log).read_text(encoding="utf-8", errors="replace")[-8000:])
    return good


class CompileBeside:
    """Compiles builds at the lowest priority while tests of another one run, since many tests mostly wait.

    It is stopped when the tests end, finished or not: compile_tests() does the rest, and reports errors.
    """

    def __init__(self, builds, mode, folders):
        commands, env = [], None
        with concurrent.futures.ThreadPoolExecutor() as pool:
            environments = list(pool.map(configure, builds))
        for build, env in zip(builds, environments):
            name = build[0]
            command = shlex.join(["ninja", "-C", name, *targets_of(name, tests_of(build, mode, folders))])
            commands.append(f"{command} >{name}/beside.log 2>&1")
        self.child = None
        if commands:
            # Between sessions the kernel may weigh these, not their processes (sched_autogroup).
            commands.insert(0, "echo 19 2>/dev/null >/proc/self/autogroup || :")
            command = ["nice", "-n", "19", "sh", "-c", "; ".join(commands)]
            self.child = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, start_new_session=True)

    def stop(self):
        if self.child and self.child.poll() is None:
            os.killpg(self.child.pid, signal.SIGTERM)  # ninja removes unfinished files
        if self.child:
            self.child.wait()


def tests_of(build, mode, folders):
    return [t for t in introspect(build[0], "--tests") if wanted(build, mode, folders, suites_of(t))]


def start_programs(name, names, env, processes, out):
    """Starts Meson, which runs tests of a build directory; its output goes to `out`."""
    log = os.path.join(name, "meson-logs", "testlog.json")
    if os.path.exists(log):
        os.unlink(log)
    command = ["meson", "test", "-C", name, "--no-rebuild", "--print-errorlogs", *PATIENCE]
    command += ["--num-processes", str(processes), *names]
    return subprocess.Popen(command, env=env, stdout=out, stderr=subprocess.STDOUT)


def records_of(name):
    """What meson noted of each test program, by its name."""
    log = os.path.join(name, "meson-logs", "testlog.json")
    records = {}
    if os.path.exists(log):
        for line in open(log, encoding="utf-8"):
            record = json.loads(line)
            records[record["name"].rpartition(" / ")[2]] = record
    return records


class Run:
    """The tests of one build, and their results."""

    def __init__(self, build, mode, folders):
        self.name = build[0]
        self.env = dict(configure(build), **RUNTIME)
        self.env.update({"long": LONG, "changed": CHANGED}.get(mode, {}))
        self.tests = tests_of(build, mode, folders)
        self.counts, self.skipped_lines = (0, 1, 0), []
        self.compile_s = self.run_s = self.missing = 0
        self.meson = self.started = None

    def compile(self):
        """Starts the tests. False: there is nothing to run."""
        if not self.tests:
            return False
        started = time.monotonic()
        good = compile_tests(self.name, self.tests, self.env)
        self.compile_s = time.monotonic() - started
        if not good:
            print(f"{self.name}: the build failed")
        return good

    def start(self, processes, out=None):
        self.started = time.monotonic()
        names = [t["name"] for t in self.tests]
        self.meson = start_programs(self.name, names, self.env, processes, out)

    def finish(self):
        """Waits for the end and counts."""
        try:
            good = self.meson.wait() == 0
        finally:
            self.meson.kill()
        self.run_s = time.monotonic() - self.started
        records = records_of(self.name)
        passed = failed = skipped = 0
        for test, record in records.items():
            p, f, s = counts_of(record)
            passed, failed, skipped = passed + p, failed + f, skipped + s
            self.skipped_lines += [f"{self.name}: {line}" for line in reasons_of(test, record)]
        self.missing = len(self.tests) - len(records)
        if not good and not failed or self.missing:
            failed += 1
        self.counts = passed, failed, skipped

    def tell(self):
        passed, failed, skipped = self.counts
        if self.missing:
            print(f"{self.name}: {self.missing} test programs did not run")
        took = f"{self.compile_s:.0f} s to compile, {self.run_s:.0f} s to run"
        print(f"{self.name}: {passed} passed, {failed} failed, {skipped} skipped; {took}\n", flush=True)


def run_alone(run, later, mode, folders):
    """The tests of one build, while the builds that come later are compiled."""
    if run.compile():
        beside = CompileBeside(later, mode, folders)
        try:
            run.start(PROCESSES)
            run.finish()
        finally:
            beside.stop()
        run.tell()


def run_together(runs):
    """Runs the tests of several builds at once, each as soon as it is compiled, since none keeps all processors
    busy. The output of the first is printed as it comes, that of the others at the end."""
    processes = PROCESSES if len(runs) == 1 else PROCESSES * 3 // 4
    ready = []
    with contextlib.ExitStack() as files:
        for run in runs:
            if run.compile():
                log = files.enter_context(tempfile.TemporaryFile("w+")) if ready else None
                run.start(processes, log)
                ready.append((run, log))
        for run, log in ready:
            run.finish()
            if log:
                log.seek(0)
                shutil.copyfileobj(log, sys.stdout)
            run.tell()


class Command:
    """A test program outside meson that ends with "N passed, N failed". It runs beside others."""

    def __init__(self, title, command, cwd):
        self.title = title
        self.out = tempfile.TemporaryFile("w+")
        self.child = subprocess.Popen(command, cwd=cwd, stdout=self.out, stderr=subprocess.STDOUT)

    def finish(self):
        """Waits for the end; its output and (passed, failed, skipped)."""
        try:
            code = self.child.wait()
        finally:
            self.child.kill()
        self.out.seek(0)
        text = self.out.read()
        self.out.close()
        print(f"{self.title}:\n{text}", end="", flush=True)
        found = PLAIN.findall(text)
        if not found:
            return 0, 1, 0
        passed, failed, skipped = (int(x or 0) for x in found[-1])
        if code and not failed:
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
    run_alone(run, [ADDRESS, THREAD] if with_sanitizers else [], mode, folders)
    runs = [run]
    commands = []
    if mode != "folders":
        commands.append(Command("checks", ["tools/check", "fast"], "."))
    if mode in ("all", "long", "quick"):
        commands.append(Command("page, unit tests", ["npm", "test", "--silent"], "ui"))
    if with_sanitizers:
        runs += [Run(ADDRESS, mode, folders), Run(THREAD, mode, folders)]
        run_together(runs[1:])
    for run in runs:
        results.append(run.counts)
        skipped_lines += run.skipped_lines
    results += [command.finish() for command in commands]
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
    sys.exit(main(sys.argv[1:]))
