#!/usr/bin/env python3
"""An Arrow IPC stream, read from the format's own pages with the standard library alone.

Columns become lists of Python values: None for null, bytes for binary, str for utf8. Only what our
writer may write is read; anything else is an error.

    arrow_reader.py FILE    prints schema and columns as JSON
"""

import json
import struct
import sys

HEADERS = {1: "schema", 2: "dictionary", 3: "batch"}


class Table:
    """A FlatBuffers table at `at`."""

    def __init__(self, data, at):
        self.data, self.at = data, at
        self.vtable = at - struct.unpack_from("<i", data, at)[0]
        self.size = struct.unpack_from("<H", data, self.vtable)[0]

    def place(self, slot):
        offset = 4 + 2 * slot
        if offset >= self.size:
            return None
        inside = struct.unpack_from("<H", self.data, self.vtable + offset)[0]
        return self.at + inside if inside else None

    def number(self, slot, form, default=0):
        place = self.place(slot)
        if place is None:
            return default
        size = struct.calcsize(form)
        assert place % size == 0, f"slot {slot} at +{place} is not aligned to {size}"
        return struct.unpack_from("<" + form, self.data, place)[0]

    def target(self, slot):
        place = self.place(slot)
        return None if place is None else place + struct.unpack_from("<I", self.data, place)[0]

    def table(self, slot):
        at = self.target(slot)
        return None if at is None else Table(self.data, at)

    def text(self, slot):
        at = self.target(slot)
        if at is None:
            return None
        size = struct.unpack_from("<I", self.data, at)[0]
        assert self.data[at + 4 + size] == 0
        return self.data[at + 4 : at + 4 + size].decode()

    def tables(self, slot):
        at = self.target(slot)
        if at is None:
            return []
        count = struct.unpack_from("<I", self.data, at)[0]
        places = range(at + 4, at + 4 + 4 * count, 4)
        return [Table(self.data, p + struct.unpack_from("<I", self.data, p)[0]) for p in places]

    def structs(self, slot, form):
        at = self.target(slot)
        if at is None:
            return []
        count, size = struct.unpack_from("<I", self.data, at)[0], struct.calcsize(form)
        assert (at + 4) % 8 == 0
        return [struct.unpack_from("<" + form, self.data, at + 4 + size * i) for i in range(count)]


