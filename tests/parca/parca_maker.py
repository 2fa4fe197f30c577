#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what parca-agent sends, in both Arrow schemas and in odd layouts of them, from samples in
Python; and what must come of them, in the form of tests/profile_dump.h. Written from Parca's schema
only; shares nothing with src/.

    parca_maker.py ARROW_MAKER_DIR DIR [COUNT]

With COUNT: v1.arrow, v1.stacks and v2.arrow (LZ4) of that many samples of one host, for measuring.
Else v2_NAME.arrow, or v1_NAME.arrow and v1_NAME.stacks, with NAME.txt; bad_NAME.arrow with what its
refusal must say; offline_NAME.arrow, files of the agent's offline mode (docs/formats/padata.md), and
cut_NAME.arrow, such files that are refused."""

import os
import random
import struct
import sys

sys.path.insert(0, sys.argv[1])
import arrow_maker as am  # noqa: E402

TIME = 1700000000000000000
OWN = ("cpu", "pid", "span_id", "thread_id", "thread_name", "tid", "trace_id")
KINDS = {"python": "cpython", "abort-marker": "marker", "apm-integration": "", "cuda-pc": "native"}
NONE = "[unknown stack]"

# ---- samples ----


def frame(rng):
    kind = rng.choice(["native", "kernel", "cpython", "python", "abort-marker", "apm-integration"])
    f = {"address": rng.randrange(1 << 40), "kind": kind, "file": None, "build_id": None}
    f["lines"] = None
    if kind == "native":
        f["file"] = rng.choice(["libc.so.6", "bash", "UNKNOWN"])
        f["build_id"] = rng.choice([None, "ABCDEF0123", "00112233"])
        return f
    if kind == "kernel":
        f["file"] = "[kernel.kallsyms]"
    f["lines"] = [
        {
            "line": rng.randrange(900),
            "column": rng.randrange(80),
            "name": rng.choice(["read", "a long function name, templates and all", "é"]),
            "filename": rng.choice([None, "vmlinux", "/srv/app/main.py"]),
            "start_line": rng.randrange(3),
        }
        for _ in range(rng.choice([1, 1, 2]))
    ]
    return f


def samples(seed, count):
    rng = random.Random(seed)
    frames = [frame(rng) for _ in range(30)]
    stacks = [[rng.choice(frames) for _ in range(rng.randrange(1, 12))] for _ in range(12)]
    stacks.append([])
    stacks.append([frames[0]] * 3000)  # deeper than is kept
    rows, type_ = [], None
    for i in range(count):
        if i % 17 == 0:
            type_ = rng.choice(
                [
                    ("parca_agent", "samples", "count", "cpu", "nanoseconds", 52631578, 10**9),
                    ("memory", "alloc_space", "bytes", "space", "bytes", 524288, 0),
                    ("", "wallclock", "nanoseconds", "samples", "count", 0, 10**9),
                ]
            )
        stack = 13 if i == 50 else rng.randrange(13)
        labels = {"node": "host-1", "comm": "proc%d" % (i // 9), "k8s.pod": rng.choice("ab")}
        labels["thread_id"] = str(i // 4)
        if i % 5 == 0:
            labels["cpu"] = str(rng.randrange(4))
        rows.append(
            {
                "stack": stacks[stack],
                "id": bytes([stack + 1]) * 16,
                "value": 0 if i % 31 == 7 else rng.randrange(1, 100),
                "type": type_,
                "labels": labels,
                "time": TIME + i * 1000003,
            }
        )
    return rows


def host(count):
    """A batch of one host: 1,500 stacks of 10 to 50 frames, few of them often."""
    rng = random.Random(7)
    frames = [frame(rng) for _ in range(4000)]
    for i, f in enumerate(frames):
        f["address"] += i
    stacks = [[rng.choice(frames) for _ in range(rng.randrange(10, 50))] for _ in range(1500)]
    kind = ("parca_agent", "samples", "count", "cpu", "nanoseconds", 52631578, 10**9)
    rows = []
    for i in range(count):
        stack = min(int(rng.paretovariate(0.8)), len(stacks)) - 1
        thread = rng.randrange(200)
        labels = {"node": "host-1", "comm": "process-%d" % (thread // 7), "cpu": str(i % 8)}
        labels.update(thread_id=str(3000 + thread), thread_name="worker %d" % (thread % 7))
        rows.append(
            {
                "stack": stacks[stack],
                "id": stack.to_bytes(16, "little"),
                "value": 1,
                "type": kind,
                "labels": labels,
                "time": TIME + i * 6578947,
            }
        )
    return rows


# ---- what must come of them ----


def name(text):
    return "".join(c if c.isalnum() and c.isascii() else "_" for c in text)


def frame_text(f, with_system):
    build_id = f["build_id"] or ""
    out = " %x@0-0+0,%s,%s/" % (f["address"], f["file"] or "", build_id)
    out += KINDS.get(f["kind"], f["kind"]) + "("
    for line in f["lines"] or ():
        system = line["name"] if with_system else ""
        out += "%s|%s|%s|" % (line["name"], system, line["filename"] or "")
        out += "%d:%d:%d;" % (line["start_line"], line["line"], line["column"])
    return out + ")"


MARKER = " 0@0-0+0,,/marker(%s|%s||0:0:0;)"


def labels_text(labels):
    pairs = sorted((name(k), v) for k, v in labels.items())
    return " {%s}" % "".join("%s=%s," % pair for pair in pairs)


def dump(rows, with_system, unknown=()):
    sums = {}
    for row in rows:
        kind = row["type"]
        text = "%s:%s:%s:%s:%s" % ((kind[0] or "unknown",) + kind[1:5])
        text += ":delta" if kind[6] else ""
        text += " period=%d duration=%d time=%d" % (kind[5], kind[6], row["time"])
        text += labels_text({k: v for k, v in row["labels"].items() if k not in OWN})
        text += labels_text({k: v for k, v in row["labels"].items() if k in OWN}) + " link="
        stack = row["stack"]
        if row["id"] in unknown:
            text += MARKER % (NONE, NONE)
        else:
            text += "".join(frame_text(f, with_system) for f in stack[:2047])
            if len(stack) > 2048:
                text += MARKER % ("[truncated]", "[truncated]")
        sums[text] = sums.get(text, 0) + row["value"]
    lines = sorted(("%s" % t).encode() for t, v in sums.items() if v)
    return b"".join(b"%d %s\n" % (sums[t.decode()], t) for t in lines)


# ---- schema v2 ----


def location_v2(f):
    lines = f["lines"] and [
        {
            "line": n["line"],
            "column": n["column"],
            "function": {
                "system_name": n["name"],
                "filename": n["filename"],
                "start_line": n["start_line"],
            },
        }
        for n in f["lines"]
    ]
    return {
        "address": f["address"],
        "frame_type": f["kind"],
        "mapping_file": f["file"],
        "mapping_build_id": f["build_id"],
        "lines": lines,
    }


def columns_v2(text, word, stacks, lines, function, number, runs):
    """The agent's schema with its encodings, or with none of them."""
    fn = function(am.Struct(system_name=word(), filename=text(), start_line=am.UINT64))
    place = am.Struct(
        address=am.UINT64,
        frame_type=text(),
        mapping_file=text(),
        mapping_build_id=text(),
        lines=lines(am.Struct(line=am.UINT64, column=am.UINT64, function=fn)),
    )
    columns = {
        "labels": None,
        "stacktrace": stacks(function(place)),
        "stacktrace_id": am.Fixed(16),
        "value": am.INT64,
    }
    for column in ("producer", "sample_type", "sample_unit", "period_type", "period_unit"):
        columns[column] = runs(am.UTF8)
    columns["temporality"] = runs(am.UTF8)
    columns["period"] = runs(number)
    columns["duration"] = runs(am.UINT64)
    columns["timestamp"] = am.Timestamp()
    return columns


