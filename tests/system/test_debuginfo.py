#!/usr/bin/env python3
"""Uploads of debug files and sources to a real server, as Parca's clients send them: a program whose
debug information is apart, so that its samples have names only once that was uploaded. And what
hostile or unlucky clients do: other orders, other ids, streams that end early, kill -9 in between."""

import base64
import io
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = sys.argv[1]
sys.path[:0] = [os.path.join(HERE, "..", "arrow")]
from firn import Checks, Firn  # noqa: E402

try:
    import grpcwire
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

DEBUGINFO = "/parca.debuginfo.v1alpha1.DebuginfoService/"
TARGETS = "/parca.scrape.v1alpha1.ScrapeService/Targets"
QUERY = "/parca.query.v1alpha1.QueryService/Query"
STORE = "/parca.profilestore.v1alpha1.ProfileStoreService/"
FIRST = (
    "First time we see this Build ID, and it does not exist in debuginfod, therefore please upload!"
)
STALE = "A previous upload was started but not finished and is now stale, so it can be retried."
GOES_ON = (
    "A previous upload is still in-progress and not stale yet (only stale uploads can be retried)."
)
GOES_ON_FORCED = (
    "A previous upload is in-progress, but accepting restart because it's requested to be forced."
)
THERE = "Debuginfo already exists and is not marked as invalid, therefore no new upload is needed."
THERE_FORCED = (
    "Debuginfo already exists and is not marked as invalid, therefore wouldn't have accepted a new "
    "upload, but accepting it because it's requested to be forced."
)
BAD = (
    "Debuginfo already exists but is marked as invalid, therefore a new upload is needed. Hash the "
    "debuginfo and initiate the upload."
)
BAD_EQUAL = (
    "Debuginfo already exists and is marked as invalid, but the proposed hash is the same as the one "
    "already available, therefore the upload is not accepted as it would result in the same invalid "
    "debuginfos."
)
BAD_OTHER = (
    "Debuginfo already exists but is marked as invalid, therefore a new upload will be accepted."
)
PURGED = (
    "Debuginfo was previously uploaded but has been purged/cleaned up, therefore a new upload is needed."
)
NOT_NOW = (
    "upload should not have been attempted to be initiated, a previous check should have failed with: "
)
SOURCES, DEBUG, EXECUTABLE = 2, 0, 1


