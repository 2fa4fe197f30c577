#!/usr/bin/env python3
"""Every report of random questions equals what a plain reference and google/pprof's command say.

    test_golden.py FIRN [--seed N] [--questions N] [--profile FILE]...

Profiles are made from the seed, which is printed; further ones may be given. Where `go` is at hand
its pprof reads what we export, and is asked the same.
"""

import argparse
import gzip
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import typing

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "system")]

import asking
import profiles
from firn import Checks, Firn
from further import Further
from plain import Plain
from reference import Condition, Report

PERIOD = 52631578
# 19, 99, 97 Hz, every nanosecond, and none: of one type.
PERIODS = [PERIOD, 10101010, 10309278, 1, 0]


class Taken(typing.NamedTuple):
    """A sample: its value as merged answers have it, and as it came."""

    frames: tuple
    value: int
    labels: dict
    time_ns: int
    plain: int


class Stored:
    """Profiles of one job and type: how to ask for them, and their samples as the reference takes
    them. Each may have a period of its own."""

    def __init__(self, name, files, column, job):
        parsed = [profiles.parse(raw) for raw in files]
        kind, unit = parsed[0].types[column]
        self.type = ":".join([name, kind, unit, *parsed[0].period_type])
        self.type += ":delta" if parsed[0].duration_ns else ""
        self.job, self.times = job, [p.time_ns for p in parsed]
        self.names = {f.function for p in parsed for s in p.samples for f in s.frames}
        self.samples = []
        for p in parsed:
            scaled = (kind, unit) == ("samples", "count") and p.period > 0
            self.samples += [
                Taken(s.frames, s.values[column] * (p.period if scaled else 1), s.labels, p.time_ns, s.values[column])
                for s in p.samples
                if s.values[column]
            ]

    def side(self, matchers=""):
        both = f'job="{self.job}"' + (f",{matchers}" if matchers else "")
        return f"{self.type}{{{both}}}", min(self.times) - 10**9, max(self.times) + 10**9

    def select(self, thread=None):
        return [(s.frames, s.value, s.value) for s in self.samples if thread is None or s.labels.get("thread", "") == thread]

    def single(self, time_ns):
        return [(s.frames, s.plain, s.plain) for s in self.samples if s.time_ns == time_ns]


def random_condition(rng, frames):
    frame = rng.choice(frames)
    field = rng.choice(["function_name", "function_name", "binary", "filename", "address", "line_number"])
    if field in ("address", "line_number"):
        value = frame.address if field == "address" else frame.line
        return Condition(field, rng.choice(Condition.OPERATORS[:2]), value)
    text = {"function_name": frame.function, "binary": os.path.basename(frame.binary), "filename": frame.file}[field]
    operator = rng.choice(Condition.OPERATORS)
    if "contains" in operator and text:
        begin = rng.randrange(len(text))
        text = text[begin : begin + rng.randrange(1, 8)]
    elif "starts" in operator:
        text = text[: rng.randrange(0, 5)]
    return Condition(field, operator, rng.choice([text, text.upper(), text.lower()]) if text.isascii() else text)


def random_question(rng, stored):
    frames = sorted({f for s in stored.samples for f in s.frames}, key=str)
    filters = []
    for _ in range(rng.choice([0, 0, 1, 1, 2])):
        kind = rng.choice(["stack", "frame"])
        filters.append((kind, [random_condition(rng, frames) for _ in range(rng.choice([1, 1, 2]))]))
    filters = [(k, list({c.field: c for c in cs}.values())) for k, cs in filters]
    named = [f.function for f in frames if f.function]
    sandwich = rng.choice(named) if named and rng.random() < 0.2 else ""
    threads = sorted({s.labels.get("thread", "") for s in stored.samples})
    thread = rng.choice(threads) if rng.random() < 0.4 else None
    return {"filters": filters, "sandwich": sandwich, "invert": rng.random() < 0.3, "thread": thread}


def matchers(thread):
    return "" if thread is None else f'thread="{thread}"'


def compare(check, what, got, want):
    if got == want:
        return True
    if isinstance(want, dict):
        keys = [k for k in set(got) | set(want) if got.get(k) != want.get(k)]
        detail = "; ".join(f"{k}: {got.get(k)} not {want.get(k)}" for k in keys[:3])
    else:
        detail = f"{got} not {want}" if not isinstance(want, set) else f"{list(got ^ want)[:3]}"
    return check(False, f"{what}: {detail}")


