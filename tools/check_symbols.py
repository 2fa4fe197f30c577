#!/usr/bin/env python3
"""Check the symbols of the built library of each folder of src/.

Every global function and table is declared in a header of its folder; others should be static. Symbols for the
tests of their own file end in _portable or begin with test_. Files do not call each other in a circle. Each
thread of every process has a copy of all thread-local variables, which is written when it starts, so a folder
has few bytes of them. A library that is older than one of its sources is left out.
"""

import pathlib
import re
import subprocess
import sys

from check_layers import circle_problems, find_circles

SRC = pathlib.Path("src")
SYMBOL = re.compile(r"^.*?(?:lib\w+\.a(?:\.p)?[:/])([^:]+)\.o: *[0-9a-f]* ([A-Za-z]) (\S+)$")

THREAD_LOCAL = re.compile(r"\s\.t(?:bss|data)\S*\s+\w+\s+[0-9a-f]+\s+[0-9a-f]+\s+([0-9a-f]+)\s")
THREAD_LOCAL_BYTES_MAX = 1024


def is_current(library, folder):
    built = library.stat().st_mtime
    return all(p.stat().st_mtime <= built for p in (SRC / folder).rglob("*.[ch]"))


def symbols_of(library, folder):
    """(file, kind, name) of each global symbol; the file as "agent/send/spool"."""
    sources = {}
    for path in (SRC / folder).rglob("*.c*"):
        sources[str(path.relative_to(SRC / folder)).replace("/", "_")] = path
    command = ["nm", "-A", "-g", str(library)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    for line in run.stdout.splitlines():
        match = SYMBOL.match(line)
        if match and pathlib.Path(match[1]).name in sources:
            path = sources[pathlib.Path(match[1]).name]
            yield str(path.relative_to(SRC).with_suffix("")), match[2], match[3]


def check_declared(library, folder, symbols):
    problems = []
    headers = "\n".join(p.read_text() for p in (SRC / folder).rglob("*.h"))
    for _, kind, name in symbols:
        if kind not in "TDBR":
            continue
        if name.startswith(("_Z", "__", "test_")) or name.endswith("_portable"):
            continue
        if not re.search(r"\b%s\b" % re.escape(name), headers):
            problems.append(f"{library}: {name} is global, but no header of {folder} declares it")
    return problems


def check_thread_local(library):
    command = ["readelf", "-SW", str(library)]
    sections = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    size = sum(int(number, 16) for number in THREAD_LOCAL.findall(sections))
    if size <= THREAD_LOCAL_BYTES_MAX:
        return []
    return [f"{library}: {size} bytes are thread-local, so each thread of firn would write them: allocate them"]


def circles_of(symbols):
    home = {name: file for file, kind, name in symbols if kind in "TDBRVW"}
    calls = {}
    for file, kind, name in symbols:
        if kind == "U" and home.get(name, file) != file:
            calls.setdefault(file, set()).add(home[name])
    return find_circles(calls)


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build")
    problems = []
    for library in sorted(build.glob("src/*/lib*.a")):
        folder = library.parent.name
        if not is_current(library, folder):
            continue
        symbols = list(symbols_of(library, folder))
        problems += check_declared(library, folder, symbols)
        problems += check_thread_local(library)
        problems += circle_problems("call one another", circles_of(symbols))
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
