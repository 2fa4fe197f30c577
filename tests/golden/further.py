"""The reports that few clients ask for, single profiles, relative comparisons and random selectors,
each beside what plain Python makes of the same samples."""

import re
from collections import defaultdict

import asking
import profiles
from protobuf import fields, message, number, one, signed, text, time
from reference import Report, basename

SECOND = 10**9


def text_of(parts, field):
    return one(parts, field, b"").decode()


# ---- Callgraph ----


def edges_of(report):
    """{(caller, callee): value}, a pair once in a stack."""
    out = defaultdict(int)
    for path, (value, _) in report.paths.items():
        for edge in set(zip(path, path[1:])):
            out[edge] += value
    return out


def pruned(report):
    """Nodes and edges without small functions that have one caller and some callee; their callees'
    edges come from the first caller that stays, with what the way there carried."""
    table, edges = report.table(), edges_of(report)
    incoming, outgoing = defaultdict(list), defaultdict(list)
    for caller, callee in edges:
        incoming[callee].append(caller)
        outgoing[caller].append(callee)
    gone = {
        k for k, v in table.items()
        if len(incoming[k]) == 1 and outgoing[k] and incoming[k] != [k] and v[0] < report.total * 0.005
    }
    out = []
    for (caller, callee), value in edges.items():
        if callee in gone:
            continue
        if caller not in gone:
            out.append((caller, callee, value, False))
            continue
        at, carried, seen = caller, 0, set()
        while at in gone and at not in seen:
            seen.add(at)
            carried += edges[incoming[at][0], at]
            at = incoming[at][0]
        if at not in gone:
            out.append((at, callee, carried, True))
    return {k: v[:2] for k, v in table.items() if k not in gone}, sorted(out, key=str)


def callgraph_of(answer):
    names, nodes, edges = {}, {}, []
    for raw in answer.message.get(1, []):
        node = fields(raw)
        meta = fields(node[2][0])
        name = text_of(fields(meta.get(3, [b""])[0]), 3)
        if not name:
            mapping = text_of(fields(meta.get(2, [b""])[0]), 5)
            name = mapping, one(fields(meta[1][0]), 2)
        names[node[1][0]] = name
        nodes[name] = signed(one(node, 3)), signed(one(node, 4))
    for raw in answer.message.get(2, []):
        edge = fields(raw)
        value, joined = signed(one(edge, 4)), bool(one(edge, 5))
        edges.append((names[edge[2][0]], names[edge[3][0]], value, joined))
    return nodes, sorted(edges, key=str)


# ---- Flamegraph ----


def legacy_of(answer):
    """{path: cumulative} of the nested messages; their sums are checked on the way."""
    top = answer.message
    strings = [s.decode() for s in top.get(5, [])]
    locations = [fields(raw) for raw in top.get(6, [])]
    mappings = [strings[one(fields(raw), 11)] for raw in top.get(7, [])]
    functions = [strings[one(fields(raw), 6)] for raw in top.get(8, [])]

    def name(meta):
        location = locations[one(meta, 5) - 1]
        lines = location.get(6, [])
        if not lines:
            mapping = one(location, 7)
            return mappings[mapping - 1] if mapping else "", one(location, 2)
        return functions[one(fields(lines[one(meta, 6)]), 3) - 1]

    out = {}
    root = fields(top[1][0])
    assert signed(one(root, 1)) == signed(one(top, 2)) == answer.total
    waiting = [((), child) for child in root.get(3, [])]
    while waiting:
        above, raw = waiting.pop()
        node = fields(raw)
        path = above + (name(fields(node[1][0])),)
        children = node.get(4, [])
        out[path] = signed(one(node, 2)), signed(one(node, 3))
        assert sum(signed(one(fields(c), 2)) for c in children) <= out[path][0]
        waiting += [(path, child) for child in children]
    depth = max((len(p) for p in out), default=0)
    assert one(top, 4) == depth + 1, "height"
    return out


# ---- Source ----


def by_line(samples, filename):
    """{(file, line): [cumulative, flat]}, a line once in a stack."""
    out = defaultdict(lambda: [0, 0])

    def wanted(f):
        return f.function and f.binary and (f.file == filename or f.file.endswith("/" + filename))

    for frames, value, _ in samples:
        for place in {(f.file, f.line) for f in frames if wanted(f)}:
            out[place][0] += value
        if frames and wanted(frames[-1]):
            out[frames[-1].file, frames[-1].line][1] += value
    return {k: tuple(v) for k, v in out.items()}


def source_of(answer):
    columns = answer.columns()
    rows = zip(columns["filename"], columns["line_number"], columns["cumulative"], columns["flat"])
    return {(f, line): (a, b) for f, line, a, b in rows}


# ---- Flame chart ----