def ask_merge(checks, address, stored, question, what):
    options = {k: question[k] for k in ("filters", "sandwich", "invert")}
    side = stored.side(matchers(question["thread"]))
    want = Report(stored.select(question["thread"]), **options)
    flame = asking.query(address, "FLAMEGRAPH_ARROW", side, **options)
    good = compare(checks.check, f"{what} total", (flame.total, flame.filtered), (want.total, want.filtered))
    paths = asking.flame_of(flame.columns()) if want.flame() else {}
    plain = {k: (a, b) for k, (a, b, _) in want.flame().items()}
    good &= compare(checks.check, f"{what} flame", {k: v[:2] for k, v in paths.items()}, plain)
    table = asking.query(address, "TABLE_ARROW", side, **options)
    rows, edges = asking.table_of(table.columns())
    good &= compare(checks.check, f"{what} table", {k: v[:2] for k, v in rows.items()},
                    {k: v[:2] for k, v in want.table().items()})
    good &= compare(checks.check, f"{what} callers", edges, want.edges())
    top = asking.query(address, "TOP", side, **options)
    good &= compare(checks.check, f"{what} top", top_of(top), {k: v[:2] for k, v in want.table().items()})
    pprof = asking.query(address, "PPROF", side, **options)
    good &= compare(checks.check, f"{what} pprof", pprof_paths(pprof.report, stored.names),
                    {k: v[0] for k, v in want.paths.items() if k and v[0]})
    return good


def ask_further(checks, further, each, other, question, what):
    """Each of the rarer reports, by turns."""
    reports = ["CALLGRAPH", "FLAMEGRAPH_TABLE", "FLAMEGRAPH_UNSPECIFIED"]
    plain = {"filters": [], "sandwich": "", "invert": False, "thread": None}
    side = each.side(matchers(question["thread"]))
    good = further.reports(each, {**question, "reports": reports}, side, what)
    good &= further.reports(each, {**plain, "reports": reports[:1]}, each.side(), f"{what}, whole,")
    good &= further.source(each, each.side(), what)
    good &= further.metadata(each, each.side(), what)
    good &= further.single(each, f"{what}, single")
    good &= further.relative(other, each, f"{what}, less {other.job}")
    if good:
        checks.check(True, f"{what}: call graph, old flame graphs, source, metadata, single, relative")


def top_of(answer):
    out = {}
    for raw in answer.message.get(1, []):
        node = asking.fields(raw)
        meta = asking.fields(node[1][0])
        function = asking.fields(meta.get(3, [b""])[0])
        mapping = asking.fields(meta.get(2, [b""])[0])
        location = asking.fields(meta[1][0])
        name = asking.one(function, 3, b"").decode()
        key = name or (asking.one(mapping, 5, b"").decode(), asking.one(location, 2))
        out[key] = asking.signed(asking.one(node, 2)), asking.signed(asking.one(node, 3))
    return out


def pprof_paths(raw, names):
    out = {}
    for sample in profiles.parse(raw).samples:
        path = tuple(plain_name(f, names) for f in sample.frames)
        out[path] = out.get(path, 0) + sample.values[0]
    return {k: v for k, v in out.items() if v}


PLACE = re.compile(r"\+0x([0-9a-f]+)$")


def plain_name(frame, names):
    """What has no name is exported as file+0xaddress."""
    if frame.function in names or not (PLACE.search(frame.function) and not frame.file):
        return frame.function
    return frame.binary, frame.address


def ask_trimmed(checks, address, stored, percent, what):
    """Calls above the share of their parent, and every value accounted for."""
    answer = asking.query(address, "FLAMEGRAPH_ARROW", stored.side(), trim=percent)
    full = Report(stored.select()).flame()
    columns = answer.columns()
    paths = {k: v[:2] for k, v in asking.flame_of(columns).items()}
    stackless = sum(v for f, v, _ in stored.select() if not f)
    trimmed = asking.signed(asking.one(answer.message, 4))
    flat = sum(v[1] for v in paths.values())
    good = compare(checks.check, f"{what} sum", flat + trimmed + stackless, answer.total)
    good &= compare(checks.check, f"{what} calls", paths, {k: v[:2] for k, v in full.items() if k in paths})
    for path, (cumulative, *_) in full.items():
        above = full[path[:-1]][0] if len(path) > 1 else answer.total
        kept = path[:-1] in paths or len(path) == 1
        if kept and abs(cumulative - above * percent / 100) > 1:  # the rounding of a float
            wanted = cumulative > above * percent / 100
            good &= (path in paths) == wanted or checks.check(False, f"{what}: {path[-1]} is {path in paths}")
    return good


