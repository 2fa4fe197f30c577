#!/usr/bin/env python3
"""One question in every framing: gRPC over h2c and TLS, gRPC-Web in binary and text, Connect in proto
and JSON, REST. All answers must be the same message; the schema comes from the server's reflection and
the bytes from protobuf's own library, Debian's h2 and Python's http.client and ssl."""

import json
import os
import ssl
import subprocess
import sys
import tempfile
import time

import otlp
from firn import Checks, Firn

try:
    import grpcwire
    from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

QUERY = "parca.query.v1alpha1.QueryService"
EXPORT = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
REFLECT = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
TYPE = "parca_agent:samples:count:cpu:nanoseconds:delta"


class Schema:
    """Message classes out of reflection, over the two-way stream that it is."""

    def __init__(self, address, symbol):
        pool = descriptor_pool.DescriptorPool()
        wire = grpcwire.Http2(address)
        wire.open(REFLECT)
        wire.send(grpcwire.frame(self._ask(4, symbol)))
        while len(wire.answer["data"]) < 5 or not self._whole(wire.answer["data"]):
            wire.events()
        # The stream is still open: the answer came before our end.
        self.answered_first = not wire.answer["ended"]
        wire.send(b"", end=True)
        answer = wire.finish()
        (message,) = grpcwire.Http2.result(answer)[2]
        wire.close()
        files = [descriptor_pb2.FileDescriptorProto.FromString(f) for f in self._files(message)]
        for file in reversed(files):
            pool.Add(file)
        self.pool, self.files = pool, files
        self.factory = message_factory.MessageFactory(pool)

    def __call__(self, name):
        return self.factory.GetPrototype(self.pool.FindMessageTypeByName(name))

    @staticmethod
    def _ask(field, value):
        return bytes([field << 3 | 2, len(value)]) + value.encode()

    @staticmethod
    def _whole(data):
        return len(data) >= 5 + int.from_bytes(data[1:5], "big")

    @staticmethod
    def _fields(data):
        def varint(at):
            value = shift = 0
            while True:
                byte = data[at]
                value |= (byte & 0x7F) << shift
                at, shift = at + 1, shift + 7
                if byte < 0x80:
                    return value, at

        at = 0
        while at < len(data):
            tag, at = varint(at)
            assert tag & 7 == 2, tag
            size, at = varint(at)
            yield tag >> 3, data[at : at + size]
            at += size

    def _files(self, message):
        (files,) = [v for f, v in self._fields(message) if f == 4]
        return [v for f, v in self._fields(files) if f == 1]


def everywhere(checks, firn, tls, context, method, request, answer_type):
    """The answer of every framing, parsed; they must be equal."""
    path = f"/{QUERY}/{method}"
    sent = request.SerializeToString()
    text = json_format.MessageToJson(request).encode()
    snake = json_format.MessageToJson(request, preserving_proto_field_name=True).encode()
    got = {}

    def keep(name, status, data):
        got[name] = answer_type.FromString(data) if status in (0, 200) else (status, data)

    for name, address, ctx in (("h2c", firn.address, None), ("tls", tls.address, context["h2"])):
        wire = grpcwire.Http2(address, ctx)
        for how, options in (
            ("", {}),
            (" gzip", {"compressed": True, "headers": [("grpc-accept-encoding", "gzip")]}),
            (" in bytes", {"piece": 1}),
        ):
            status, why, messages = wire.call(path, [sent], **options)
            keep(f"gRPC {name}{how}", status, messages[0] if messages else why)
        wire.close()
    for name, address, ctx in (("h1", firn.address, None), ("tls", tls.address, context["h1"])):
        for as_text in (False, True):
            status, why, messages = grpcwire.web(address, "/any/prefix" + path, sent, as_text, ctx)
            keep(f"web {name} {as_text}", status, messages[0] if messages else why)
        for compressed in (False, True):
            status, data = grpcwire.connect(
                address, path, sent, "application/proto", ctx, compressed
            )
            keep(f"connect {name} {compressed}", status, data)
        for which, body in (("camel", text), ("snake", snake)):
            status, data = grpcwire.connect(address, path, body, "application/json", ctx)
            parsed = json_format.Parse(data, answer_type()) if status == 200 else data
            got[f"json {name} {which}"] = parsed
    first = next(iter(got.values()))
    different = [name for name, answer in got.items() if answer != first]
    checks.check(
        not different and isinstance(first, answer_type),
        f"{method}: {len(got)} framings agree" + (f", but {different}" if different else ""),
    )
    return first


