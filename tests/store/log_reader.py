#!/usr/bin/python3
"""Reads segments of the log as docs/formats/log.md describes them, and nothing else: the oracle of
the C reader.

    log_reader.py --events FILE...      what lies where, one line each:
        record SEQUENCE OFFSET ARRIVED BATCH KIND CODING
        damage OFFSET LENGTH | torn OFFSET | cut SIZE
        then "end", or "refused REASON", for each file
    log_reader.py --rows NAMES FILE     all samples, in the lines of part_reader.py: equal ones summed.
        NAMES: the labels that are kept beside samples, with commas

Needs Debian's python3-zstandard.
"""

import struct
import sys

import zstandard

from part_reader import Reader, crc32c, signed

M64 = (1 << 64) - 1
PAYLOAD_MAX = 256 << 20


class Refused(Exception):
    pass


class Record:
    """None of it is valid before valid() says so."""

    def __init__(self, data, at):
        self.at = at
        (self.magic, self.crc, self.salt, self.sequence, self.arrived, self.batch, self.stored,
         self.raw, self.kind, self.coding) = struct.unpack_from("<4sIQQq16sIIBB", data, at)
        self.end = at + 64 + self.stored
        self.payload = data[at + 64:self.end]

    def whole(self, data):
        return (self.magic == b"FREC" and self.end <= len(data)
                and crc32c(data[self.at + 8:self.end]) == self.crc)


class Segment:
    def __init__(self, data):
        self.data, self.events, self.salt = data, [], None
        if len(data) < 64 or data[:8] != b"FIRNWLOG" or \
                crc32c(data[:60]) != struct.unpack_from("<I", data, 60)[0]:
            raise Refused("header")
        major, _, _, self.id, self.salt, self.store, self.size = \
            struct.unpack_from("<HHIQQ16sQ", data, 8)
        if major != 1:
            raise Refused(f"version {major}")
        if len(data) < self.size:
            self.events.append(("cut", self.size))
        self.read()

    def valid(self, at, before):
        if at + 64 > len(self.data) or self.data[at:at + 4] != b"FREC":
            return None
        r = Record(self.data, at)
        if r.salt != self.salt or r.sequence <= before or not r.whole(self.data):
            return None
        return r

    def next_valid(self, at, before):
        """The first valid record at a multiple of 8 from `at` on."""
        while True:
            at = self.data.find(b"FREC", at)
            if at < 0:
                return None
            if at % 8 == 0:
                r = self.valid(at, before)
                if r:
                    return r
            at += 1

    def torn(self, at):
        rest = self.data[at:at + 64]
        magic = rest[:4] == b"FREC"
        salt = len(rest) >= 16 and struct.unpack_from("<Q", rest, 8)[0] == self.salt
        if not magic and not salt:
            return False
        if magic and len(rest) == 64:
            r = Record(self.data, at)
            if r.salt != self.salt and r.whole(self.data):
                return False  # of the segment's former life
        return True

    def read(self):
        at, before = 64, 0
        while at < len(self.data):
            r = self.valid(at, before)
            if not r:
                r = self.next_valid(at + 8, before)
                if not r:
                    if self.torn(at):
                        self.events.append(("torn", at))
                    return
                self.events.append(("damage", at, r.at - at))
            self.events.append(("record", r))
            before, at = r.sequence, (r.end + 7) // 8 * 8


class Batch:
    """The payload, section 4."""

    def __init__(self, record):
        payload = record.payload
        if record.coding == 1:
            assert record.raw <= PAYLOAD_MAX
            payload = zstandard.ZstdDecompressor().decompress(payload, max_output_size=record.raw)
        else:
            assert record.coding == 0
        assert len(payload) == record.raw
        r = self.r = Reader(payload)
        self.tenant = self.text()
        self.strings = self.table("", self.text)
        self.functions = self.table((0,) * 4, lambda: self.numbers(4))
        self.mappings = self.table((0,) * 5, lambda: self.numbers(5))
        self.locations = self.table((0, 0, 0, []), self.location)
        self.stacks = self.table([], lambda: [r.varint() for _ in range(r.varint())])
        self.sets = self.table([], lambda: [self.numbers(2) for _ in range(r.varint())])
        self.links = self.table(bytes(24), lambda: r.take(24))
        self.types = self.table((0,) * 6, lambda: self.numbers(6))
        self.heads = self.table((0,) * 4, lambda: (r.varint(), r.zigzag(), r.zigzag(), r.zigzag()))
        self.samples, time = [], 0
        for _ in range(r.varint()):
            value = r.zigzag()
            time = signed(time + r.zigzag())
            self.samples.append((value, time) + self.numbers(5))

    def text(self):
        return self.r.take(self.r.varint()).decode("utf-8", "surrogateescape")

    def numbers(self, n):
        return tuple(self.r.varint() for _ in range(n))

    def table(self, null, element):
        return [null] + [element() for _ in range(self.r.varint())]

    def location(self):
        address, mapping, kind, lines = self.numbers(4)
        return address, mapping, kind, [self.numbers(3) for _ in range(lines)]

    def frame(self, n):
        address, mapping, _, lines = self.locations[n]
        if lines:
            return "<".join(f"{self.strings[self.functions[f][0]]}:{line}" for f, line, _ in lines)
        return f"{self.strings[self.mappings[mapping][3]]}+{address:x}"

    def labels(self, resource, own, link):
        """By name; the resource's value where both have one, then own, then the link's."""
        out = {}
        trace, span = self.links[link][:16], self.links[link][16:]
        if any(trace):
            out["trace_id"] = trace.hex()
        if any(span):
            out["span_id"] = span.hex()
        for labels in (self.sets[own], self.sets[resource]):
            out.update({self.strings[n]: self.strings[v] for n, v in labels})
        return out

    def rows(self, beside):
        for value, time, head, stack, resource, own, link in self.samples:
            type_, period, _, _ = self.heads[head]
            *parts, delta = self.types[type_]
            labels = sorted(self.labels(resource, own, link).items())
            series = ",".join(f"{n}={v}" for n, v in labels if n not in beside)
            sample = ",".join(f"{n}={v}" for n, v in labels if n in beside)
            frames = "".join(self.frame(x) + ";" for x in reversed(self.stacks[stack]))
            name = ":".join(self.strings[x] for x in parts) + (":delta" if delta else "")
            yield f"{self.tenant}|{name}|{period}|{series}|{sample}|{frames}|{time}", value


def load(path):
    with open(path, "rb") as f:
        return f.read()


def print_events(path):
    try:
        segment = Segment(load(path))
    except Refused as reason:
        print("refused", reason)
        return
    for what, *rest in segment.events:
        if what == "record":
            r = rest[0]
            print("record", r.sequence, r.at, r.arrived, r.batch.hex(), r.kind, r.coding)
        else:
            print(what, *rest)
    print("end")


def main():
    if sys.argv[1] == "--events":
        for path in sys.argv[2:]:
            print_events(path)
        return
    assert sys.argv[1] == "--rows"
    beside, sums = set(sys.argv[2].split(",")), {}
    for path in sys.argv[3:]:
        for what, *rest in Segment(load(path)).events:
            assert what == "record"
            if rest[0].kind != 1:
                continue
            for key, value in Batch(rest[0]).rows(beside):
                total, count = sums.get(key, (0, 0))
                sums[key] = signed(total + value), count + 1
    sys.stdout.write("".join(sorted(f"{k}|{v}|{n}\n" for k, (v, n) in sums.items())))


if __name__ == "__main__":
    main()
