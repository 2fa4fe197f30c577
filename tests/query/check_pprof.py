#!/usr/bin/env python3
"""Is FILE (gzipped or not) a profile.proto that pprof takes? Written from proto/profile.proto and
the rules of CheckValid in github.com/google/pprof/profile, without any library for protobuf.

    check_pprof.py FILE [TYPE/UNIT=SUM ...] [--not TYPE/UNIT=SUM ...]

Prints the sum of each sample type, "samples/count=5 cpu/nanoseconds=50", and ends with status 1 and
a sentence if a rule is broken, a sum is not the one that was given, or is one of those after --not.
"""

import gzip
import sys


class Broken(Exception):
    pass


def need(condition, sentence):
    if not condition:
        raise Broken(sentence)


def varint(data, at):
    value = shift = 0
    while True:
        need(at < len(data), f"torn varint at {at}")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
        need(shift < 70, f"varint of more than ten bytes at {at}")
    return value & (2**64 - 1), at


def fields(data):
    """(number, wire type, value) of a message, in order."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        number, wire = key >> 3, key & 7
        need(number > 0, "field number 0")
        if wire == 0:
            value, at = varint(data, at)
        elif wire == 2:
            length, at = varint(data, at)
            need(at + length <= len(data), f"field {number} passes the end")
            value, at = data[at : at + length], at + length
        elif wire in (1, 5):
            length = 8 if wire == 1 else 4
            need(at + length <= len(data), f"field {number} passes the end")
            value, at = int.from_bytes(data[at : at + length], "little"), at + length
        else:
            raise Broken(f"field {number} has wire type {wire}")
        yield number, wire, value


def signed(value):
    return value - 2**64 if value >= 2**63 else value


def message(data, scalars=(), repeated=(), messages=()):
    """Fields by number: the last of a scalar, lists of the rest. Other fields are not known."""
    out = {n: 0 for n in scalars} | {n: [] for n in (*repeated, *messages)}
    for number, wire, value in fields(data):
        if number in scalars:
            need(wire == 0, f"field {number} is no varint")
            out[number] = value
        elif number in messages:
            need(wire == 2, f"field {number} is no message")
            out[number].append(value)
        elif number in repeated and wire == 0:
            out[number].append(value)
        elif number in repeated:
            need(wire == 2, f"field {number} is not packed")
            at = 0
            while at < len(value):
                one, at = varint(value, at)
                out[number].append(one)
        else:
            raise Broken(f"field {number} is not in profile.proto")
    return out


def ids_of(records, what):
    seen = set()
    for record in records:
        need(record[1] != 0, f"{what} with the reserved id 0")
        need(record[1] not in seen, f"{what} {record[1]} is there twice")
        seen.add(record[1])
    return seen


def check_locations(profile, text):
    mappings = [message(m, scalars=range(1, 11)) for m in profile[3]]
    functions = [message(f, scalars=range(1, 6)) for f in profile[5]]
    locations = [message(l, scalars=(1, 2, 3, 5), messages=(4,)) for l in profile[4]]
    mapping_ids, function_ids = ids_of(mappings, "mapping"), ids_of(functions, "function")
    location_ids = ids_of(locations, "location")
    for mapping in mappings:
        need(mapping[2] <= mapping[3], f"mapping {mapping[1]} ends before it begins")
        text(mapping[5]), text(mapping[6])
    for function in functions:
        need(text(function[2]) or text(function[3]), f"function {function[1]} has no name")
        text(function[4])
    for location in locations:
        need(location[2] == 0 or location[2] in mapping_ids, f"location {location[1]}: no mapping {location[2]}")
        for raw in location[4]:
            line = message(raw, scalars=(1, 2, 3))
            need(line[1] in function_ids, f"location {location[1]}: no function {line[1]}")
    return location_ids


def check(data):
    """Sums by "type/unit"; raises Broken."""
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    profile = message(data, scalars=(7, 8, 9, 10, 12, 14, 15), repeated=(13,), messages=(1, 2, 3, 4, 5, 6, 11))
    strings = [s.decode() for s in profile[6]]
    need(strings and strings[0] == "", "string 0 is not empty")
    need(len(set(strings)) == len(strings), "a string is there twice")

    def text(index):
        need(index < len(strings), f"no string {index}")
        return strings[index]

    types = [message(t, scalars=(1, 2)) for t in profile[1]]
    names = [f"{text(t[1])}/{text(t[2])}" for t in types]
    need(len(set(names)) == len(names), f"a sample type is there twice: {names}")
    need(types or not profile[2], "samples without a sample type")
    for period_type in profile[11]:
        period = message(period_type, scalars=(1, 2))
        text(period[1]), text(period[2])
    text(profile[14])
    need(signed(profile[9]) >= 0 and signed(profile[10]) >= 0, "a time or duration below zero")
    location_ids = check_locations(profile, text)
    sums, keys = [0] * len(types), set()
    for raw in profile[2]:
        sample = message(raw, repeated=(1, 2), messages=(3,))
        need(len(sample[2]) == len(types), f"{len(sample[2])} values of {len(types)} types")
        need(all(i in location_ids for i in sample[1]), "a sample with a location that is not there")
        labels = []
        for raw_label in sample[3]:
            label = message(raw_label, scalars=(1, 2, 3, 4))
            need(text(label[1]), "a label without a name")
            need(not (label[2] and label[3]), "a label with a text and a number")
            labels.append((text(label[1]), text(label[2]), label[3], text(label[4])))
        key = (tuple(sample[1]), tuple(sorted(labels)))
        need(key not in keys, "two samples with the same stack and labels")
        keys.add(key)
        for i, value in enumerate(sample[2]):
            sums[i] += signed(value)
    return dict(zip(names, sums))


def need_sum(sums, wanted):
    name, _, value = wanted.rpartition("=")
    need(sums.get(name) == int(value), f"{name} sums to {sums.get(name)}, not {value}")


def refuses(sums, wanted):
    try:
        need_sum(sums, wanted)
    except Broken:
        return True
    return False


def main():
    with open(sys.argv[1], "rb") as file:
        data = file.read()
    rest = sys.argv[2:]
    split = rest.index("--not") if "--not" in rest else len(rest)
    try:
        sums = check(data)
        for wanted in rest[:split]:
            need_sum(sums, wanted)
        for wanted in rest[split + 1 :]:
            need(refuses(sums, wanted), f"{wanted} is not refused")
    except (Broken, UnicodeDecodeError, EOFError, gzip.BadGzipFile) as error:
        print(f"{sys.argv[1]}: {error}", file=sys.stderr)
        return 1
    print(" ".join(f"{name}={value}" for name, value in sums.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
