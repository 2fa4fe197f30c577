#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads an ExportProfilesServiceRequest from a file, by the schema's field numbers and by the rules
of strict receivers, and prints its samples in the form of tests/profile_dump.h. Exit 1 with the
broken rule. Written from opentelemetry-proto's documents only; shares nothing with src/."""

import re
import struct
import sys


class Broken(Exception):
    pass


def need(condition, rule):
    if not condition:
        raise Broken(rule)


def varint(data, at):
    value = shift = 0
    while True:
        need(at < len(data) and shift < 70, "varint cut short")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            need(value < 1 << 64, "varint of more than 64 bits")
            return value, at


def signed(value):
    return value - (1 << 64) if value >> 63 else value


class Message:
    """Fields of one message: number -> list of (wire type, value)."""

    def __init__(self, data, known):
        self.fields = {}
        at = 0
        while at < len(data):
            tag, at = varint(data, at)
            number, wire = tag >> 3, tag & 7
            if wire == 0:
                value, at = varint(data, at)
            elif wire == 1:
                value, at = data[at : at + 8], at + 8
            elif wire == 2:
                size, at = varint(data, at)
                value, at = data[at : at + size], at + size
            elif wire == 5:
                value, at = data[at : at + 4], at + 4
            else:
                raise Broken("wire type %d" % wire)
            need(at <= len(data), "field %d cut short" % number)
            need(number in known, "unknown field %d" % number)
            need(wire in known[number], "field %d has wire type %d" % (number, wire))
            self.fields.setdefault(number, []).append((wire, value))

    def one(self, number, default):
        got = self.fields.get(number, [])
        need(len(got) <= 1, "field %d twice" % number)
        return got[0][1] if got else default

    def i64(self, number):
        return signed(self.one(number, 0))

    def text(self, number):
        return self.one(number, b"").decode("utf-8")

    def all(self, number):
        return [value for _, value in self.fields.get(number, [])]

    def packed(self, number):
        out = []
        for wire, value in self.fields.get(number, []):
            at = 0
            while at < len(value):
                v, at = varint(value, at)
                out.append(signed(v))
        return out

    def packed_fixed64(self, number):
        raw = b"".join(self.all(number))
        need(len(raw) % 8 == 0, "packed fixed64 of %d bytes" % len(raw))
        return [v for (v,) in struct.iter_unpack("<Q", raw)]


V, F, B = {0}, {1}, {2}
REQUEST = {1: B, 2: B}
DICTIONARY = {n: B for n in range(1, 8)}
RESOURCE_PROFILES = {1: B, 2: B, 3: B}
RESOURCE = {1: B, 2: V, 3: B}
SCOPE = {1: B, 2: B, 3: B, 4: V}
KEY_VALUE = {1: B, 2: B, 3: V}
ANY = {1: B, 2: V, 3: V, 4: F, 8: V}
PROFILE = {1: B, 2: B, 3: F, 4: V, 5: B, 6: V, 7: B, 8: V, 9: B, 10: B, 11: B}
VALUE_TYPE = {1: V, 2: V}
SAMPLE = {1: V, 2: B, 3: V, 4: B, 5: B}
MAPPING = {1: V, 2: V, 3: V, 4: V, 5: B}
LOCATION = {1: V, 2: V, 3: B, 4: B}
LINE = {1: V, 2: V, 3: V}
FUNCTION = {1: V, 2: V, 3: V, 4: V}
LINK = {1: B, 2: B}
ATTRIBUTE = {1: V, 2: B, 3: V}
STACK = {1: B}

LABELS = {
    "host.name": "node",
    "process.pid": "pid",
    "process.executable.name": "executable",
    "thread.id": "thread_id",
    "thread.name": "thread_name",
    "cpu.logical_number": "cpu",
    "container.id": "container_id",
    "container.name": "container",
    "k8s.namespace.name": "namespace",
    "k8s.pod.name": "pod",
}


def label_name(key):
    return LABELS.get(key, re.sub("[^a-zA-Z0-9_]", "_", key))


