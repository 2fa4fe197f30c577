"""Each way to say who one is, right, wrong, expired and of another tenant, over HTTP/1.1, gRPC, gRPC-Web and Connect.

Each question comes from an address of its own, so that wrong ones are no guesses of one source.
"""

import base64
import http.client
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from firn import Checks, Firn, wait_until

try:
    import warnings

    warnings.simplefilter("ignore", DeprecationWarning)
    import crypt

    import grpcwire
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

METHOD = "/parca.query.v1alpha1.QueryService/ProfileTypes"
ISSUER = "https://issuer.example"
WEB_CONFIG = """basic_auth_users:
  alice: %(hash)s
users:
  alice: {scopes: [read]}
tokens:
- {name: reader, token: reads-0123456789abcdef, scopes: [read]}
- {name: writer, token: writes-0123456789abcdef, scopes: [write]}
- {name: shop, token: shops-0123456789abcdef, scopes: [read], tenant: shop}
oidc:
- issuer: %(issuer)s
  audience: firn
  jwks_file: keys.json
  scopes: [read]
  tenant_claim: org
"""


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Issuer:
    """Signs tokens with RS256, by the openssl program."""

    def __init__(self, folder, name):
        self.key = os.path.join(folder, name + ".pem")
        subprocess.run(["openssl", "genrsa", "-out", self.key, "2048"], check=True, capture_output=True)

    def public(self):
        said = subprocess.run(["openssl", "rsa", "-in", self.key, "-noout", "-modulus"], check=True, capture_output=True)
        modulus = bytes.fromhex(said.stdout.decode().strip().partition("=")[2])
        return {"kty": "RSA", "kid": "k", "alg": "RS256", "n": base64url(modulus), "e": "AQAB"}

    def token(self, **claims):
        now = int(time.time())
        body = {"iss": ISSUER, "aud": "firn", "sub": "bob", "exp": now + 3600, "org": "shop", **claims}
        parts = [json.dumps(p).encode() for p in ({"alg": "RS256", "kid": "k"}, body)]
        text = ".".join(map(base64url, parts))
        command = ["openssl", "dgst", "-sha256", "-sign", self.key]
        signed = subprocess.run(command, input=text.encode(), check=True, capture_output=True)
        return text + "." + base64url(signed.stdout)


class Asker:
    """A question in each framing: "yes", "who?" (nobody has said who they are) or "no" (somebody who may not)."""

    GRPC = {0: "yes", 16: "who?", 7: "no"}
    HTTP = {200: "yes", 401: "who?", 403: "no"}

    def __init__(self, address):
        self.address = address
        self.last = 1

    def source(self):
        self.last += 1
        return (f"127.0.{self.last // 250}.{2 + self.last % 250}", 0)

    def http(self, method, path, body, headers):
        host, port = self.address.rsplit(":", 1)
        connection = http.client.HTTPConnection(host, int(port), timeout=60, source_address=self.source())
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        out = answer.status, answer.headers, answer.read()
        connection.close()
        return out

    def rest(self, headers):
        status, _, _ = self.http("GET", "/api/types", None, headers)
        return self.HTTP.get(status, status)

    def connect(self, headers):
        status, _, body = self.http("POST", METHOD, b"", {**headers, "content-type": "application/proto"})
        said = self.HTTP.get(status, status)
        codes = {"who?": "unauthenticated", "no": "permission_denied"}
        if said in codes and json.loads(body)["code"] != codes[said]:
            return body
        return said

    def web(self, headers):
        headers = {**headers, "content-type": "application/grpc-web+proto", "x-grpc-web": "1"}
        status, head, body = self.http("POST", METHOD, grpcwire.frame(b""), headers)
        if status != 200:
            return status
        trailer = head.get("grpc-status")
        if trailer is None:
            _, last = grpcwire.unframe(body)[-1]
            trailer = dict(line.split(": ", 1) for line in last.decode().split("\r\n")[:-1])["grpc-status"]
        return self.GRPC.get(int(trailer), trailer)

    def grpc(self, headers):
        wire = grpcwire.Http2(self.address, source=self.source())
        try:
            status, _, _ = wire.call(METHOD, [b""], list(headers.items()))
        finally:
            wire.close()
        return self.GRPC.get(status, status)


