"""Protobuf's wire format by hand: shares nothing with the code under test."""

import struct


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value) if value else b""


def message(field, *parts):
    body = b"".join(parts)
    return varint(field << 3 | 2) + varint(len(body)) + body


def text(field, value):
    return message(field, value.encode()) if value else b""


def real(field, value):
    """A float."""
    return varint(field << 3 | 5) + struct.pack("<f", value) if value else b""


def time(field, ns):
    return message(field, number(1, ns // 10**9), number(2, ns % 10**9))


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data):
    """{number: [values]}; nested messages stay bytes."""
    out, at = {}, 0
    while at < len(data):
        tag, at = read_varint(data, at)
        wire = tag & 7
        if wire == 0:
            value, at = read_varint(data, at)
        elif wire == 1:
            value, at = data[at : at + 8], at + 8
        elif wire == 2:
            size, at = read_varint(data, at)
            value, at = data[at : at + size], at + size
            assert len(value) == size
        else:
            assert wire == 5
            value, at = data[at : at + 4], at + 4
        out.setdefault(tag >> 3, []).append(value)
    return out


def one(message_fields, field, default=0):
    return message_fields.get(field, [default])[-1]


def signed(value):
    return value - (1 << 64) if value >= 1 << 63 else value


def packed(values):
    """Numbers of a repeated field, packed or not."""
    out = []
    for value in values:
        if isinstance(value, int):
            out.append(value)
            continue
        at = 0
        while at < len(value):
            item, at = read_varint(value, at)
            out.append(item)
    return out
