#!/usr/bin/env python3
"""One set of figures: `firn top`, `firn diff`, the page, pprof files and Parca's reports give the same
function the same number, of counts and of gauges, over code without names, and over hosts.

    test_figures.py PROGRAM                           with a server and samples of its own
    test_figures.py PROGRAM ADDRESS FROM TO SELECTOR  a server that runs; FROM, TO in seconds
"""

import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict

import test_parca as parca
from firn import Checks, Firn

import asking  # noqa: E402: in tests/golden, whose place test_parca knows
import profiles  # noqa: E402

SECOND = parca.SECOND
HOSTS = 3
CPU = "load:samples:count:cpu:nanoseconds:delta"
HEAP = "heap:inuse_space:bytes:space:bytes"
MAPPINGS = (("/bin/app", "aa11"), ("/usr/lib/stripped.so", "bb22"), ("/bin/other", "cc33"))
# Leaf first; "" has no name; `realigned` is in two programs, and calls itself in one.
STACKS = (
    [("leaf", 1), ("realigned", 1), ("main", 1)],
    [("realigned", 3), ("realigned", 3), ("main", 3)],
    [("", 2), ("main", 1)],
    [("leaf", 1), ("", 2), ("main", 3)],
    [("main", 1)],
)


class Server:
    """One that runs already."""

    get, json, _url, context = Firn.get, Firn.json, Firn._url, None

    def __init__(self, address):
        self.address = address


def fill(firn):
    """Profiles of hosts, each with other values and some without one of the stacks."""
    for host in range(HOSTS):
        for at in range(3):
            stacks = [(s, [100 * host + 10 * i + at + 1], {}) for i, s in enumerate(STACKS) if i != host]
            when = parca.NOW + at * 10 * SECOND
            made = parca.pprof(stacks, (("samples", "count"),), when, SECOND, MAPPINGS, ("cpu", "nanoseconds", 1))
            parca.write(firn, "load", made, node=f"host{host}")
            made = parca.pprof(stacks, (("inuse_space", "bytes"),), when, 0, MAPPINGS)
            parca.write(firn, "heap", made, node=f"host{host}")


def command(program, firn, verb, selector, span, *more):
    """Rows of a table of the command line: {(function, binary): {column: value}}."""
    asked = [program, verb, selector, "--server", f"http://{firn.address}", "--format", "json", "--limit", "0"]
    asked += ["--from", str(span[0]), "--to", str(span[1]), *more]
    answer = json.loads(subprocess.run(asked, check=True, capture_output=True, timeout=120).stdout)
    return answer, by_function(answer["rows"])


def by_function(rows):
    out = defaultdict(lambda: defaultdict(int))
    for row in rows:
        for column in ("self", "total", "base_self", "base_total"):
            out[row["name"], row["binary"]][column] += row.get(column, 0)
    return out


def of_paths(paths):
    """{function: (self, total)} of {path from the root: value}; a function counts once in a path."""
    out = defaultdict(lambda: [0, 0])
    for path, value in paths:
        for function in set(path):
            out[function][1] += value
        if path:
            out[path[-1]][0] += value
    return {k: tuple(v) for k, v in out.items() if any(v)}


def page_paths(answer):
    nodes, strings, paths = answer["nodes"], answer["strings"], [()]
    for i in range(1, len(nodes["parent"])):
        paths.append((*paths[nodes["parent"][i]], (strings[nodes["name"][i]], strings[nodes["binary"][i]])))
    return list(zip(paths, nodes["self"]))


def pprof_paths(raw, unit):
    parsed = profiles.parse(raw)
    column = [kind[1] for kind in parsed.types].index(unit)
    for sample in parsed.samples:
        frames = [(f.function, f.binary.rsplit("/", 1)[-1]) for f in sample.frames]
        yield frames, sample.values[column]


def arrow_name(columns, i):
    """As firn's own reports name it: a place in a binary where there is no name."""
    function, file, address = (columns[c][i] for c in ("function_name", "mapping_file", "location_address"))
    text = [(x.decode() if isinstance(x, bytes) else x) or "" for x in (function, file)]
    binary = text[1].rsplit("/", 1)[-1]
    return text[0] or f"{binary or '[jit]'}+0x{address:x}", binary