def chart(events, period):
    """events: [(time, names root first, value)], by time. Calls as (name, begin, value, calls)."""
    top = []
    for at, names, value in events:
        calls = top
        for name in names:
            last = calls[-1] if calls else None
            if not (last and last[0] == name and at - (last[1] + last[2]) <= period // 10):
                last = [name, at, 0, []]
                calls.append(last)
            last[2] += value
            calls = last[3]
    return top


def chart_of(columns):
    def call(i):
        name = columns["function_name"][i]
        name = name.decode() if name is not None else columns["location_address"][i]
        return [name, columns["timestamp"][i], columns["cumulative"][i], [call(k) for k in columns["children"][i] or []]]

    return [call(i) for i in columns["children"][0] or []]


def tick_profiles(rng, begin_ns, period, count):
    """A file for each tick, as a sampler would take them: stacks that go on, change and pause."""
    names = ["main", "loop", "parse", "read", "write", "gc"]
    locations = [("/usr/bin/app", 0x1000 + i, [(name, "/src/a.c", i + 1)]) for i, name in enumerate(names)]
    events, files, at, stack = [], [], begin_ns, [0]
    for _ in range(count):
        at += period * rng.choice([1, 1, 1, 1, 2, 5])
        if rng.random() < 0.6:
            stack = stack[: rng.randrange(1, len(stack) + 1)]
            stack += [rng.randrange(len(names)) for _ in range(rng.randrange(3))]
        events.append((at, [names[i] for i in stack], period))
        samples = [(stack[::-1], {}, [1])]
        files.append(
            profiles.encode([("samples", "count")], ("cpu", "nanoseconds"), period, at, period, samples, locations)
        )
    return events, files


# ---- selectors ----

LABELS = {
    "job": ["api", "worker", "api-gateway", "db"],
    "env": ["prod", "staging", ""],
    "zone": ["eu-1", "eu-2", "us-1", "ünï", 'a"b\\c', ""],
    "build": ["", "1.2.3", "1x2", "12"],
}
PATTERNS = ["a.*", "^api$", "^(api|db)$", "e", "-[0-9]$", "", "^$", "^.+$", "1.2", r"1\.2", "[^a-z]", "API", "(?i)API", "^u"]


def quoted(value):
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def random_matcher(rng):
    """(its text, what it says of labels)"""
    name = rng.choice([*LABELS, "nowhere"])
    operator = rng.choice(["=", "!=", "=~", "!~"])
    if "~" in operator:
        value = rng.choice(PATTERNS)
    else:
        value = rng.choice([*LABELS.get(name, ["x"]), "other", ""])
    negative = operator[0] == "!"

    def holds(labels):
        have = labels.get(name, "")
        found = re.search(value, have) is not None if "~" in operator else have == value
        return found != negative

    return f"{name}{operator}{quoted(value)}", holds


def labelled_series(rng, count):
    out = {}
    for _ in range(count):
        labels = {k: rng.choice(v) for k, v in LABELS.items()}
        labels = {k: v for k, v in labels.items() if v}
        out[tuple(sorted(labels.items()))] = labels
    return list(out.values())


def range_total(raw):
    return sum(signed(one(fields(s), 2)) for series in fields(raw).get(1, []) for s in fields(series).get(2, []))


def names_of(raw):
    return {n.decode() for n in fields(raw).get(1, [])}


# ---- the questions ----


class Further:
    """Answers compared by `compare(what, got, want)`."""

    def __init__(self, address, rng, compare):
        self.address, self.rng, self.compare = address, rng, compare

    def ask(self, *arguments, **options):
        return asking.query(self.address, *arguments, **options)

    def reports(self, stored, question, side, what):
        options = {k: question[k] for k in ("filters", "sandwich", "invert")}
        samples = stored.select(question["thread"])
        want = Report(samples, **options)
        good = True
        if "CALLGRAPH" in question["reports"]:
            got = callgraph_of(self.ask("CALLGRAPH", side, **options))
            nodes, edges = pruned(want)
            good &= self.compare(f"{what} call graph, functions", got[0], nodes)
            good &= self.compare(f"{what} call graph, edges", dict(enumerate(got[1])), dict(enumerate(edges)))
        for report in ("FLAMEGRAPH_TABLE", "FLAMEGRAPH_UNSPECIFIED"):
            if report in question["reports"]:
                answer = self.ask(report, side, **options)
                paths = {k: v[0] for k, v in legacy_of(answer).items()} if want.flame() else {}
                good &= self.compare(f"{what} {report}", paths, {k: v[0] for k, v in want.flame().items()})
                good &= self.compare(f"{what} {report} total", answer.total, want.total)
        return good

    def source(self, stored, side, what):
        files = sorted({f.file for s in stored.samples for f in s.frames if f.function and f.file})
        if not files:
            return True
        wanted = self.rng.choice(files)
        if self.rng.random() < 0.5:
            wanted = basename(wanted)
        answer = self.ask("SOURCE", side, source=wanted)
        return self.compare(f"{what} lines of {wanted}", source_of(answer), by_line(stored.select(), wanted))

    def metadata(self, stored, side, what):
        answer = self.ask("PROFILE_METADATA", side)
        files = {n.decode() for n in answer.message.get(1, [])}
        labels = {n.decode() for n in answer.message.get(2, [])}
        want = {f.binary for s in stored.samples for f in s.frames if f.binary}
        good = self.compare(f"{what} mapped files", files, want)
        want = {k for s in stored.samples for k in s.labels} | {"job"}
        return good & self.compare(f"{what} labels", labels & want, want)

    def single(self, stored, what):
        """All of one millisecond; counts are left as they are."""
        selector, _, _ = stored.side()
        time_ns = self.rng.choice(stored.times)
        at = time_ns + self.rng.randrange(10**6)
        want = Report(stored.single(time_ns))
        flame = self.ask("FLAMEGRAPH_ARROW", (selector, at))
        paths = asking.flame_of(flame.columns()) if want.flame() else {}
        good = self.compare(f"{what} total", flame.total, want.total)
        plain = {k: v[:2] for k, v in want.flame().items()}
        good &= self.compare(f"{what} flame", {k: v[:2] for k, v in paths.items()}, plain)
        try:
            self.ask("FLAMEGRAPH_ARROW", (selector, at + 10**6))
            return self.compare(f"{what}: nothing a millisecond later", "an answer", "not found") and good
        except asking.Refused:
            return good

    def relative(self, a, b, what):
        """The smaller side is scaled up, each stack cut to a whole number."""
        total_a, total_b = (sum(v for _, v, _ in x.select()) for x in (a, b))
        ratio_a = total_b / total_a if total_b > total_a > 0 else 1
        ratio_b = total_a / total_b if total_a > total_b > 0 else 1
        answer = self.ask("FLAMEGRAPH_ARROW", b.side(), a.side(), absolute=False)
        got = asking.flame_of(answer.columns())
        sides = Report([(f, v, 0) for f, v, _ in b.select()]), Report([(f, v, 0) for f, v, _ in a.select()])
        flames = [side.flame() for side in sides]
        bad = {}
        for path, (value, _, _) in flames[0].items():
            before = flames[1].get(path, (0, 0, 0))[0]
            # One is cut off for each stack below, and the stacks of the two sides differ.
            slack = 2 * sum(1 for p in {*sides[0].paths, *sides[1].paths} if p[: len(path)] == path) + 2
            want = value * ratio_b, value * ratio_b - before * ratio_a
            have = got.get(path, (0, 0, 0))
            if abs(have[0] - want[0]) > slack or abs((have[2] or 0) - want[1]) > slack:
                bad[path] = have, want
        return self.compare(f"{what} relative", bad, {})

    def chart(self, now_ns, what):
        period = 10**7
        events, files = tick_profiles(self.rng, now_ns - 50 * SECOND, period, 80)
        job = f"ticks{self.rng.randrange(10**9)}"
        asking.write_raw(self.address, {"__name__": "ticks", "job": job}, *files)
        side = f'ticks:samples:count:cpu:nanoseconds:delta{{job="{job}"}}', now_ns - 60 * SECOND, now_ns
        answer = self.ask("FLAMECHART", side)
        return self.compare(f"{what} calls in time", chart_of(answer.columns()), chart(events, period))

    def selectors(self, now_ns, count):
        """Random matchers over series with random labels: what is summed, and which values are listed."""
        kind = f"labelled{self.rng.randrange(10**9)}"
        series = labelled_series(self.rng, 60)
        location = [("/usr/bin/app", 0x1000, [("main", "/src/a.c", 1)])]
        for i, labels in enumerate(series):
            raw = profiles.encode([("things", "count")], ("space", "bytes"), 1, now_ns, SECOND, [([0], {}, [1 << (i % 30)])], location)
            asking.write_raw(self.address, {"__name__": kind, **labels}, raw)
        good = True
        for n in range(count):
            chosen = [random_matcher(self.rng) for _ in range(self.rng.choice([0, 1, 1, 2, 3]))]
            selector = f"{kind}:things:count:space:bytes:delta{{{','.join(t for t, _ in chosen)}}}"
            left = [i for i, labels in enumerate(series) if all(holds(labels) for _, holds in chosen)]
            want = sum(1 << (i % 30) for i in left)
            answer = self.ask("TOP", (selector, now_ns - SECOND, now_ns + SECOND))
            good &= self.compare(f"{selector} total", answer.total, want)
            body = text(1, selector) + time(2, now_ns - SECOND) + time(3, now_ns + SECOND)
            try:
                got = range_total(asking.call(self.address, asking.QUERY, "QueryRange", body + message(5, number(1, 10))))
            except asking.Refused:
                got = 0
            good &= self.compare(f"{selector} QueryRange", got, want)
            for label in LABELS:
                values = {series[i][label] for i in left if label in series[i]}
                body = text(1, label) + b"".join(text(2, "{" + t + "}") for t, _ in chosen)
                body += time(3, now_ns - SECOND) + time(4, now_ns + SECOND) + text(5, selector.split("{")[0])
                got = names_of(asking.call(self.address, asking.QUERY, "Values", body))
                good &= self.compare(f"{selector} values of {label}", got, values)
        return good
