#!/usr/bin/env python3
"""First inputs for the fuzz targets, from what the tests' own makers write and from messages built
field by field.

    fuzz_seeds.py FOLDER        FOLDER/TARGET/NAME for each
"""

import gzip
import io
import os
import struct
import subprocess
import sys
import tarfile
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.join(HERE, "..", "tests")
sys.path[:0] = [os.path.join(TESTS, "golden"), os.path.join(TESTS, "arrow")]

import arrow_maker
import profiles
from protobuf import message, number, real, text, time, varint

NS = 10**9
NOW = 1767323045 * NS


def packed(field, *values):
    return message(field, b"".join(map(varint, values)))


def fixed64(field, value):
    return varint(field << 3 | 1) + struct.pack("<Q", value)


# ---- Pyroscope: /ingest and Push ----


def push(profile):
    pairs = [("__name__", "process_cpu"), ("service_name", "app"), ("a.b", "c"), ("__session_id__", "7")]
    labels = [message(1, text(1, k) + text(2, v)) for k, v in pairs]
    return message(1, b"".join(labels) + message(2, message(1, profile) + text(2, "id")))


def deep_go():
    """Allocations of Go whose stacks are truncated at the root; others have the missing frames."""
    strings = ["", "alloc_space", "bytes", "a.go"] + [f"main.f{i}" for i in range(60)]
    kind = number(1, 1) + number(2, 2)
    stacks = [range(1 + first, 33 + first) for first in range(0, 28, 4)] + [range(5, 31), range(9, 40)]
    samples = [message(2, packed(1, *frames) + packed(2, 100 + i)) for i, frames in enumerate(stacks)]
    tables = [message(4, number(1, i + 1) + message(4, number(1, i + 1))) + message(
        5, number(1, i + 1) + number(2, 4 + i) + number(4, 3)) for i in range(60)]
    return message(1, kind) + b"".join(samples + tables) + b"".join(message(6, s.encode()) for s in strings) + message(11, kind)


def ingests(pprof):
    """A line of format and name (or time), then the body."""
    config = b'{"cpu":{"units":"samples","aggregation":"average","display-name":"cpu"}}'
    parts = [(b"profile", pprof), (b"sample_type_config", config)]
    body = b"".join(b'--b\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n' % p for p in parts)
    trie = b"\0\0\1\1a\0\2\2;b\1\0\2;c\2\0"
    yield "folded", b"groups app.cpu{k=v}\nmain;f 2\nmain;g h 3\n"
    yield "lines", b"lines now-1h\nmain;f\nmain;g\n"
    yield "trie", b"trie app.alloc_space{k=v}\n" + trie
    yield "tree", b"tree 1700000000123\n" + trie
    yield "pprof", b"pprof 20260131\n" + pprof
    yield "deep_go", b"pprof 20260131\n" + deep_go()
    yield "multipart", b"multipart {a=b}\n" + body + b"--b--\r\n"
    yield "parts", b"multipart app{service_name=s}\n" + body + b"--b--\r\n"


# ---- OTLP profiles, in the numbering of each version ----


def otlp_dictionary(old):
    strings = ["", "samples", "count", "cpu", "nanoseconds", "main", "main.c", "/bin/app", "thread.name",
               "profile.frame.type", "process.executable.build_id.gnu", "pid"]
    values = [text(1, "worker"), text(1, "native"), text(1, "00112233445566778899"), number(3, 77)]
    if old:
        attributes = [text(1, strings[8 + i]) + message(2, v) for i, v in enumerate(values)]
    else:
        attributes = [b""] + [number(1, 8 + i) + message(2, v) for i, v in enumerate(values)]
    links = [b"", message(1, bytes(range(16))) + message(2, bytes(range(8)))]
    mappings = [b"", number(1, 4096) + number(2, 8192) + number(3, 0) + number(4, 7) + packed(5, 3)]
    functions = [b"", number(1, 5) + number(2, 5) + number(3, 6) + number(4, 3)]
    lines = message(3, number(1, 1) + number(2, 10) + number(3, 2)), message(3, number(1, 1))
    locations = [b"", number(1, 1) + number(2, 4100) + b"".join(lines) + packed(4, 2)]
    locations.append(number(1, 1) + number(2, 5000))
    stacks = [b"", packed(1, 1, 2), packed(1, 2)]
    out = [message(1, m) for m in mappings] + [message(2, m) for m in locations]
    out += [message(3, m) for m in functions] + [message(4, m) for m in links]
    out += [message(5, s.encode()) for s in strings] + [message(6, m) for m in attributes]
    if not old:
        out += [message(7, m) for m in stacks]
    return b"".join(out)


