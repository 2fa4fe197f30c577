#!/usr/bin/env python3
"""Check the mirror rule: src/<a>/<b>.c has tests/<a>/test_<b>.c, a parser has a fuzz target.

Exceptions are in tests/UNTESTED, "path: reason". The list may only shrink: a line whose test exists, whose file
is gone, or whose reason names a missing test, is an error.
"""

import pathlib
import re
import sys

PARSER = re.compile(r"^(?:NODISCARD )?enum status (\w+_(?:parse|decode))\(", re.M)


def read_exceptions(path):
    reasons = {}
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            name, _, reason = line.partition(": ")
            reasons[name] = reason
    return reasons


def main():
    problems = []
    untested = read_exceptions(pathlib.Path("tests/UNTESTED"))
    for path in sorted(pathlib.Path("src").rglob("*.c")):
        if path.name.endswith(".bpf.c"):
            continue
        folder = path.relative_to("src").parts[0]
        test = pathlib.Path("tests") / folder / f"test_{path.stem}.c"
        excused = untested.pop(str(path), None)
        if test.exists() == (excused is not None):
            wrong = "has a test: remove its line" if excused is not None else f"has no {test}"
            problems.append(f"{path}: {wrong}")
        elif excused == "":
            problems.append(f"tests/UNTESTED: {path}: no reason")
    tests = {path.name for path in pathlib.Path("tests").rglob("test_*")}
    for path, reason in read_exceptions(pathlib.Path("tests/UNTESTED")).items():
        for name in sorted(set(re.findall(r"test_\w+\.(?:c|py)", reason)) - tests):
            problems.append(f"tests/UNTESTED: {path}: {name} does not exist")
    for path in sorted(untested):
        if path.startswith("src/"):
            problems.append(f"tests/UNTESTED: {path} does not exist")
    targets = "\n".join(p.read_text() for p in pathlib.Path("fuzz").glob("fuzz_*.c"))
    for header in sorted(pathlib.Path("src").rglob("*.h")):
        for name in PARSER.findall(header.read_text()):
            if name not in targets and f"parser {name}" not in untested:
                problems.append(f"{header}: {name}() has no fuzz target")
            elif name in targets and f"parser {name}" in untested:
                problems.append(f"tests/UNTESTED: parser {name} has a fuzz target")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
