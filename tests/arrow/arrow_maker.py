#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes Arrow IPC streams of every layout that a sender may use, from Python values. Written from
arrow.apache.org's documents and the schema files only; shares nothing with src/.

    arrow_maker.py DIR     NAME.arrow and NAME.txt (a line of JSON for each row) for each case, and
                           bad_NAME.arrow with what its refusal must say

As a module: Stream, and a type for each of Arrow's (INT64, UTF8, List(INT32), Struct(a=UTF8), …)."""

import json
import os
import struct
import sys

# ---- flatbuffers: tables from the front to the back ----


class Ref:
    """A table, vector or text that a field refers to."""


class Table(Ref):
    def __init__(self, *fields):
        # (slot, struct code or None for a reference, value)
        self.fields = [f for f in fields if f[2] is not None]


class Text(Ref):
    def __init__(self, text):
        self.data = text.encode() if isinstance(text, str) else text


class Refs(Ref):
    def __init__(self, items):
        self.items = items


class Structs(Ref):
    """A vector of structs (or numbers) of 8-byte members."""

    def __init__(self, rows, code):
        self.rows, self.code = rows, code


class Flat:
    def __init__(self, root):
        self.out = bytearray(4)
        self.patch(0, self.put(root))
        self.pad(8)

    def pad(self, align, ahead=0):
        while (len(self.out) + ahead) % align:
            self.out.append(0)

    def patch(self, at, target):
        struct.pack_into("<I", self.out, at, target - at)

    def put(self, item):
        if isinstance(item, Table):
            return self.table(item)
        if isinstance(item, Text):
            self.pad(4)
            at = len(self.out)
            self.out += struct.pack("<I", len(item.data)) + item.data + b"\0"
            return at
        if isinstance(item, Structs):
            self.pad(8, 4)
            at = len(self.out)
            self.out += struct.pack("<I", len(item.rows))
            for row in item.rows:
                self.out += struct.pack("<" + item.code, *row)
            return at
        self.pad(4)
        at = len(self.out)
        self.out += struct.pack("<I", len(item.items)) + bytes(4 * len(item.items))
        for i, child in enumerate(item.items):
            self.patch(at + 4 + 4 * i, self.put(child))
        return at

    def table(self, item):
        slots = 1 + max((f[0] for f in item.fields), default=-1)
        self.pad(8)
        vtable = len(self.out)
        self.out += bytes(4 + 2 * slots)
        self.pad(8)
        at = len(self.out)
        self.out += struct.pack("<i", at - vtable)
        references = []
        for slot, code, value in item.fields:
            size = struct.calcsize(code) if code else 4
            self.pad(size)
            struct.pack_into("<H", self.out, vtable + 4 + 2 * slot, len(self.out) - at)
            if code:
                self.out += struct.pack("<" + code, value)
            else:
                references.append((len(self.out), value))
                self.out += bytes(4)
        struct.pack_into("<HH", self.out, vtable, 4 + 2 * slots, len(self.out) - at)
        for place, value in references:
            self.patch(place, self.put(value))
        return at


# ---- compression: frames by hand, so that no package is needed ----


def rotl(x, n):
    return (x << n | x >> (32 - n)) & 0xFFFFFFFF


def xxh32_short(data):
    """XXH32 of fewer than 16 bytes, seed 0."""
    p1, p2, p3, p4, p5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393
    h = (p5 + len(data)) & 0xFFFFFFFF
    while len(data) >= 4:
        h = (h + struct.unpack_from("<I", data)[0] * p3) & 0xFFFFFFFF
        h = rotl(h, 17) * p4 & 0xFFFFFFFF
        data = data[4:]
    for byte in data:
        h = (h + byte * p5) & 0xFFFFFFFF
        h = rotl(h, 11) * p1 & 0xFFFFFFFF
    h = (h ^ h >> 15) * p2 & 0xFFFFFFFF
    h = (h ^ h >> 13) * p3 & 0xFFFFFFFF
    return h ^ h >> 16


