#!/usr/bin/python3
"""Reads a store's MANIFEST as docs/formats/manifest.md describes it, and nothing else: the oracle of
the C reader.

    manifest_reader.py FILE...    for each: a line of its numbers, a line for each part, or
                                  "refused REASON"
"""

import struct
import sys

from part_reader import crc32c

ENTRY = "<QQQQqqqI"


def read(data):
    if len(data) < 68 or data[:8] != b"FIRNMANI":
        return ["refused header"]
    major, _, length, store, part, segment, sequence, count, size = \
        struct.unpack_from("<HHI16sQQQII", data, 8)
    if length != len(data) or struct.unpack_from("<I", data, length - 4)[0] != crc32c(data[:-4]):
        return ["refused checksum"]
    if major != 1:
        return [f"refused version {major}"]
    if size < 64 or 64 + size * count > length - 4:
        return ["refused entries"]
    lines = [f"store {store.hex()} next {part} {segment} {sequence}"]
    last = 0
    for i in range(count):
        id_, bytes_, rows, samples, first, end, resolution, level = \
            struct.unpack_from(ENTRY, data, 64 + size * i)
        assert id_ > last, "parts are not in order"
        last = id_
        lines.append(f"part {id_} {bytes_} {rows} {samples} {first} {end} {resolution} {level}")
    trusted = 0
    at = 64 + size * count
    while at < length - 4:
        if at + 8 > length - 4:
            return ["refused sections"]
        kind, bytes_ = struct.unpack_from("<II", data, at)
        at += 8
        if at + bytes_ > length - 4:
            return ["refused sections"]
        if kind == 1:
            if bytes_ % 24 or bytes_ > 24 * 65536:
                return ["refused sections"]
            for k in range(at, at + bytes_, 24):
                low, high, arrived = struct.unpack_from("<QQq", data, k)
                lines.append(f"removed {low:016x}{high:016x} {arrived}")
        if kind == 2:
            if bytes_ != 8:
                return ["refused sections"]
            trusted = struct.unpack_from("<q", data, at)[0]
        at += bytes_
    if trusted:
        lines.append(f"trusted {trusted}")
    return lines


def main():
    for path in sys.argv[1:]:
        with open(path, "rb") as f:
            print("\n".join(read(f.read())))


if __name__ == "__main__":
    main()
