#!/usr/bin/env python3
"""What Parca's agents and OTLP senders write, to a real server in each framing: the same samples come
in, the same mistakes are refused with the framing's own status and a sentence that names the field.
Messages are made by tests/arrow and tests/parca, which share nothing with the server."""

import base64
import json
import os
import struct
import sys
import tempfile
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
ARROW = os.path.join(HERE, "..", "arrow")
PROGRAM = sys.argv[1]
sys.argv = [sys.argv[0], ARROW]
sys.path[:0] = [os.path.join(HERE, "..", "parca"), ARROW]

import parca_maker  # noqa: E402
from firn import Checks, Firn  # noqa: E402

try:
    import grpcwire
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

STORE = "/parca.profilestore.v1alpha1.ProfileStoreService/"
AGENTS = "/parca.profilestore.v1alpha1.AgentsService/Agents"
PANIC = "/parca.telemetry.v1alpha1.TelemetryService/ReportPanic"


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def number(field_number, value):
    return varint(field_number << 3) + varint(value)


def fields(data):
    """[(number, bytes)] of the fields of bytes in a message."""
    out, at = [], 0

    def take():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        tag = take()
        size = take()
        if tag & 7 == 2:
            out.append((tag >> 3, data[at : at + size]))
            at += size
    return out


def rows(count, node, shift=0):
    """Samples of now, none of value 0."""
    out = [r for r in parca_maker.samples(11, 3 * count) if r["value"] and len(r["stack"]) < 100]
    for i, row in enumerate(out[:count]):
        row["labels"]["node"] = node
        row["time"] = time.time_ns() - shift - i * 1000
    return out[:count]


def pprof(node, values, when, period=10):
    """A WriteRawRequest: one profile of one stack with a label of its own in each sample."""
    texts = [b"", b"samples", b"count", b"cpu", b"nanoseconds", b"main", b"request", b"a", b"b"]
    out = field(1, number(1, 1) + number(2, 2))
    for i, value in enumerate(values):
        label = field(3, number(1, 6) + number(2, 7 + i % 2))
        out += field(2, field(1, varint(1)) + field(2, varint(value)) + label)
    out += field(4, number(1, 1) + number(3, 4096) + field(4, number(1, 1)))
    out += field(5, number(1, 1) + number(2, 5))
    out += b"".join(field(6, t) for t in texts)
    out += number(9, when) + number(10, 10**9) + field(11, number(1, 3) + number(2, 4))
    out += number(12, period & (1 << 64) - 1)
    labels = field(1, field(1, b"__name__") + field(2, b"process_cpu"))
    labels += field(1, field(1, b"node") + field(2, node.encode()))
    return field(2, field(1, labels) + field(2, field(1, out)))


def unary(address, path, message):
    """(name of the framing, status, sentence) by each way in."""
    wire = grpcwire.Http2(address)
    status, text, _ = wire.call(path, [message])
    wire.close()
    yield "gRPC", status, text
    status, text, _ = grpcwire.web(address, path, message)
    yield "gRPC-Web", status, text
    status, text, _ = grpcwire.web(address, path, message, text=True)
    yield "gRPC-Web text", status, text
    status, answer = grpcwire.connect(address, path, message, "application/proto")
    yield "Connect", status, answer["message"] if status != 200 else ""


def rest(address, path, body):
    status, _, data = grpcwire.post(
        address, path, json.dumps(body).encode(), {"content-type": "application/json"}
    )
    return status, json.loads(data)


def check_good(c, firn):
    """One batch each way; a batch that comes twice is stored once."""
    ways = ("grpc", "web", "connect")
    for way in ways:
        message = field(1, parca_maker.stream_v2(rows(40, way), "agent", "lz4"))
        for _ in range(2):
            if way == "grpc":
                wire = grpcwire.Http2(firn.address)
                answer = wire.call(STORE + "WriteArrow", [message])
                wire.close()
            elif way == "web":
                answer = grpcwire.web(firn.address, STORE + "WriteArrow", message)
            else:
                answer = grpcwire.connect(
                    firn.address, STORE + "WriteArrow", message, "application/proto"
                )
            c.check(answer[0] in (0, 200), f"WriteArrow by {way}: {answer[:2]}")
    ipc = parca_maker.stream_v2(rows(40, "rest"), "odd")
    answer = rest(
        firn.address, "/api/profiles/writearrow", {"ipcBuffer": base64.b64encode(ipc).decode()}
    )
    c.check(answer == (200, {}), f"WriteArrow by REST: {answer}")
    raw = pprof("raw", [3, 4], time.time_ns())
    for framing, status, text in unary(firn.address, STORE + "WriteRaw", raw):
        c.check(status in (0, 200), f"WriteRaw by {framing}: {status} {text}")


def stored(firn, node):
    """Sum of the samples' values, over all types."""
    total = 0
    for t in firn.json("/api/types")["types"]:
        query = t["type"] + '{node="%s"}' % node
        answer = firn.json("/api/top", query=query, **{"from": "now-1h"})
        total += answer["total"]
    return total


def check_stored(c, firn):
    for way in ("grpc", "web", "connect", "rest"):
        want = 0
        for row in rows(40, way):
            kind = row["type"]
            scale = kind[5] if kind[1:3] == ("samples", "count") else 1
            want += row["value"] * scale
        # Gauges are averaged over their points in time: each sample has its own.
        gauges = [r for r in rows(40, way) if r["type"][6] == 0]
        if gauges:
            want -= sum(r["value"] for r in gauges)
        got = sum(
            firn.json("/api/top", query=t["type"] + '{node="%s"}' % way, **{"from": "now-1h"})["total"]
            for t in firn.json("/api/types")["types"]
            if t["delta"]
        )
        c.check(got == want, f"{way}: stored {got}, sent {want}")
    got = stored(firn, "raw")
    c.check(got == 70, f"pprof: stored {got}, sent 7 of period 10, four times the same")
    values = firn.json("/api/labels/request/values")["values"]
    c.check(values == ["a", "b"], f"labels of pprof samples are kept: {values}")


