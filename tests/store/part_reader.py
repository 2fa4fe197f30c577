#!/usr/bin/python3
"""Reads a part as docs/formats/part.md describes it, and nothing else: the oracle of the C reader.

    part_reader.py FILE          one line a row, sorted:
        tenant|type|period|labels|sample labels|stack|time|value|count
    part_reader.py --meta FILE   META's fields
    part_reader.py --profiles FILE   one line a profile, sorted:
        tenant|type|period|labels|time|duration|samples

Needs Debian's python3-zstandard.
"""

import struct
import sys

import zstandard

M64 = (1 << 64) - 1

# CRC-32C, bit by bit from a table
CRC_TABLE = []
for _i in range(256):
    _c = _i
    for _ in range(8):
        _c = (_c >> 1) ^ (0x82F63B78 if _c & 1 else 0)
    CRC_TABLE.append(_c)


def crc32c(data):
    c = 0xFFFFFFFF
    for b in data:
        c = (c >> 8) ^ CRC_TABLE[(c ^ b) & 0xFF]
    return c ^ 0xFFFFFFFF


def signed(v):
    v &= M64
    return v - (1 << 64) if v >> 63 else v


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def done(self):
        return self.at >= len(self.data)

    def byte(self):
        self.at += 1
        return self.data[self.at - 1]

    def varint(self):
        v = shift = 0
        while True:
            b = self.byte()
            v |= (b & 0x7F) << shift
            shift += 7
            if b < 0x80:
                return v

    def zigzag(self):
        v = self.varint()
        return (v >> 1) ^ -(v & 1)

    def u32(self):
        self.at += 4
        return struct.unpack_from("<I", self.data, self.at - 4)[0]

    def take(self, n):
        self.at += n
        return self.data[self.at - n:self.at]


CONST, PLANES, DELTA, RUNS, DICT, SCALE, BYTES, TICKS = range(8)