def check_rest(checks, firn, method_path, answer, **parameters):
    got = firn.json(method_path, **parameters)
    back = json_format.ParseDict(got, type(answer)())
    checks.check(back == answer, f"REST {method_path} is the same message")


def check_errors(checks, firn, schema):
    """Nothing found, nonsense, and what is not there: in each framing its own form of one status."""
    path = f"/{QUERY}/QueryRange"
    request = schema("parca.query.v1alpha1.QueryRangeRequest")(query=TYPE)
    sent = request.SerializeToString()
    wire = grpcwire.Http2(firn.address)
    status, why, _ = wire.call(path, [sent])
    checks.check(status == 3 and why, f"gRPC: INVALID_ARGUMENT, {why}")
    status, web_why, _ = grpcwire.web(firn.address, path, sent)
    checks.check((status, web_why) == (3, why), "gRPC-Web says the same")
    status, error = grpcwire.connect(firn.address, path, sent, "application/proto")
    same = status == 400 and error["code"] == "invalid_argument"
    checks.check(same and error["message"].replace(" ", "%20") in (why, why.replace(" ", "%20")),
        "Connect says the same")
    for name, messages, wanted in (
        ("torn message", None, 3),
        ("two messages", [sent, sent], 3),
        ("none", [], 3),
    ):
        if messages is None:
            wire.open(path)
            wire.send(grpcwire.frame(sent)[:-1], end=True)
            status = wire.result(wire.finish())[0]
        else:
            status = wire.call(path, messages)[0]
        checks.check(status == wanted, f"gRPC: {name} is status {status}")
    wire.open(path)
    wire.send(b"\0\xff\xff\xff\xff")
    status = wire.result(wire.finish())[0]
    checks.check(status == 8, f"gRPC: a message of 4 GiB is status {status}")
    wire.close()
    wire = grpcwire.Http2(firn.address)
    bomb = b"\0" * (70 << 20)
    status, why, _ = wire.call(EXPORT, [bomb], compressed=True)
    checks.check(status == 8, f"gRPC: 70 MiB in gzip: {status}, {why}")
    status, why, _ = wire.call("/no.Such/Method", [b""])
    checks.check(status == 12, f"gRPC: unknown method: {status}, {why}")
    status, _, data = grpcwire.post(
        firn.address, "/no.Such/Method", b"{}", {"content-type": "application/json"}
    )
    checks.check(status == 404 and b"NOTFOUND" in data, "JSON to nowhere is 404 in JSON")
    wire.close()


def check_ordinary_life(checks, firn):
    """A deadline, a client that goes away, many calls on one connection."""
    wire = grpcwire.Http2(firn.address)
    for timeout in ("200m", "1S", "5S", "20S"):  # the shorter ones may pass before the handler begins
        begun = time.monotonic()
        wire.open("/grpc.health.v1.Health/Watch", [("grpc-timeout", timeout)])
        wire.send(grpcwire.frame(b""), end=True)
        status, _, messages = wire.result(wire.finish())
        took = time.monotonic() - begun
        if messages:
            break
    checks.check(status == 4 and len(messages) == 1, f"a deadline ends Watch after {took:.2f} s of {timeout}")
    wire.open("/grpc.health.v1.Health/Watch")
    wire.send(grpcwire.frame(b""), end=True)
    wire.h2.reset_stream(wire.stream, 8)
    wire.flush()
    deadline = time.monotonic() + 20
    while firn.metric("firn_net_streams") and time.monotonic() < deadline:
        time.sleep(0.05)
    checks.check(firn.metric("firn_net_streams") == 0, "a reset ends the stream's handler")
    answers = [wire.call("/grpc.health.v1.Health/Check", [b""]) for _ in range(300)]
    checks.check(answers == [(0, "", [b"\x08\x01"])] * 300, "300 calls on one connection")
    wire.close()


