"""profile.proto to and from plain Python: a profile is a Profile with samples of (frames, labels,
values); frames are root first, inlined calls unfolded."""

import gzip
import random
from dataclasses import dataclass, field

from protobuf import fields, message, number, one, packed, signed, text, varint


@dataclass(frozen=True)
class Frame:
    function: str  # "" where the address has no name
    file: str
    line: int
    binary: str
    address: int


@dataclass
class Sample:
    frames: tuple  # root first
    labels: dict
    values: list


@dataclass
class Profile:
    types: list  # (type, unit)
    period_type: tuple
    period: int
    time_ns: int
    duration_ns: int
    samples: list = field(default_factory=list)


def parse(data):
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    top = fields(data)
    strings = [s.decode() for s in top.get(6, [])]

    def value_type(raw):
        parts = fields(raw)
        return strings[one(parts, 1)], strings[one(parts, 2)]

    functions = {}
    for raw in top.get(5, []):
        parts = fields(raw)
        functions[one(parts, 1)] = (strings[one(parts, 2)] or strings[one(parts, 3)], strings[one(parts, 4)])
    mappings = {0: ""}
    for raw in top.get(3, []):
        parts = fields(raw)
        mappings[one(parts, 1)] = strings[one(parts, 5)]
    locations = {}
    for raw in top.get(4, []):
        parts = fields(raw)
        binary, address = mappings[one(parts, 2)], one(parts, 3)
        frames = []
        for line in reversed(parts.get(4, [])):
            line = fields(line)
            name, file = functions[one(line, 1)]
            frames.append(Frame(name, file, signed(one(line, 2)), binary, address))
        frames = frames or [Frame("", "", 0, binary, address)]
        # What has neither function, binary nor address says nothing, and is no frame.
        locations[one(parts, 1)] = [f for f in frames if f.function or f.binary or f.address]
    profile = Profile(
        [value_type(raw) for raw in top.get(1, [])],
        value_type(top[11][0]) if 11 in top else ("", ""),
        signed(one(top, 12)),
        signed(one(top, 9)),
        signed(one(top, 10)),
    )
    for raw in top.get(2, []):
        parts = fields(raw)
        frames = []
        for location in reversed(packed(parts.get(1, []))):
            frames += locations[location]
        labels = {}
        for label in parts.get(3, []):
            label = fields(label)
            if one(label, 2):
                labels[strings[one(label, 1)]] = strings[one(label, 2)]
        profile.samples.append(Sample(tuple(frames), labels, [signed(v) for v in packed(parts.get(2, []))]))
    return profile


def encode(types, period_type, period, time_ns, duration_ns, samples, locations):
    """samples: (location numbers leaf first, labels, values); locations: (binary, address, [(function,
    file, line), innermost first])."""
    strings, functions, binaries = {"": 0}, {}, {}

    def string(value):
        return strings.setdefault(value, len(strings))

    out = [message(1, number(1, string(t)), number(2, string(u))) for t, u in types]
    for stack, labels, values in samples:
        pairs = [message(3, number(1, string(k)), number(2, string(v))) for k, v in labels.items()]
        numbers = message(2, b"".join(map(varint, values)))
        out.append(message(2, message(1, b"".join(varint(i + 1) for i in stack)), numbers, *pairs))
    for i, (binary, address, lines) in enumerate(locations):
        mapping = binaries.setdefault(binary, len(binaries) + 1) if binary else 0
        parts = [number(1, i + 1), number(2, mapping), number(3, address)]
        for function, file, line in lines:
            ident = functions.setdefault((function, file), len(functions) + 1)
            parts.append(message(4, number(1, ident), number(2, line)))
        out.append(message(4, *parts))
    for binary, ident in binaries.items():
        limits = number(2, 0x1000), number(3, 0x7FFFFFFF)
        out.append(message(3, number(1, ident), *limits, number(5, string(binary)), number(7, 1)))
    for (function, file), ident in functions.items():
        names = number(2, string(function)), number(3, string(function)), number(4, string(file))
        out.append(message(5, number(1, ident), *names))
    out.append(number(9, time_ns) + number(10, duration_ns))
    out.append(message(11, number(1, string(period_type[0])), number(2, string(period_type[1]))))
    out.append(number(12, period))
    out += [message(6, value.encode()) for value in strings]
    return gzip.compress(b"".join(out))


NAMES = ["main", "Main.run", "parse<int>(char const*)", "runtime.mallocgc", "std::sort", "ünïcode", "a;b"]


def made(seed, types, period_type, period, time_ns, stacks=120):
    """A profile of every kind of stack: inlined calls, recursion, no names, no mapping, no frames."""
    rng = random.Random(seed)
    names = NAMES + [f"function_{i}" for i in range(25)]
    locations = []
    for i in range(60):
        binary = rng.choice(["/usr/bin/app", "/usr/lib/libx.so.1", "/opt/app/libx.so.1", "[kernel.kallsyms]"])
        lines = []
        for _ in range(rng.choice([1, 1, 1, 2, 3])):
            lines.append((rng.choice(names), f"/src/{rng.choice('abc')}/file.c", rng.randrange(1, 400)))
        if i % 15 == 0:
            lines = []
        locations.append((binary, 0x2000 + 16 * i, lines))
    samples = []
    for i in range(stacks):
        depth = 0 if i == 0 else rng.randrange(1, 25)
        stack = [rng.randrange(len(locations)) for _ in range(depth)]
        labels = {"thread": rng.choice(["io", "worker", "gc"])} if rng.random() < 0.8 else {}
        samples.append((stack, labels, [rng.randrange(1, 1000) for _ in types]))
    return encode(types, period_type, period, time_ns, 10**10, samples, locations)
