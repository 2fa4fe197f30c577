#!/usr/bin/env python3
"""A program that publishes OpenTelemetry's process context has its service's name on its samples.

    test_context.py PROGRAM
"""

import gzip
import os
import subprocess
import sys
import tempfile

import firn

# As OTEP 4719 has it: a page with a head, which leads to the message elsewhere in memory.
PUBLISH = """
import ctypes, mmap, os, struct, time
def field(number, text): return bytes([number << 3 | 2, len(text)]) + text
def attribute(key, value): return field(1, field(1, key) + field(2, field(1, value)))
told = field(1, attribute(b"service.name", b"the-service") + attribute(b"service.version", b"the-version"))
kept = ctypes.create_string_buffer(told, len(told))
fd = os.memfd_create("OTEL_CTX")
os.ftruncate(fd, 4096)
page = mmap.mmap(fd, 4096, mmap.MAP_PRIVATE)
page[0:32] = b"OTEL_CTX" + struct.pack("<IIQQ", 2, len(told), 1, ctypes.addressof(kept))
end = time.time() + 4
while time.time() < end:
    pass
"""


def main():
    program = os.path.abspath(sys.argv[1])
    checks = firn.Checks()
    if os.geteuid() != 0:
        checks.skip("all", "only root samples this host")
        checks.finish()
    with tempfile.TemporaryDirectory(prefix="firn-test-") as folder:
        out = os.path.join(folder, "out.pb.gz")
        run = subprocess.run([program, "record", "-F", "99", "-o", out, "--", sys.executable, "-c", PUBLISH],
                             capture_output=True, text=True, timeout=180, cwd=folder)
        checks.check(run.returncode == 0, f"recorded: {run.stderr[-300:]}")
        with open(out, "rb") as profile:
            texts = gzip.decompress(profile.read())
        for text in (b"service_name", b"the-service", b"service_version", b"the-version"):
            checks.check(text in texts, f"{text.decode()} is in the profile")
    checks.finish()


if __name__ == "__main__":
    main()