def otlp(version):
    stamps = message(6 if version == "1.7" else 5, struct.pack("<2Q", NOW, NOW + 5))
    kind, period = number(1, 1) + number(2, 2), number(1, 3) + number(2, 4)
    if version == "1.7":
        samples = [number(2, 2) + packed(3, 5) + packed(4, 0) + number(5, 1), number(1, 1) + number(2, 1) + stamps]
        body = [message(1, kind), packed(3, 1, 2), number(4, NOW), number(5, NS), message(6, period), number(7, 52631578)]
    elif version == "1.9":
        samples = [number(1, 1) + packed(2, 5) + packed(3, 1) + number(4, 1), number(1, 2) + stamps]
        body = [message(1, kind), fixed64(3, NOW), number(4, NS), message(5, period), number(6, 52631578)]
        body.append(message(7, bytes(16)))
    else:
        samples = [number(1, 1) + packed(2, 1, 4) + number(3, 1) + packed(4, 5), number(1, 2) + packed(4, 1, 2) + stamps]
        body = [message(1, kind), fixed64(3, NOW), number(4, NS), message(5, period), number(6, 52631578)]
        body += [message(7, bytes(16)), number(8, 1), text(9, "x"), packed(11, 1)]
    profile = b"".join([message(2, s) for s in samples] + body)
    scope = message(1, text(1, "agent") + text(2, "1")) + message(2, profile)
    pairs = [("host.name", text(1, "h")), ("a.b", number(2, 1)), ("c", varint(4 << 3 | 1) + struct.pack("<d", 1.5))]
    resource = b"".join(message(1, text(1, k) + message(2, v)) for k, v in pairs)
    return message(1, message(1, resource) + message(2, scope)) + message(2, otlp_dictionary(version == "1.7"))


# ---- Parca's messages ----


def criteria(kind):
    strings = [message(i + 1, message(i % 6 + 1, b"main")) for i in range(4)]
    numbers = [message(5, number(1, 4100)), message(6, number(2, 3))]
    return message(12, message(kind, message(2, *strings, *numbers)))


def parca_queries(selector='a:b:c:d:e:delta{x="y",z=~"a.*"}', alone="a:b:c:d:e"):
    merge = text(1, selector) + time(2, NOW) + time(3, NOW + NS)
    single = time(1, NOW) + text(2, alone)
    tail = real(7, 0.5) + message(8, text(1, "labels.x"), text(1, "function_name"))
    tail += message(9, text(1, "abc"), text(2, "main.c"), number(3, 1)) + criteria(1) + criteria(2)
    old = text(6, "main") + message(10, number(1, 1), number(3, 1))
    old += message(12, message(1, message(1, text(1, "main"), number(2, 1))))
    old += message(12, message(2, message(1, text(1, "libc.so"))))
    yield "query_merge", 0, number(1, 2) + message(3, merge) + number(5, 5) + tail + number(11, 1) + text(13, "main")
    yield "query_single", 0, message(4, single) + number(5, 6) + tail
    side = message(1, number(1, 1), message(2, merge)), message(2, message(3, single))
    yield "query_diff", 0, number(1, 1) + message(2, *side, number(3, 1)) + number(5, 7) + old
    yield "share", 1, message(1, number(1, 2) + message(3, merge) + tail) + text(2, "seen")
    yield "range", 2, merge + number(4, 9) + message(5, number(1, 10)) + text(6, "x") + text(6, "y")
    for i in range(4):
        names = text(1, "x") + text(2, "a:b:c:d:e") if i == 2 else text(1, '{x="y"}')
        yield f"index_{i}", 3 + i, names + time(3, NOW) + time(4, NOW + NS)


CPU = "cpu:samples:count:cpu:nanoseconds:delta"
HEAP = "memory:inuse_space:bytes:space:bytes"
URLS = [
    (7, ""), (8, ""), (9, ""), (10, "by=comm&by=pid&step=2s&limit=1"), (11, "trim=0.1&invert=1&match=ma"), (12, "limit=2&format=text"),
    (13, "match=leaf"), (14, "base_from=1767323040&base_to=1767323050&worse_above=0.1"), (15, ""),
] + [(11, f"format={f}") for f in ("folded", "html", "speedscope", "firefox", "text")]


LIMITS = (
    "# who, what\nci-* max-series-per-tenant=10 max-profile-size=1MiB\n\n"
    '"" max-label-names-per-series=7\tmax-label-name-length=8\n* max-label-value-length=9 max-profile-stacktrace-depth=100\n'
)


