#!/usr/bin/env python3
"""Our tables against protobuf's own library: every descriptor loads, JSON both ways agrees.

Random messages of every type (the seed is printed): protobuf's bytes become JSON by our encoder and
by protobuf's, which must mean the same; protobuf's JSON becomes bytes by our decoder, which protobuf
must read as the message it was. Where protoc is there, it must make the same descriptors of the
files in proto/ as tools/proto.py did.
"""

import json
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile

try:
    from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
except ImportError:
    print("skipped: python3-protobuf is not installed")
    sys.exit(77)

DUMP = sys.argv[1]
ROOT = pathlib.Path(__file__).resolve().parents[2]
EACH = 25
HEX = ("traceId", "spanId")


def run(arguments, chunks=()):
    sent = b"".join(struct.pack("<I", len(c)) + c for c in chunks)
    out = subprocess.run([DUMP, *arguments], input=sent, capture_output=True, check=True).stdout
    parts, at = [], 0
    while at < len(out):
        (size,) = struct.unpack_from("<I", out, at)
        at += 4
        if size == 0xFFFFFFFF:
            parts.append(None)
        else:
            parts.append(out[at : at + size])
            at += size
    return parts


def scalar(rng, field):
    kind = field.type
    text = "".join(rng.choice("aZ 0\u00e9\U0001f600\"\\\n\u2028") for _ in range(rng.randrange(6)))
    edges32 = [0, 1, -1, 2**31 - 1, -(2**31), rng.randrange(2**31)]
    edges64 = [0, 1, -1, 2**63 - 1, -(2**63), rng.randrange(2**63)]
    if kind in (field.TYPE_INT32, field.TYPE_SINT32, field.TYPE_SFIXED32):
        return rng.choice(edges32)
    if kind in (field.TYPE_INT64, field.TYPE_SINT64, field.TYPE_SFIXED64):
        return rng.choice(edges64)
    if kind in (field.TYPE_UINT32, field.TYPE_FIXED32):
        return rng.choice(edges32) % 2**32
    if kind in (field.TYPE_UINT64, field.TYPE_FIXED64):
        return rng.choice(edges64) % 2**64
    if kind == field.TYPE_DOUBLE:
        return rng.choice([0.0, 1.5, -1e300, 5e-324, rng.random(), float("inf"), float("nan")])
    if kind == field.TYPE_FLOAT:
        return struct.unpack("<f", struct.pack("<f", rng.uniform(-1e6, 1e6)))[0]
    if kind == field.TYPE_BOOL:
        return rng.random() < 0.5
    if kind == field.TYPE_STRING:
        return text
    if kind == field.TYPE_BYTES:
        return rng.randbytes(rng.randrange(8))
    assert kind == field.TYPE_ENUM, kind
    return rng.choice(field.enum_type.values).number


def fill(rng, message, depth):
    if message.DESCRIPTOR.full_name.startswith("google.protobuf."):
        timestamp = message.DESCRIPTOR.name == "Timestamp"
        low, high = (-62135596800, 253402300799) if timestamp else (-315576000000, 315576000000)
        message.seconds = rng.choice([0, rng.randrange(low, high)])
        message.nanos = rng.choice([0, 500000000, 1000, rng.randrange(10**9)])
        if message.seconds < 0 and not timestamp:
            message.nanos = -message.nanos
        return
    for field in message.DESCRIPTOR.fields:
        if rng.random() < 0.4:
            continue
        repeated = field.label == field.LABEL_REPEATED
        count = rng.randrange(1, 4) if repeated else 1
        is_map = field.message_type and field.message_type.GetOptions().map_entry
        for _ in range(count):
            if is_map:
                value = field.message_type.fields_by_name["value"]
                key = "k" + str(rng.randrange(100))
                if value.message_type:
                    fill(rng, getattr(message, field.name)[key], depth + 1)
                else:
                    getattr(message, field.name)[key] = scalar(rng, value)
            elif field.message_type:
                if depth < 4:
                    inner = getattr(message, field.name)
                    inner = inner.add() if repeated else inner
                    inner.SetInParent()
                    fill(rng, inner, depth + 1)
            elif repeated:
                getattr(message, field.name).append(scalar(rng, field))
            else:
                setattr(message, field.name, scalar(rng, field))


