"""The plain API under /api/ and groupings of Parca's, each beside what plain Python makes of the same
samples: flame graph, table, comparison, curve and pprof, with `match`, labels and inversion."""

import json
import os
import urllib.error
import urllib.parse
import urllib.request
from collections import defaultdict

import asking
import profiles
from protobuf import fields, message, number, one, signed, text, time
from reference import Report, lower

SECOND = 10**9
LABELS = ["thread", "job", "none"]
FIELDS = {"function_file_name": "file", "mapping_file": "binary", "location_address": "address"}


def shown(frame):
    """As the page has it: what has no name is its file and address."""
    binary = os.path.basename(frame.binary)
    return frame.function or (f"{binary}+0x{frame.address:x}" if binary else f"0x{frame.address:x}")


def function_of(frame):
    return shown(frame), os.path.basename(frame.binary)


def matches(frames, part):
    return part == "" or any(lower(part) in lower(shown(f)) for f in frames)


def table(samples, key=function_of):
    """{function: (own, whole)}, a function once in a stack."""
    out = defaultdict(lambda: [0, 0])
    for s in samples:
        names = [key(f) for f in s.frames]
        for name in set(names):
            out[name][1] += s.value
        if names:
            out[names[-1]][0] += s.value
    return {k: tuple(v) for k, v in out.items()}


def labels_of(stored, sample):
    return {"job": stored.job, **sample.labels}