def server_queries():
    """Queries for the data of fuzz/server.h: each report in each mode."""
    calls = (0, 0, 1, 2, 3, 4, 5, 6)
    for selector in (CPU + "{}", CPU + '{comm="a",pid!="22"}', HEAP):
        span = text(1, selector) + time(2, NOW - 6 * NS) + time(3, NOW + 30 * NS)
        for report in range(11):
            yield f"r{report}_{len(selector)}", b"\0" + number(1, 2) + message(3, span) + number(5, report)
            side = message(1, number(1, 2), message(3, span)), message(2, number(1, 2), message(3, span))
            yield f"d{report}_{len(selector)}", b"\0" + number(1, 1) + message(2, *side, number(3, 1)) + number(5, report)
        for fields in ("labels.comm", "mapping_file", "location", "function_filename"):
            yield f"by_{fields}_{len(selector)}", b"\0" + number(1, 2) + message(3, span) + number(5, 6) + message(8, text(1, fields))
        for kind, filtered in enumerate((criteria(1), criteria(2), text(13, "main"), number(11, 1) + text(13, "leaf"))):
            yield f"filter{kind}_{len(selector)}", b"\0" + number(1, 2) + message(3, span) + number(5, 6) + filtered
        yield f"range_{len(selector)}", b"\1" + span + number(4, 9) + message(5, number(1, 10)) + text(6, "comm")
        for call, query in URLS:
            yield f"url{call}_{query[:12]}_{len(selector)}", bytes([call]) + f"query={selector}&from=1767323040&to=1767323060&{query}".encode()
    for name, kind, data in parca_queries(CPU, CPU):
        if kind != 1:
            yield name, bytes([calls[kind]]) + data


def raw(pprof):
    labels = message(1, text(1, "__name__"), text(2, "cpu")), message(1, text(1, "a.b"), text(2, "c"))
    return message(2, message(1, *labels), message(2, message(1, pprof))) + number(3, 1)


def arrow_streams():
    for codec in (None, "lz4", "zstd"):
        for name, make in (("plain", arrow_maker.plain_columns), ("encoded", arrow_maker.encoded_columns)):
            for column, (type_, values) in make(5).items():
                stream = arrow_maker.Stream({column: type_}, codec)
                yield f"{name}_{codec}_{column}", stream.write({column: values}).bytes()


def parca_streams(folder):
    maker = os.path.join(TESTS, "parca", "parca_maker.py")
    with tempfile.TemporaryDirectory() as made:
        subprocess.run([sys.executable, maker, os.path.join(TESTS, "arrow"), made, "3"], check=True)
        files = {name: open(os.path.join(made, name), "rb").read() for name in os.listdir(made)}
    first = files["v1.arrow"]
    yield "v1_host", b"\1" + struct.pack("<H", len(first)) + first + files["v1.stacks"]
    yield "v2_host", b"\0\0\0" + files["v2.arrow"]
    with tempfile.TemporaryDirectory() as made:
        subprocess.run([sys.executable, maker, os.path.join(TESTS, "arrow"), made], check=True)
        for name in sorted(os.listdir(made)):
            data = open(os.path.join(made, name), "rb").read()
            if name.startswith("bad_") and name.endswith(".arrow"):
                yield name, b"\0\0\0" + data


def parca_offline(folder):
    maker = os.path.join(TESTS, "parca", "parca_maker.py")
    with tempfile.TemporaryDirectory() as made:
        subprocess.run([sys.executable, maker, os.path.join(folder, "arrow"), made], check=True)
        for name in sorted(os.listdir(made)):
            if name.startswith(("offline_", "cut_")) and name.endswith(".arrow"):
                yield name, open(os.path.join(made, name), "rb").read()


# ---- texts ----

