"""gRPC, gRPC-Web and Connect as a client writes them, from the published protocols: HTTP/2 frames by
Debian's python3-h2, HTTP/1 by the standard library. Shares nothing with the server under test."""

import base64
import gzip
import http.client
import json
import socket
import ssl
import struct

import h2.config
import h2.connection
import h2.events


def frame(message, compressed=False):
    body = gzip.compress(message) if compressed else message
    return struct.pack(">BI", compressed, len(body)) + body


def unframe(data):
    """[(flags, bytes)], and it must be whole."""
    out = []
    while data:
        flags, size = struct.unpack_from(">BI", data)
        assert len(data) >= 5 + size, (len(data), size)
        body = data[5 : 5 + size]
        out.append((flags, gzip.decompress(body) if flags & 1 else body))
        data = data[5 + size :]
    return out


class Http2:
    """One connection; one call at a time, as a list of messages or with a callback for each answer."""

    def __init__(self, address, context=None, timeout=30, source=None):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout, source)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as every client of gRPC does
        self.authority = address
        if context:
            self.socket = context.wrap_socket(self.socket, server_hostname=host)
            assert self.socket.selected_alpn_protocol() == "h2"
        config = h2.config.H2Configuration(client_side=True, header_encoding="utf-8")
        self.h2 = h2.connection.H2Connection(config=config)
        self.h2.initiate_connection()
        self.flush()

    def flush(self):
        self.socket.sendall(self.h2.data_to_send())

    def close(self):
        self.socket.close()

    def open(self, path, headers=(), content_type="application/grpc"):
        stream = self.h2.get_next_available_stream_id()
        head = [
            (":method", "POST"),
            (":path", path),
            (":scheme", "http"),
            (":authority", self.authority),
            ("content-type", content_type),
            ("te", "trailers"),
            *headers,
        ]
        self.h2.send_headers(stream, head)
        self.answer = {"headers": {}, "trailers": {}, "data": b"", "ended": False, "reset": None}
        self.stream = stream
        self.flush()
        return stream

    def events(self):
        data = self.socket.recv(65536)
        if not data:
            raise ConnectionError("closed")
        for event in self.h2.receive_data(data):
            if getattr(event, "stream_id", None) != self.stream:
                continue
            if isinstance(event, h2.events.ResponseReceived):
                self.answer["headers"] = dict(event.headers)
            elif isinstance(event, h2.events.TrailersReceived):
                self.answer["trailers"] = dict(event.headers)
            elif isinstance(event, h2.events.DataReceived):
                self.answer["data"] += event.data
                self.h2.acknowledge_received_data(event.flow_controlled_length, self.stream)
            elif isinstance(event, h2.events.StreamEnded):
                self.answer["ended"] = True
            elif isinstance(event, h2.events.StreamReset):
                self.answer["reset"] = event.error_code
        self.flush()

    def send(self, data, end=False, piece=16384):
        at = 0
        while at < len(data) or (end and not data):
            if self.answer["ended"] or self.answer["reset"] is not None:
                return
            room = min(self.h2.local_flow_control_window(self.stream), piece)
            part = data[at : at + room]
            if not part and data:
                self.events()
                continue
            at += len(part)
            self.h2.send_data(self.stream, part, end_stream=end and at == len(data))
            self.flush()
            if not data:
                return

    def finish(self):
        while not self.answer["ended"] and self.answer["reset"] is None:
            self.events()
        return self.answer

    def call(self, path, messages, headers=(), compressed=False, piece=16384):
        """(grpc-status, grpc-message, [messages])"""
        if compressed:
            headers = [*headers, ("grpc-encoding", "gzip")]
        self.open(path, headers)
        data = b"".join(frame(m, compressed) for m in messages)
        self.send(data, end=True, piece=piece)
        return self.result(self.finish())

    @staticmethod
    def result(answer):
        trailers = answer["trailers"] or answer["headers"]
        assert answer["headers"].get(":status") == "200", answer
        assert answer["headers"]["content-type"] == "application/grpc", answer
        status = int(trailers["grpc-status"])
        return status, trailers.get("grpc-message", ""), [m for _, m in unframe(answer["data"])]


def post(address, path, body, headers, context=None):
    """(HTTP status, headers, body) over HTTP/1.1"""
    kind = http.client.HTTPSConnection if context else http.client.HTTPConnection
    arguments = {"context": context} if context else {}
    host, port = address.rsplit(":", 1)
    connection = kind(host, int(port), timeout=30, **arguments)
    connection.request("POST", path, body, headers)
    answer = connection.getresponse()
    out = answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
    connection.close()
    return out


def web(address, path, message, text=False, context=None):
    """gRPC-Web: (grpc-status, grpc-message, [messages])"""
    kind = "application/grpc-web-text" if text else "application/grpc-web+proto"
    body = frame(message)
    body = base64.b64encode(body) if text else body
    status, headers, data = post(
        address, path, body, {"content-type": kind, "x-grpc-web": "1"}, context
    )
    assert status == 200, (status, data)
    assert headers["content-type"] in (kind, kind + "+proto"), headers
    frames = unframe(base64.b64decode(data) if text else data)
    flags, last = frames[-1]
    assert flags == 0x80 and last.endswith(b"\r\n"), frames
    trailers = dict(line.split(": ", 1) for line in last.decode().split("\r\n")[:-1])
    return int(trailers["grpc-status"]), trailers.get("grpc-message", ""), [
        m for f, m in frames[:-1]
    ]


def connect(address, path, body, kind, context=None, compressed=False):
    """Connect, unary: (HTTP status, body, or the error as a dictionary)"""
    headers = {"content-type": kind, "connect-protocol-version": "1"}
    if compressed:
        headers["content-encoding"] = "gzip"
        body = gzip.compress(body)
    status, answer, data = post(address, path, body, headers, context)
    if status != 200:
        assert answer["content-type"] == "application/json", answer
        return status, json.loads(data)
    assert answer["content-type"] == kind, answer
    return status, data


def tls_context(certificate, alpn):
    context = ssl.create_default_context(cafile=certificate)
    context.set_alpn_protocols([alpn])
    return context
