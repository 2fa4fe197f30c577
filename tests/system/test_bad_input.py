#!/usr/bin/env python3
"""Bad input, each kind in each framing, to a real server: the status of the framing, a sentence that
names the field, nothing stored of what is refused, no growth, no crash. Messages are made here and by
tests/arrow and tests/parca, which share nothing with the server."""

import base64
import gzip
import json
import os
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ARROW = os.path.join(HERE, "..", "arrow")
PROGRAM = sys.argv[1]
sys.argv = [sys.argv[0], ARROW]
sys.path[:0] = [os.path.join(HERE, "..", "parca"), ARROW]

import parca_maker  # noqa: E402
from firn import Checks, Firn  # noqa: E402
from otlp import fixed64, message, number, varint  # noqa: E402

try:
    import grpcwire
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

STORE = "/parca.profilestore.v1alpha1.ProfileStoreService/"
EXPORT = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
INVALID, LIMIT, UNSUPPORTED = 3, 8, 12
HTTP = {0: (200,), INVALID: (400,), LIMIT: (422, 413)}
CONNECT = {**HTTP, LIMIT: (400,)}
Y2100 = 4102444800 * 10**9
DEEP = 65000


BOMB = gzip.compress(b"\0" * (300 << 20), 6)


def signed(field, value):
    return varint(field << 3) + varint(value)


# ---- pprof ----


def pprof(node, depth=1, time_ns=None, period=10, location=None, function=None, mapping=None, name=None,
          unit=None, label=b"a", value=3, order=None):
    """A WriteRawRequest of one sample; each argument puts one thing wrong."""
    texts = [b"", b"samples", b"count", b"cpu", b"nanoseconds", b"main", b"request", label]
    ids = b"".join(varint(1 + i % 7) for i in range(depth)) if location is None else varint(location)
    parts = [message(1, number(1, 1) + number(2, unit or 2))]
    parts.append(message(2, message(1, ids), message(2, varint(value)),
                         message(3, number(1, 6) + number(2, 7))))
    parts.append(message(3, number(1, 1) + number(2, 4096) + number(3, 1 << 20)))
    for i in range(7):
        line = message(4, number(1, function or 1))
        parts.append(message(4, number(1, i + 1) + number(2, mapping or 1) + number(3, 5000 + i) + line))
    parts.append(message(5, number(1, 1) + number(2, name or 5)))
    parts += [message(6, t) for t in texts]
    parts.append(signed(9, time.time_ns() if time_ns is None else time_ns))
    parts.append(number(10, 10**9))
    parts.append(message(11, number(1, 3) + number(2, 4)))
    parts.append(signed(12, period))
    if order:
        # Tables of one field number keep their order: its elements are numbered by it.
        parts.sort(key=lambda p: order(p[0] >> 3))
    return b"".join(parts)


def raw(node, profile):
    labels = b"".join(message(1, message(1, k), message(2, v)) for k, v in ((b"__name__", b"process_cpu"), (b"node", node.encode())))
    return message(1, labels), message(2, message(1, profile))


def write_raw(node, profile):
    """(protobuf, JSON) of a WriteRawRequest."""
    labels, sample = raw(node, profile)
    set_ = [{"name": "__name__", "value": "process_cpu"}, {"name": "node", "value": node}]
    body = {"series": [{"labels": {"labels": set_}, "samples": [{"rawProfile": base64.b64encode(profile).decode()}]}]}
    return message(2, labels, sample), json.dumps(body).encode()


def write_arrow(ipc):
    return message(1, ipc), json.dumps({"ipcBuffer": base64.b64encode(ipc).decode()}).encode()


# ---- OTLP ----