JSON_OTLP = """{"resourceProfiles":[{"resource":{"attributes":[{"key":"host.name","value":{"stringValue":"h"}}]},
"scopeProfiles":[{"scope":{"name":"agent"},"profiles":[{"sampleType":{"typeStrindex":1,"unitStrindex":2},"samples":[
{"stackIndex":1,"values":["5"],"linkIndex":1,"timestampsUnixNano":["1767323045000000000"]}],"timeUnixNano":
"1767323045000000000","durationNano":"1000000000","periodType":{"typeStrindex":1,"unitStrindex":2},"period":"1",
"profileId":"00112233445566778899aabbccddeeff"}]}]}],"dictionary":{"mappingTable":[{},{"memoryStart":"4096"}],
"locationTable":[{},{"mappingIndex":1,"address":"4100","lines":[{"functionIndex":1,"line":"3"}]}],"functionTable":
[{},{"nameStrindex":3}],"linkTable":[{},{"traceId":"00112233445566778899aabbccddeeff","spanId":"0011223344556677"}],
"stringTable":["","samples","count","main"],"attributeTable":[{}],"stackTable":[{},{"locationIndices":[1]}]}}"""
JSON_OTHERS = [
    '{"query":"a:b:c:d:e{x=\\"y\\"}","start":"2026-01-02T03:04:05.5Z","end":"2026-01-02T03:05:05Z","step":"10s","limit":3,"sumBy":["a"]}',
    '{"mode":"MODE_MERGE","merge":{"query":"a:b:c:d:e","start":"2026-01-02T03:04:05Z","end":"2026-01-02T03:05:05Z"},'
    '"reportType":"REPORT_TYPE_FLAMEGRAPH_ARROW","nodeTrimThreshold":0.5,"invertCallStack":true,"groupBy":{"fields":["x"]},'
    '"filter":[{"stackFilter":{"criteria":{"functionName":{"contains":"m"},"address":{"equal":"7"}}}}]}',
    '{"mode":1,"diff":{"a":{"mode":"MODE_MERGE","merge":{"query":"a"}},"b":{"single":{"time":"2026-01-02T03:04:05Z","query":"a"}},"absolute":true}}',
    '{"label_name":"x","match":["{a=\\"b\\"}"],"start":null,"end":"1970-01-01T00:00:00Z"}',
    '{"series":[{"labels":{"labels":[{"name":"__name__","value":"cpu"}]},"samples":[{"rawProfile":"CgA="}]}],"normalized":true}',
    '{"resourceSpans":[{}],"resourceLogs":[{}],"resourceMetrics":[{}]}',
    '{"service":"","host":"h","listServices":"*","fileContainingSymbol":"a.B"}',
]
RELABEL = [
    "relabel_configs:\n- source_labels: [a, __meta_b]\n  separator: ';'\n  regex: (.*)o;(.+)\n  target_label: c\n  replacement: $1-${2}\n",
    "relabel_configs:\n- {action: drop, source_labels: [a], regex: foo|bar}\n- {action: labelmap, regex: __meta_(.+), replacement: m_$1}\n",
    "relabel_configs:\n- {action: hashmod, source_labels: [a], modulus: 8, target_label: shard}\n- {action: labeldrop, regex: s.*}\n"
    "- {action: labelkeep, regex: a}\n- {action: lowercase, source_labels: [a], target_label: l}\n"
    "- {action: uppercase, source_labels: [a], target_label: u}\n- {action: keepequal, source_labels: [a], target_label: l}\n"
    "- {action: dropequal, source_labels: [a], target_label: u}\n- {action: keep, source_labels: [a], regex: '[a-z]+'}\n",
    "# nothing\nrelabel_configs: []\n",
    "relabel_configs:\n- &x\n  action: replace\n  target_label: a\n  replacement: |\n    b\n- *x\n",
]
PROCFS = [
    "7f00-7f10 r-xp 00001000 fd:0a 1234                       /usr/lib/x.so\n1-2 rw-p 0 00:00 0 \n",
    "ffffffff81000000 T _stext\nffffffffc0000000 t init_module\t[ext4]\n0000000000000000 A zero\n",
    "1234 (a) b c) S 1 1234 1234 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1000 100 18446744073709551615 0\n",
    "0::/system.slice/nginx.service\n",
    "12:cpu:/kubepods/burstable/pod1-2/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n0::/x\n",
    *("0::" + path.replace("ID", "0123456789abcdef" * 4) + "\n" for path in (
        "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1a2b_3c.slice/cri-containerd-ID.scope",
        "/kubepods.slice/kubepods-pod00112233_4455_6677_8899_aabbccddeeff.slice/crio-ID.scope/container",
        "/machine.slice/libpod-ID.scope/container",
        "/system.slice/docker-ID.scope",
        "/user.slice/user-1000.slice/user@1000.service/app.slice/a-b@1.service",
        "/system.slice/containerd.service/kubepods-besteffort-pod7.slice:cri-containerd:ID",
        "/lxc.payload.box/docker/ID",
    )),
    "11:name=systemd:/docker/" + "ab" * 32 + "\n4:cpu,cpuacct:/docker/" + "ab" * 32 + "\n1:pids:/\n",
]
RULES = ['tenant="a",type="cpu:*"=7d/10GB', "type=*:delta=1h", "7d", '"*"=10GB', "drop=pid,cpu after=1d", "a=b:c=1m"]
SELECTORS = [
    "a:b:c:d:e:delta", 'a:b:c:d:e{x="y",z!="",w=~"a.*|b",v!~"^c$"}', '{x="\\u00e9\\n\\x41\\101"}', "{x='y', z=`a\\b`,}",
    '{x="1"}', "a:b:c:d:e{}",
]
REQUESTS = [
    "POST /a/b?x=1&y=%41+ HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n3;e=1\r\nabc\r\n0\r\nt: v\r\n\r\n",
    "GET http://h/x HTTP/1.1\r\nHost: h\r\nConnection: close, x\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n",
    "POST / HTTP/1.0\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\nhelloGET / HTTP/1.0\r\n\r\n",
    "OPTIONS * HTTP/1.1\r\nHost: [::1]:7070\r\nOrigin: http://a\r\n\r\n",
    "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 3, 3\r\nContent-Length: 3\r\n\r\nabc",
    "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: h\r\n folded\r\n\r\n",
    "PRI * HTTP/2.0\r\n\r\n",
]

