#!/usr/bin/env python3
"""Requests as Pyroscope's SDKs, Alloy and Grafana were recorded to send them, to a real server: the
statuses and types of answers that they act upon, and the samples, asked for in Pyroscope's words."""

import gzip
import http.client
import json
import os
import sys
import tempfile
import time
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "golden")]

from firn import Checks, Firn  # noqa: E402
from protobuf import message, number, text  # noqa: E402

PUSH = "/push.v1.PusherService/Push"
QUERIER = "/querier.v1.QuerierService/"
CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
NOW = time.time_ns()


def pprof(types, values):
    strings = ["", "main", "work", "count", "nanoseconds", "cpu", *types]
    kinds = [number(1, 6 + i) + number(2, 4) for i in range(len(types))]
    stacks = [(b"\2\1", values), (b"\1", [2 * v for v in values])]
    out = [message(1, k) for k in kinds]
    for locations, each in stacks:
        out.append(message(2, message(1, locations), *(number(2, v) for v in each)))
    out += [message(4, number(1, i), message(4, number(1, i))) for i in (1, 2)]
    out += [message(5, number(1, i), number(2, i)) for i in (1, 2)]
    out += [message(6, s.encode()) for s in strings]
    out += [number(9, NOW), number(10, 10**10), message(11, number(1, 5), number(2, 4)), number(12, 10**7)]
    return b"".join(out)


def push_request(service, values, labels=()):
    pairs = [("__name__", "process_cpu"), ("service_name", service), ("otel.scope.name", "x/y"), *labels]
    series = [message(1, text(1, k) + text(2, v)) for k, v in pairs if v]
    return message(1, *series, message(2, message(1, pprof(["cpu"], values)), text(2, "id")))


class Client:
    def __init__(self, address):
        self.host = address

    def post(self, path, body, **headers):
        c = http.client.HTTPConnection(self.host, timeout=30)
        c.request("POST", path, body, {k.replace("_", "-"): v for k, v in headers.items()})
        answer = c.getresponse()
        out = answer.status, answer.headers.get("content-type", ""), answer.read()
        c.close()
        return out

    def ask(self, method, **body):
        status, _, data = self.post(QUERIER + method, json.dumps(body), content_type="application/json")
        return json.loads(data) if status == 200 else status


def multipart(**parts):
    out = b""
    for name, data in parts.items():
        head = f'--B\r\nContent-Disposition: form-data; name="{name}"; filename="{name}.x"\r\n'
        out += head.encode() + b"Content-Type: application/octet-stream\r\n\r\n" + data + b"\r\n"
    return out + b"--B--\r\n"


def ingest(name, **parameters):
    return "/ingest?" + urllib.parse.urlencode({"name": name, **parameters})


def main():
    checks = Checks()
    with tempfile.TemporaryDirectory() as storage:
        firn = Firn(sys.argv[1], "server", storage)
        c = Client(firn.address.removeprefix("http://"))

        # The core of Rust, Python and Ruby: gzip around the message, no version of the protocol.
        body = gzip.compress(push_request("rust", [100]))
        got = c.post(PUSH, body, content_type="application/proto", content_encoding="gzip")
        checks.check(got == (200, "application/proto", b""), f"Push as Rust's: {got}")
        got = c.post(PUSH, body, content_type="application/proto", content_encoding="gzip")
        checks.check(got[0] == 200, "Push again")
        got = c.post(PUSH, push_request("", [1], [("__name__", "")])[:20], content_type="application/proto")
        checks.check(got[0] == 400 and got[1].startswith("application/json"), f"Push, torn: {got}")
        checks.check(json.loads(got[2])["code"] == "invalid_argument", f"its code: {got[2]}")

        # Go: multipart, nanoseconds; Node: the body is the file, seconds.
        name = "go.app{__session_id__=7,otel.scope.name=a/b,region=eu}"
        path = ingest(name, **{"from": NOW, "until": NOW + 10**10}, spyName="gospy", aggregationType="sum")
        form = {"content_type": "multipart/form-data; boundary=B"}
        got = c.post(path, multipart(profile=gzip.compress(pprof(["samples", "cpu"], [3, 300]))), **form)
        checks.check(got[0] == 200 and got[2] == b"", f"/ingest as Go's: {got}")
        config = b'{"inuse_space":{"aggregation":"average","units":"bytes"}}'
        heap = multipart(profile=gzip.compress(pprof(["inuse_space"], [7])), sample_type_config=config)
        checks.check(c.post(path, heap, **form)[0] == 200, "/ingest, heap")
        path = ingest("node.app{}", format="pprof", **{"from": NOW // 10**9}, spyName="nodespy")
        wall = gzip.compress(pprof(["samples", "wall"], [5, 500]))
        got = c.post(path, wall, content_type="application/octet-stream")
        checks.check(got[0] == 200, f"/ingest as Node's: {got}")
        got = c.post(ingest("old.app.cpu{k=v}", sampleRate=100, **{"from": "now-10s"}), b"main;work 4\n")
        checks.check(got[0] == 200, f"/ingest, folded: {got}")

        # What is wrong is told so that nobody sends it again.
        for path, data, want in (
            (ingest("{a=b}"), b"a 1", 400),
            (ingest("my.app"), b"a 1", 422),
            (ingest("app", format="pprof"), b"hello", 422),
            (ingest("app", format="jfr"), b"FLR\0", 422),
        ):
            status, kind, answer = c.post(path, data)
            good = status == want and kind == "application/json"
            checks.check(good and json.loads(answer)["code"] == "invalid_argument", f"{path}: {status}")

        # The same in Pyroscope's words.
        span = {"start": NOW // 10**6 - 60000, "end": NOW // 10**6 + 60000}
        types = {t["ID"] for t in c.ask("ProfileTypes", **span)["profileTypes"]}
        wall = "wall:wall:nanoseconds:cpu:nanoseconds"
        checks.check({CPU, wall, "memory:inuse_space:nanoseconds:cpu:nanoseconds"} <= types, f"types: {types}")
        found = c.ask("LabelValues", name="service_name", matchers=[f'{{__profile_type__="{CPU}",}}'], **span)
        checks.check(found["names"] == ["go.app", "old.app", "rust"], f"services: {found}")
        found = c.ask("LabelNames", matchers=['{service_name="go.app"}'], **span)["names"]
        checks.check("otel_scope_name" in found and "__session_id__" not in found, f"labels: {found}")
        for service, total in (("rust", 300), ("go.app", 900), ("old.app", 4 * 10**7)):
            selector = f'{{service_name="{service}"}}'
            # Both ways of writing names, as Drilldown mixes them.
            got = c.ask("SelectMergeStacktraces", profile_typeID=CPU, labelSelector=selector, **span)
            checks.check(int(got["flamegraph"]["total"]) == total, f"{service}: {got}")
            got = c.ask("SelectSeries", profile_typeID=CPU, label_selector=selector, step=15, **span)
            points = [p["value"] for s in got["series"] for p in s["points"]]
            checks.check(sum(points) == total, f"{service}: {points}")
        got = c.ask("SelectMergeStacktraces", profile_typeID=CPU, labelSelector="{service_name=~\"ru\"}", **span)
        checks.check("total" not in got["flamegraph"], f"expressions are anchored: {got}")
        firn.stop()
    checks.finish()


main()