class Plain:
    """Answers compared by `compare(what, got, want)`."""

    def __init__(self, address, rng, compare):
        self.address, self.rng, self.compare = address, rng, compare

    def get(self, path, **parameters):
        parameters = {k: v for k, v in parameters.items() if v not in ("", None)}
        url = f"http://{self.address}{path}?{urllib.parse.urlencode(parameters, doseq=True)}"
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def ask(self, path, **parameters):
        status, body = self.get(path, **parameters)
        return json.loads(body) if status == 200 else {"status": status, "error": body.decode()}

    def some_match(self, stored):
        """Nothing, a piece of a name, or what no name has."""
        names = sorted({shown(f) for s in stored.samples for f in s.frames})
        if self.rng.random() < 0.3 or not names:
            return ""
        if self.rng.random() < 0.1:
            return "no such function"
        name = self.rng.choice(names)
        begin = self.rng.randrange(len(name))
        part = name[begin : begin + self.rng.randrange(1, 12)].strip()
        return self.rng.choice([part, part.upper(), part.lower()]) if part.isascii() else part

    def everything(self, stored, other, what):
        match = self.some_match(stored)
        thread = self.rng.choice([None, *sorted({s.labels.get("thread", "") for s in stored.samples})])
        selector, begin, end = stored.side("" if thread is None else f'thread="{thread}"')
        question = {"query": selector, "from": begin // SECOND, "to": end // SECOND}
        chosen = [s for s in stored.samples if thread in (None, s.labels.get("thread", ""))]
        samples = [s for s in chosen if matches(s.frames, match)]
        what = f"{what}, plain, {selector} match {match!r}"
        good = self.flame(question, match, samples, what)
        good &= self.top(question, match, samples, what)
        good &= self.pprof(stored, question, match, samples, what)
        good &= self.series(stored, question, chosen, what)
        good &= self.diff(other, question, match, samples, what)
        return good & self.groups(stored, what)

    def flame(self, question, match, samples, what):
        invert = self.rng.random() < 0.4
        answer = self.ask("/api/flamegraph", **question, match=match, trim=0, invert=1 if invert else "")
        want = defaultdict(lambda: [0, 0])
        for s in samples:
            path = tuple(function_of(f) for f in (reversed(s.frames) if invert else s.frames))
            for i in range(1, len(path) + 1):
                want[path[:i]][0] += s.value
            if path:
                want[path][1] += s.value
        if "nodes" not in answer:
            return self.compare(f"{what} flame graph", answer, "an answer")
        nodes, strings = answer["nodes"], answer["strings"]
        paths, got = [()], defaultdict(lambda: [0, 0])
        for i in range(1, len(nodes["parent"])):
            name = strings[nodes["name"][i]], strings[nodes["binary"][i]]
            paths.append(paths[nodes["parent"][i]] + (name,))
            got[paths[i]][0] += nodes["total"][i]
            got[paths[i]][1] += nodes["self"][i]
        good = self.compare(f"{what} flame graph{' inverted' * invert}", dict(got), dict(want))
        total = sum(s.value for s in samples)
        return good & self.compare(f"{what} flame graph's total", answer["total"], total)

    def top(self, question, match, samples, what):
        answer = self.ask("/api/top", **question, match=match, limit=100000)
        want = table(samples)
        if "rows" not in answer:
            return self.compare(f"{what} table", answer, "an answer")
        got = {(r["name"], r["binary"]): (r["self"], r["total"]) for r in answer["rows"]}
        good = self.compare(f"{what} table", got, want)
        good &= self.compare(f"{what} table, rows", len(answer["rows"]), len(got))
        few = self.rng.randrange(1, 9)
        answer = self.ask("/api/top", **question, match=match, limit=few)
        own = sorted((v[0] for v in want.values()), reverse=True)[:few]
        return good & self.compare(f"{what} first {few}", [r["self"] for r in answer["rows"]], own)

    def diff(self, base, question, match, samples, what):
        selector, begin, end = base.side()
        sides = {"base_query": selector, "base_from": begin // SECOND, "base_to": end // SECOND}
        answer = self.ask("/api/diff", **question, **sides, match=match, limit=100000)
        want = table(samples)
        want_base = table([s for s in base.samples if matches(s.frames, match)])
        if "rows" not in answer:
            return self.compare(f"{what} less {base.job}", answer, "an answer")
        names = ("self", "total", "base_self", "base_total")
        got, both = defaultdict(list), defaultdict(list)
        for r in answer["rows"]:
            got[r["name"], r["binary"]].append(tuple(r[n] for n in names))
        for k in {*want, *want_base}:
            both[k].append(want.get(k, (0, 0)) + want_base.get(k, (0, 0)))
        good = self.compare(
            f"{what} less {base.job}", *({k: sorted(v) for k, v in x.items()} for x in (got, both))
        )
        totals = sum(s.value for s in samples), sum(s.value for s in base.samples if matches(s.frames, match))
        good &= self.compare(f"{what} less {base.job}, totals", (answer["total"], answer["base_total"]), totals)
        bad = {}
        for r in answer["rows"]:
            share = [r[own] / whole if whole else 0 for own, whole in zip(("self", "base_self"), totals)]
            if abs(r["growth"] - (share[0] - share[1])) > 1e-9:
                bad[r["name"]] = r["growth"], share
        return good & self.compare(f"{what} less {base.job}, growth", bad, {})

    def series(self, stored, question, samples, what):
        """By labels and steps; and QueryRange of the same, as far as one sum a step."""
        by = self.rng.sample(LABELS, self.rng.randrange(len(LABELS) + 1))
        step = self.rng.choice([1, 2, 5, 10, 60])
        answer = self.ask("/api/series", **question, by=by or None, step=f"{step}s")
        want = defaultdict(int)
        for s in samples:
            key = tuple(labels_of(stored, s).get(k, "") for k in by)
            want[key, s.time_ns // (step * SECOND) * step * 1000] += s.value
        if "series" not in answer:
            return self.compare(f"{what} curve", answer, "an answer")
        got = {}
        for one_series in answer["series"]:
            key = tuple(one_series["labels"].get(k, "") for k in by)
            got.update({(key, ms): value for ms, value in one_series["points"]})
        good = self.compare(f"{what} curve by {by} of {step} s", got, dict(want))
        by = [k for k in by if k != "none"]
        body = text(1, question["query"]) + time(2, question["from"] * SECOND) + time(3, question["to"] * SECOND)
        body += message(5, number(1, step)) + b"".join(text(6, k) for k in by)
        want = defaultdict(int)
        for s in samples:
            labels = labels_of(stored, s)
            want[tuple(sorted((k, labels[k]) for k in by if labels.get(k)))] += s.value
        if not want:
            return good
        got = defaultdict(int)
        for raw in fields(asking.call(self.address, asking.QUERY, "QueryRange", body)).get(1, []):
            parts = fields(raw)
            pairs = [fields(p) for p in fields(parts[1][0]).get(1, [])] if 1 in parts else []
            key = tuple(sorted((one(p, 1).decode(), one(p, 2).decode()) for p in pairs))
            got[key] += sum(signed(one(fields(s), 2)) for s in parts.get(2, []))
        return good & self.compare(f"{what} QueryRange by {by}", dict(got), dict(want))

    def pprof(self, stored, question, match, samples, what):
        by = self.rng.sample(LABELS[:2], self.rng.randrange(3))
        status, raw = self.get("/api/pprof", **question, match=match, by=by or None)
        if status == 404:  # no tool opens a profile of nothing
            return self.compare(f"{what} pprof", 0, len(samples))
        if status != 200:
            return self.compare(f"{what} pprof", (status, raw), "an answer")
        profile = profiles.parse(raw)
        want = defaultdict(lambda: [0, 0])
        for s in samples:
            labels = labels_of(stored, s)
            key = tuple(f.function or shown(f) for f in s.frames), tuple(sorted((k, labels[k]) for k in (by or labels) if labels.get(k)))
            want[key][0] += s.plain
            want[key][1] += s.value
        got = defaultdict(lambda: [0, 0])
        for s in profile.samples:
            key = tuple(self.exported(f) for f in s.frames), tuple(sorted(s.labels.items()))
            got[key][0] += s.values[0]
            got[key][1] += s.values[-1]
        return self.compare(f"{what} pprof by {by}", dict(got), dict(want))

    @staticmethod
    def exported(frame):
        return frame.function or shown(frame)

    def groups(self, stored, what):
        """Nodes by file, binary or address too, below one node for each combination of labels."""
        by = self.rng.sample(sorted(FIELDS), self.rng.randrange(len(FIELDS) + 1))
        labels = self.rng.sample(LABELS, self.rng.randrange(len(LABELS) + 1))
        asked = [*by, *(f"labels.{k}" for k in labels), "function_name"]
        self.rng.shuffle(asked)
        columns = asking.query(self.address, "FLAMEGRAPH_ARROW", stored.side(), group_by=asked).columns()
        want = defaultdict(lambda: [0, 0])
        for s in stored.samples:
            have = labels_of(stored, s)
            group = tuple(have.get(k, "") for k in labels)
            path = (group,) if any(group) else ()
            path += tuple((f.function or (f.binary, f.address), *(getattr(f, FIELDS[k]) for k in by)) for f in s.frames)
            for i in range(1, len(path) + 1):
                want[path[:i]][0] += s.value
            if path:
                want[path][1] += s.value
        got = grouped_of(columns, by, labels)
        return self.compare(f"{what} by {asked}", got, {k: tuple(v) for k, v in want.items()})


def grouped_of(columns, by, labels):
    """{path: (cumulative, flat)}; a path begins with the values of the labels where there are any."""

    def text_at(column, i):
        value = columns[column][i] if column in columns else None
        return value.decode() if isinstance(value, bytes) else value or ""

    paths, out = [()], {}
    for i in range(1, len(columns["parent"])):
        if columns["labels_only"][i]:
            part = tuple(text_at(f"labels.{k}", i) for k in labels)
        else:
            name = text_at("function_name", i) or (text_at("mapping_file", i), columns["location_address"][i])
            part = name, *(columns[k][i] or 0 if k == "location_address" else text_at(k, i) for k in by)
        paths.append(paths[columns["parent"][i]] + (part,))
        assert paths[i] not in out, f"two rows of one path: {paths[i]}"
        out[paths[i]] = columns["cumulative"][i], columns["flat"][i]
    return out