def ask_groups(checks, address, stored, what):
    """A row for each value of a label, with the calls of its samples below it."""
    answer = asking.query(address, "FLAMEGRAPH_ARROW", stored.side(), group_by=["labels.thread"])
    columns = answer.columns()
    got = {}
    for i in columns["children"][0] or []:
        label = columns.get("labels.thread", [None] * len(columns["parent"]))[i]
        if columns["labels_only"][i]:
            got[label.decode()] = columns["cumulative"][i]
    want = {}
    for sample in stored.samples:
        thread = sample.labels.get("thread")
        if thread:
            want[thread] = want.get(thread, 0) + sample.value
    return compare(checks.check, f"{what} labels", got, want)


def ask_diff(checks, address, a, b, question, what):
    want = Report(
        [(f, v, v) for f, v, _ in b.select(question["thread"])] + [(f, 0, -v) for f, v, _ in a.select()],
        question["filters"], question["sandwich"], question["invert"],
    )
    options = {k: question[k] for k in ("filters", "sandwich", "invert")}
    sides = b.side(matchers(question["thread"])), a.side()
    flame = asking.query(address, "FLAMEGRAPH_ARROW", *sides, **options)
    paths = asking.flame_of(flame.columns()) if want.flame() else {}
    good = compare(checks.check, f"{what} flame", paths, want.flame())
    rows, _ = asking.table_of(asking.query(address, "TABLE_ARROW", *sides, **options).columns())
    want_rows = want.table()
    return compare(checks.check, f"{what} table", rows, {k: want_rows[k] for k in want_rows}) and good


# ---- google/pprof ----


def go_top(files, *options):
    """{function: (cum, flat)} of `go tool pprof -top`; names without spaces' worth of doubt."""
    command = ["go", "tool", "pprof", "-top", "-nodecount=100000", "-nodefraction=0", *options, *files]
    environment = {**os.environ, "PPROF_BINARY_PATH": "/nonexistent", "GOFLAGS": "", "PPROF_TMPDIR": tempfile.gettempdir()}
    text = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
    out = {}
    lines = iter(text.splitlines())
    for line in lines:
        if line.split()[:2] == ["flat", "flat%"]:
            break
    for line in lines:
        flat, _, _, cum, _, name = line.split(None, 5)
        out[name.removesuffix(" (inline)").removesuffix(" (partial-inline)")] = int(cum), int(flat)
    return out


def is_go_name(name):
    """It shortens templates, and what has no name is an address."""
    return isinstance(name, str) and "+0x" not in name and not name.startswith("parse")


def by_go_name(table):
    return {k: v[:2] for k, v in table.items() if is_go_name(k)}


def go_named(files, *options):
    return {k: v for k, v in go_top(files, *options).items() if is_go_name(k)}