def basic(name, password):
    return {"authorization": "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()}


def bearer(token, tenant=None):
    return {"authorization": "Bearer " + token, **({"x-scope-orgid": tenant} if tenant else {})}


def check_all(checks, asker, issuer, stranger):
    now = int(time.time())
    rows = [
        ("nobody", {}, "who?"),
        ("a password", basic("alice", "secret"), "yes"),
        ("a wrong password", basic("alice", "Secret"), "who?"),
        ("an unknown user", basic("mallory", "secret"), "who?"),
        ("a token", bearer("reads-0123456789abcdef"), "yes"),
        ("a wrong token", bearer("reads-0123456789abcdee"), "who?"),
        ("a token of another scope", bearer("writes-0123456789abcdef"), "no"),
        ("a token of the tenant", bearer("shops-0123456789abcdef", "shop"), "yes"),
        ("a token of another tenant", bearer("shops-0123456789abcdef", "other"), "no"),
        ("a signed token", bearer(issuer.token()), "yes"),
        ("a signed token that expired", bearer(issuer.token(exp=now - 3600)), "who?"),
        ("a signed token for later", bearer(issuer.token(nbf=now + 3600)), "who?"),
        ("a signed token for others", bearer(issuer.token(aud="x")), "who?"),
        ("a signed token of another issuer", bearer(issuer.token(iss="https://x.example")), "who?"),
        ("a token that a stranger signed", bearer(stranger.token()), "who?"),
        ("a signed token of another tenant", bearer(issuer.token(), "other"), "no"),
    ]  # fmt: skip
    for name, headers, want in rows:
        said = {framing: getattr(asker, framing)(headers) for framing in ("rest", "grpc", "web", "connect")}
        checks.check(set(said.values()) == {want}, f"{name}: {want} {'' if set(said.values()) == {want} else said}")


def check_large(checks, address):
    """A body that is still under way when it is refused: the client reads the refusal all the same."""
    curl = shutil.which("curl")
    if not curl or b"HTTP2" not in subprocess.run([curl, "--version"], capture_output=True, check=False).stdout:
        checks.skip("a large body with a wrong token", "there is no curl with HTTP/2")
        return
    for version in ("--http1.1", "--http2-prior-knowledge"):
        said = subprocess.run(
            [curl, "-s", "-o", os.devnull, "-w", "%{http_code}", version, "-H", "authorization: Bearer wrong-0123456789abcdef",
             "--data-binary", "@-", f"http://{address}/v1development/profiles"],
            input=bytes(20 << 20), capture_output=True, check=False, timeout=60)  # fmt: skip
        checks.check(said.stdout == b"401", f"a large body with a wrong token, {version}: {said.stdout.decode()}")


def main():
    program = sys.argv[1]
    checks = Checks()
    if not shutil.which("openssl"):
        checks.skip("access", "there is no openssl program to sign with")
        checks.finish()
    storage = tempfile.mkdtemp(prefix="firn-test-access-")
    try:
        issuer, stranger = Issuer(storage, "issuer"), Issuer(storage, "stranger")
        hashed = crypt.crypt("secret", "$2b$05$abcdefghijklmnopqrstuu")
        with open(os.path.join(storage, "web.yml"), "w", encoding="utf-8") as file:
            file.write(WEB_CONFIG % {"hash": hashed, "issuer": ISSUER})
        with open(os.path.join(storage, "keys.json"), "w", encoding="utf-8") as file:
            json.dump({"keys": [issuer.public()]}, file)
        server = Firn(program, "server", storage, f"--web-config-file={storage}/web.yml", "--tenant-header=X-Scope-OrgID")
        try:
            asker = Asker(server.address)
            good = bearer(issuer.token())
            checks.check(wait_until(lambda: asker.rest(good) == "yes", 30), "the issuer's keys are read")
            check_all(checks, asker, issuer, stranger)
            check_large(checks, server.address)
        finally:
            checks.check(server.stop() == 0, "the server stops")
    finally:
        shutil.rmtree(storage, ignore_errors=True)
    checks.finish()


if __name__ == "__main__":
    main()