def check_bad(c, firn):
    """The status of each framing, and a sentence that says which field."""
    good = rows(5, "bad")
    arrow = parca_maker.stream_v2(good, "agent")
    bad = {name: data for name, data, _ in parca_maker.bad()}
    far = pprof("bad", [1], 4102444800 * 10**9)
    cases = (
        ("torn IPC", "WriteArrow", field(1, arrow[: len(arrow) // 2]), "cut short"),
        ("no IPC", "WriteArrow", field(1, b"nonsense"), "ipc_buffer: message at byte 0"),
        ("negative period", "WriteArrow", field(1, bad["minus_period"]), "row 0: period -1"),
        ("schema v1", "WriteArrow", field(1, bad["v1"]), "call Write"),
        ("no name", "WriteRaw", field(2, field(2, b"")), "series[0]: no label __name__"),
        ("torn pprof", "WriteRaw", pprof("bad", [1], 1)[:-5] + b"\xff\xff\xff\xff\xff", "series[0]"),
        ("time in 2100", "WriteRaw", far, "time 2100-01-01T00:00:00Z"),
        ("time in 1970", "WriteRaw", pprof("bad", [1], 77), "time 1970-01-01T00:00:00Z (77 ns)"),
        ("pprof period", "WriteRaw", pprof("bad", [1], 0, -5), "period -5"),
    )
    for name, method, message, says in cases:
        for framing, status, text in unary(firn.address, STORE + method, message):
            want = 400 if framing == "Connect" else 3
            ok = status == want and says in text
            c.check(ok, f"{name} by {framing}: {status} {text}")
    status, answer = rest(
        firn.address,
        "/api/profiles/writearrow",
        {"ipcBuffer": base64.b64encode(arrow[:50]).decode()},
    )
    c.check(status == 400 and "ipc_buffer" in json.dumps(answer), f"REST: {status} {answer}")
    c.check(stored(firn, "bad") == 0, "nothing of them is stored")


def check_stream(c, firn):
    """Write, both ways: asked once, known the second time."""
    for turn, asks in ((0, True), (1, False)):
        batch = rows(30, "stream", turn * 10**9)
        wire = grpcwire.Http2(firn.address)
        wire.open(STORE + "Write")
        wire.send(grpcwire.frame(field(1, parca_maker.samples_v1(batch))))
        while not wire.answer["ended"] and len(wire.answer["data"]) < 5:
            wire.events()
        asked = wire.answer["data"]
        if asks:
            size = struct.unpack_from(">BI", asked)[1]
            while len(wire.answer["data"]) < 5 + size:
                wire.events()
            wire.send(grpcwire.frame(field(1, parca_maker.stacks_v1(batch))), end=True)
        status, text, messages = wire.result(wire.finish())
        wire.close()
        c.check(status == 0 and bool(messages) == asks, f"Write: {status} {text}, asks: {asks}")
    wire = grpcwire.Http2(firn.address)
    status, text, _ = wire.call(STORE + "Write", [])
    wire.close()
    c.check(status == 3 and "first message" in text, f"an empty Write: {status} {text}")
    c.check(firn.metric("firn_ingest_known_stacks_total") > 3, "known stacks are counted")


def check_others(c, firn):
    for framing, status, text in unary(firn.address, PANIC, field(1, b"panic: no\n")):
        c.check(status in (0, 200), f"ReportPanic by {framing}: {status} {text}")
    c.check(firn.metric("firn_agent_panics_total") == 4, "panics are counted")
    agents = rest_get(firn, "/api/agents")["agents"]
    names = {a["id"] for a in agents}
    c.check({"grpc", "web", "connect", "rest", "raw", "stream"} <= names, f"agents: {sorted(names)}")
    for signal, lists in (
        ("traces", ("resourceSpans", "scopeSpans", "spans")),
        ("logs", ("resourceLogs", "scopeLogs", "logRecords")),
        ("metrics", ("resourceMetrics", "scopeMetrics", "metrics")),
    ):
        body = {lists[0]: [{lists[1]: [{lists[2]: [{"name": "x", "traceId": "00"}, {}]}]}]}
        answer = rest(firn.address, "/v1/" + signal, body)
        c.check(answer == (200, {}), f"OTLP {signal} in JSON: {answer}")
    c.check(firn.metric("firn_otlp_ignored_total") == 6, "items of other signals are counted")
    status, answer = rest(firn.address, "/v1development/profiles", {"resourceProfiles": [{}]})
    c.check(
        status == 400 and answer["code"] == 3 and "dictionary" in answer["message"],
        f"OTLP profiles in JSON, no dictionary: {status} {answer}",
    )


def rest_get(firn, path):
    with urllib.request.urlopen(f"http://{firn.address}{path}", timeout=30) as answer:
        return json.loads(answer.read())


def main():
    c = Checks()
    with tempfile.TemporaryDirectory() as directory:
        firn = Firn(PROGRAM, "server", directory)
        check_good(c, firn)
        check_stored(c, firn)
        check_bad(c, firn)
        check_stream(c, firn)
        check_others(c, firn)
        c.check(firn.stop() == 0, "it stops")
    c.finish()


if __name__ == "__main__":
    main()