REST = [
    "/a/x/b\nan_int64=1&texts=a&texts=b&inner.a_string=%41+b\nlocalhost:7070\nhttp://localhost:7070\nsame-origin\n",
    "/a/x/b\n\n127.0.0.1\nhttp://firn.example\ncross-site\n{\"ints\":[1,2],\"at\":\"2026-01-02T03:04:05Z\"}",
    "/a\nat=2026-01-02T03:04:05Z&took=1.5s&colour=COLOUR_RED&some_bytes=AAEC\n[::1]:7070\n\n\n",
    "/a\n\nfirn.example.\nnull\nnone\n",
    "/x/y\na_double=1e9&a_bool=true&an_sint64=-5&one_number=1&one_text=x\nevil.example\nhttp://evil.example\n\n",
    "/x/y\nnames[1].a_string=b&counts[a]=1&inner.inner.ints=1&inners=2&maybe=0\nx.localhost\n\n\n{\"inner\":{\"inner\":null}}",
    "/x/y\n\nlocalhost\n\n\n{\"aString\":\"/x\",\"inners\":[{},{\"counts\":{\"a\":\"1\"}}],\"colour\":\"COLOUR_RED\",\"aDouble\":\"NaN\",\"traceId\":\"00ff\"}",
]

RPC = [b"\0\0\0\0\2\x18\1", b"AAAAAAIYAQ==", b'{"anInt64":"1"} {"ints":[1]}', bytes(1100)]
PACKED = gzip.compress(b"\x18\1" * 20, mtime=0)
GRPC = [
    b"\0\0\0\0\3abc\1\0\0\0" + bytes([len(PACKED)]) + PACKED, b"\x80\0\0\0\0", b"aGVsbG8=aGk=", b"10S", b"99999999n", b"5m", b"1u2H3M",
    b"/a/b%20c?a=1&a=%41+&b", b"/a/../b?x=%zz", b"a%C3%A9%", b"deflate, gzip;q=0.5", b"gzip; q=0.000 , *", b"a%e2%82",
]
PARAMS = [
    "a_double=1e3&a_float=NaN&an_int64=-1&a_uint64=2&an_int32=3&a_fixed64=4&a_fixed32=5&a_bool=true&a_string=x%20y&some_bytes=AAE%3D",
    "a_uint32=1&an_sfixed32=-2&an_sfixed64=-3&an_sint32=-4&an_sint64=-5&colour=COLOUR_ODD&inner.inner.a_string=q&ints=1&ints=2&texts=a",
    "maybe=0&one_text=a&one_number=1&counts%5Ba%5D=1&names=1&at=2026-01-02T03:04:05Z&took=1.5s&trace_id=00ff&doubles=Infinity&bools=false",
    "inners.a_string=x&inner=1&colour=7&a_bool=1&a_bool=x&anInt64=5&inner.oneText=y&unknown=1&a_uint32=4294967296&an_int32=-2147483649",
]

DOCKER = (
    '{"Id":"0123456789ab","Name":"/web","Config":{"Image":"nginx:1","Labels":{"a.b/c":"d","com.docker.compose.service":"s"}},'
    '"State":{"Pid":7},"HostConfig":{"NetworkMode":"host"}}'
)
POD = (
    '{"items":[{"metadata":{"name":"web-1","namespace":"default","uid":"u-1","labels":{"app":"web"},"annotations":{"k":"v"},'
    '"ownerReferences":[{"kind":"ReplicaSet","name":"web","controller":true}]},"spec":{"nodeName":"n","containers":'
    '[{"name":"c","image":"i:1"}]},"status":{"podIP":"10.0.0.1","containerStatuses":[{"name":"c","containerID":'
    '"containerd://0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}]}}]}'
)