class Column:
    def __init__(self, r):
        self.id, self.encoding, self.width, k = r.byte(), r.byte(), r.byte(), r.byte()
        self.base, self.unit, self.offset = r.zigzag(), r.varint(), r.varint()
        self.lengths = [(r.varint(), r.varint()) for _ in range(k)]
        self.crc = r.u32()

    def streams(self, data):
        total = sum(stored for _, stored in self.lengths)
        stored = data[self.offset:self.offset + total]
        assert len(stored) == total and crc32c(stored) == self.crc, f"column {self.id}: checksum"
        out, at = [], 0
        for raw, n in self.lengths:
            piece = stored[at:at + n]
            at += n
            if n != raw:
                piece = zstandard.ZstdDecompressor().decompress(piece, max_output_size=raw)
            assert len(piece) == raw
            out.append(piece)
        return out

    def value(self, a):
        return signed(self.base + self.unit * a)

    def numbers(self, data, rows):
        s = self.streams(data)

        def planes(from_, width=self.width):
            return [sum(s[from_ + k][i] << (8 * k) for k in range(width))
                    for i in range(rows)]

        if self.encoding == CONST:
            return [self.base] * rows
        if self.encoding == PLANES:
            return [self.value(u) for u in planes(0)]
        if self.encoding == DELTA:
            out, a = [], 0
            for u in planes(0):
                a += (u >> 1) ^ -(u & 1)
                out.append(self.value(a))
            return out
        if self.encoding == RUNS:
            out, a = [], 0
            deltas, runs = Reader(s[0]), Reader(s[1])
            while not deltas.done():
                a += deltas.zigzag()
                out += [self.value(a)] * (runs.varint() + 1)
            assert len(out) == rows and runs.done()
            return out
        if self.encoding == TICKS:
            return self.ticks(Reader(s[0]), planes(1, len(s) - 1 - self.width),
                              planes(len(s) - self.width), rows)
        assert self.encoding == DICT, f"encoding {self.encoding}"
        entries, a, r = [], 0, Reader(s[0])
        while not r.done():
            a += r.zigzag()
            entries.append(self.value(a))
        return [entries[u] for u in planes(1)]

    def ticks(self, r, late, slots, rows):
        period, out = r.varint(), []
        while len(out) < rows:
            end, n = len(out) + r.varint(), r.varint()
            phases, slot = [], 0
            for _ in range(n):
                phases.append(r.varint() + (phases[-1] if phases else 0))
            for i in range(len(out), end):
                slot += (slots[i] >> 1) ^ -(slots[i] & 1)
                k, j = divmod(slot & M64, n)
                out.append(self.value((k * period & M64) // self.unit + phases[j] + late[i]))
        assert len(out) == rows and r.done()
        return out


class Table:
    def __init__(self, data):
        r = Reader(data)
        self.rows, n = r.varint(), r.varint()
        self.columns = {c.id: c for c in (Column(r) for _ in range(n))}
        self.data = data[r.at:]

    def __getitem__(self, id_):
        if id_ not in self.columns:
            return [0] * self.rows
        return self.columns[id_].numbers(self.data, self.rows)

    def strings(self):
        blob, at, raw = self.columns[2].streams(self.data)[0], 0, [b""]
        for n, shared in zip(self[1], self[3]):
            assert shared <= min(n, len(raw[-1]))
            raw.append(raw[-1][:shared] + blob[at:at + n - shared])
            at += n - shared
        assert at == len(blob)
        out = [x.decode("utf-8", "surrogateescape") for x in raw[1:]]
        assert out[0] == "" and out[1:] == sorted(set(out[1:]), key=lambda x: x.encode(
            "utf-8", "surrogateescape")), "strings are not in order"
        return out


class Part:
    def __init__(self, path):
        with open(path, "rb") as f:
            d = self.data = f.read()
        magic, major, _, _, self.id, _, crc = struct.unpack_from("<8sHHIQII", d)
        assert magic == b"FIRNPART" and crc == crc32c(d[:28]), "header"
        assert major == 1, "version"
        toc, toc_len, toc_crc, length, end = struct.unpack("<QIIQ8s", d[-32:])
        assert end == b"FIRNPEND" and length == len(d), "trailer"
        table = d[toc:toc + toc_len]
        assert crc32c(table) == toc_crc, "table of contents"
        self.sections = {}
        for i in range(struct.unpack_from("<I", table)[0]):
            kind, flags, crc, offset, n = struct.unpack_from("<HHIQQ", table, 4 + 24 * i)
            bytes_ = d[offset:offset + n]
            assert flags & 2 or crc32c(bytes_) == crc, f"section {kind}"
            assert not flags & 1, f"section {kind} must be known"
            assert kind not in self.sections
            self.sections[kind] = bytes_

    def table(self, kind):
        return Table(self.sections[kind])

    def meta(self):
        r, out = Reader(self.sections[1]), {}
        while not r.done():
            tag = r.varint()
            f = Reader(r.take(r.varint()))
            if tag == 1:
                out["store"] = f.data.hex()
            elif tag in (2, 3, 4, 5, 6):
                out[{2: "level", 3: "order", 4: "resolution", 5: "rows", 6: "samples"}[tag]] = \
                    f.varint()
            elif tag in (7, 8, 9):
                out[{7: "first", 8: "last", 9: "written"}[tag]] = f.zigzag()
            elif tag == 10:
                out["covers"] = []
                while not f.done():
                    first = f.varint()
                    out["covers"].append((first, first + f.varint()))
            elif tag == 11:
                out["replaces"] = []
                while not f.done():
                    out["replaces"].append(f.varint())
            elif tag == 12:
                out["writer"] = f.data.decode()
            elif tag == 13:
                out["imports"] = [f.take(16).hex() for _ in range(len(f.data) // 16)]
                assert f.done()
        return out

    def series(self):
        text, t, labels = self.table(2).strings(), self.table(3), self.table(4)
        names, values, at, out = labels[1], labels[2], 0, []
        columns = [t[i] for i in range(1, 13)]
        for row in zip(*columns):
            n = row[8]
            pairs = [(text[names[k]], text[values[k]]) for k in range(at, at + n)]
            assert pairs == sorted(pairs), "labels are not in order"
            at += n
            type_ = ":".join(text[x] for x in row[1:6]) + (":delta" if row[6] else "")
            out.append((text[row[0]], type_, row[7],
                        ",".join(f"{a}={b}" for a, b in pairs), row[9], row[10], row[11]))
        assert at == labels.rows
        return out

    def sets(self):
        names, text, t = self.table(5).strings()[1:], self.table(6).strings(), self.table(7)
        tenants, columns = t[1], [t[16 + k + 1] for k in range(len(names))]
        by = dict(zip(names, columns))
        keys = [(tenants[i], by["thread_name"][i] if "thread_name" in by else 0,
                 (len(text[by["pid"][i]].encode("utf-8", "surrogateescape")), by["pid"][i])
                 if "pid" in by else (), *(c[i] for c in columns)) for i in range(t.rows)]
        assert keys == sorted(set(keys)), "sets are not in order"
        return [(text[tenants[i]], ",".join(
            f"{n}={text[c[i]]}" for n, c in zip(names, columns) if c[i]))
            for i in range(t.rows)]

    def stacks(self):
        text = self.table(8).strings()
        f, m, lo, li = (self.table(k) for k in (9, 10, 11, 12))
        functions = [text[x] for x in f[1]]
        files = [text[x] for x in m[1]]
        line_function, line_line = li[1], li[2]
        locations, at = [], 0
        for mapping, address, n in zip(lo[1], lo[2], lo[4]):
            if n:
                locations.append("<".join(
                    f"{functions[line_function[k]]}:{line_line[k]}" for k in range(at, at + n)))
                at += n
            else:
                locations.append(f"{files[mapping]}+{address & M64:x}")
        t, out, path = self.table(13), [""], []
        up, location = t[1], t[2]
        for i in range(1, t.rows):
            path = path[:len(path) - up[i]] + [locations[location[i]]]
            out.append("".join(p + ";" for p in path))
        return out

    def blocks(self):
        r = Reader(self.sections[14])
        for _ in range(r.varint()):
            rows = []
            n = r.varint()
            s0 = r.varint()
            s1 = s0 + r.varint()
            t0 = r.zigzag()
            t1 = t0 + r.varint()
            k0 = r.varint()
            k1 = k0 + r.varint()
            columns = {c.id: c for c in (Column(r) for _ in range(r.varint()))}

            def column(i, default=0):
                if i not in columns:
                    return [default] * n
                c = columns[i]
                if c.encoding == SCALE:
                    return [signed(c.base * x) for x in column(c.unit, 1 if c.unit == 6 else 0)]
                return c.numbers(self.data, n)

            for row in zip(column(1), column(2), column(3), column(4), column(5), column(6, 1)):
                assert s0 <= row[0] <= s1 and t0 <= row[1] <= t1 and k0 <= row[2] <= k1
                rows.append(row)
            yield rows
        assert r.done()

    def check_kinds(self):
        text, t, labels = self.table(2).strings(), self.table(3), self.table(4)
        want, at = {}, 0
        label_names, label_values = labels[1], labels[2]
        for row in zip(*[t[i] for i in range(1, 13)]):
            pairs = list(zip(label_names[at:at + row[8]], label_values[at:at + row[8]]))
            at += row[8]
            if not row[11]:
                continue
            kind = want.setdefault(row[:7], [row[9], row[10], {}])
            kind[0], kind[1] = min(kind[0], row[9]), max(kind[1], row[10])
            for name, value in pairs:
                kind[2].setdefault(name, set()).add(value)
        kinds, names, values = self.table(24), self.table(25), self.table(26)
        got, n, v = [], 0, 0
        name, count, value = names[1], names[2], values[1]
        for row in zip(*[kinds[i] for i in range(1, 12)]):
            lists = {}
            for k in range(n, n + row[7]):
                lists[name[k]] = value[v:v + count[k]]
                v += count[k]
            assert list(lists) == sorted(lists) and len(lists) == row[7]
            n += row[7]
            got.append((row[:7], [row[9], row[10], lists]))
        assert n == names.rows and v == values.rows and text
        assert got == [(k, [x[0], x[1], {a: sorted(b) for a, b in sorted(x[2].items())}])
                       for k, x in want.items()], "kinds are not those of the series"

    def check_totals(self, blocks):
        r, before = Reader(self.sections.get(23, b"\0")), []
        for _ in range(r.varint()):
            first, count, samples, n, k0 = (r.varint() for _ in range(5))
            k1 = k0 + r.varint()
            columns = {c.id: c for c in (Column(r) for _ in range(r.varint()))}
            stacks, values = (columns[i].numbers(self.data, n) for i in (3, 4))
            assert stacks[0] == k0 and stacks[-1] == k1 and stacks == sorted(set(stacks))
            mine = set(range(first, first + count))
            assert all(mine <= other or not mine & other for other in before)
            before.append(mine)
            sums, rows = {}, [row for k in mine for row in blocks[k]]
            for row in rows:
                sums[row[2]] = signed(sums.get(row[2], 0) + row[3])
            told = dict(zip(stacks, values))
            assert all(told.get(k, 0) == v for k, v in sums.items()) and set(told) <= set(sums)
            assert samples == sum(row[5] for row in rows)
        assert r.done()


    def lists(self, counts, keys):
        """By key what the index says; None without an index."""
        if counts not in self.sections:
            assert counts + 1 not in self.sections
            return None
        n, items, out, at = self.table(counts)[1], self.table(counts + 1)[1], [], 0
        assert len(n) == keys, f"section {counts}: {len(n)} lists"
        for k in n:
            out.append(items[at:at + k])
            assert out[-1] == sorted(set(out[-1])), f"section {counts}: not ascending"
            at += k
        assert at == len(items)
        return out

    def check_index(self, rows):
        sets = self.lists(19, self.table(3).rows)
        for i, found in enumerate(sets or []):
            assert found == sorted({r[4] for r in rows if r[0] == i}), f"sets of series {i}"
        locations = self.lists(21, self.table(11).rows)
        if locations is None:
            return
        trie, path, ran = self.table(13), [], [set() for _ in locations]
        up, location, chains = trie[1], trie[2], [()]
        for i in range(1, trie.rows):
            path = path[:len(path) - up[i]] + [location[i]]
            chains.append(tuple(path))
        for series, node in {(r[0], r[2]) for r in rows}:
            for x in chains[node]:
                ran[x].add(series)
        assert [sorted(x) for x in ran] == locations, "series of locations"

    def profiles(self):
        if 27 not in self.sections:
            return []
        t = self.table(27)
        rows = list(zip(t[1], t[2], t[3], t[4]))
        assert [r[:2] for r in rows] == sorted({r[:2] for r in rows}), "profiles are not in order"
        assert all(r[0] < self.table(3).rows and r[2] > 0 and r[3] > 0 for r in rows)
        return rows

    def batches(self):
        if 15 not in self.sections:
            return []
        t = self.table(15)
        return list(zip(t[1], t[2], t[3]))


SLICE = 3600 * 10**9


def check_order(rows, order):
    keys = [(r[1] // SLICE, r[0]) +
            ((r[1], r[2], r[4]) if order == 1 else (r[2], r[1], r[4])) for r in rows]
    assert keys == sorted(set(keys)), "rows are not in order, or a key occurs twice"


def main():
    part = Part(sys.argv[-1])
    meta = part.meta()
    if sys.argv[1] == "--meta":
        for k, v in sorted(meta.items()):
            print(k, v)
        return
    if sys.argv[1] == "--profiles":
        series = part.series()
        lines = ["|".join(str(x) for x in series[r[0]][:4] + r[1:]) for r in part.profiles()]
        sys.stdout.write("".join(line + "\n" for line in sorted(lines)))
        return
    series, sets, stacks, blocks = part.series(), part.sets(), part.stacks(), list(part.blocks())
    rows = [row for block in blocks for row in block]
    part.check_totals(blocks)
    part.check_kinds()
    part.check_index(rows)
    part.profiles()
    assert len({b[:2] for b in part.batches()}) == len(part.batches()), "a batch occurs twice"
    check_order(rows, meta["order"])
    assert len(rows) == meta["rows"] and sum(r[5] for r in rows) == meta["samples"]
    assert min(r[1] for r in rows) == meta["first"] and max(r[1] for r in rows) == meta["last"]
    lines = []
    for s, time, node, value, set_, count in rows:
        tenant, type_, period, labels, first, last, _ = series[s]
        assert first <= time <= last and sets[set_][0] in ("", tenant)
        lines.append(f"{tenant}|{type_}|{period}|{labels}|{sets[set_][1]}|{stacks[node]}|"
                     f"{time}|{value}|{count}")
    sys.stdout.write("".join(line + "\n" for line in sorted(lines)))


if __name__ == "__main__":
    main()