def lz4_frame(data):
    """Blocks of literals only, alternating with stored ones."""
    head = b"\x60\x40"
    out = struct.pack("<I", 0x184D2204) + head + bytes([xxh32_short(head) >> 8 & 0xFF])
    for i, at in enumerate(range(0, len(data), 1000)):
        piece = data[at : at + 1000]
        if i % 2:
            out += struct.pack("<I", len(piece) | 0x80000000) + piece
            continue
        token, rest = min(len(piece), 15), len(piece) - 15
        block = bytes([token << 4])
        while rest >= 0:
            block += bytes([min(rest, 255)])
            rest -= 255
        block += piece
        out += struct.pack("<I", len(block)) + block
    return out + bytes(4)


def zstd_frame(data):
    """Raw blocks in a frame of one segment, with the size of the content."""
    out = struct.pack("<IBQ", 0xFD2FB528, 0xE0, len(data))
    pieces = [data[at : at + 65536] for at in range(0, len(data), 65536)] or [b""]
    for piece in pieces:
        last = piece is pieces[-1]
        out += struct.pack("<I", len(piece) << 3 | last)[:3] + piece
    return out


# ---- types ----


def bits(flags):
    out = bytearray((len(flags) + 7) // 8)
    for i, flag in enumerate(flags):
        if flag:
            out[i // 8] |= 1 << i % 8
    return bytes(out)


class Type:
    number = 0
    children = ()  # (name, type)
    dictionary = None

    def table(self):
        return Table()

    def put(self, batch, values):
        nulls = sum(v is None for v in values)
        batch.nodes.append((len(values), nulls))
        batch.buffer(bits([v is not None for v in values]) if nulls else b"")
        self.body(batch, values)

    def body(self, batch, values):
        raise NotImplementedError

    def text(self, value):
        return "null" if value is None else self.json(value)

    def json(self, value):
        return json.dumps(value, ensure_ascii=False)


class Int(Type):
    number = 2

    def __init__(self, width, signed):
        self.width, self.signed = width, signed
        code = {8: "b", 16: "h", 32: "i", 64: "q"}[width]
        self.code = code if signed else code.upper()

    def table(self):
        return Table((0, "i", self.width), (1, "B", int(self.signed)))

    def body(self, batch, values):
        batch.buffer(b"".join(struct.pack("<" + self.code, v or 0) for v in values))


class Timestamp(Int):
    number = 10

    def __init__(self, unit=3):
        super().__init__(64, True)
        self.unit = unit

    def table(self):
        return Table((0, "h", self.unit), (1, None, Text("UTC")))


class Float(Type):
    number = 3

    def table(self):
        return Table((0, "h", 2))

    def body(self, batch, values):
        batch.buffer(b"".join(struct.pack("<d", v or 0) for v in values))


class Bool(Type):
    number = 6

    def body(self, batch, values):
        batch.buffer(bits(values))


class Null(Type):
    number = 1

    def put(self, batch, values):
        batch.nodes.append((len(values), len(values)))


class Bytes(Type):
    """Binary and Utf8; `large`: offsets of 64 bits."""

    def __init__(self, text, large=False):
        self.is_text, self.large = text, large
        self.number = {(0, 0): 4, (1, 0): 5, (0, 1): 19, (1, 1): 20}[text, large]

    def body(self, batch, values):
        data = [encode(v) for v in values]
        at, offsets = 0, [0]
        for d in data:
            at += len(d)
            offsets.append(at)
        code = "<%d%s" % (len(offsets), "q" if self.large else "i")
        batch.buffer(struct.pack(code, *offsets) if values else b"")
        batch.buffer(b"".join(data))

    def json(self, value):
        return json.dumps(value if self.is_text else value.hex(), ensure_ascii=False)


def encode(value):
    return b"" if value is None else value.encode() if isinstance(value, str) else value


class View(Bytes):
    """Long values go to two buffers in turn."""

    def __init__(self, text):
        self.is_text = text
        self.number = 24 if text else 23

    def body(self, batch, values):
        views, buffers = b"", [bytearray(b"?"), bytearray()]
        for i, v in enumerate(values):
            data = encode(v)
            if v is None:
                views += struct.pack("<iiii", -1, -1, -1, -1)  # of no matter
            elif len(data) <= 12:
                views += struct.pack("<i12s", len(data), data)
            else:
                to = buffers[i % 2]
                views += struct.pack("<i4sii", len(data), data[:4], i % 2, len(to))
                to += data
        batch.buffer(views)
        batch.variadic.append((2,))
        batch.buffer(bytes(buffers[0]))
        batch.buffer(bytes(buffers[1]))


class Fixed(Type):
    number = 15

    def __init__(self, width):
        self.width = width

    def table(self):
        return Table((0, "i", self.width))

    def body(self, batch, values):
        batch.buffer(b"".join(v or bytes(self.width) for v in values))

    def json(self, value):
        return json.dumps(value.hex())


class List(Type):
    def __init__(self, child, large=False):
        self.children = (("item", child),)
        self.large = large
        self.number = 21 if large else 12

    def body(self, batch, values):
        at, offsets = 0, [0]
        for v in values:
            at += len(v or ())
            offsets.append(at)
        code = "<%d%s" % (len(offsets), "q" if self.large else "i")
        batch.buffer(struct.pack(code, *offsets) if values else b"")
        self.children[0][1].put(batch, [x for v in values for x in v or ()])

    def json(self, value):
        return "[%s]" % ",".join(self.children[0][1].text(v) for v in value)


class ListView(List):
    """Equal lists lie in one place, the last one first; a null's place is nonsense."""

    def __init__(self, child, large=False):
        super().__init__(child, large)
        self.number = 26 if large else 25

    def body(self, batch, values):
        places, child = {}, []
        for v in reversed(values):
            if v is not None and repr(v) not in places:
                places[repr(v)] = len(child)
                child += v
        offsets = [-7 if v is None else places[repr(v)] for v in values]
        sizes = [99 if v is None else len(v) for v in values]
        code = "<%d%s" % (len(values), "q" if self.large else "i")
        batch.buffer(struct.pack(code, *offsets))
        batch.buffer(struct.pack(code, *sizes))
        self.children[0][1].put(batch, child)


class FixedList(List):
    number = 16

    def __init__(self, child, width):
        super().__init__(child)
        self.number, self.width = 16, width

    def table(self):
        return Table((0, "i", self.width))

    def body(self, batch, values):
        fill = [None] * self.width
        self.children[0][1].put(batch, [x for v in values for x in v or fill])


class Struct(Type):
    number = 13

    def __init__(self, **members):
        self.children = tuple(members.items())

    def body(self, batch, values):
        for name, child in self.children:
            child.put(batch, [v[name] if v else None for v in values])

    def json(self, value):
        pairs = ("%s:%s" % (json.dumps(n), t.text(value[n])) for n, t in self.children)
        return "{%s}" % ",".join(pairs)


class Runs(Type):
    """`beyond`: the last run reaches further than the column, as that of a slice may."""

    number = 22

    def __init__(self, values, width=32, beyond=0):
        self.ends, self.beyond = Int(width, True), beyond
        self.children = (("run_ends", self.ends), ("values", values))

    def put(self, batch, values):
        ends, runs = [], []
        for i, v in enumerate(values):
            if runs and runs[-1] == v and type(runs[-1]) is type(v):
                ends[-1] = i + 1
            else:
                runs.append(v)
                ends.append(i + 1)
        if ends:
            ends[-1] += self.beyond
        batch.nodes.append((len(values), 0))
        self.ends.put(batch, ends)
        self.children[1][1].put(batch, runs)

    def text(self, value):
        return self.children[1][1].text(value)


class Dict(Type):
    """Indices of `index` into values that were seen; the stream writes the values before."""

    def __init__(self, values, index=None, extension=None):
        self.values, self.index = values, index or Int(32, False)
        self.number, self.children = values.number, values.children
        self.id = None  # the stream gives it
        self.seen, self.places, self.sent = [], {}, 0

    def table(self):
        return self.values.table()

    def body(self, batch, values):
        places = []
        for v in values:
            key = repr(v)
            if v is None:
                places.append(0x7F)  # of no matter
                continue
            if key not in self.places:
                self.places[key] = len(self.seen)
                self.seen.append(v)
            places.append(self.places[key])
        self.index.body(batch, places)

    def text(self, value):
        return self.values.text(value)


INT8, INT16, INT32, INT64 = (Int(n, True) for n in (8, 16, 32, 64))
UINT8, UINT16, UINT32, UINT64 = (Int(n, False) for n in (8, 16, 32, 64))
UTF8, BINARY, LARGE_UTF8 = Bytes(True), Bytes(False), Bytes(True, True)
UTF8_VIEW, BINARY_VIEW = View(True), View(False)
BOOL, FLOAT64, NULL = Bool(), Float(), Null()

# ---- messages ----

SCHEMA, DICTIONARY, RECORD = 1, 2, 3
CODECS = {None: None, "lz4": (0, lz4_frame), "zstd": (1, zstd_frame)}


class Batch:
    def __init__(self, codec):
        self.nodes, self.spans, self.variadic = [], [], []
        self.body, self.codec = bytearray(), CODECS[codec]

    def buffer(self, data):
        if self.codec and data:
            if len(data) % 3:
                data = struct.pack("<q", len(data)) + self.codec[1](data)
            else:
                data = struct.pack("<q", -1) + data  # stored as it is
        self.spans.append((len(self.body), len(data)))
        self.body += data + bytes(-len(data) % 8)

    def table(self, rows):
        codec = self.codec and Table((0, "b", self.codec[0]), (1, "b", 0))
        variadic = self.variadic and Structs(self.variadic, "q")
        return Table(
            (0, "q", rows),
            (1, None, Structs(self.nodes, "qq")),
            (2, None, Structs(self.spans, "qq")),
            (3, None, codec),
            (4, None, variadic or None),
        )


def message(kind, table, body=b"", version=4, continuation=True):
    head = Table((0, "h", version), (1, "B", kind), (2, None, table), (3, "q", len(body)))
    flat = bytes(Flat(head).out)
    flat += bytes(-(len(flat) + (8 if continuation else 4)) % 8)
    lead = b"\xff\xff\xff\xff" if continuation else b""
    return lead + struct.pack("<I", len(flat)) + flat + body


class Stream:
    """columns: {name: type}. write() takes {name: values}; bytes() is the stream so far."""

    def __init__(self, columns, codec=None, metadata=(), extensions=(), version=4, legacy=False):
        self.columns, self.codec = columns, codec
        self.version, self.legacy = version, legacy
        self.extensions = dict(extensions)
        self.dictionaries, self.batches = [], []
        fields = [self.field(name, t) for name, t in columns.items()]
        pairs = [Table((0, None, Text(k)), (1, None, Text(v))) for k, v in dict(metadata).items()]
        schema = Table((0, "h", 0), (1, None, Refs(fields)), (2, None, Refs(pairs)))
        self.out = self.message(SCHEMA, schema)

    def message(self, kind, table, body=b""):
        return message(kind, table, body, self.version, not self.legacy)

    def field(self, name, t):
        encoding = None
        if isinstance(t, Dict):
            if t.id is None:
                t.id = 100 + len(self.dictionaries)
                self.dictionaries.append(t)
            encoding = Table((0, "q", t.id), (1, None, t.index.table()))
        extension = self.extensions.get(name)
        pairs = extension and Refs(
            [Table((0, None, Text("ARROW:extension:name")), (1, None, Text(extension)))]
        )
        children = [self.field(n, c) for n, c in t.children]
        return Table(
            (0, None, Text(name)),
            (1, "B", 1),
            (2, "B", t.number),
            (3, None, t.table()),
            (4, None, encoding),
            (5, None, Refs(children)),
            (6, None, pairs),
        )

    def flush(self, t, delta):
        """The values of a dictionary that are new, and before them those of dictionaries inside."""
        begin = t.sent if delta else 0
        if t.sent == len(t.seen) and t.sent:
            return b""
        batch = Batch(self.codec)
        t.values.put(batch, t.seen[begin:])
        rows = len(t.seen) - begin
        is_delta = delta and t.sent > 0
        t.sent = len(t.seen)
        inner = self.inner(t.values, delta)
        record = Table((0, "q", t.id), (1, None, batch.table(rows)), (2, "B", int(is_delta)))
        return inner + self.message(DICTIONARY, record, bytes(batch.body))

    def inner(self, t, delta):
        out = b""
        for _, child in t.children:
            out += self.flush(child, delta) if isinstance(child, Dict) else self.inner(child, delta)
        return out

    def forget(self):
        """The next batch has dictionaries of its own, which replace these."""
        for t in self.dictionaries:
            t.seen, t.places, t.sent = [], {}, 0

    def write(self, columns, delta=False):
        batch = Batch(self.codec)
        rows = len(next(iter(columns.values()))) if columns else 0
        for name, t in self.columns.items():
            t.put(batch, columns[name])
        for name, t in self.columns.items():
            if isinstance(t, Dict):
                self.out += self.flush(t, delta)
            else:
                self.out += self.inner(t, delta)
        self.out += self.message(RECORD, batch.table(rows), bytes(batch.body))
        self.batches.append((columns, rows))
        return self

    def texts(self):
        """A line for each row."""
        root = Struct(**self.columns)
        for columns, rows in self.batches:
            for i in range(rows):
                yield root.json({n: columns[n][i] for n in self.columns})

    def bytes(self, end=True):
        mark = b"\xff\xff\xff\xff" + bytes(4) if not self.legacy else bytes(4)
        return self.out + (mark if end else b"")


# ---- cases ----


def every(rows, make, null_each=5):
    return [None if i % null_each == 3 else make(i) for i in range(rows)]


def words(i):
    return ["", "é", "a", "twelve bytes", "a longer text than twelve", "zz" * 40][i * 7 % 6]


def plain_columns(n):
    return {
        "i8": (INT8, every(n, lambda i: i - 50)),
        "u16": (UINT16, every(n, lambda i: i * 600)),
        "i32": (INT32, every(n, lambda i: -i * 100000)),
        "u64": (UINT64, every(n, lambda i: 2**64 - 1 - i)),
        "i64": (INT64, [i - 2**63 for i in range(n)]),
        "f64": (FLOAT64, every(n, lambda i: i + 0.5)),
        "ts": (Timestamp(), every(n, lambda i: 1700000000000000000 + i)),
        "bool": (BOOL, every(n, lambda i: i % 3 == 0)),
        "utf8": (UTF8, every(n, words)),
        "binary": (BINARY, every(n, lambda i: words(i).encode())),
        "large": (LARGE_UTF8, every(n, words)),
        "view": (UTF8_VIEW, every(n, words)),
        "bview": (BINARY_VIEW, every(n, lambda i: words(i).encode())),
        "fixed": (Fixed(16), every(n, lambda i: bytes([i]) * 16)),
        "null": (NULL, [None] * n),
        "list": (List(INT32), every(n, lambda i: list(range(i % 5)))),
        "large_list": (List(UTF8, True), every(n, lambda i: [words(i), None])),
        "fixed_list": (FixedList(INT16, 3), every(n, lambda i: [i, None, -i])),
        "list_view": (ListView(INT32), every(n, lambda i: list(range(i % 5)))),
        "large_list_view": (ListView(UTF8_VIEW, True), every(n, lambda i: [words(i)] * (i % 3))),
        "struct": (
            Struct(a=INT64, b=List(Struct(c=UTF8))),
            every(n, lambda i: {"a": i, "b": [{"c": words(i)}, None]}),
        ),
    }


def encoded_columns(n):
    location = Struct(
        address=UINT64,
        file=Dict(UTF8),
        lines=ListView(Struct(line=INT64, function=Dict(Struct(name=UTF8_VIEW, file=Dict(UTF8))))),
    )

    def place(i):
        fn = {"name": words(i), "file": "f%d.c" % (i % 3)}
        lines = [{"line": i, "function": fn}] * (i % 3)
        return {"address": i, "file": "bin%d" % (i % 2), "lines": lines if i % 4 else None}

    return {
        "dict": (Dict(UTF8), every(n, words)),
        "dict8": (Dict(BINARY, UINT8), every(n, lambda i: words(i).encode())),
        "dict16s": (Dict(UTF8_VIEW, INT16), every(n, words)),
        "dict64": (Dict(INT64, UINT64), every(n, lambda i: i // 9)),
        "runs": (Runs(UTF8), [words(i // 20) for i in range(n)]),
        "runs16": (Runs(INT64, 16), [i // 3 for i in range(n)]),
        "runs64": (Runs(UTF8_VIEW, 64, beyond=1000), [words(i // 10) for i in range(n)]),
        "runs_null": (Runs(BOOL), [None if i < 7 else i < 30 for i in range(n)]),
        "runs_dict": (Runs(Dict(BINARY)), every(n, lambda i: words(i // 11).encode(), 17)),
        "struct_runs": (
            Struct(node=Runs(Dict(UTF8)), cpu=Runs(Dict(UTF8))),
            [{"node": "n", "cpu": None if i % 5 else str(i // 4)} for i in range(n)],
        ),
        "nested": (
            ListView(Dict(location)),
            every(n, lambda i: [place(j) for j in range(i % 6)]),
        ),
    }


def cases():
    for codec in (None, "lz4", "zstd"):
        for name, make in (("plain", plain_columns), ("encoded", encoded_columns)):
            columns = make(60)
            stream = Stream({n: t for n, (t, _) in columns.items()}, codec)
            stream.write({n: v for n, (_, v) in columns.items()})
            yield "%s_%s" % (name, codec), stream, True
    for name, make in (("plain", plain_columns), ("encoded", encoded_columns)):
        columns = make(0)
        yield "empty_" + name, Stream({n: t for n, (t, _) in columns.items()}).write(
            {n: [] for n in columns}
        ), False
    yield "no_batch", Stream({"a": INT64}), True
    yield "no_column", Stream({}).write({}), True
    for kind in ("delta", "replace"):
        columns = encoded_columns(20)
        stream = Stream({n: t for n, (t, _) in columns.items()}, "lz4")
        for begin in (20, 33, 60):
            if kind == "replace":
                stream.forget()
            values = {n: v for n, (_, v) in encoded_columns(begin).items()}
            stream.write({n: v[-13:] for n, v in values.items()}, delta=kind == "delta")
        yield kind, stream, kind == "delta"
    for name, options in (("v4", {"version": 3}), ("legacy", {"legacy": True})):
        columns = plain_columns(9)
        stream = Stream({n: t for n, (t, _) in columns.items()}, **options)
        yield name, stream.write({n: v for n, (_, v) in columns.items()}), True


class Broken(Type):
    """A type whose nodes and buffers are given by hand."""

    def __init__(self, like, nodes=((1, 0),), buffers=(), variadic=()):
        self.like, self.number, self.children = like, like.number, like.children
        self.nodes, self.buffers, self.variadic = nodes, buffers, variadic

    def table(self):
        return self.like.table()

    def put(self, batch, values):
        batch.nodes += self.nodes
        for data in self.buffers:
            batch.buffer(data)
        batch.variadic += [(n,) for n in self.variadic]

    def text(self, value):
        return ""


def i32(*numbers):
    return struct.pack("<%di" % len(numbers), *numbers)


def bad_arrays():
    """name, type, what is said"""
    ints = Broken(INT32, buffers=(b"", i32(1)))
    yield "short_values", Broken(INT64, buffers=(b"", bytes(7))), "7 bytes, 8 are needed"
    yield "no_buffer", Broken(INT64, buffers=(b"",)), "only 1 buffers"
    yield "no_node", Broken(INT64, nodes=()), "only 0 arrays"
    yield "negative_length", Broken(INT64, nodes=((-1, 0),)), "length -1"
    yield "long", Broken(NULL, nodes=((1 << 40, 0),)), "1099511627776 elements"
    yield "short_column", Broken(INT64, nodes=((0, 0),), buffers=(b"", b"")), "1 are needed"
    yield "short_validity", Broken(INT8, nodes=((9, 1),), buffers=(b"1", bytes(9))), "validity"
    yield "short_bits", Broken(BOOL, nodes=((9, 0),), buffers=(b"", b"1")), "1 bytes, 2 are needed"
    yield "offsets_back", Broken(UTF8, ((2, 0),), (b"", i32(0, 3, 2), b"abc")), "offset 2 is 2"
    yield "offsets_beyond", Broken(UTF8, buffers=(b"", i32(0, 4), b"abc")), "offset 1 is 4"
    yield "offsets_negative", Broken(UTF8, buffers=(b"", i32(-1, 1), b"abc")), "offset 0 is -1"
    yield "no_offsets", Broken(UTF8, buffers=(b"", i32(0), b"abc")), "offsets have 4 bytes"
    yield "list_beyond", Broken(
        List(ints), ((1, 0), (1, 0)), (b"", i32(0, 2), b"", i32(1))
    ), "offset 1 is 2"
    yield "list_view_beyond", Broken(
        ListView(ints), ((1, 0), (1, 0)), (b"", i32(1), i32(1), b"", i32(1))
    ), "list 0 at 1 + 1"
    yield "list_view_negative", Broken(
        ListView(ints), ((1, 0), (1, 0)), (b"", i32(0), i32(-1), b"", i32(1))
    ), "list 0 at 0 + -1"
    yield "view_beyond", Broken(
        UTF8_VIEW, buffers=(b"", i32(13, 0, 0, 1), bytes(13)), variadic=(1,)
    ), "view 0: 13 bytes at 1 of buffer 0"
    yield "view_buffer", Broken(
        UTF8_VIEW, buffers=(b"", i32(13, 0, 1, 0), bytes(13)), variadic=(1,)
    ), "of buffer 1"
    yield "view_negative", Broken(
        UTF8_VIEW, buffers=(b"", i32(-13, 0, 0, 0)), variadic=(0,)
    ), "view 0: -13 bytes"
    yield "view_count", Broken(UTF8_VIEW, buffers=(b"", i32(0, 0, 0, 0))), "no count"
    yield "view_counts", Broken(
        UTF8_VIEW, buffers=(b"", i32(0, 0, 0, 0)), variadic=(9,)
    ), "9 buffers of views"
    runs = Runs(INT32)
    for name, ends, says in (
        ("zero", i32(0), "run end 0 is 0"),
        ("back", i32(2, 1), "run end 1 is 1 after 2"),
        ("short", b"", "runs end at 0 of 1"),
    ):
        n = len(ends) // 4
        yield "run_" + name, Broken(
            runs, ((1, 0), (n, 0), (n, 0)), (b"", ends, b"", bytes(4 * n))
        ), says
    yield "run_values", Broken(
        runs, ((1, 0), (1, 0), (0, 0)), (b"", i32(1), b"", b"")
    ), "1 runs have 0 values"
    yield "run_null", Broken(
        runs, ((1, 0), (1, 1), (1, 0)), (b"\0", i32(1), b"", i32(1))
    ), "run ends may not be null"
    yield "run_type", Runs(INT32, 8), "run ends must be"


def bad_streams():
    for name, t, says in bad_arrays():
        stream = Stream({"column": t})
        batch = Batch(None)
        t.put(batch, [1])
        yield name, stream.out + message(RECORD, batch.table(1), bytes(batch.body)), says
    good = Stream({"column": Dict(UTF8)}).write({"column": ["a", "b"]})
    text = Stream({"column": UTF8}).write({"column": ["abc"]})
    data = good.bytes()
    yield "no_schema", data[len(Stream({"column": Dict(UTF8)}).out) :], "begins with a schema"
    yield "twice", text.out + text.out, "kind 1"
    yield "nothing", b"", "begins with a schema"
    yield "nonsense", b"nonsense", "message at byte 0: cut short"
    yield "no_dictionary", good.out[: len(Stream({"column": Dict(UTF8)}).out)] + good.out[
        good.out.rindex(b"\xff\xff\xff\xff") :
    ], "index 0 is outside of the dictionary's 0 values"
    yield "version", message(SCHEMA, Table((1, None, Refs([]))), version=7), "version 8"
    yield "endian", message(SCHEMA, Table((0, "h", 1), (1, None, Refs([])))), "big endian"
    field = Table((0, None, Text("x")), (2, "B", 99), (3, None, Table()))
    yield "type", message(SCHEMA, Table((1, None, Refs([field])))), "type 99"
    for _ in range(40):
        field = Table((2, "B", 12), (3, None, Table()), (5, None, Refs([field])))
    yield "deep", message(SCHEMA, Table((1, None, Refs([field])))), "deeper than"
    column = Table((2, "B", 2), (3, None, Table((0, "i", 8), (1, "B", 1))))
    yield "fields", message(SCHEMA, Table((1, None, Refs([column] * 9000)))), "more than 8192"
    packed = Stream({"column": INT64})
    for name, body, codec, says in (
        ("codec", bytes(8), 7, "compression 7"),
        ("bomb", struct.pack("<q", 1 << 40) + b"x", 0, "that a stream may take"),
        ("negative", struct.pack("<q", -2) + b"x", 0, "a buffer of -2 bytes"),
        ("short", b"abc", 0, "a compressed buffer of 3 bytes"),
        ("lz4", struct.pack("<q", 8) + b"nonsense", 0, "a compressed buffer"),
        ("zstd", struct.pack("<q", 8) + b"nonsense", 1, "a compressed buffer"),
        ("size", struct.pack("<q", 9) + lz4_frame(bytes(8)), 0, "a compressed buffer"),
    ):
        batch = Batch(None)
        batch.nodes, batch.spans = [(1, 0)], [(0, 0), (0, len(body))]
        batch.codec = (codec,)
        table = batch.table(1)
        yield "packed_" + name, packed.out + message(
            RECORD, table, body + bytes(-len(body) % 8)
        ), says
    runs = Runs(INT64)
    equal, batch = Stream({"column": runs}), Batch(None)
    batch.nodes.append((1 << 25, 0))
    runs.ends.put(batch, [1 << 25])
    INT64.put(batch, [1])
    yield "rows", equal.out + 2 * message(
        RECORD, batch.table(1 << 25), bytes(batch.body)
    ), "more than 33554432 rows"
    outside = Batch(None)
    outside.nodes, outside.spans = [(1, 0)], [(0, 0), (8, 8)]
    yield "outside", packed.out + message(RECORD, outside.table(1), bytes(8)), "outside of the body"


def main():
    for name, data, says in bad_streams():
        with open(os.path.join(sys.argv[1], "bad_" + name + ".arrow"), "wb") as f:
            f.write(data)
        with open(os.path.join(sys.argv[1], "bad_" + name + ".txt"), "w") as f:
            f.write(says)
    for name, stream, end in cases():
        with open(os.path.join(sys.argv[1], name + ".arrow"), "wb") as f:
            f.write(stream.bytes(end))
        with open(os.path.join(sys.argv[1], name + ".txt"), "w", encoding="utf-8") as f:
            f.write("".join(row + "\n" for row in stream.texts()))


if __name__ == "__main__":
    main()