def arrow_flame(columns):
    paths = [()]
    for i in range(1, len(columns["parent"])):
        paths.append((*paths[columns["parent"][i]], arrow_name(columns, i)))
    return list(zip(paths, columns["flat"]))


def arrow_table(columns):
    rows = zip(range(len(columns["flat"])), columns["flat"], columns["cumulative"])
    return [(arrow_name(columns, i), own, total) for i, own, total in rows]


def by_name(paths):
    """Of functions without their binaries: Parca's reports put equal names of two binaries into one row, and
    pprof files name the interpreter where firn names the script."""
    return of_paths([([name for name, _ in path], value) for path, value in paths])


def same(checks, got, want, what):
    got, want = ({k: v for k, v in x.items() if any(v)} for x in (got, want))
    other = [(k, got.get(k), want.get(k)) for k in {*got, *want} if got.get(k) != want.get(k)]
    checks.check(want and not other, f"{what}: {len(want)} functions, {len(other)} differ {other[:3] or ''}")


def compare(checks, program, firn, selector, span, is_native=False):
    times = {"from": span[0], "to": span[1]}
    side = selector, span[0] * SECOND, span[1] * SECOND
    answer, rows = command(program, firn, "top", selector, span)
    want = {k: (v["self"], v["total"]) for k, v in rows.items()}
    flame = firn.json("/api/flamegraph", query=selector, trim=0, **times)
    named = by_name(page_paths(flame))
    checks.check(flame["total"] == answer["total"] > 0, f"{selector}: {answer['total']} in all")
    same(checks, of_paths(page_paths(flame)), want, "the page's flame graph as top")
    table = by_function(firn.json("/api/top", query=selector, limit=0, **times)["rows"])
    same(checks, {k: (v["self"], v["total"]) for k, v in table.items()}, want, "the page's table as top")
    _, rows = command(program, firn, "diff", selector, span, "--base-from", str(span[0]), "--base-to", str(span[1]))
    for columns in (("self", "total"), ("base_self", "base_total")):
        same(checks, {k: tuple(v[c] for c in columns) for k, v in rows.items()}, want, f"diff's {columns[0]} as top")
    raw = firn.get("/api/pprof", query=selector, **times)
    report = asking.query(firn.address, "PPROF", side)
    for file, what in ((raw, "pprof"), (report.report, "Parca's PPROF")):
        paths = list(pprof_paths(gzip.decompress(file), answer["unit"]))
        same(checks, by_name(paths), named, f"{what} as the page")
        if is_native:
            same(checks, of_paths(paths), want, f"{what} as top")
    report = asking.query(firn.address, "FLAMEGRAPH_ARROW", side)
    checks.check(report.total == answer["total"], f"Parca's total: {report.total}")
    same(checks, by_name(arrow_flame(report.columns())), named, "Parca's FLAMEGRAPH_ARROW as the page")
    got = defaultdict(lambda: [0, 0])
    for (name, _), own, total in arrow_table(asking.query(firn.address, "TABLE_ARROW", side).columns()):
        got[name][0] += own
        got[name][1] += total
    same(checks, {k: tuple(v) for k, v in got.items()}, named, "Parca's TABLE_ARROW as the page")


def main():
    checks = Checks()
    if len(sys.argv) > 2:
        program, address, begin, end, selector = sys.argv[1:]
        compare(checks, program, Server(address), selector, (int(begin), int(end)))
        checks.finish()
    with tempfile.TemporaryDirectory(prefix="firn-figures-") as storage:
        firn = Firn(sys.argv[1], "server", storage)
        try:
            fill(firn)
            span = [at // SECOND for at in parca.ALL]
            for kind in (CPU, HEAP):
                for labels in ("", '{node="host1"}', '{node=~"host[02]"}'):
                    compare(checks, sys.argv[1], firn, kind + labels, span, True)
        finally:
            checks.check(firn.stop() == 0, "the server stops in order")
    checks.finish()


if __name__ == "__main__":
    main()