class Dictionary:
    def __init__(self, data):
        d = Message(data, DICTIONARY)
        self.mapping = [Message(m, MAPPING) for m in d.all(1)]
        self.location = [Message(m, LOCATION) for m in d.all(2)]
        self.function = [Message(m, FUNCTION) for m in d.all(3)]
        self.link = [Message(m, LINK) for m in d.all(4)]
        self.string = [s.decode("utf-8") for s in d.all(5)]
        self.attribute = [Message(m, ATTRIBUTE) for m in d.all(6)]
        self.stack = [Message(m, STACK) for m in d.all(7)]
        for name in ("mapping", "location", "function", "link", "attribute", "stack"):
            table = getattr(self, name)
            need(table, name + "_table is empty")
            need(not table[0].fields, name + "_table[0] is not the null element")
        need(self.string and self.string[0] == "", "string_table[0] is not empty")
        need(len(set(self.string)) == len(self.string), "a string twice")
        for table in (d.all(1), d.all(2), d.all(3), d.all(6), d.all(7)):
            need(len(set(table)) == len(table), "an element twice")

    def at(self, table, index):
        elements = getattr(self, table)
        need(0 <= index < len(elements), "%s index %d of %d" % (table, index, len(elements)))
        return elements[index]

    def text(self, message, number):
        return self.at("string", message.i64(number))

    def any(self, data):
        a = Message(data, ANY)
        need(len(a.fields) == 1, "AnyValue of %d values" % len(a.fields))
        if 8 in a.fields:
            return self.text(a, 8)
        return a.text(1)

    def attributes(self, indices):
        out = {}
        for i in indices:
            need(i != 0, "attribute index 0")
            a = self.at("attribute", i)
            key = self.text(a, 1)
            need(key not in out, "attribute %s twice" % key)
            out[key] = self.any(a.one(2, b""))
        return out

    def location_text(self, index):
        need(index != 0, "location index 0 in a stack")
        l = self.at("location", index)
        m = self.at("mapping", l.i64(1))
        attributes = self.attributes(m.packed(5))
        build_id = attributes.get("process.executable.build_id.gnu", "")
        need(re.fullmatch("([0-9a-f][0-9a-f])*", build_id), "build id %r" % build_id)
        build_id = build_id or attributes.get("process.executable.build_id.firn", "")
        out = " %x@%x-%x+%x,%s,%s/%s(" % (
            l.one(2, 0),
            m.one(1, 0),
            m.one(2, 0),
            m.one(3, 0),
            self.text(m, 4),
            build_id,
            self.attributes(l.packed(4)).get("profile.frame.type", ""),
        )
        for data in l.all(3):
            line = Message(data, LINE)
            need(line.i64(1) != 0, "a line without a function")
            f = self.at("function", line.i64(1))
            out += "%s|%s|%s|%d:%d:%d;" % (
                self.text(f, 1),
                self.text(f, 2),
                self.text(f, 3),
                f.i64(4),
                line.i64(2),
                line.i64(3),
            )
        return out + ")"


def labels_text(labels):
    # Some have the name of the conventions and their own: the same value.
    pairs = sorted({(label_name(k).encode(), v) for k, v in labels.items()})
    return " {" + "".join("%s=%s," % (k.decode(), v) for k, v in pairs) + "}"


def read_profile(d, data, name, resource, seen, out):
    p = Message(data, PROFILE)
    need(1 in p.fields and 5 in p.fields, "sample_type and period_type are required")
    types = [Message(p.one(n, b""), VALUE_TYPE) for n in (1, 5)]
    time = struct.unpack("<Q", p.one(3, bytes(8)))[0]
    duration = p.i64(4)
    need(len(p.one(7, b"")) == 16 and any(p.one(7, b"")), "profile_id")
    need(p.one(7, b"") not in seen, "profile_id twice")
    seen.add(p.one(7, b""))
    head = ":".join([name] + [d.text(t, n) for t in types for n in (1, 2)])
    head += ":delta" if duration else ""
    head += " period=%d duration=%d" % (p.i64(6), duration)
    identities = set()
    for raw in p.all(2):
        s = Message(raw, SAMPLE)
        values, times = s.packed(4), s.packed_fixed64(5)
        need(values or times, "a sample without values and timestamps")
        need(not (values and times) or len(values) == len(times), "values against timestamps")
        need(all(time <= t <= time + duration for t in times), "a timestamp outside")
        need(times or len(values) == 1, "several values without timestamps")
        identity = (s.i64(1), tuple(sorted(s.packed(2))), s.i64(3))
        need(identity not in identities, "a sample's identity twice")
        identities.add(identity)
        link = d.at("link", s.i64(3))
        stack = d.at("stack", s.i64(1))
        tail = resource + labels_text(d.attributes(s.packed(2))) + " link="
        tail += link.one(1, b"").hex() + link.one(2, b"").hex()
        tail += "".join(d.location_text(i) for i in stack.packed(1))
        for i in range(len(times) or 1):
            line = "%s time=%d%s" % (head, times[i] if times else time, tail)
            out[line] = out.get(line, 0) + (values[i] if values else 1)


def main():
    request = Message(open(sys.argv[1], "rb").read(), REQUEST)
    d = Dictionary(request.one(2, b""))
    out, seen = {}, set()
    for data in request.all(1):
        rp = Message(data, RESOURCE_PROFILES)
        labels = {}
        for raw in Message(rp.one(1, b""), RESOURCE).all(1):
            kv = Message(raw, KEY_VALUE)
            need(kv.text(1) and kv.text(1) not in labels, "resource attribute")
            labels[kv.text(1)] = d.any(kv.one(2, b""))
        for raw in rp.all(2):
            sp = Message(raw, RESOURCE_PROFILES)
            name = Message(sp.one(1, b""), SCOPE).text(1)
            need(sp.all(2), "a scope without profiles")
            for profile in sp.all(2):
                read_profile(d, profile, name, labels_text(labels), seen, out)
    for line in sorted(out, key=lambda s: s.encode()):
        if out[line]:
            sys.stdout.buffer.write(("%d %s\n" % (out[line], line)).encode())


try:
    main()
except (Broken, UnicodeDecodeError) as broken:
    sys.exit("broken: %s" % broken)