def ask_go(checks, address, a, b, folder):
    """Plain URLs, as people give them to `go tool pprof`."""
    def url(stored):
        selector, begin, end = stored.side()
        query = asking.urllib.parse.urlencode({"query": selector, "from": begin / 1e9, "to": end / 1e9})
        return f"http://{address}/api/pprof?{query}"

    os.environ["PPROF_TMPDIR"] = folder
    want_a, want_b = (by_go_name(Report(x.select()).table()) for x in (a, b))
    if compare(checks.check, "go tool pprof URL", go_named([url(a)]), want_a):
        checks.check(True, f"go tool pprof on a URL: {len(want_a)} functions equal")
    want = {}
    for k in set(want_a) | set(want_b):
        x, y = want_a.get(k, (0, 0)), want_b.get(k, (0, 0))
        want[k] = y[0] - x[0], y[1] - x[1]
    got = go_named([url(b)], f"-diff_base={url(a)}")
    zero = {k for k, v in want.items() if v == (0, 0)}
    if compare(checks.check, "go tool pprof -diff_base", {**got, **{k: (0, 0) for k in zero}}, want):
        checks.check(True, f"go tool pprof -diff_base: {len(want)} functions equal")
    name = max((k for k in want_a if re.fullmatch(r"\w+", k)), key=lambda k: want_a[k][1])
    only = [("stack", [Condition("function_name", "equal", name)])]
    want = by_go_name(Report(a.select(), only).table())
    if compare(checks.check, "go tool pprof -focus", go_named([url(a)], f"-focus=^{name}$"), want):
        checks.check(True, f"go tool pprof -focus={name}: {len(want)} functions equal")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("firn")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--questions", type=int, default=40)
    parser.add_argument("--profile", action="append", default=[])
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    rng, checks = random.Random(options.seed), Checks()
    folder = tempfile.mkdtemp(prefix="firn-golden-")
    firn = Firn(options.firn, "server", folder)
    try:
        stored = fill(firn.address, rng, options.profile)
        further = Further(firn.address, rng, lambda *each: compare(checks.check, *each))
        plain = Plain(firn.address, rng, lambda *each: compare(checks.check, *each))
        for n in range(options.questions):
            each = rng.choice(stored)
            question = random_question(rng, each)
            what = f"question {n} of {each.job}, {describe(question)}"
            if ask_merge(checks, firn.address, each, question, what):
                checks.check(True, what)
            same_type = [s for s in stored if s.type == each.type]
            other = rng.choice(same_type)
            if ask_diff(checks, firn.address, other, each, question, f"{what}, less {other.job}"):
                checks.check(True, f"{what}, less {other.job}")
            ask_further(checks, further, each, other, question, what)
            if n % 2 == 0 and plain.everything(each, other, f"question {n} of {each.job}"):
                checks.check(True, f"question {n} of {each.job}: plain API, groups")
        now = time.time_ns() // 10**9 * 10**9
        for _ in range(3):
            checks.check(further.chart(now, "flame chart"), "flame chart of 80 ticks")
        if further.selectors(now - 10 * 10**9, 4 * options.questions):
            checks.check(True, f"{4 * options.questions} random selectors: totals, QueryRange, Values")
        for each in stored:
            percent = rng.choice([0.5, 2, 10, 40])
            what = f"{each.job} {each.type}, trimmed at {percent} %"
            if ask_trimmed(checks, firn.address, each, percent, what):
                checks.check(True, what)
            if ask_groups(checks, firn.address, each, f"{each.job} {each.type}"):
                checks.check(True, f"{each.job} {each.type} by label")
        if shutil.which("go"):
            counted = [s for s in stored if s.type.startswith("made:things")]
            ask_go(checks, firn.address, counted[0], counted[1], folder)
        else:
            checks.skip("google/pprof", "go is not installed")
    finally:
        firn.stop()
        shutil.rmtree(folder, ignore_errors=True)
    checks.finish()


def describe(question):
    filters = "; ".join(
        f"{k} {' and '.join(f'{c.field} {c.operator} {c.value!r}' for c in cs)}" for k, cs in question["filters"]
    )
    parts = [filters, question["sandwich"] and f"cut at {question['sandwich']}", question["invert"] and "inverted"]
    parts.append(question["thread"] is not None and f"thread {question['thread']!r}")
    return ", ".join(p for p in parts if p) or "all"


def fill(address, rng, files):
    """Made profiles, and those of the command line: each under a job of its own."""
    stored = []
    now = time.time_ns() // 10**9 * 10**9
    for i in range(3):
        for name, types, period_type, period in [
            ("made", [("things", "count")], ("space", "bytes"), 1),
            ("cpu", [("samples", "count"), ("cpu", "nanoseconds")], ("cpu", "nanoseconds"), PERIOD),
        ]:
            raw = profiles.made(rng.random(), types, period_type, period, now - 10**9 * (60 - i))
            asking.write_raw(address, {"__name__": name, "job": f"{name}{i}"}, raw)
            stored += [Stored(name, [raw], k, f"{name}{i}") for k in range(len(types))]
    stored += mixed(address, rng, now)
    for path in files:
        with open(path, "rb") as file:
            raw = file.read()
        job = os.path.basename(path).split(".")[0]
        raw, columns = recent(raw, now - 30 * 10**9)
        asking.write_raw(address, {"__name__": "given", "job": job}, raw)
        stored += [Stored("given", [raw], k, job) for k in range(columns)]
    return stored


def mixed(address, rng, now):
    """Files of one series whose rates differ: senders change theirs, and many have the same labels."""
    types = [("samples", "count"), ("cpu", "nanoseconds")]
    seeds = [rng.random() for _ in PERIODS]
    files = [
        profiles.made(seed, types, ("cpu", "nanoseconds"), period, now - (50 - 3 * i) * 10**9, stacks=40)
        for i, (seed, period) in enumerate(zip(seeds, PERIODS))
    ]
    asking.write_raw(address, {"__name__": "cpu", "job": "mixed"}, *files)
    return [Stored("cpu", files, k, "mixed") for k in range(len(types))]


def recent(raw, time_ns):
    """The same profile as if taken just now, over ten seconds: the store drops what is old."""
    plain = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
    columns = len(asking.fields(plain).get(1, []))
    # Of a number given twice the last counts.
    return gzip.compress(plain + asking.number(9, time_ns) + asking.number(10, 10**10)), columns


if __name__ == "__main__":
    main()