def cri():
    """Answers with a status of two levels, as CRI and containerd give them."""
    pair = message(5, text(1, "io.kubernetes.pod.name") + text(2, "web-1"))
    meta = message(2, text(1, "c") + number(2, 1))
    return message(1, text(1, "0123456789ab") + meta + message(6, text(1, "i:1")) + pair + pair)


def broker():
    for kind, rest in (
        (1, b"/proc/7/maps"), (1, b"/proc/7/root/usr/lib/libc.so.6"), (1, b"/proc/7/map_files/1000-2000"),
        (1, b"/proc/7/root/tmp/perf-7.map"), (2, b"/proc/7/exe"), (2, b"/proc/7/root"),
        (1, b"/proc/7/task/8/comm"), (3, struct.pack("<Q", 77)), (4, struct.pack("<II", 1, 19)), (5, b""),
    ):
        yield struct.pack("<II", kind, 1) + rest

RECORD = (
    "build_id abc%2F1\ntype sources\ntenant t%20a\nupload 0123abcd-0123-4abc-8abc-0123456789ab\nhash h\nsize 99\n"
    "state uploaded\nstarted 17\nfinished 18\ninvalid 1\nready 00000000-0000-4000-8000-000000000000\nready_bytes 99\n"
)


def archives():
    """Tars of each format, with long names and links; as they are and compressed."""
    for name, form in (("ustar", tarfile.USTAR_FORMAT), ("gnu", tarfile.GNU_FORMAT), ("pax", tarfile.PAX_FORMAT)):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=form, bufsize=512) as tar:
            for path in ("b", "x/" * 45 + "y", "a"):
                item = tarfile.TarInfo(path)
                item.size = 5
                tar.addfile(item, io.BytesIO(b"text\n"))
            link = tarfile.TarInfo("l")
            link.type, link.linkname = tarfile.SYMTYPE, "a"
            tar.addfile(link)
        plain = out.getvalue().rstrip(b"\0")
        plain += bytes(-len(plain) % 512 + 1024)
        yield name, b"\0" + plain
        yield name + "_gzip", b"\1" + gzip.compress(plain, mtime=0)


def h2(kind, flags, stream, body=b""):
    return struct.pack(">I", len(body))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + body


def literal(name, value):
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def h2_sessions():
    head = b"\x83\x86\x84" + literal(b":authority", b"h") + literal(b"content-type", b"application/grpc") + literal(b"te", b"trailers")
    frame = b"\0\0\0\0\3abc"
    yield "grpc", h2(1, 4, 1, head) + h2(0, 1, 1, frame) + h2(4, 1, 0)
    yield "two", h2(1, 4, 1, head) + h2(1, 5, 3, b"\x82\x86\x84" + literal(b":authority", b"h")) + h2(0, 1, 1, frame)
    yield "padded", h2(1, 4 | 8 | 32, 1, b"\3" + bytes(4) + b"\7" + head + bytes(3)) + h2(0, 9, 1, b"\2" + frame + b"\0\0")
    yield "trailers", h2(1, 4, 1, head) + h2(0, 0, 1, frame) + h2(1, 5, 1, literal(b"x-t", b"v"))
    yield "control", h2(4, 0, 0, struct.pack(">HIHI", 4, 100, 3, 7)) + h2(6, 0, 0, bytes(8)) + h2(8, 0, 0, struct.pack(">I", 1000))
    yield "reset", h2(1, 4, 1, head) + h2(3, 0, 1, struct.pack(">I", 8)) + h2(7, 0, 0, struct.pack(">II", 1, 0) + b"bye")
    yield "continued", h2(1, 0, 1, head[:5]) + h2(9, 4, 1, head[5:]) + h2(0, 1, 1, frame)
    for path in b"abcdef":
        own = b"\x83\x86" + literal(b":path", b"/" + bytes([path])) + literal(b":authority", b"h")
        yield f"path_{chr(path)}", h2(1, 4, 1, own) + h2(0, 0, 1, b"12") + h2(0, 1, 1, b"345") + h2(1, 5, 3, own) + h2(8, 0, 0, struct.pack(">I", 90000)) + h2(8, 0, 1, struct.pack(">I", 90000))
    yield "priority", h2(2, 0, 3, bytes(5)) + h2(1, 4, 1, head) + h2(8, 0, 1, struct.pack(">I", 70000)) + h2(0, 1, 1)


# ---- unwinding ----