def main():
    checks = Checks()
    with tempfile.TemporaryDirectory(prefix="firn-framings-") as directory:
        certificate, key = os.path.join(directory, "cert"), os.path.join(directory, "key")
        command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
        command += ["-nodes", "-days", "2", "-subj", "/CN=localhost", "-keyout", key]
        command += ["-out", certificate, "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
        subprocess.run(command, check=True, capture_output=True)
        os.chmod(directory, 0o755)
        os.chmod(key, 0o644)
        context = {
            "h2": grpcwire.tls_context(certificate, "h2"),
            "h1": grpcwire.tls_context(certificate, "http/1.1"),
        }
        firn = Firn(sys.argv[1], "server", os.path.join(directory, "a"))
        tls = Firn(
            sys.argv[1],
            "server",
            os.path.join(directory, "b"),
            f"--tls-cert-file={certificate}",
            f"--tls-key-file={key}",
            context=ssl.create_default_context(cafile=certificate),
        )
        now = (int(time.time()) - 20) * 1_000_000_000
        stacks = [(["work", "main"], 30), (["wait", "main"], 12)]
        body = otlp.request("parca_agent", stacks, {"comm": "python3"}, now)
        for name, address, ctx in (("plain", firn.address, None), ("tls", tls.address, context["h2"])):
            wire = grpcwire.Http2(address, ctx)
            status, why, _ = wire.call(EXPORT, [body])
            checks.check(status == 0, f"OTLP over gRPC, {name}: {status} {why}")
            wire.close()
        schema = Schema(firn.address, QUERY)
        checks.check(schema.answered_first, "reflection answers while the client's side is open")
        checks.check(len(schema.files) >= 4, f"{len(schema.files)} files with imports load")
        v1 = "parca.query.v1alpha1."
        types = everywhere(checks, firn, tls, context, "ProfileTypes",
            schema(v1 + "ProfileTypesRequest")(), schema(v1 + "ProfileTypesResponse"))
        checks.check(len(types.types) == 1 and types.types[0].delta, "the type that was sent")
        check_rest(checks, firn, "/api/profiles/types", types)
        labels = everywhere(checks, firn, tls, context, "Labels",
            schema(v1 + "LabelsRequest")(), schema(v1 + "LabelsResponse"))
        check_rest(checks, firn, "/api/profiles/labels", labels)
        values = everywhere(checks, firn, tls, context, "Values",
            schema(v1 + "ValuesRequest")(label_name="comm"), schema(v1 + "ValuesResponse"))
        checks.check(list(values.label_values) == ["python3"], "the value that was sent")
        check_rest(checks, firn, "/api/profiles/labels/comm/values", values)
        request = schema(v1 + "QueryRangeRequest")(query=TYPE)
        request.start.seconds, request.end.seconds = now // 10**9 - 60, now // 10**9 + 60
        request.step.seconds = 60
        series = everywhere(checks, firn, tls, context, "QueryRange", request,
            schema(v1 + "QueryRangeResponse"))
        checks.check(len(series.series) == 1, "one series")
        check_rest(checks, firn, "/api/profiles/query_range", series, query=TYPE, step="60s",
            start=request.start.ToJsonString(), end=request.end.ToJsonString())
        check_errors(checks, firn, schema)
        check_ordinary_life(checks, firn)
        checks.check(tls.stop() == 0 and firn.stop() == 0, "both stop")
    checks.finish()


main()