def varint(value):
    out = b""
    value &= (1 << 64) - 1
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def text(number, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(number << 3 | 2) + varint(len(data)) + data if data else b""


def number(field, value):
    return varint(field << 3) + varint(value) if value else b""


def parse(data):
    """{number: value} of a message, the last of each."""
    out, at = {}, 0

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
        value = take()
        if tag & 7 == 2:
            at += value
            value = data[at - value : at]
        out[tag >> 3] = value
    return out


class Client:
    def __init__(self, firn, tenant=None):
        self.wire = grpcwire.Http2(firn.address)
        self.headers = [("x-scope-orgid", tenant)] if tenant else []

    def call(self, method, *messages):
        path = method if method.startswith("/") else DEBUGINFO + method
        status, why, answers = self.wire.call(path, list(messages), headers=self.headers)
        return status, why, parse(answers[0]) if answers else {}

    def should(self, build_id, kind=DEBUG, digest="", force=0, id_kind=0):
        status, why, answer = self.call(
            "ShouldInitiateUpload",
            text(1, build_id) + text(2, digest) + number(3, force) + number(4, kind) + number(5, id_kind),
        )
        return (bool(answer.get(1)), answer.get(2, b"").decode()) if status == 0 else (status, why)

    def initiate(self, build_id, size, kind=DEBUG, digest="h", force=0):
        """The id of the upload, or (status, sentence)."""
        status, why, answer = self.call(
            "InitiateUpload",
            text(1, build_id) + number(2, size) + text(3, digest) + number(4, force) + number(5, kind),
        )
        if status:
            return status, why
        told = parse(answer[1])
        assert told[1].decode() == build_id and told[3] == 1 and told.get(5, 0) == kind, told
        return told[2].decode()

    def send(self, build_id, upload_id, data, kind=DEBUG, chunk=100000):
        info = text(1, text(1, build_id) + text(2, upload_id) + number(3, kind))
        chunks = [text(2, data[at : at + chunk]) for at in range(0, len(data), chunk)]
        return self.call("Upload", info, *chunks)

    def finish(self, build_id, upload_id, kind=DEBUG):
        return self.call("MarkUploadFinished", text(1, build_id) + text(2, upload_id) + number(3, kind))[:2]

    def upload(self, build_id, data, kind=DEBUG, digest="h", force=0):
        upload_id = self.initiate(build_id, len(data), kind, digest, force)
        assert isinstance(upload_id, str), upload_id
        status, why, answer = self.send(build_id, upload_id, data, kind)
        assert status == 0 and answer[2] == len(data), (status, why, answer)
        assert self.finish(build_id, upload_id, kind) == (0, ""), upload_id

    def close(self):
        self.wire.close()


# ---- the program ----

CODE = """#include <string.h>
template <typename T> __attribute__((noinline)) T spin(T n)
{
	volatile T sum = 0;
	for (T i = 0; i < n; i++)
		sum += i;
	return sum;
}
extern "C" __attribute__((noinline)) long work(long n)
{
	return spin<long>(n) + 1;
}
int main(int argc, char **argv)
{
	return (int)work(argc + strlen(argv[0]));
}
"""


def nullified(whole):
    """What Parca's agent makes of a 64-bit file by default: sections that name nothing keep a header of size 0
    (SHT_NOBITS), links are lost but for symbols', and no program header is left (its PT_NOTE has no say)."""
    ident, shoff, = whole[:40], struct.unpack_from("<Q", whole, 40)[0]
    shnum, shstrndx = struct.unpack_from("<HH", whole, 60)
    headers = [list(struct.unpack_from("<IIQQQQIIQQ", whole, shoff + 64 * i)) for i in range(shnum)]
    texts = whole[headers[shstrndx][4]:]
    names = [texts[h[0]:texts.index(b"\0", h[0])].decode() for h in headers]
    link = {".symtab": ".strtab", ".dynsym": ".dynstr"}
    out = bytearray(64)
    for i, (name, h) in enumerate(zip(names, headers)):
        kept = i == shstrndx or h[1] in (0, 2, 3, 4, 7, 11) or name.startswith(".debug_") or name in (".plt", ".plt.got")
        data = whole[h[4]:h[4] + h[5]] if kept and h[1] != 0 else b""
        h[1], h[4], h[5] = h[1] if kept else 8, len(out), len(data)
        h[6] = names.index(link[name]) if name in link else 0
        out += data
    out[:64] = ident[:24] + struct.pack("<QQQIHHHHHH", 0, 0, len(out), 0, 64, 56, 0, 64, shnum, shstrndx)
    return bytes(out) + b"".join(struct.pack("<IIQQQQIIQQ", *h) for h in headers)


class Subject:
    """A C++ program, stripped, its debug file, and addresses in it."""

    def __init__(self, directory):
        self.source = os.path.join(directory, "subject.cpp")
        self.path = os.path.join(directory, "subject")
        with open(self.source, "w", encoding="utf-8") as file:
            file.write(CODE)
        run = lambda *command: subprocess.run(command, check=True, capture_output=True, text=True).stdout
        run("g++", "-g", "-O1", "-Wl,--build-id", "-o", self.path, self.source)
        self.build_id = re.search(r"Build ID: (\w+)", run("readelf", "-n", self.path)).group(1)
        self.symbols = {}
        for line in run("nm", "-C", self.path).splitlines():
            parts = line.split(" ", 2)
            if len(parts) == 3:
                self.symbols[parts[2]] = int(parts[0], 16) if parts[0].strip() else 0
        with open(self.path, "rb") as file:
            self.nullified = nullified(file.read())
        debug = self.path + ".debug"
        run("objcopy", "--only-keep-debug", self.path, debug)
        run("objcopy", "--strip-all", self.path)
        with open(debug, "rb") as file:
            self.debug = file.read()
        with open(self.path, "rb") as file:
            self.stripped = file.read()
        os.remove(debug)
        shutil.move(self.path, self.path + ".gone")  # nothing of it is found on this host

    def archive(self, kind):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w" if kind == "zst" else "w:gz") as tar:
            tar.add(self.source)
        if kind == "zst":
            command = ["zstd", "-q", "-c"]
            return subprocess.run(command, input=out.getvalue(), check=True, capture_output=True).stdout
        return out.getvalue()


def pprof(subject, node="subject"):
    """A WriteRawRequest: one stack of addresses in `work` and the `spin` it calls."""
    texts = [b"", b"samples", b"count", b"cpu", b"nanoseconds", b"/x/subject", subject.build_id.encode()]
    spin = next(v for k, v in subject.symbols.items() if k.startswith("long spin<long>"))
    out = text(1, number(1, 1) + number(2, 2))
    out += text(2, text(1, varint(1) + varint(2)) + text(2, varint(7)))
    out += text(3, number(1, 1) + number(5, 5) + number(6, 6))  # addresses as in the file
    out += text(4, number(1, 1) + number(2, 1) + number(3, spin + 4))
    out += text(4, number(1, 2) + number(2, 1) + number(3, subject.symbols["work"] + 6))
    out += b"".join(varint(6 << 3 | 2) + varint(len(t)) + t for t in texts)
    out += number(9, time.time_ns()) + number(10, 10**9) + text(11, number(1, 3) + number(2, 4)) + number(12, 1)
    labels = text(1, text(1, "__name__") + text(2, "process_cpu"))
    labels += text(1, text(1, "node") + text(2, node))
    return text(2, text(1, labels) + text(2, text(1, out)))


def names(firn):
    rows = firn.json("/api/top", query='process_cpu:samples:count:cpu:nanoseconds:delta{}', **{"from": "now-1h"})
    return sorted(row["name"] for row in rows["rows"])


def wait_for(what, seconds=60):
    end = time.monotonic() + seconds
    while not what() and time.monotonic() < end:
        time.sleep(0.1)
    return what()


def source_report(firn, build_id, filename, only=False, tenant=None):
    """(status, sentence, text of the file, record)"""
    now = int(time.time())
    merge = text(1, "process_cpu:samples:count:cpu:nanoseconds:delta{}")
    merge += text(2, number(1, now - 3600)) + text(3, number(1, now + 60))
    reference = text(1, build_id) + text(2, filename) + number(3, only)
    message = number(1, 2) + text(3, merge) + number(5, 6) + text(9, reference)
    client = Client(firn, tenant)
    status, why, answer = client.call(QUERY, message)
    client.close()
    if status:
        return status, why, None, None
    report = parse(answer[12])
    return 0, "", report.get(2, b"").decode(), report.get(1, b"")


# ---- what is checked ----


def check_table(c, firn):
    """ShouldInitiateUpload's answers, in the order in which a build id meets them."""
    client = Client(firn)
    a = "aa" * 20
    c.check(client.should(a) == (True, FIRST), "never seen")
    c.check(client.should(a, id_kind=2) == (True, FIRST), "never seen, a hash")
    c.check(client.should("ab") == (3, "unexpectedly short input"), "a short build id")
    c.check(client.initiate(a, 5, digest="") == (3, "hash must be set"), "no hash")
    c.check(client.initiate(a, 0) == (3, "size must be set"), "no size")
    status, why = client.initiate(a, 2 << 20)
    c.check(status == 3 and why.startswith(f"upload size {2 << 20} exceeds maximum allowed size {1 << 20}")
        and "--debuginfo-upload-max-size" in why, f"too large: {status} {why}")
    c.check(client.initiate(a, -5)[0] == 3, "a negative size")
    status, why, _ = client.send(a, "x", b"12345")
    c.check((status, why) == (9, "metadata not found, this indicates that the upload was not previously initiated"),
        f"an upload that was not initiated: {status} {why}")
    c.check(client.finish(a, "x") == (5, "no debuginfo metadata found for build id"), "finished, never begun")
    first = client.initiate(a, 5)
    c.check(bool(re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", first)),
        f"its id is a UUID: {first}")
    c.check(client.should(a) == (False, GOES_ON), "it goes on")
    c.check(client.initiate(a, 5) == (9, NOT_NOW + GOES_ON), "it goes on: not a second one")
    c.check(client.should(a, force=1) == (True, GOES_ON_FORCED), "it goes on, forced")
    c.check(client.should(a, kind=SOURCES) == (True, FIRST), "another type is another upload")
    c.check(client.finish(a, "x") == (3, "upload id mismatch"), "another id")
    c.check(client.finish(a, first)[0] == 9, "finished before anything came")
    status, why, _ = client.send(a, "x", b"12345")
    c.check((status, why) == (3, "the upload ID does not match the one returned by the InitiateUpload call"),
        f"bytes for another id: {status} {why}")
    status, why, _ = client.send(a, first, b"123")
    c.check(status == 3 and why == "3 bytes came, 5 were announced", f"too few: {status} {why}")
    c.check(client.should(a) == (True, STALE), "it broke off")
    c.check(client.send(a, first, b"1234567")[0] == 3, "too many")
    second = client.initiate(a, 5)
    c.check(client.send(a, second, b"12345")[2] == {1: a.encode(), 2: 5}, "whole")
    c.check(client.finish(a, second) == (0, ""), "finished")
    c.check(client.should(a) == (True, BAD), "no ELF file: invalid")
    c.check(client.should(a, digest="h") == (False, BAD_EQUAL), "the same again")
    c.check(client.initiate(a, 5) == (6, BAD_EQUAL), "the same again, initiated")
    c.check(client.should(a, digest="other") == (True, BAD_OTHER), "another file")
    status, why, _ = client.call("Upload")
    c.check(status == 3 and "upload info" in why, f"an empty stream: {status} {why}")
    c.check(client.send("ab", "x", b"")[:2] == (3, 'invalid build ID: "unexpectedly short input"'), "short id")
    for bad in ("../../../../tmp/firn_was_here", "a b", "a/../b", "x" * 129):
        upload_id = client.initiate(bad, 5, kind=3)
        if isinstance(upload_id, str):
            client.send(bad, upload_id, b"12345", kind=3)
            client.finish(bad, upload_id, kind=3)
        c.check(not os.path.exists("/tmp/firn_was_here"), f"build id {bad[:40]!r}")
    status, why, _ = client.call("ShouldInitiateUpload", b"\xff\xff\xff")
    c.check(status == 3 and "malformed" in why, f"nonsense: {status} {why}")
    status, why, _ = client.call("ShouldInitiateUpload", text(1, b"\xff\xfe\xfd"))
    c.check(status == 3 and "build_id is not UTF-8" in why, f"no text: {status} {why}")
    client.close()


def connect_stream(c, firn, form, rest):
    """An upload as Connect's clients stream it: frames up, frames down, the last one the end in JSON."""
    build_id = ("6f" if form == "proto" else "7f") * 20
    told = rest("/api/initiateupload", json.dumps({"buildId": build_id, "size": "4", "hash": "h", "type": 3}))[1]
    upload_id = told["uploadInstructions"]["uploadId"]
    info = {"info": {"buildId": build_id, "uploadId": upload_id, "type": 3}}
    pieces = [json.dumps(info).encode(), json.dumps({"chunkData": base64.b64encode(b"1234").decode()}).encode()]
    if form == "proto":
        pieces = [text(1, text(1, build_id) + text(2, upload_id) + number(3, 3)), text(2, b"1234")]
    for ask, want in ((pieces, 4), (pieces[1:], "invalid_argument")):
        status, headers, data = grpcwire.post(firn.address, DEBUGINFO + "Upload", b"".join(map(grpcwire.frame, ask)),
            {"content-type": f"application/connect+{form}"})
        frames = []
        while data:
            size = int.from_bytes(data[1:5], "big")
            frames.append((data[0], data[5 : 5 + size]))
            data = data[5 + size :]
        flag, end = frames.pop()
        end = json.loads(end)
        if want == 4:
            answer = frames[0][1]
            size = parse(answer)[2] if form == "proto" else int(json.loads(answer)["size"])
            c.check(status == 200 and flag == 2 and end == {} and size == 4, f"Connect's stream, {form}: {size} {end}")
            told = rest("/api/markuploadfinished", json.dumps({"buildId": build_id, "uploadId": upload_id, "type": 3}))
            c.check(told == (200, {}), f"finished: {told}")
        else:
            c.check(flag == 2 and not frames and end["error"]["code"] == want, f"the same, an error: {end}")


def check_framings(c, firn):
    """The unary calls and the stream by each framing."""
    for i, text_form in enumerate((False, True)):
        build_id = f"{i}f" * 20
        status, _, answer = grpcwire.web(firn.address, DEBUGINFO + "ShouldInitiateUpload", text(1, build_id), text_form)
        c.check(status == 0 and parse(answer[0])[2].decode() == FIRST, f"gRPC-Web, text {text_form}")
    status, answer = grpcwire.connect(
        firn.address, DEBUGINFO + "ShouldInitiateUpload", json.dumps({"buildId": "3f" * 20}).encode(), "application/json")
    c.check(status == 200 and json.loads(answer) == {"shouldInitiateUpload": True, "reason": FIRST}, "Connect in JSON")
    status, answer = grpcwire.connect(firn.address, DEBUGINFO + "ShouldInitiateUpload", text(1, "zz"), "application/proto")
    c.check(status == 400 and answer["code"] == "invalid_argument", "Connect, an error")

    def rest(path, body):
        status, _, data = grpcwire.post(firn.address, path, body.encode(), {"content-type": "application/json"})
        return status, json.loads(data)

    build_id = "5f" * 20
    status, answer = rest("/api/shouldinitiateupload", json.dumps({"build_id": build_id}))
    c.check(status == 200 and answer["shouldInitiateUpload"] is True, f"REST: {status} {answer}")
    status, answer = rest("/api/initiateupload", json.dumps({"buildId": build_id, "size": "4", "hash": "h", "type": "DEBUGINFO_TYPE_SOURCE_MAP"}))
    told = answer["uploadInstructions"]
    c.check(told["uploadStrategy"] == "UPLOAD_STRATEGY_GRPC", f"REST, initiated: {told}")
    info = {"info": {"buildId": build_id, "uploadId": told["uploadId"], "type": 3}}
    chunk = {"chunkData": base64.b64encode(b"1234").decode()}
    status, answer = rest("/api/upload", json.dumps(info) + json.dumps(chunk))
    c.check(status == 200 and answer.get("size") == "4", f"REST, uploaded: {status} {answer}")
    status, answer = rest("/api/markuploadfinished", json.dumps({"buildId": build_id, "uploadId": told["uploadId"], "type": 3}))
    c.check(status == 200 and answer == {}, f"REST, finished: {status} {answer}")
    status, answer = rest("/api/initiateupload", json.dumps({"buildId": build_id, "size": "4", "hash": "h", "type": 3}))
    for form in ("proto", "json"):
        connect_stream(c, firn, form, rest)
    c.check(status == 400 and answer["code"] == 9 and THERE in answer["message"], f"REST, again: {status} {answer}")
    client = Client(firn)
    c.check(client.call(TARGETS, b"")[::2] == (0, {}) and client.call(TARGETS, b"\x08\x01")[::2] == (0, {}), "no targets, gRPC")
    c.check(client.call(TARGETS, b"\x0a\x01x")[0] == 3, "targets in a state that is text")
    client.close()
    c.check(grpcwire.web(firn.address, "/api" + TARGETS, b"", True)[::2] == (0, [b""]), "no targets, gRPC-Web")
    nothing = {"targets": {}, "discoveries": []}
    c.check(firn.json("/api/targets", state="STATE_ACTIVE") == nothing, "no targets, REST")
    c.check(grpcwire.connect(firn.address, TARGETS, b"{}", "application/json") == (200, b"{}"), "no targets, Connect")


def check_names(c, firn, subject):
    """Nameless, then named as soon as the debug file is there; sources; what gives way."""
    client = Client(firn)
    c.check(client.call(STORE + "WriteRaw", pprof(subject))[0] == 0, "samples of a program that is nowhere")
    before = names(firn)
    c.check(all(n.startswith("subject+0x") for n in before) and len(before) == 2, f"nameless: {before}")
    client.upload(subject.build_id.upper(), subject.debug)
    want = ["spin<long>", "work"]
    named = wait_for(lambda: [n.split("(")[0] for n in names(firn)] == want)
    c.check(named, f"named after the upload: {names(firn)}")
    c.check(client.should(subject.build_id) == (False, THERE), "it is there")
    c.check(client.should(subject.build_id, force=1) == (True, THERE_FORCED), "it is there, forced")
    c.check(client.initiate(subject.build_id, 5) == (9, NOT_NOW + THERE), "it is there: no second one")
    answer = source_report(firn, subject.build_id, subject.source)
    c.check(answer[:3] == (0, "", "") and len(answer[3]) > 100, "values by line without sources")
    answer = source_report(firn, subject.build_id, subject.source, True)
    c.check(answer[:2] == (5, "no sources for this build id have been uploaded"), f"no sources: {answer}")
    for kind, force in (("zst", 0), ("gz", 1)):
        client.upload(subject.build_id, subject.archive(kind), SOURCES, force=force)
        answer = source_report(firn, subject.build_id, subject.source)
        c.check(answer[:3] == (0, "", CODE) and len(answer[3]) > 100, f"the text from a tar.{kind}")
    c.check(source_report(firn, subject.build_id, "", True) == (0, "", "", b""), "there are sources")
    answer = source_report(firn, subject.build_id, "/not/there.c")
    c.check(answer[:3] == (0, "", ""), "a file that the archive has not")
    client.upload(subject.build_id, subject.archive("zst")[:-20] + b"x" * 20, SOURCES, force=1)
    answer = source_report(firn, subject.build_id, "/not/there.c")
    c.check(answer[0] == 15 and "archive of sources of build id" in answer[1], f"a damaged archive: {answer}")
    client.upload(subject.build_id, subject.stripped, EXECUTABLE)
    c.check(client.should(subject.build_id, EXECUTABLE) == (False, THERE), "the executable")
    c.check([n.split("(")[0] for n in names(firn)] == want, "names stay")
    # 3 MiB are the limit: these three take the place of the others.
    for i in range(3):
        client.upload(f"{i}0" * 20, os.urandom(1 << 20), kind=3)
    c.check(client.should(subject.build_id) == (True, PURGED), "it gave way")
    c.check([n.split("(")[0] for n in names(firn)] == want, "names stay without the file")
    used = firn.metric("firn_debuginfo_bytes")
    c.check(used <= 3 << 20, f"within the limit: {used}")
    client.close()


def check_nullified(c, storage, subject, options):
    """The debug file that Parca's agent sends by default gives the same names."""
    firn = Firn(PROGRAM, "server", storage, *options)
    client = Client(firn)
    c.check(client.call(STORE + "WriteRaw", pprof(subject))[0] == 0, "samples of a program that is nowhere")
    client.upload(subject.build_id, subject.nullified)
    want = ["spin<long>", "work"]
    named = wait_for(lambda: [n.split("(")[0] for n in names(firn)] == want)
    c.check(named, f"named by what Parca's agent sends: {names(firn)}")
    client.close()
    c.check(firn.stop() == 0, "it stops")


def check_hash(c, firn, subject):
    """A file without symbols by the hash that an agent gave it; its debug file by its build id."""
    client = Client(firn)
    other = Subject.__new__(Subject)
    other.__dict__.update(subject.__dict__)
    other.build_id = "0123456789abcdef0123456789abcdef"
    client.call(STORE + "WriteRaw", pprof(other, "hash"))
    query = 'process_cpu:samples:count:cpu:nanoseconds:delta{node="hash"}'
    top = lambda: sorted(r["name"] for r in firn.json("/api/top", query=query, **{"from": "now-1h"})["rows"])
    client.upload(other.build_id, subject.stripped)
    c.check(wait_for(lambda: firn.metric("firn_symbolizer_tables_built_total") > 1) and "work" not in top(), f"by a hash: {top()}")
    time.sleep(0.5)
    top()
    client.upload(subject.build_id, subject.debug, force=1)
    c.check(wait_for(lambda: "work" in top()), f"named by the build id that it carries: {top()}")
    client.close()


def check_broken(c, firn):
    """A client that goes away in the middle; many at a time."""
    b = "bb" * 20
    client = Client(firn)
    upload_id = client.initiate(b, 500000)
    wire = grpcwire.Http2(firn.address)
    wire.open(DEBUGINFO + "Upload")
    info = text(1, text(1, b) + text(2, upload_id))
    wire.send(grpcwire.frame(info) + grpcwire.frame(text(2, b"x" * 200000)))
    wire.send(struct.pack(">BI", 0, 300000) + b"half")
    wait_for(lambda: firn.metric("firn_debuginfo_arriving_uploads") == 1)
    c.check(client.send(b, upload_id, b"y" * 500000)[0] == 9, "one upload has one stream")
    wire.close()
    c.check(wait_for(lambda: firn.metric("firn_debuginfo_broken_uploads_total") > 0), "it was seen to break off")
    c.check(wait_for(lambda: client.should(b) == (True, STALE)), "and may be begun anew")
    c.check(wait_for(lambda: firn.metric("firn_debuginfo_arriving_uploads") == 0), "nothing arrives any more")
    wires = []
    for i in range(12):
        build_id = f"{i:02x}" * 20
        upload_id = client.initiate(build_id, 40, kind=3)
        wire = grpcwire.Http2(firn.address)
        wire.open(DEBUGINFO + "Upload")
        wire.send(grpcwire.frame(text(1, text(1, build_id) + text(2, upload_id) + number(3, 3))))
        wires.append(wire)
    done = 0
    for wire in wires:
        wire.send(grpcwire.frame(text(2, b"z" * 40)), end=True)
        done += wire.result(wire.finish())[0] == 0
        wire.close()
    c.check(done == 12, f"{done} of 12 uploads at a time")
    client.close()


def check_killed(c, directory, subject, options):
    """kill -9 in the middle, and between the last byte and MarkUploadFinished."""
    firn = Firn(PROGRAM, "server", directory, *options)
    client = Client(firn)
    client.call(STORE + "WriteRaw", pprof(subject))
    upload_id = client.initiate(subject.build_id, len(subject.debug))
    wire = grpcwire.Http2(firn.address)
    wire.open(DEBUGINFO + "Upload")
    info = text(1, text(1, subject.build_id) + text(2, upload_id))
    wire.send(grpcwire.frame(info) + grpcwire.frame(text(2, subject.debug[:-10])))
    wait_for(lambda: (firn.metric("firn_debuginfo_upload_bytes_total") or 0) > 0)
    firn.kill()
    wire.close()
    client.close()
    firn = Firn(PROGRAM, "server", directory, *options)
    client = Client(firn)
    c.check(firn.metric("firn_debuginfo_bytes") == 0, "nothing of the half is left")
    c.check(client.should(subject.build_id) == (False, GOES_ON), "as far as anybody knows it goes on")
    c.check(client.finish(subject.build_id, upload_id)[0] == 9, "the half is never used")
    c.check(client.send(subject.build_id, upload_id, subject.debug)[0] == 0, "it may be sent again")
    firn.kill()
    client.close()
    firn = Firn(PROGRAM, "server", directory, *options)
    client = Client(firn)
    c.check(client.finish(subject.build_id, upload_id) == (0, ""), "finished after the server's end")
    c.check(wait_for(lambda: "work" in names(firn)), f"and used: {names(firn)}")
    client.close()
    c.check(firn.stop() == 0, "it stops")


def check_tenants(c, directory, subject, options):
    """No tenant sees another's samples, sources or limits."""
    firn = Firn(PROGRAM, "server", directory, "--tenant-header=X-Scope-OrgID", "--max-series-per-tenant=2", *options)
    raw = pprof(subject)
    for tenant in ("a", "b", None):
        client = Client(firn, tenant)
        for _ in range(2):
            c.check(client.call(STORE + "WriteRaw", raw)[0] == 0, f"tenant {tenant}: the same message")
        if tenant == "a":
            for i in range(2):
                status, why, _ = client.call(STORE + "WriteRaw", pprof(subject, f"more{i}"))
            c.check(status == 8 and "--max-series-per-tenant" in why, f"the third series of a: {status} {why}")
            client.upload(subject.build_id, subject.archive("gz"), SOURCES)
        client.close()

    def top(tenant, query="process_cpu:samples:count:cpu:nanoseconds:delta{}"):
        headers = {"X-Scope-OrgID": tenant} if tenant else {}
        import urllib.request
        import urllib.parse
        url = f"http://{firn.address}/api/top?" + urllib.parse.urlencode({"query": query, "from": "now-1h"})
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=30) as answer:
            return json.loads(answer.read())["total"]

    totals = [top(t) for t in ("a", "b", None)]
    c.check(totals == [14, 7, 7], f"each sees its own: {totals}")
    client = Client(firn, "c")
    c.check(client.call("/parca.query.v1alpha1.QueryService/Labels", b"")[2] == {}, "c has no labels")
    c.check(client.call("/parca.query.v1alpha1.QueryService/HasProfileData", b"")[2] == {}, "c has no data")
    c.check(client.call("/parca.profilestore.v1alpha1.AgentsService/Agents", b"")[2] == {}, "c has no agents")
    c.check(client.should(subject.build_id, SOURCES) == (True, FIRST), "c knows of no upload")
    client.close()
    c.check(source_report(firn, subject.build_id, subject.source, True, "a")[0] == 0, "a has sources")
    c.check(source_report(firn, subject.build_id, subject.source, True, "b")[0] == 5, "b has none")
    for bad in ("../x", "a|b", "x" * 65, "ä"):
        client = Client(firn, bad)
        status, why, _ = client.call(STORE + "WriteRaw", raw)
        c.check(status == 3 and "x-scope-orgid" in why, f"tenant {bad[:9]!r}: {status} {why}")
        status, why, _ = client.call("/parca.query.v1alpha1.QueryService/Labels", b"")
        c.check(status == 3 and "x-scope-orgid" in why, f"asked as {bad[:9]!r}: {status} {why}")
        client.close()
    c.check(firn.stop() == 0, "it stops")


def check_verb(c, directory, subject, options):
    """`firn debuginfo` against a server: the debug file, its sources, what is refused."""
    firn = Firn(PROGRAM, "server", directory, *options)
    debug, archive = (os.path.join(directory, name) for name in ("app.debug", "app.tar.zstd"))
    with open(debug, "wb") as file:
        file.write(subject.debug)

    def run(*arguments):
        done = subprocess.run([PROGRAM, "debuginfo", *arguments], capture_output=True, text=True, timeout=120)
        return done.returncode, done.stdout, done.stderr

    def upload(*arguments):
        return run("upload", "--store-address", "http://" + firn.address, *arguments)

    client = Client(firn)
    c.check(client.call(STORE + "WriteRaw", pprof(subject))[0] == 0, "samples of a program that is nowhere")
    client.close()
    c.check(run("buildid", debug) == (0, subject.build_id + "\n", ""), "the build id")
    c.check(upload("--no-initiate", debug)[1].endswith(FIRST + "\n"), "asked only")

    def uploaded(code, out, err):
        said = re.escape(f'Uploaded "{debug}" with build id {subject.build_id}: ') + "[1-9][0-9]* bytes\n"
        return (code, err) == (0, "") and re.fullmatch(said, out)

    c.check(uploaded(*upload(debug)), "uploaded")
    want = ["spin<long>", "work"]
    named = wait_for(lambda: [n.split("(")[0] for n in names(firn)] == want)
    c.check(named, f"named after the upload: {names(firn)}")
    code, out, _ = upload(debug)
    c.check(code == 0 and out.endswith(THERE + "\n"), f"not twice: {out}")
    c.check(uploaded(*upload("--force", debug)), "but forced")
    c.check(run("source", debug, archive)[0] == 0, "an archive of its sources")
    code, out, err = upload("--type=sources", "--build-id", subject.build_id, archive)
    c.check((code, err) == (0, "") and out.startswith("Uploaded "), f"sources uploaded: {out}")
    answer = source_report(firn, subject.build_id, subject.source)
    c.check(answer[:3] == (0, "", CODE) and len(answer[3]) > 100, f"the text: {answer[:3]}")
    large = os.path.join(directory, "large")
    with open(large, "wb") as file:
        file.truncate((1 << 20) + 1)
    code, _, err = upload("--type=sources", "--build-id", "abcdef", large)
    c.check(code == 1 and "exceeds maximum allowed size" in err, f"too large: {err}")
    c.check(firn.stop() == 0, "it stops")
    c.check(upload(debug)[0] == 3, "nobody is there")


def main():
    c = Checks()
    options = ["--debuginfo-storage-size=3MiB", "--debuginfo-upload-max-size=1MiB", "--debug-directories=/nowhere"]
    with tempfile.TemporaryDirectory(prefix="firn-debuginfo-") as directory:
        subject = Subject(directory)
        firn = Firn(PROGRAM, "server", os.path.join(directory, "a"), *options)
        check_table(c, firn)
        check_framings(c, firn)
        check_names(c, firn, subject)
        check_hash(c, firn, subject)
        check_broken(c, firn)
        c.check(firn.stop() == 0, "it stops")
        check_killed(c, os.path.join(directory, "b"), subject, options)
        check_tenants(c, os.path.join(directory, "c"), subject, options)
        check_verb(c, os.path.join(directory, "d"), subject, options)
        check_nullified(c, os.path.join(directory, "e"), subject, options)
    c.finish()


if __name__ == "__main__":
    main()