def hexes(value):
    """OTLP's ids from base64 to hexadecimal, as OTLP's JSON has them."""
    import base64

    if isinstance(value, list):
        return [hexes(v) for v in value]
    if not isinstance(value, dict):
        return value
    return {
        k: base64.b64decode(v).hex() if k in HEX and isinstance(v, str) else hexes(v)
        for k, v in value.items()
    }


def same(a, b):
    """Equal, and NaN too."""
    return a == b or json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True)


def convert(how, names, contents):
    """All of them by one process."""
    parts = run([how], [part for pair in zip(names, contents) for part in pair])
    assert len(parts) == len(names), (how, len(parts), len(names))
    return parts


def check_types(rng, kinds):
    """Of (class, name) each EACH random messages; returns how many conversions agree."""
    messages, names = [], []
    for kind, name in kinds:
        for _ in range(EACH):
            message = kind()
            fill(rng, message, 0)
            messages.append(message)
            names.append(name)
    contents = [m.SerializeToString() for m in messages]
    ours = convert("encode", [n.encode() for n in names], contents)
    texts = []
    for name, message, text in zip(names, messages, ours):
        assert text is not None, (name, message)
        want = json.loads(json_format.MessageToJson(message))
        want = hexes(want) if name.startswith("opentelemetry.") else want
        got = json.loads(text)
        assert same(got, want), (name, got, want)
        texts.append(json.dumps(want).encode())
    back = convert("decode", [n.encode() for n in names], texts)
    for name, message, text, data in zip(names, messages, texts, back):
        assert data is not None, (name, text)
        again = type(message).FromString(data)
        if "NaN" not in text.decode():
            assert again == message, (name, again, message)
    return 2 * len(messages)


def by_protoc(names):
    """What protoc makes of proto/, by name; None without protoc."""
    if not shutil.which("protoc"):
        return None
    folder = ROOT / "proto"
    there = {p.relative_to(folder).as_posix() for p in folder.rglob("*.proto")}
    assert there == set(names), (there ^ set(names), "is in one of proto/ and meson.build only")
    with tempfile.NamedTemporaryFile() as out:
        command = ["protoc", "-I", folder, f"--descriptor_set_out={out.name}", *sorted(there)]
        subprocess.run(command, check=True)
        files = descriptor_pb2.FileDescriptorSet.FromString(out.read()).file
    return {f.name: f for f in files}


def check_refusals():
    """What tools/proto.py does not know is an error with its line."""
    head = 'syntax = "proto3";\npackage a.v1;\n'
    bad = {
        head + "message M {\n  string s = 1 [deprecated = true];\n}": "a.proto:4: '[deprecate' is not known",
        head + "message M { Gone g = 1; }": "Gone is not declared",
        head + "service S {}": "a.proto:3: service S has no comment",
        head + 'import "gone.proto";': "gone.proto is not there",
        head + "message M { group G = 1 {} }": "a.proto:3: '{'",
        head + "message M {": "the file ends here",
    }
    for text, sentence in bad.items():
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "a.proto").write_text(text)
            command = [sys.executable, ROOT / "tools/proto.py", folder + "/o", folder, "a.proto"]
            run = subprocess.run(command, capture_output=True, text=True)
        assert run.returncode == 1 and sentence in run.stderr, (text, run.stderr)


def main():
    check_refusals()
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(10**9)
    rng = random.Random(seed)
    print(f"seed {seed}")
    pool = descriptor_pool.DescriptorPool()
    files = [descriptor_pb2.FileDescriptorProto.FromString(raw) for raw in run([])]
    for proto in files:
        pool.Add(proto)
    theirs = by_protoc([f.name for f in files])
    for proto in files if theirs else []:
        assert proto == theirs[proto.name], (proto, theirs[proto.name])
    kinds = []
    for proto in files:
        file = pool.FindFileByName(proto.name)
        for service in file.services_by_name.values():
            assert service.methods, service.full_name
        if proto.package == "google.protobuf":
            continue
        for descriptor in file.message_types_by_name.values():
            kind = message_factory.MessageFactory(pool).GetPrototype(descriptor)
            kinds.append((kind, descriptor.full_name))
    checked = check_types(rng, kinds)
    print(f"{len(files)} files, {len(kinds)} messages, {checked} conversions agree")
    print("protoc makes the same descriptors" if theirs else "protoc is not there to compare with")


main()