def otlp(node, depth=1, time_ns=None, period=10, duration=10**9, stack=None, location=None, function=None,
         string=None, mapping=None, name=b"main", value=3, swapped=False, attribute=None, link=None):
    """An ExportProfilesServiceRequest of one sample; each argument puts one thing wrong."""
    strings = [b"", b"samples", b"count", b"cpu", b"nanoseconds", name, b"key"]
    attributes = b"" if attribute is None else message(2, varint(attribute))
    sample = message(2, number(1, 1 if stack is None else stack), attributes,
                     number(3, link or 0), message(4, varint(value)))
    when = time.time_ns() if time_ns is None else time_ns
    profile = message(2, message(1, number(1, 1), number(2, 2)), sample,
                      fixed64(3, when & (1 << 64) - 1), signed(4, duration), message(5, number(1, 3), number(2, 4)),
                      signed(6, period))
    scope = message(2, message(1, message(1, b"bad")), profile)
    resource = message(1, message(1, message(1, b"node"), message(2, message(1, node.encode()))))
    locations = b"".join(varint(1 + i % 7 if location is None else location) for i in range(depth))
    dictionary = message(
        2,
        message(1),
        *[message(2, number(1, mapping or 0), number(2, 4096 + i), message(3, number(1, function or 1))) if i else message(2) for i in range(8)],
        message(3),
        message(3, number(1, string or 5)),
        message(4),
        *[message(5, s) for s in strings],
        message(6),
        message(7),
        message(7, message(1, locations)),
    )
    profiles = message(1, resource, scope)
    return dictionary + profiles if swapped else profiles + dictionary


# ---- the framings ----


def ways(address, path, sent, body=None, rest=None):
    """(name, gRPC or HTTP status, sentence, whether the status is HTTP's)"""
    wire = grpcwire.Http2(address)
    for name, compressed in (("gRPC", False), ("gRPC gzip", True)):
        status, text, messages = wire.call(path, [sent], compressed=compressed)
        yield name, status, text, False, messages
    wire.close()
    for name, text_form in (("gRPC-Web", False), ("gRPC-Web text", True)):
        status, text, messages = grpcwire.web(address, "/x" + path, sent, text_form)
        yield name, status, text, False, messages
    for name, compressed in (("Connect", False), ("Connect gzip", True)):
        status, answer = grpcwire.connect(address, path, sent, "application/proto", compressed=compressed)
        yield name, status, answer if status == 200 else answer["message"], True, [answer]
    if body:
        status, answer = grpcwire.connect(address, path, body, "application/json")
        yield "Connect JSON", status, answer if status == 200 else answer["message"], True, None
    if rest:
        status, _, data = grpcwire.post(address, rest, body, {"content-type": "application/json"})
        yield "REST", status, json.loads(data).get("message", ""), True, None


def http_otlp(address, sent):
    """OTLP's own HTTP, plain and in gzip: the error is a google.rpc.Status."""
    for name, headers, data in (("HTTP", {}, sent), ("HTTP gzip", {"content-encoding": "gzip"}, gzip.compress(sent))):
        kind = {"content-type": "application/x-protobuf"}
        status, _, answer = grpcwire.post(address, "/v1development/profiles", data, {**kind, **headers})
        yield name, status, answer.decode(errors="replace"), True, [answer]


def judge(c, what, answers, want, says):
    """Every framing gives the wanted status, and the sentence has the words."""
    wrong = []
    for name, status, text, is_http, _ in answers:
        codes = CONNECT if name.startswith("Connect") else HTTP
        good = status in codes[want] if is_http else status == want
        if not good or (want and says not in (text if isinstance(text, str) else "")):
            wrong.append((name, status, text[:200]))
    c.check(not wrong, f"{what}: {says or 'taken'}" + (f", but {wrong}" if wrong else ""))