def same(t):
    return t


LAYOUTS = {
    "agent": lambda: columns_v2(
        lambda: am.Dict(am.UTF8), lambda: am.UTF8_VIEW, am.ListView, am.ListView, am.Dict,
        am.INT64, am.Runs,
    ),
    "plain": lambda: columns_v2(
        lambda: am.UTF8, lambda: am.UTF8, am.List, am.List, same, am.INT64, same
    ),
    "odd": lambda: columns_v2(
        lambda: am.Runs(am.Dict(am.BINARY_VIEW, am.INT8), 16),
        lambda: am.LARGE_UTF8,
        lambda t: am.ListView(t, True),
        lambda t: am.List(t, True),
        lambda t: am.Dict(t, am.UINT64),
        am.INT32,
        lambda t: am.Dict(t, am.UINT8),
    ),
}  # fmt: skip


def rows_v2(rows):
    names = sorted({k for r in rows for k in r["labels"]})
    out = {"labels": [{k: r["labels"].get(k) for k in names} for r in rows]}
    out["stacktrace"] = [[location_v2(f) for f in r["stack"]] for r in rows]
    out["stacktrace_id"] = [r["id"] for r in rows]
    out.update(heads(rows, str))
    return names, out


def heads(rows, form):
    out = {"value": [r["value"] for r in rows]}
    for i, column in enumerate(("producer", "sample_type", "sample_unit", "period_type", "period_unit")):
        out[column] = [form(r["type"][i]) for r in rows]
    out["temporality"] = [form("delta") if r["type"][6] else None for r in rows]
    out["period"] = [r["type"][5] for r in rows]
    out["duration"] = [r["type"][6] for r in rows]
    out["timestamp"] = [r["time"] for r in rows]
    return out


