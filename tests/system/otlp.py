"""An ExportProfilesServiceRequest of OTLP v1development, written field by field from the published
schema: an encoder that shares nothing with the one under test."""

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


def fixed64(field, value):
    return varint(field << 3 | 1) + struct.pack("<Q", value) if value else b""


def message(field, *parts):
    body = b"".join(parts)
    return varint(field << 3 | 2) + varint(len(body)) + body


def text(field, value):
    return message(field, value.encode()) if value else b""


def attribute(key, value):
    """A KeyValue with a string."""
    return text(1, key) + message(2, text(1, value))


def request(name, stacks, resource, time_ns, duration_ns=1_000_000_000, sample_type="samples", unit="count"):
    """stacks: [(function names, leaf first; value)]. One resource, one profile."""
    strings, functions = [""], []

    def string(value):
        if value not in strings:
            strings.append(value)
        return strings.index(value)

    index = {}
    stack_table = [b""]
    samples = []
    for names, value in stacks:
        locations = []
        for function in names:
            if function not in index:
                strings.append(function)
                index[function] = len(functions) + 1
                functions.append(len(strings) - 1)
            locations.append(index[function])
        stack_table.append(message(1, *map(varint, locations)))
        samples.append(message(2, number(1, len(stack_table) - 1), message(4, varint(value))))
    sample_value_type = number(1, string(sample_type)) + number(2, string(unit))
    period_type = number(1, string("cpu")) + number(2, string("nanoseconds"))
    profile = message(
        2,
        message(1, sample_value_type),
        *samples,
        fixed64(3, time_ns),
        number(4, duration_ns),
        message(5, period_type),
    )
    scope = message(2, message(1, text(1, name)), profile)
    attributes = [message(1, attribute(k, v)) for k, v in resource.items()]
    dictionary = message(
        2,
        message(1),
        message(2),
        *[message(2, message(3, number(1, i + 1))) for i in range(len(functions))],
        message(3),
        *[message(3, number(1, s)) for s in functions],
        message(4),
        *[message(5, s.encode()) for s in strings],
        message(6),
        *[message(7, s) for s in stack_table],
    )
    return message(1, message(1, *attributes), scope) + dictionary
