#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes jwt_vectors.h: keys and tokens by another hand than firn's (Python's cryptography)."""
import base64
import json

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

END = 4102444800  # 2100
CLAIMS = {"iss": "https://issuer.example", "aud": ["other", "firn"], "sub": "alice", "exp": END,
          "groups": ["staff", "profilers"], "org": "shop"}


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def number(n, size):
    return b64(n.to_bytes(size, "big"))


rsa_key = rsa.generate_private_key(65537, 2048)
ec_key = ec.generate_private_key(ec.SECP256R1())
ed_key = ed25519.Ed25519PrivateKey.generate()


def sign(alg, text):
    if alg == "RS256":
        return rsa_key.sign(text, padding.PKCS1v15(), hashes.SHA256())
    if alg == "ES256":
        r, s = decode_dss_signature(ec_key.sign(text, ec.ECDSA(hashes.SHA256())))
        return r.to_bytes(32, "big") + s.to_bytes(32, "big")
    return ed_key.sign(text)


def token(alg, claims, **header):
    head = {"alg": alg, "typ": "JWT", **header}
    text = b64(json.dumps(head).encode()) + "." + b64(json.dumps(claims).encode())
    return text + "." + (b64(sign(header.get("really", alg), text.encode())) if alg != "none" else "")


def without(name):
    return {k: v for k, v in CLAIMS.items() if k != name}


n, e = rsa_key.public_key().public_numbers(), 0
point = ec_key.public_key().public_numbers()
keys = {"keys": [
    {"kty": "RSA", "use": "enc", "kid": "enc", "n": number(n.n, 256), "e": number(n.e, 3)},
    {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "r", "n": number(n.n, 256), "e": number(n.e, 3)},
    {"kty": "EC", "crv": "P-256", "kid": "e", "x": number(point.x, 32), "y": number(point.y, 32)},
    {"kty": "OKP", "crv": "Ed25519", "kid": "d",
     "x": b64(ed_key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))},
    {"kty": "oct", "kid": "s", "k": "AAAA"},
]}
vectors = {
    "RS256": token("RS256", CLAIMS, kid="r"),
    "ES256": token("ES256", CLAIMS, kid="e"),
    "EDDSA": token("EdDSA", CLAIMS, kid="d"),
    "NO_KID": token("RS256", {**CLAIMS, "aud": "firn"}),
    "NONE": token("none", CLAIMS),
    "HS256": token("HS256", CLAIMS, kid="r", really="RS256"),
    "OTHER_KEY": token("RS256", CLAIMS, kid="unknown"),
    "SWAPPED": token("ES256", CLAIMS, kid="r", really="RS256"),
    "CRIT": token("RS256", CLAIMS, kid="r", crit=["exp"]),
    "EXPIRED": token("RS256", {**CLAIMS, "exp": 1000000000}, kid="r"),
    "EARLY": token("RS256", {**CLAIMS, "nbf": END}, kid="r"),
    "NO_EXP": token("RS256", without("exp"), kid="r"),
    "EXP_TEXT": token("RS256", {**CLAIMS, "exp": str(END)}, kid="r"),
    "ISSUER": token("RS256", {**CLAIMS, "iss": "https://other.example"}, kid="r"),
    "AUDIENCE": token("RS256", {**CLAIMS, "aud": "other"}, kid="r"),
    "NO_AUD": token("RS256", without("aud"), kid="r"),
    "NO_ORG": token("RS256", without("org"), kid="r"),
    "SCOPE": token("ES256", {**without("groups"), "scope": "openid profilers"}, kid="e"),
}
print("/* SPDX-License-Identifier: Apache-2.0 */\n/* Made by jwt_maker.py. */\n#pragma once\n")
print("/* clang-format off */")


def define(name, text):
    pieces = [text[i:i + 84] for i in range(0, len(text), 84)]
    print(f"#define {name} \\\n" + " \\\n".join("\t" + json.dumps(p) for p in pieces))


define("JWT_KEYS", json.dumps(keys))
for name, text in vectors.items():
    define("JWT_" + name, text)
print("/* clang-format on */")