def stream_v2(rows, layout, codec=None, batches=1, delta=False):
    columns = LAYOUTS[layout]()
    names, values = rows_v2(rows)
    label = {
        "agent": lambda: am.Runs(am.Dict(am.UTF8)),
        "plain": lambda: am.UTF8,
        "odd": lambda: am.Dict(am.UTF8_VIEW, am.INT16),
    }[layout]
    columns["labels"] = am.Struct(**{n: label() for n in names})
    stream = am.Stream(
        columns,
        codec,
        {"parca_write_schema_version": "v2"},
        {"stacktrace_id": "arrow.uuid"},
    )
    step = -(-len(rows) // batches)
    for at in range(0, len(rows), step):
        if not delta:
            stream.forget()
        stream.write({n: v[at : at + step] for n, v in values.items()}, delta)
    return stream.bytes()


# ---- schema v1 ----


def text_v1():
    return am.Runs(am.Dict(am.BINARY))


def encode(text):
    return None if text is None else text.encode()


def samples_v1(rows):
    names = sorted({k for r in rows for k in r["labels"]})
    columns = {"labels." + n: text_v1() for n in names}
    columns["stacktrace_id"] = text_v1()
    columns["value"] = am.INT64
    for column in ("producer", "sample_type", "sample_unit", "period_type", "period_unit", "temporality"):
        columns[column] = text_v1()
    for column in ("period", "duration", "timestamp"):
        columns[column] = am.Runs(am.INT64)
    values = {"labels." + n: [encode(r["labels"].get(n)) for r in rows] for n in names}
    values["stacktrace_id"] = [r["id"] for r in rows]
    values.update(heads(rows, str.encode))
    return am.Stream(columns, None, {"parca_write_schema_version": "v1"}).write(values).bytes()


def location_v1(f):
    lines = f["lines"] and [
        {
            "line": n["line"],
            "column": n["column"],
            "function_name": encode(n["name"]),
            "function_system_name": b"",
            "function_filename": encode(n["filename"]),
            "function_start_line": n["start_line"],
        }
        for n in f["lines"]
    ]
    out = {"address": f["address"], "frame_type": encode(f["kind"])}
    for column in ("mapping_start", "mapping_limit", "mapping_offset"):
        out[column] = 0
    out["mapping_file"] = encode(f["file"])
    out["mapping_build_id"] = encode(f["build_id"])
    out["lines"] = lines or []
    return out


def stacks_v1(rows, unknown=()):
    line = am.Struct(
        line=am.INT64,
        column=am.UINT64,
        function_name=am.Dict(am.BINARY),
        function_system_name=am.Dict(am.BINARY),
        function_filename=text_v1(),
        function_start_line=am.INT64,
    )
    place = am.Struct(
        address=am.UINT64,
        frame_type=text_v1(),
        mapping_start=am.Runs(am.UINT64),
        mapping_limit=am.Runs(am.UINT64),
        mapping_offset=am.Runs(am.UINT64),
        mapping_file=text_v1(),
        mapping_build_id=text_v1(),
        lines=am.List(line),
    )
    columns = {"stacktrace_id": am.BINARY, "is_complete": am.BOOL, "locations": am.List(place)}
    stacks = {r["id"]: r["stack"] for r in rows}
    stacks[b"nobody asked"] = []
    values = {"stacktrace_id": list(stacks), "is_complete": [i not in unknown for i in stacks]}
    values["locations"] = [
        None if i in unknown else [location_v1(f) for f in s] for i, s in stacks.items()
    ]
    return am.Stream(columns, None, {"parca_write_schema_version": "v1"}).write(values).bytes()


# ---- what is refused ----


def bad():
    """name, stream, what is said"""
    rows = samples(3, 5)

    def changed(column, change, drop=False, kind=None):
        columns = LAYOUTS["agent"]()
        columns["labels"] = am.Struct(node=am.UTF8)
        _, values = rows_v2(rows)
        values["labels"] = [{"node": "n"} for _ in rows]
        if drop:
            del columns[column], values[column]
        else:
            columns[column] = kind or columns[column]
            values[column] = [change(v) for v in values[column]]
        return am.Stream(columns).write(values).bytes()

    yield "no_value", changed("value", None, True), "column value is missing"
    yield "no_time", changed("timestamp", None, True), "column timestamp is missing"
    yield "no_type", changed("sample_type", None, True), "column sample_type is missing"
    yield "no_stacks", changed("stacktrace", None, True), "belong to the call Write"
    yield "text_value", changed("value", str, kind=am.UTF8), "column value is not of type integer"
    yield "int_type", changed("sample_type", lambda v: 1, kind=am.INT64), "not of type text"
    yield "int_stack", changed("stacktrace", lambda v: 1, kind=am.INT64), "not of type list"
    yield "int_list", changed("stacktrace", lambda v: [1], kind=am.List(am.INT64)), "not a struct"
    yield "null_time", changed("timestamp", lambda v: None), "row 0: no timestamp"
    yield "zero_time", changed("timestamp", lambda v: 0), "row 0: timestamp 0"
    yield "minus_time", changed("timestamp", lambda v: -5), "row 0: timestamp -5"
    yield "far_time", changed(
        "timestamp", lambda v: 1 << 62, kind=am.Timestamp(0)
    ), "row 0: timestamp"
    yield "minus_period", changed("period", lambda v: -1), "row 0: period -1"
    yield "minus_duration", changed(
        "duration", lambda v: -1, kind=am.INT64
    ), "row 0: duration -1"
    yield "empty_type", changed("sample_type", lambda v: ""), "row 0: no sample_type"
    yield "empty_unit", changed("sample_unit", lambda v: None), "row 0: no sample_unit"
    place = am.List(am.Struct(address=am.UTF8))
    yield "text_address", changed(
        "stacktrace", lambda v: [{"address": "x"}], kind=place
    ), "address of a location"
    place = am.List(am.Struct(frame_type=am.UTF8))
    yield "no_address", changed(
        "stacktrace", lambda v: [{"frame_type": "x"}], kind=place
    ), "no address"
    many = am.Struct(**{"l%d" % i: am.UTF8 for i in range(200)})
    yield "labels", changed(
        "labels", lambda v: {"l%d" % i: "x" for i in range(200)}, kind=many
    ), "row 0: more than 128 labels"
    yield "label_type", changed(
        "labels", lambda v: {"node": 1}, kind=am.Struct(node=am.INT64)
    ), "label node is not of type text"
    line = {"line": 1, "column": 1, "function": None}
    place = am.Struct(
        address=am.INT64,
        lines=am.List(am.Struct(line=am.INT64, column=am.INT64, function=am.Struct(name=am.UTF8))),
    )
    yield "lines", changed(
        "stacktrace", lambda v: [{"address": 1, "lines": [line] * 300}], kind=am.List(place)
    ), "a location of 300 lines"
    yield "v1", samples_v1(rows), "belong to the call Write"


# ---- files of the offline mode ----


def padata(pieces, batches, version=0):
    head = b"\xa6\xe7\xcc\xca" + struct.pack(">HH", version, batches)
    return head + b"".join(struct.pack(">I", len(p)) + p for p in pieces)


def pieces_v1(batches, unknown=()):
    """Each stack once, with the first batch that has it."""
    told = set()
    for rows in batches:
        yield samples_v1(rows)
        yield stacks_v1([r for r in rows if r["id"] not in told], unknown)
        told |= {r["id"] for r in rows}


def offline(rows):
    """name, file, what comes of it"""
    parts = [rows[i : i + 50] for i in range(0, len(rows), 50)]
    v1, v2 = list(pieces_v1(parts)), [stream_v2(p, "agent") for p in parts]
    unknown = {rows[0]["id"], rows[5]["id"]}
    yield "v1", padata(v1, 4), dump(rows, False)
    yield "gaps", padata(pieces_v1(parts, unknown), 4), dump(rows, False, unknown)
    yield "v2", padata(v2, 4), dump(rows, True)
    yield "torn", padata(v1, 2) + b"\0\0", dump(rows[:100], False)
    yield "none", padata([], 0), b""


def cut(rows):
    """name, file, what is said"""
    v1 = list(pieces_v1([rows[:20], rows[20:]]))
    whole = padata(v1, 2)
    yield "head", whole[:7], "not a file of parca-agent"
    yield "magic", b"\xa6\xe7\xcc\xcb" + whole[4:], "not a file of parca-agent"
    yield "version", padata(v1, 2, 1), "version 1 of parca-agent's offline files"
    yield "end", whole[:-1], "batch 2 of 2: stacks of %d bytes at byte %d, where %d are left" % (
        len(v1[3]), len(whole) - len(v1[3]) - 4, len(v1[3]) - 1
    )
    yield "length", whole[: -len(v1[3]) - 1], "batch 2 of 2: the file ends before the length of its stacks"
    yield "counted", padata(v1, 3), "batch 3 of 3: the file ends before the length of its samples"
    yield "order", padata([v1[1], v1[0]], 1), "batch 1 of 1: samples: "
    yield "nonsense", padata([b"nonsense"], 1), "batch 1 of 1: "


def put(name_, data):
    with open(os.path.join(sys.argv[2], name_), "wb") as f:
        f.write(data)


def main():
    if len(sys.argv) > 3:
        rows = host(int(sys.argv[3]))
        put("v2.arrow", stream_v2(rows, "agent", codec="lz4"))
        put("v1.arrow", samples_v1(rows))
        put("v1.stacks", stacks_v1(rows))
        return
    rows = samples(1, 200)
    for layout in LAYOUTS:
        put("v2_%s.arrow" % layout, stream_v2(rows, layout))
        put("v2_%s.txt" % layout, dump(rows, True))
    for how, options in (
        ("lz4", {"codec": "lz4"}),
        ("zstd", {"codec": "zstd"}),
        ("batches", {"codec": "lz4", "batches": 7}),
        ("deltas", {"codec": "lz4", "batches": 7, "delta": True}),
    ):
        put("v2_%s.arrow" % how, stream_v2(rows, "agent", **options))
        put("v2_%s.txt" % how, dump(rows, True))
    unknown = {rows[0]["id"], rows[5]["id"]}
    for how, missing in (("whole", set()), ("gaps", unknown)):
        put("v1_%s.arrow" % how, samples_v1(rows))
        put("v1_%s.stacks" % how, stacks_v1(rows, missing))
        put("v1_%s.txt" % how, dump(rows, False, missing))
    # The same stacks under ids that begin with the end of another sender's address.
    longer = [dict(r, id=r["id"] and b"2" + r["id"]) for r in rows]
    put("sender_v1.arrow", samples_v1(longer))
    put("sender_v1.stacks", stacks_v1(longer))
    for name_, data, says in bad():
        put("bad_%s.arrow" % name_, data)
        put("bad_%s.txt" % name_, says.encode())
    for name_, data, text in offline(rows):
        put("offline_%s.arrow" % name_, data)
        put("offline_%s.txt" % name_, text)
    for name_, data, says in cut(rows):
        put("cut_%s.arrow" % name_, data)
        put("cut_%s.txt" % name_, says.encode())


if __name__ == "__main__":
    main()
