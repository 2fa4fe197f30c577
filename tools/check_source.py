#!/usr/bin/env python3
"""Check small rules that no compiler checks: banned calls, unfinished code, sizes, licence lines, the order of
locks.

Sizes (lines of a file, lines and complexity of a function) come from tools/limits.txt, where
exceptions are named with a reason.
"""

import pathlib
import re
import subprocess
import sys

BANNED = {
    "strcpy": "memcpy with a checked length",
    "strcat": "struct buf",
    "sprintf": "snprintf",
    "vsprintf": "vsnprintf",
    "atoi": "str_parse_u64",
    "atol": "str_parse_u64",
    "strtok": "str_split",
    "gmtime": "gmtime_r",
    "localtime": "localtime_r",
    "alloca": "an arena",
    "gets": "os_read_fd",
    "tmpnam": "mkstemp",
    "strncpy": "memcpy with a checked length",
}
CALL = re.compile(r"(?<![\w.>])(%s)\s*\(" % "|".join(BANNED))
OPEN_END = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
LOGGED = re.compile(r"\blog_(?:debug|info|warn|error)\(([^;]*)\);")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"", re.S)

# Memory whose type cannot say that it is atomic: shared with the kernel or with BPF programs,
# elements of byte arrays, fields of a struct that is also copied whole.
BUILTIN_ATOMIC = re.compile(r"\b__(?:atomic|sync)_\w+\s*\(")
BUILTIN_ATOMIC_IN = (
    "src/agent/bpf/",
    "src/agent/names/ksymbols.c",
    "src/agent/oom/oom.c",
    "src/agent/sample/",
    "src/agent/tables/",
    "src/store/memory/tables.",
    "src/store/read/index_kinds.c",
    "src/store/read/pick.c",
)

# A lock without a place in the order.
BARE_LOCK = re.compile(r"\bpthread_(mutex|rwlock|cond_(timed)?wait)\w*")

# Two comments without a line between them: one of them has lost its code.
STACKED = re.compile(r"^([ \t]*)/\*((?:(?!\*/)[\s\S])*)\*/\n\1/\*(.*)", re.M)

# A variable with a cleanup function, declared without a value.
CLEANED = re.compile(r"CLEANUP\(\w+\) [\w ]+?\*?(\w+);")


def cleaned_too_early(text):
    """(line, variable) of returns before such a variable has a value."""
    for m in CLEANED.finditer(text):
        rest = text[m.end() : text.find("\n}", m.end())]
        left, used = rest.find("return"), re.search(rf"\b{m[1]}\b", rest)
        if left >= 0 and not (used and used.start() < left):
            yield text.count("\n", 0, m.start()) + 1, m[1]


def read_limits():
    limits, exceptions = {}, {}
    for line in pathlib.Path("tools/limits.txt").read_text().splitlines():
        line = line.split("#")[0].strip()
        if not line:
            continue
        name, value = line.split()[:2]
        (exceptions if "/" in name else limits)[name] = int(value)
    return limits, exceptions


def code_files():
    command = ["git", "ls-files", "-co", "--exclude-standard"]
    names = subprocess.run(command, capture_output=True, text=True, check=True)
    for name in names.stdout.split():
        path = pathlib.Path(name)
        if path.suffix in (".c", ".h", ".cc") and path.exists():
            yield path


def check_text(path, text):
    problems = []
    if not text.startswith("/* SPDX-License-Identifier: "):
        problems.append(f"{path}:1: no SPDX line")
    bare = COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)
    for number, line in enumerate(bare.splitlines(), 1):
        found = CALL.search(line)
        if found and path.parts[0] == "src":
            problems.append(f"{path}:{number}: {found.group(1)}(): use {BANNED[found.group(1)]}")
        atomic = path.parts[0] == "src" and BUILTIN_ATOMIC.search(line)
        if atomic and not str(path).startswith(BUILTIN_ATOMIC_IN):
            problems.append(f"{path}:{number}: {atomic.group()}: give the field an atomic type")
        bare_lock = path.parts[0] == "src" and BARE_LOCK.search(line)
        if bare_lock and not str(path).startswith("src/base/lock."):
            problems.append(f"{path}:{number}: {bare_lock.group()}: use base/lock.h")
    for call in LOGGED.finditer(text):
        if r"\"%" in call.group(1):
            number = text.count("\n", 0, call.start()) + 1
            problems.append(f"{path}:{number}: a text in quotes of its own: use LOG_QUOTED")
    for pair in STACKED.finditer(text) if path.parts[0] == "src" else ():
        if not re.search(r"SPDX|----|clang-format", pair.group(2) + pair.group(3)):
            number = text.count("\n", 0, pair.start()) + 1
            problems.append(f"{path}:{number}: a comment that stands on another")
    for number, name in cleaned_too_early(bare):
        problems.append(f"{path}:{number}: {name} is cleaned up by a return before it has a value")
    for number, line in enumerate(text.splitlines(), 1):
        if OPEN_END.search(line):
            problems.append(f"{path}:{number}: an open end")
    return problems


