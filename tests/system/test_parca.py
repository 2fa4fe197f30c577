#!/usr/bin/env python3
"""Parca's API as its clients know it: pprof files with what real ones have, written by WriteRaw, and
answers with what Parca answers."""

import gzip
import os
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "golden")]

import asking  # noqa: E402
from firn import Checks, Firn  # noqa: E402
from protobuf import fields, message, number, one, packed, signed, text, varint  # noqa: E402
from protobuf import time as timestamp  # noqa: E402

SECOND = 10**9
NOW = time.time_ns() // (60 * SECOND) * (60 * SECOND) - 600 * SECOND
ALL = NOW - 3600 * SECOND, NOW + 3600 * SECOND


def pprof(stacks, types=(("samples", "count"),), when=NOW, duration=0, mappings=(("/bin/app", ""),),
          period=("space", "bytes", 524288), comments=()):
    """stacks: (frames leaf first, values, labels); a frame is (function, number of its mapping from 1 on, or
    0). A label whose value is (number, unit) is a numeric one. mappings: (file, build id)."""
    strings, functions, locations = {"": 0}, {}, {}

    def string(value):
        return strings.setdefault(value, len(strings))

    out = [message(1, number(1, string(kind)), number(2, string(unit))) for kind, unit in types]
    for frames, values, labels in stacks:
        ids = [locations.setdefault(frame, len(locations) + 1) for frame in frames]
        parts = [message(1, *map(varint, ids)), message(2, *map(varint, values))]
        for key, value in labels.items():
            if isinstance(value, str):
                parts.append(message(3, number(1, string(key)), number(2, string(value))))
            else:
                value, unit = value
                parts.append(message(3, number(1, string(key)), number(3, value), number(4, string(unit))))
        out.append(message(2, *parts))
    for i, (file, build_id) in enumerate(mappings):
        limits = number(2, 0x1000 * (i + 1)), number(3, 0x1000 * (i + 2))
        out.append(message(3, number(1, i + 1), *limits, number(5, string(file)), number(6, string(build_id))))
    for (function, mapping), ident in locations.items():
        functions[function] = ident
        line = message(4, number(1, ident), number(2, 10))
        address = 0x1000 * max(mapping, 1) + ident
        out.append(message(4, number(1, ident), number(2, mapping), number(3, address), line))
        names = number(2, string(function)), number(3, string(function))
        out.append(message(5, number(1, ident), *names))
    out.append(number(9, when) + number(10, duration))
    out.append(message(11, number(1, string(period[0])), number(2, string(period[1]))) + number(12, period[2]))
    out += [number(13, string(comment)) for comment in comments]
    return b"".join(out + [message(6, value.encode()) for value in strings])


def write(firn, name, *files, **labels):
    asking.write_raw(firn.address, {"__name__": name, **labels}, *files)


def query_range(firn, selector, by=(), step=10):
    """[(labels, [(second, value)])]"""
    body = text(1, selector) + timestamp(2, ALL[0]) + timestamp(3, ALL[1]) + message(5, number(1, step))
    body += b"".join(text(6, label) for label in by)
    out = []
    for series in map(fields, fields(asking.call(firn.address, asking.QUERY, "QueryRange", body)).get(1, [])):
        labels = [fields(label) for label in fields(one(series, 1, b"")).get(1, [])]
        samples = [fields(sample) for sample in series.get(2, [])]
        points = [(one(fields(one(s, 1, b"")), 1) * SECOND - NOW, one(s, 2)) for s in samples]
        out.append(({one(x, 1).decode(): one(x, 2).decode() for x in labels}, points))
    return out


def names(firn, method):
    return [x.decode() for x in fields(asking.call(firn.address, asking.QUERY, method, b"")).get(1, [])]


def merged(firn, selector, report="FLAMEGRAPH_ARROW", **options):
    return asking.query(firn.address, report, (selector, *ALL), **options)