def lz4_block(data, out):
    at = 0
    while at < len(data):
        token = data[at]
        at += 1
        literals = token >> 4
        if literals == 15:
            while True:
                literals += data[at]
                at += 1
                if data[at - 1] != 255:
                    break
        out += data[at : at + literals]
        at += literals
        if at == len(data):
            return
        distance = struct.unpack_from("<H", data, at)[0]
        at += 2
        size = (token & 15) + 4
        if size == 19:
            while True:
                size += data[at]
                at += 1
                if data[at - 1] != 255:
                    break
        assert 0 < distance <= len(out)
        if distance >= size:
            begin = len(out) - distance
            out += out[begin : begin + size]
        else:
            piece = out[len(out) - distance :]
            out += (piece * (size // distance + 1))[:size]


def lz4_frame(data):
    magic, flags = struct.unpack_from("<IB", data)
    assert magic == 0x184D2204 and flags >> 6 == 1, "not an LZ4 frame"
    at = 7 + (8 if flags & 8 else 0) + (4 if flags & 1 else 0)
    out = bytearray()
    while True:
        size = struct.unpack_from("<I", data, at)[0]
        at += 4
        if size == 0:
            break
        block = data[at : at + (size & 0x7FFFFFFF)]
        if size & 0x80000000:
            out += block
        else:
            lz4_block(block, out)
        at += len(block) + (4 if flags & 16 else 0)
    assert at + (4 if flags & 4 else 0) == len(data), "bytes after the LZ4 frame"
    return bytes(out)


class Batch:
    """The buffers of a record batch, taken one by one."""

    def __init__(self, table, body):
        self.rows = table.number(0, "q")
        self.nodes = iter(table.structs(1, "qq"))
        self.spans = iter(table.structs(2, "qq"))
        codec = table.table(3)
        self.packed = codec is not None
        assert not self.packed or codec.number(0, "b") == 0, "not LZ4_FRAME"
        self.body = body

    def buffer(self):
        offset, size = next(self.spans)
        assert offset % 8 == 0 and offset + size <= len(self.body)
        data = self.body[offset : offset + size]
        if not self.packed or size == 0:
            return data
        plain = struct.unpack_from("<q", data)[0]
        data = data[8:] if plain == -1 else lz4_frame(data[8:])
        assert plain in (-1, len(data))
        return data


def bits(data, count):
    return [data[i // 8] >> i % 8 & 1 for i in range(count)]


class Field:
    def __init__(self, table):
        self.name = table.text(0)
        self.nullable = bool(table.number(1, "B"))
        kind = table.number(2, "B")
        self.kind = {2: "int", 4: "binary", 5: "utf8", 6: "bool", 12: "list"}[kind]
        if self.kind == "int":
            self.form = self.int_form(table.table(3))
        encoding = table.table(4)
        self.dictionary = encoding.number(0, "q") if encoding else None
        self.index = self.int_form(encoding.table(1)) if encoding else None
        self.children = [Field(child) for child in table.tables(5)]

    @staticmethod
    def int_form(table):
        form = {8: "b", 16: "h", 32: "i", 64: "q"}[table.number(0, "i")]
        return form if table.number(1, "B") else form.upper()

    def type(self):
        value = {"int": lambda: self.type_of(self.form), "list": self.list_type}.get(
            self.kind, lambda: self.kind
        )()
        return f"dictionary<{self.type_of(self.index)},{value}>" if self.index else value

    def list_type(self):
        return f"list<{self.children[0].type()}>"

    @staticmethod
    def type_of(form):
        return ("int" if form.islower() else "uint") + str(8 * struct.calcsize(form))

    def values(self, batch, dictionaries):
        size, nulls = next(batch.nodes)
        valid = bits(batch.buffer(), size) if nulls else (batch.buffer(), [1] * size)[1]
        assert valid.count(0) == nulls, f"{self.name}: {nulls} nulls announced"
        if self.dictionary is not None:
            data = batch.buffer()
            texts = dictionaries[self.dictionary]
            plain = [
                texts[i] if v else None
                for i, v in zip(struct.unpack(f"<{size}{self.index}", data), valid)
            ]
        else:
            plain = self.plain(batch, size, dictionaries)
        return [p if v else None for p, v in zip(plain, valid)]

    def plain(self, batch, size, dictionaries):
        if self.kind == "bool":
            return [bool(b) for b in bits(batch.buffer(), size)]
        if self.kind == "int":
            return struct.unpack(f"<{size}{self.form}", batch.buffer())
        offsets = struct.unpack(f"<{size + 1}i", batch.buffer())
        if self.kind == "list":
            inner = self.children[0].values(batch, dictionaries)
            return [inner[a:b] for a, b in zip(offsets, offsets[1:])]
        data = batch.buffer()
        texts = [data[a:b] for a, b in zip(offsets, offsets[1:])]
        return [t.decode() for t in texts] if self.kind == "utf8" else texts


def messages(data):
    at = 0
    while at < len(data):
        mark, size = struct.unpack_from("<II", data, at)
        assert mark == 0xFFFFFFFF and at % 8 == 0 and size % 8 == 0
        if size == 0:
            assert at + 8 == len(data), "bytes after the end"
            return
        flat = data[at + 8 : at + 8 + size]
        message = Table(flat, struct.unpack_from("<I", flat)[0])
        assert message.number(0, "h") == 4, "not metadata V5"
        body_size = message.number(3, "q")
        at += 8 + size
        yield HEADERS[message.number(1, "B")], message.table(2), data[at : at + body_size]
        at += body_size


def read(data):
    """[(name, type, nullable, values)] of a stream with one record batch; metadata."""
    fields, dictionaries, columns, metadata = None, {}, None, {}
    for kind, table, body in messages(data):
        if kind == "schema":
            fields = [Field(t) for t in table.tables(1)]
            metadata = {t.text(0): t.text(1) for t in table.tables(2)}
            by_id = {f.dictionary: f for f in fields if f.dictionary is not None}
        elif kind == "dictionary":
            number = table.number(0, "q")
            batch = Batch(table.table(1), body)
            size, nulls = next(batch.nodes)
            assert nulls == 0 and not batch.buffer()
            dictionaries[number] = by_id[number].plain(batch, size, {})
        else:
            batch = Batch(table, body)
            columns = [(f.name, f.type(), f.nullable, f.values(batch, dictionaries)) for f in fields]
            assert all(len(c[3]) == batch.rows for c in columns)
            assert next(batch.nodes, None) is None and next(batch.spans, None) is None
    return columns, metadata


def main():
    with open(sys.argv[1], "rb") as file:
        columns, metadata = read(file.read())
    text = {"columns": columns, "metadata": metadata}
    print(json.dumps(text, default=lambda b: b.decode("latin-1")))


if __name__ == "__main__":
    main()