def opens_with_how(text):
    return text.partition("\n")[2].startswith("/*")


def check_functions(paths, limits, exceptions):
    problems, used = [], set()
    run = subprocess.run(["pmccabe", *map(str, paths)], capture_output=True, text=True)
    for line in run.stdout.splitlines():
        fields = line.split("\t")
        complexity, lines, where = int(fields[0]), int(fields[4]), fields[5]
        file, _, name = where.partition(": ")
        file = re.sub(r"\(\d+\)$", "", file)
        key = f"{file}:{name.strip()}"
        allowed = exceptions.get(key)
        if allowed is not None:
            used.add(key)
        if lines > (allowed or limits["function-lines"]):
            problems.append(f"{key}: {lines} lines")
        if complexity > limits["function-complexity"] and allowed is None:
            problems.append(f"{key}: complexity {complexity}")
    return problems, used


def check_locks():
    """Check that the order of locks in the code is that of docs/concurrency.md."""
    header = pathlib.Path("src/base/lock.h").read_text()
    page = pathlib.Path("docs/concurrency.md").read_text()
    for name, title in ("LOCK_ORDER", "Outermost first"), ("LOCK_LEAVES", "no other lock is taken"):
        defined = re.search(rf"#define {name}\(X\)((?:.*\\\n)*.*)", header)[1]
        block = re.search(rf"{title}:\n\n((?:    .*\n)+)", page)
        listed = re.split(r",\s*", block[1].strip()) if block else []
        if re.findall(r'"([^"]+)"', defined) != listed:
            yield f"docs/concurrency.md: the list after '{title}' is not that of {name}"


def check_exit_codes():
    """Check that exit codes differ, and that `firn help` names each."""
    codes = re.search(r"enum cli_exit \{(.*?)\};", pathlib.Path("src/cli/cli.h").read_text(), re.S)
    help_text = re.search(r"cli_exit_codes\[\] =(.*?);\n", pathlib.Path("src/cli/run.c").read_text(), re.S)
    numbers = re.findall(r"CLI_\w+ = (\d+)", codes[1])
    named = re.findall(r"(?:: |; )(\d) ", help_text[1])
    if numbers != [str(i) for i in range(len(numbers))] or named != numbers:
        yield f"src/cli/run.c: cli_exit_codes names {named}, cli.h has {numbers}"


def check_kinds():
    """Check that docs/formats/part.md has each kind of frame."""
    header = pathlib.Path("src/profile/profile.h").read_text()
    kinds = re.search(r"#define FRAME_KIND_LIST\(X\)(.*?)\nenum", header, re.S)
    page = pathlib.Path("docs/formats/part.md").read_text()
    said = re.search(r"Kind: (.*?); a reader", page, re.S)
    numbers = re.findall(r"X\(\w+, (\d+),", kinds[1])
    if re.findall(r"\b\d+\b", said[1]) != numbers:
        yield f"docs/formats/part.md: LOCATIONS must name the kinds of frames {numbers}"


def main():
    limits, exceptions = read_limits()
    problems, sources = [*check_locks(), *check_exit_codes(), *check_kinds()], []
    used = set()
    for path in code_files():
        text = path.read_text()
        problems += check_text(path, text)
        lines = text.count("\n")
        allowed = exceptions.get(str(path))
        if allowed is not None:
            used.add(str(path))
        if lines > (allowed or limits["file-lines"]):
            problems.append(f"{path}: {lines} lines")
        if path.parts[0] == "src" and path.suffix == ".c":
            sources.append(path)
            if lines > limits["unopened-lines"] and not opens_with_how(text):
                problems.append(f"{path}: {lines} lines, and no opening comment of how it works")
    found, functions = check_functions(sources, limits, exceptions)
    problems += found
    for name in sorted(set(exceptions) - used - functions):
        problems.append(f"tools/limits.txt: {name} does not exist")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