def pprof_of(firn, selector):
    """Fields of what /api/pprof answers; strings as str."""
    top = fields(gzip.decompress(firn.get("/api/pprof", query=selector, **{"from": ALL[0] // SECOND, "to": ALL[1] // SECOND})))
    top[6] = [text.decode() for text in top[6]]
    return top


def label_of(top, raw):
    label = fields(raw)
    key, value = top[6][one(label, 1)], top[6][one(label, 2)]
    return key, value or (signed(one(label, 3)), top[6][one(label, 4)])


HEAP = "heap:inuse_space:bytes:space:bytes"
IDS = "ids:samples:count:space:bytes:delta"
SAID = "commented:samples:count:space:bytes:delta"


def numeric_labels(checks, firn):
    """Those of heap profiles do not make series."""
    both = [([("alloc", 1), ("main", 1)], [100], {"bytes": (16, ""), "request": (-7, "kilobytes")}), ([("grow", 1), ("main", 1)], [50], {"bytes": (64, ""), "request": (8, "")})]
    for i, stacks in enumerate([both, both[:1], both]):
        profile = pprof(stacks, (("inuse_space", "bytes"),), NOW + 10 * i * SECOND)
        write(firn, "heap", profile, job="default", instance="a")
        write(firn, "heap", profile, job="default", instance="b")
    points = [(0, 150), (10 * SECOND, 100), (20 * SECOND, 150)]
    want = [({"job": "default", "instance": i}, points) for i in "ab"]
    found = sorted(query_range(firn, HEAP), key=lambda s: s[0]["instance"])
    checks.check(found == want, f"a gauge has a series for each set of labels that are texts: {found}")
    found = query_range(firn, HEAP, ["job"])
    want = [({"job": "default"}, [(t, 2 * v) for t, v in points])]
    checks.check(found == want, f"sum_by holds for a gauge: {found}")
    checks.check(names(firn, "Labels") == ["instance", "job"], f"Labels lists texts only: {names(firn, 'Labels')}")
    kept = firn.json("/api/labels", query=HEAP, **{"from": ALL[0] // SECOND, "to": ALL[1] // SECOND})["labels"]
    checks.check(kept == ["bytes", "instance", "job"], f"the size of heap profiles is a label of firn's own API: {kept}")
    top = pprof_of(firn, HEAP)
    found = {frozenset(label_of(top, raw) for raw in fields(sample)[3]) for sample in top[2]}
    want = [{("instance", i), ("job", "default")} | both for i in "ab" for both in (
        {("bytes", (16, "")), ("request", (-7, "kilobytes"))}, {("bytes", (64, "")), ("request", (8, ""))})]
    checks.check(found == set(map(frozenset, want)), f"pprof has them as numbers again: {found}")


def names_beside_types(checks, firn):
    total = merged(firn, HEAP).total
    for item, want in (('__name__="heap"', total), ('job="default",__name__="heap"', total), ('__name__="other"', 0)):
        got = merged(firn, f"{HEAP}{{{item}}}").total
        checks.check(got == want and total > 0, f"{HEAP}{{{item}}}: {got} of {total}")


def build_ids(checks, firn):
    """They come back as they were sent, whatever they are."""
    sent = ["0123abcd", "0123ABCD", "aID", "A8F3B0C2-1111-2222-3333-444455556666", "x/Go-build_id/of/four", ""]
    mappings = [(f"/bin/app{i}", build_id) for i, build_id in enumerate(sent)]
    write(firn, "ids", pprof([([(f"f{i}", i + 1) for i in range(len(sent))], [1], {})], duration=SECOND, mappings=mappings))
    columns = merged(firn, IDS).columns()
    found = dict(zip(columns["mapping_file"], columns["mapping_build_id"]))
    want = {file.encode(): build_id.encode() for file, build_id in mappings} | {None: None}
    checks.check(found == want, f"build ids in a flame graph: {found}")
    columns = merged(firn, IDS, "TABLE_ARROW").columns()
    found = dict(zip(columns["mapping_file"], columns["mapping_build_id"]))
    checks.check(found == dict(mappings), f"build ids in a table: {found}")
    columns = merged(firn, HEAP, "TABLE_ARROW").columns()
    found = set(columns["mapping_file"]), set(columns["mapping_build_id"])
    checks.check(found == ({"/bin/app"}, {None}), f"where none has any they are null: {found}")
    top = fields(gzip.decompress(merged(firn, IDS, "PPROF").report))
    found = [top[6][one(fields(mapping), 6)].decode() for mapping in top[3]]
    checks.check(sorted(found) == sorted(sent), f"build ids in PPROF: {found}")
    top = pprof_of(firn, IDS)
    found = [top[6][one(fields(mapping), 6)] for mapping in top[3]]
    checks.check(sorted(found) == sorted(sent), f"build ids in /api/pprof: {found}")


def nameless_types(checks, firn):
    """Old Go profiles of goroutines: the one value has neither a type nor a unit."""
    write(firn, "old", pprof([([("park", 0)], [53], {})], types=[("", "")], period=("", "", 0)))
    got = merged(firn, "old::::")
    columns = got.columns()
    checks.check(got.total == 53 and columns["function_name"][1] == b"park", f"old::::: {got.total}")
    top = pprof_of(firn, "old::::")
    checks.check(top[1] == [b""] and len(top[2]) == 1, "as pprof it has the one value too")


def comments(checks, firn):
    """They are kept, however long a label may be."""
    long = "built by " + 30 * "make "
    for i, said in enumerate([["one", long], ["two", "one", "two"], []]):
        profile = pprof([([("main", 1)], [1], {})], when=NOW + 10 * i * SECOND, duration=SECOND, comments=said)
        write(firn, "commented", profile)
    top = pprof_of(firn, SAID)
    found = [top[6][comment] for comment in packed(top[13])]
    checks.check(sorted(found) == sorted(["one", "two", long]), f"those of all profiles, each once: {found}")
    checks.check(sum(packed(fields(s)[2])[0] for s in top[2]) == 3, "the samples are all there")
    shown = [fields(sample).get(3) for sample in top[2]]
    checks.check(shown == [None] * len(shown), f"no label says so: {shown}")
    checks.check("__comments__" not in names(firn, "Labels"), "Labels does not list them")


def main():
    checks = Checks()
    with tempfile.TemporaryDirectory(prefix="firn-parca-") as storage:
        firn = Firn(sys.argv[1], "server", storage, "--max-label-value-length=64")
        try:
            for test in (numeric_labels, names_beside_types, build_ids, nameless_types, comments):
                test(checks, firn)
        finally:
            checks.check(firn.stop() == 0, "the server stops in order")
    checks.finish()


if __name__ == "__main__":
    main()