SOURCE = r"""
extern int other(const char *, ...);
static int (*volatile pointer)(const char *, ...) = other;
int leaf(int x) { return x * 7; }
int calls(int x) { return other("a", x) + leaf(x); }
int saves(int a, int b, int c, int d, int e) { int s = 0; for (int i = a; i < b; i++) s += other("b", c, d, e, i); return s; }
int large(int x) { volatile char room[70000]; room[x] = 1; return other("c", room) + room[x + 1]; }
int sized(int x) { volatile char room[x]; room[0] = 1; return pointer("d", room) + room[x / 2]; }
int aligned(int x) { volatile _Alignas(64) char room[256]; room[x] = 1; return other("e", room); }
void stops(int x) { if (x) __builtin_trap(); for (;;) other("f"); }
__asm__(".text\n.globl plain\nplain: push %rbx; push %rbp; sub $24, %rsp; call other@PLT; add $24, %rsp; pop %rbp; pop %rbx; ret\n"
".globl framed\nframed: push %rbp; mov %rsp, %rbp; and $-64, %rsp; call other@PLT; leave; ret\n"
".globl restores\nrestores: mov $15, %eax; syscall; nop\n"
".globl branches\nbranches: test %edi, %edi; jz 1f; push %rax; call other@PLT; pop %rcx; 1: ret; .p2align 4\n"
".section .init,\"ax\",@progbits\n_init: sub $8, %rsp; add $8, %rsp; ret\n"
".section .fini,\"ax\",@progbits\n_fini: push %rax; pop %rcx; ret\n");
int _start(void) { return calls(1); }
"""
BUILDS = {
    "o0": ["-O0"],
    "o2": ["-O2", "-fcf-protection=full"],
    "lazy": ["-O2", "-Wl,-z,lazy", "-fcf-protection=full"],
    "debug_frame": ["-O2", "-g1", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"],
    "none": ["-O2", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"],
    "frame_pointers": ["-O1", "-fno-omit-frame-pointer", "-Wl,--no-ld-generated-unwind-info", "-Wl,--build-id"],
}


def objects():
    """Small libraries of every kind of unwind information that the compiler at hand writes."""
    with tempfile.TemporaryDirectory() as made:
        for name, flags in BUILDS.items():
            out = os.path.join(made, name)
            command = ["cc", "-shared", "-fPIC", "-nostdlib", "-w", "-Wl,-z,noseparate-code", "-x", "c", "-", "-o", out]
            subprocess.run(command + flags, input=SOURCE.encode(), check=True)
            subprocess.run(["strip", "--strip-unneeded" if "debug" not in name else "-x", out], check=True)
            yield name, open(out, "rb").read()


def unwind_page(rules, rows):
    """A blob of docs/formats/unwind.md: rows are (offset, rule); sparse where there are few."""
    rules = b"".join(struct.pack("<BBhhh", *r) for r in rules)
    if len(rows) < 128:
        return rules + b"".join(struct.pack("<H", at) for at, _ in rows) + bytes(r for _, r in rows), len(rows)
    starts = [sum(at < 256 * b for at, _ in rows) for b in range(257)]
    return struct.pack("<257H6x", *starts) + rules + b"".join(bytes([at & 255, r]) for at, r in rows), 0


def unwind_table(first, pages):
    format_page = open(os.path.join(HERE, "..", "docs", "formats", "unwind.md"), encoding="utf-8").read()
    version = int(format_page.split("version: ")[1].split(".")[0])
    blobs = [unwind_page(*p) if p else (b"", 0) for p in pages]
    head = b"firnunw\n" + struct.pack("<4I", version, first, len(pages), 0)
    rows = sum(len(p[1]) for p in pages if p)
    head += struct.pack("<5Q", sum(len(b) for b, _ in blobs), rows, 3, 0, 0)
    head += b"".join(struct.pack("<IHH", len(b), len(p[0]) if p else 0, n) for p, (b, n) in zip(pages, blobs))
    return head + b"".join(b + bytes(-len(b) % 8) for b, _ in blobs) + bytes(4)  # the target puts the sum there


def unwind_tables():
    plain = [(1, 0, 8, 0, -8), (1, 1, 16, -16, -8), (2, 1, 16, -16, -8), (7, 0, 0, 0, 0)]
    rare = [(0, 0, 0, 0, 0), (3, 0, -8, 0, 0), (5, 0, 11, 0, 0), (6, 0, 0, 0, 0), (8, 0, 0, 0, 0), (10, 0, 5, 0, 1), (11, 0, 8, 0, 3)]
    few = (plain, [(0, 0), (10, 1), (65535, 3)])
    many = (plain + rare, [(i * 100, i % 11) for i in range(600)])
    yield "sparse", unwind_table(0, [few])
    yield "dense", unwind_table(7, [many])
    yield "mixed", unwind_table(1, [few, None, many, (rare, [(0, 0)])])


# ---- what servers of debug files answer ----


def upload_answers():
    goes_on = "A previous upload is still in-progress and not stale yet (only stale uploads can be retried)."
    yield "wanted", number(1, 1) + text(2, "First time we see this Build ID")
    yield "goes_on", text(2, goes_on)
    for name, strategy, url in (("grpc", 1, ""), ("signed", 2, "https://bucket.example/a/b?sig=c%2Fd&e#f"),
                                ("clear", 2, "http://[::1]:8080/a"), ("bare", 2, "https://bucket.example")):
        told = text(1, "abcdef") + text(2, "0f9c1f5e-1111-4222-8333-444444444444") + number(3, strategy)
        yield name, message(1, told + text(4, url) + number(5, 1))


# ---- all of them ----


def seeds():
    pprof = profiles.made(1, [("samples", "count"), ("cpu", "nanoseconds")], ("cpu", "nanoseconds"), 5, NOW, 4)
    plain = gzip.decompress(pprof)
    yield "pprof_decode", [("made", plain)]
    yield "parca_raw", [("plain", raw(plain)), ("gzip", raw(pprof))]
    yield "pyroscope_push", [("plain", push(plain)), ("gzip", push(pprof)), ("deep_go", push(deep_go()))]
    yield "pyroscope_ingest", list(ingests(pprof))
    yield "otlp_decode", [(f"v{v}", otlp(v)) for v in ("1.7", "1.9", "1.11")]
    yield "ingest_limits", [("all", LIMITS.encode())]
    yield "server_query", list(server_queries())
    arrows = [(f"arrow_{name}", b"\3" + message(1, data[3:])) for name, data in parca_streams(TESTS) if data[:1] == b"\0"]
    yield "server_ingest", arrows + [("raw", b"\2" + raw(pprof)), ("json", b"\1" + JSON_OTLP.encode())] + [
        (f"v{v}", b"\0" + otlp(v)) for v in ("1.7", "1.9", "1.11")] + [(f"other_{i}", bytes([i]) + message(1, message(2, message(2)))) for i in (4, 5, 6)]
    yield "parca_query", [(name, bytes([kind]) + data) for name, kind, data in parca_queries()]
    yield "arrow_stream", list(arrow_streams())
    yield "parca_arrow", list(parca_streams(TESTS))
    yield "parca_offline", list(parca_offline(TESTS))
    yield "schema_json", [("otlp", b"\0\0" + JSON_OTLP.encode())] + [
        (f"m{m}_{i}", bytes([m, 1]) + t.encode()) for i, t in enumerate(JSON_OTHERS) for m in range(16)
    ]
    for name, texts in (("relabel_parse", RELABEL), ("procfs", PROCFS), ("store_rules", RULES), ("selector_parse", SELECTORS)):
        yield name, [(str(i), t.encode()) for i, t in enumerate(texts)]
    yield "agent_broker", [(str(i), data) for i, data in enumerate(broker())]
    yield "container_decode", [("docker", b"\0" + DOCKER.encode())] + [
        (f"pod_{i}", bytes([i]) + POD.encode()) for i in (7, 8)
    ] + [(f"cri_{i}", bytes([i]) + cri()) for i in range(1, 7)]
    yield "debuginfo_archive", list(archives())
    yield "debuginfo_record", [("whole", RECORD.encode()), ("least", b"build_id abc\ntype debuginfo\nsize 1\nstate uploading\nstarted 1\nfinished 0\n")]
    yield "net_rest", [(f"{i}_{n}", bytes([n]) + t.encode()) for i, t in enumerate(REST) for n in (0, 1, 3, 4, 9, 0x45, 0x89, 0x31)]
    yield "net_rpc", [(f"{n}_{i}", bytes([n]) + b) for n in range(8) for i, b in enumerate(RPC)] + [
        (f"{n}_gzip", bytes([n | 0x80]) + b"\1" + struct.pack(">I", len(PACKED)) + PACKED) for n in range(7)]
    yield "http_grpc", [(str(i), t) for i, t in enumerate(GRPC)]
    yield "pb_params", [(str(i), t.encode()) for i, t in enumerate(PARAMS)]
    yield "http_h1", [(str(i), bytes([i]) + t.encode()) for i, t in enumerate(REQUESTS)]
    yield "http_h2", list(h2_sessions())
    yield "unwind_build", list(objects())
    yield "objfile_open", list(objects())
    yield "unwind_decode", list(unwind_tables())
    yield "upload_wire", list(upload_answers())


def main():
    for target, inputs in seeds():
        folder = os.path.join(sys.argv[1], target)
        os.makedirs(folder, exist_ok=True)
        for name, data in inputs:
            with open(os.path.join(folder, "seed_" + name), "wb") as file:
                file.write(data)


if __name__ == "__main__":
    main()