def check_pprof(c, firn):
    def case(what, profile, want, says, node="bad"):
        sent, body = write_raw(node, profile)
        judge(c, f"pprof, {what}", ways(firn.address, STORE + "WriteRaw", sent, body, "/api/profiles/writeraw"), want, says)

    good = pprof("bad")
    case("gzip bomb", BOMB, LIMIT, "series[0]: samples[0]")
    case("location id", pprof("bad", location=9), INVALID, "sample[0]")
    case("function id", pprof("bad", function=9), INVALID, "location[0]: a line's function_id 9 does not exist")
    case("mapping id", pprof("bad", mapping=9), INVALID, "location[0]: mapping_id 9 does not exist")
    case("string of a function", pprof("bad", name=99), INVALID, "function[0]: name 99 does not exist")
    case("string of a type", pprof("bad", unit=99), INVALID, "sample_type or period_type: string 99 does not exist")
    case("negative string", pprof("bad", name=-1), INVALID, "function[0]: name 1844")
    case("negative period", pprof("bad", period=-5), INVALID, "period -5")
    case("time in 1970", pprof("bad", time_ns=77), INVALID, "time 1970-01-01T00:00:00Z (77 ns)")
    case("time in 2100", pprof("bad", time_ns=Y2100), INVALID, "time 2100-01-01T00:00:00Z")
    case("negative time", pprof("bad", time_ns=-5), INVALID, "time")
    for cut in (1, 7, len(good) // 2, len(good) - 3):
        case(f"cut at {cut}", good[:cut], INVALID, "series[0]: samples[0]")
    case("torn gzip", gzip.compress(good)[:-12], INVALID, "series[0]: samples[0]")
    case("nothing", b"", INVALID, "series[0]: samples[0]")
    case("text", b"this is no profile", INVALID, "series[0]: samples[0]")
    # Not wrong, only unusual.
    case("zero period", pprof("zero", period=0), 0, "", "zero")
    case("65,000 frames", pprof("deep", depth=DEEP), 0, "", "deep")
    case("not UTF-8", pprof("latin", label=b"a\xff\xfeb\xe4"), 0, "", "latin")
    case("fields from the last to the first", pprof("back", order=lambda n: -n), 0, "", "back")
    case("strings first", pprof("front", order=lambda n: n != 6), 0, "", "front")


def check_arrow(c, firn):
    def case(what, ipc, want, says):
        sent, body = write_arrow(ipc)
        judge(c, f"Arrow, {what}", ways(firn.address, STORE + "WriteArrow", sent, body, "/api/profiles/writearrow"), want, says)

    def rows(change=lambda r: r, count=5):
        made = [r for r in parca_maker.samples(5, 40) if r["value"] and len(r["stack"]) < 100][:count]
        for i, row in enumerate(made):
            row["labels"]["node"] = "bad"
            row["time"] = time.time_ns() - i * 1000
            change(row)
        return made

    good = parca_maker.stream_v2(rows(), "agent", "lz4")
    for cut in (3, len(good) // 3, len(good) - 40):
        case(f"cut at {cut}", good[:cut], INVALID, "ipc_buffer")
    # Messages of the stream, the last first.
    pieces, at = [], 0
    while at < len(good):
        assert good[at : at + 4] == b"\xff\xff\xff\xff"
        size = int.from_bytes(good[at + 4 : at + 8], "little")
        if size == 0:
            break
        body = parts_body(good[at + 8 : at + 8 + size])
        pieces.append(good[at : at + 8 + size + body])
        at += 8 + size + body
    case("record before its schema", b"".join(reversed(pieces)), INVALID, "ipc_buffer")
    case("record before its dictionaries", pieces[0] + pieces[-1], INVALID, "dictionary")
    case("two schemas", pieces[0] + good, INVALID, "ipc_buffer")
    case("time in 2100", parca_maker.stream_v2(rows(lambda r: r.update(time=Y2100)), "agent"), INVALID, "time 2100")
    case("time in 1970", parca_maker.stream_v2(rows(lambda r: r.update(time=77)), "agent"), INVALID, "1970")
    for name, ipc, says in parca_maker.bad():
        if name in ("minus_period", "minus_time", "zero_time", "int_stack"):
            case(name, ipc, INVALID, says)
        elif name in ("lines", "labels"):
            case(name, ipc, LIMIT, says)
    others = []
    good = parca_maker.stream_v2(rows(lambda r: r["labels"].update(node="holes")), "agent", "lz4")
    for i in range(0, len(good), 5):
        damaged = bytearray(good)
        damaged[i] ^= 0xFF
        wire = grpcwire.Http2(firn.address)
        status, text, _ = wire.call(STORE + "WriteArrow", [message(1, bytes(damaged))])
        wire.close()
        if status not in (0, INVALID, LIMIT, UNSUPPORTED) or (status and not text):
            others.append((i, status, text))
    c.check(not others, f"Arrow, each fifth byte turned round; answers of another kind: {others[:5]}")


def parts_body(metadata):
    """bodyLength of an Arrow message: field 3 of the flatbuffer's table."""
    root = int.from_bytes(metadata[0:4], "little")
    table = root - int.from_bytes(metadata[root : root + 4], "little", signed=True)
    size = int.from_bytes(metadata[table : table + 2], "little")
    slot = 4 + 2 * 3
    offset = int.from_bytes(metadata[table + slot : table + slot + 2], "little") if size > slot else 0
    return int.from_bytes(metadata[root + offset : root + offset + 8], "little") if offset else 0


def check_otlp(c, firn):
    def case(what, sent, want, says):
        answers = [*ways(firn.address, EXPORT, sent), *http_otlp(firn.address, sent)]
        judge(c, f"OTLP, {what}", answers, want, says)

    def partly(what, sent, says):
        """Taken with a partial success that says why."""
        wrong = []
        for name, status, _, is_http, messages in [*ways(firn.address, EXPORT, sent), *http_otlp(firn.address, sent)]:
            text = messages[0].decode(errors="replace") if messages else ""
            if status != (200 if is_http else 0) or says not in text:
                wrong.append((name, status, text[:200]))
        c.check(not wrong, f"OTLP, {what}: partial success, {says}" + (f", but {wrong}" if wrong else ""))

    good = otlp("bad")
    for cut in (3, len(good) // 2, len(good) - 3):
        case(f"cut at {cut}", good[:cut], INVALID, "")
    case("no dictionary", message(1, b""), INVALID, "dictionary")
    partly("stack index", otlp("bad", stack=99), "stack")
    partly("location index", otlp("bad", location=99), "location")
    partly("function index", otlp("bad", function=99), "function")
    partly("string index", otlp("bad", string=99), "string")
    partly("mapping index", otlp("bad", mapping=99), "mapping")
    partly("attribute index", otlp("bad", attribute=99), "attribute")
    partly("link index", otlp("bad", link=99), "link")
    partly("negative period", otlp("bad", period=-5), "period: -5")
    partly("time in 1970", otlp("bad", time_ns=77), "1970-01-01")
    partly("time in 2100", otlp("bad", time_ns=Y2100), "2100-01-01")
    case("zero period", otlp("zero", period=0), 0, "")
    case("65,000 frames", otlp("deep", depth=DEEP), 0, "")
    case("not UTF-8", otlp("latin", name=b"m\xff\xfe\xe4n"), 0, "")
    case("dictionary first", otlp("front", swapped=True), 0, "")
    for body, says in ((b'{"resourceProfiles":[{}]}', "dictionary"), (b'{"dictionary":{"stackTable":[{"locationIndices":["x"]}]}}', "location"), (b"{", "")):
        status, _, data = grpcwire.post(firn.address, "/v1development/profiles", body, {"content-type": "application/json"})
        c.check(status == 400 and says in json.loads(data)["message"], f"OTLP in JSON, {body[:30]}: {status} {data[:120]}")


def check_bombs(c, firn):
    """What unpacks to more than a message may have, in each framing that packs."""
    zeros = b"\0" * (70 << 20)
    wire = grpcwire.Http2(firn.address)
    for path in (EXPORT, STORE + "WriteRaw", STORE + "WriteArrow"):
        status, text, _ = wire.call(path, [zeros], compressed=True)
        c.check(status == LIMIT and text, f"gRPC, 70 MiB in gzip to {path.rpartition('/')[2]}: {status} {text}")
    wire.close()
    packed = gzip.compress(zeros)
    for kind, path, codes in (("application/proto", STORE + "WriteRaw", CONNECT), ("application/json", STORE + "WriteRaw", CONNECT),
                       ("application/x-protobuf", "/v1development/profiles", HTTP), ("application/json", "/v1development/profiles", HTTP),
                       ("application/json", "/api/profiles/writeraw", HTTP)):
        status, _, _ = grpcwire.post(firn.address, path, packed, {"content-type": kind, "content-encoding": "gzip"})
        c.check(status in codes[LIMIT], f"{kind} to {path}, 70 MiB in gzip: {status}")


def check_stream(c, firn):
    """Write (both ways) in the wrong order, and ended half way."""
    rows = [r for r in parca_maker.samples(9, 40) if r["value"] and len(r["stack"]) < 100][:9]
    for row in rows:
        row["labels"]["node"] = "bad"
        row["time"] = time.time_ns()
    samples, stacks = message(1, parca_maker.samples_v1(rows)), message(1, parca_maker.stacks_v1(rows))

    def call(messages):
        wire = grpcwire.Http2(firn.address)
        status, text, _ = wire.call(STORE + "Write", messages)
        wire.close()
        return status, text

    for what, messages, says in (
        ("stacks first", [stacks, samples], "record of samples"),
        ("samples alone", [samples], "before the stacks"),
        ("samples twice", [samples, samples], "record of stacks"),
        ("cut samples", [samples[:-30]], "malformed"),
        ("nonsense", [message(1, b"nonsense")], "record of samples"),
    ):
        status, text = call(messages)
        c.check(status == INVALID and says in text, f"Write, {what}: {status} {text}")


def top(firn, kind, node):
    answer = firn.json("/api/top", query=kind + '{node="%s"}' % node, **{"from": "now-1h"})
    return answer["total"], {row["name"]: row["total"] for row in answer["rows"]}


def check_stored(c, firn):
    """What was only unusual is there, what was wrong is not."""
    kinds = [t["type"] for t in firn.json("/api/types")["types"]]
    c.check(sum(top(firn, k, "bad")[0] for k in kinds) == 0, "nothing of the refused is stored")
    kind = "process_cpu:samples:count:cpu:nanoseconds:delta"
    for node, want in (("deep", 30), ("latin", 30), ("back", 30), ("front", 30)):
        total, names = top(firn, kind, node)
        c.check(total == want, f"pprof, {node}: {total} stored once, of {want}; {sorted(names)}")
    c.check("[truncated]" in top(firn, kind, "deep")[1], "deep stacks say that they were cut")
    values = firn.json("/api/labels/request/values")["values"]
    c.check("a\ufffd\ufffdb\ufffd" in values, f"bytes that are not UTF-8 are replaced: {values}")
    c.check("m\ufffd\ufffd\ufffdn" in top(firn, "bad:samples:count:cpu:nanoseconds:delta", "latin")[1], "in names too")
    for reason in ("old", "future"):
        text = f'firn_ingest_refused_samples_total{{reason="{reason}"}} '
        line = next(l for l in firn.get("/metrics").decode().splitlines() if l.startswith(text))
        c.check(float(line.split()[-1]) > 10, line)


def rss(firn):
    with open(f"/proc/{firn.process.pid}/status", encoding="utf-8") as file:
        return int(next(l for l in file if l.startswith("VmRSS")).split()[1]) // 1024


def main():
    c = Checks()
    with tempfile.TemporaryDirectory(prefix="firn-bad-") as directory:
        firn = Firn(PROGRAM, "server", directory)
        pid = firn.process.pid
        for turn in range(2):
            check_pprof(c, firn)
            check_arrow(c, firn)
            check_otlp(c, firn)
            check_bombs(c, firn)
            check_stream(c, firn)
            if turn == 0:
                check_stored(c, firn)
                first = rss(firn)
        grown = rss(firn) - first
        c.check(grown < 64, f"the second turn took {grown} MiB more than the first ({first})")
        c.check(firn.process.poll() is None and firn.process.pid == pid, "it is still the same process")
        c.check(firn.stop() == 0, "it stops")
    c.finish()


if __name__ == "__main__":
    main()
