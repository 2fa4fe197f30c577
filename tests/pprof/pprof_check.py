#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads a profile.proto (gzipped or not) from a file by its field numbers, holds the rules of
Go's profile.CheckValid, and prints its samples in the form of tests/profile_dump.h under the
profile name given. Exit 1 with the broken rule. Shares nothing with src/."""

import gzip
import re
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
            return value & ((1 << 64) - 1), at


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def fields(data):
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
        else:
            need(tag & 7 == 2, "wire type %d" % (tag & 7))
            size, at = varint(data, at)
            value, at = data[at : at + size], at + size
            need(at <= len(data), "field cut short")
        yield tag >> 3, value


def numbers(data, count):
    """A message of varints only: the value of each field number up to `count`."""
    out = [0] * (count + 1)
    for number, value in fields(data):
        need(number <= count and isinstance(value, int), "field %d" % number)
        out[number] = value
    return out


def packed(value):
    if isinstance(value, int):
        return [value]
    out, at = [], 0
    while at < len(value):
        v, at = varint(value, at)
        out.append(v)
    return out


def by_id(elements, what):
    out = {}
    for e in elements:
        need(e[1] != 0 and e[1] not in out, "%s id %d" % (what, e[1]))
        out[e[1]] = e
    return out


class Profile:
    def __init__(self, data):
        tables = {n: [] for n in range(1, 7)}
        self.scalars = {}
        for number, value in fields(data):
            if number in tables:
                tables[number].append(value)
            else:
                self.scalars[number] = value
        self.strings = [s.decode("utf-8") for s in tables[6]]
        need(self.strings and self.strings[0] == "", "string_table[0]")
        self.types = [self.value_type(t) for t in tables[1]]
        self.period_type = self.value_type(self.scalars.get(11, b""))
        self.mappings = by_id([numbers(m, 10) for m in tables[3]], "mapping")
        self.functions = by_id([numbers(f, 5) for f in tables[5]], "function")
        self.locations = by_id([self.location(l) for l in tables[4]], "location")
        self.samples = [self.sample(s) for s in tables[2]]
        need(self.types or not self.samples, "samples without types")

    def text(self, index):
        need(index < len(self.strings), "string %d" % index)
        return self.strings[index]

    def value_type(self, data):
        t = numbers(data, 2)
        return [re.sub("[\\s:{}\"'`,\\\\]", "_", self.text(i)) for i in t[1:]]

    def location(self, data):
        out = [0, 0, 0, 0, []]
        for number, value in fields(data):
            if number == 4:
                line = numbers(value, 3)
                need(line[1] in self.functions, "a line's function %d" % line[1])
                out[4].append(line)
            elif number < 4:
                out[number] = value
        need(out[2] == 0 or out[2] in self.mappings, "a location's mapping %d" % out[2])
        return out

    def sample(self, data):
        locations, values, labels = [], [], {}
        for number, value in fields(data):
            if number == 1:
                locations += packed(value)
            elif number == 2:
                values += [signed(v) for v in packed(value)]
            elif number == 3:
                label = numbers(value, 4)
                key = re.sub("[^a-zA-Z0-9_]", "_", self.text(label[1]))
                text = self.text(label[2]) if label[2] else str(signed(label[3]))
                labels.setdefault(key, text)
        need(len(values) == len(self.types), "%d values" % len(values))
        need(all(l in self.locations for l in locations), "a sample's location")
        return locations, values, labels

    def location_text(self, id):
        _, _, mapping, address, lines = self.locations[id]
        m = self.mappings.get(mapping, [0] * 11)
        build_id = self.text(m[6])
        if not re.fullmatch("[0-9a-fA-F]+|x[0-9a-f]{32}", build_id):
            build_id = ""
        out = " %x@%x-%x+%x,%s,%s/(" % (
            address,
            m[2],
            m[3],
            m[4],
            self.text(m[5]),
            build_id.lower(),
        )
        for line in lines:
            f = self.functions[line[1]]
            texts = [self.text(i) for i in f[2:5]]
            if not any(texts) and f[5] == 0:
                continue  # a function without a name, as some writers have it
            out += "%s|%s|%s|%d:%d:%d;" % (*texts, f[5], line[2], line[3])
        if address == 0 and not any(m[2:7]) and out.endswith("/("):
            return ""  # nothing is known of it
        return out + ")"

    def dump(self, name):
        out = {}
        duration = self.scalars.get(10, 0)
        for locations, values, labels in self.samples:
            tail = " {} {" + "".join("%s=%s," % kv for kv in sorted(labels.items())) + "} link="
            tail += "".join(self.location_text(l) for l in locations)
            for t, value in zip(self.types, values):
                line = ":".join([name] + t + self.period_type)
                line += ":delta" if duration else ""
                line += " period=%d duration=%d time=%d" % (
                    signed(self.scalars.get(12, 0)),
                    duration,
                    self.scalars.get(9, 0),
                )
                out[line + tail] = out.get(line + tail, 0) + value
        return out


def main():
    data = open(sys.argv[1], "rb").read()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    out = Profile(data).dump(sys.argv[2])
    for line in sorted(out, key=lambda s: s.encode()):
        if out[line]:
            sys.stdout.buffer.write(("%d %s\n" % (out[line], line)).encode())


try:
    main()
except (Broken, UnicodeDecodeError) as broken:
    sys.exit("broken: %s" % broken)
