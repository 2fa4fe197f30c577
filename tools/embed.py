#!/usr/bin/env python3
"""Put the built page into an assembler file: the table `server_assets` of src/server/internal.h.

usage: embed.py OUT.S OUT.bin OUT.d SOURCE_ROOT [DIST]

Without DIST, or where DIST/index.html is not there, the table is empty and the server says so.
"""

import gzip
import hashlib
import pathlib
import re
import sys

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".json": "application/json",
    ".txt": "text/plain; charset=utf-8",
    ".woff2": "font/woff2",
    ".webmanifest": "application/manifest+json",
}
HASHED = re.compile(r"-[A-Za-z0-9_-]{8,}\.[a-z0-9]+$")
FILES_MAX = 48


def visible(dist):
    """What scripts/setup notes beside the page begins with a dot."""
    return [p for p in dist.rglob("*") if not p.name.startswith(".")]


def collect(dist):
    """(URL path, file) of all files, index.html first and as "/"."""
    files = sorted(p for p in visible(dist) if p.is_file() and p.suffix != ".map")
    files.sort(key=lambda p: p != dist / "index.html")
    if len(files) > FILES_MAX:
        sys.exit(f"embed.py: {len(files)} files in {dist}; at most {FILES_MAX}")
    for path in files:
        if path.suffix not in TYPES:
            sys.exit(f"embed.py: {path}: no content type for {path.suffix}")
        url = "/" if path == dist / "index.html" else "/" + path.relative_to(dist).as_posix()
        yield url, path


def main():
    out, blob_path, depfile, root, dist_name = (sys.argv[1:] + [""])[:5]
    root = pathlib.Path(root)
    dist = root / dist_name if dist_name else None
    rows, blob, depends = [], bytearray(), []
    if dist:
        # Whatever of ui/dist exists tells by its time when something is added to it.
        folder = dist
        while not folder.exists():
            folder = folder.parent
        depends = [folder]
        if folder == dist:
            depends += visible(dist)
    if dist and (dist / "index.html").exists():
        for url, path in collect(dist):
            raw = path.read_bytes()
            packed = gzip.compress(raw, 9, mtime=0)
            etag = '\\"' + hashlib.sha256(raw).hexdigest()[:16] + '\\"'
            immutable = int(bool(HASHED.search(path.name)))
            rows.append((url, TYPES[path.suffix], etag, len(blob), len(packed), immutable))
            blob += packed
    pathlib.Path(blob_path).write_bytes(blob)
    lines = ["/* SPDX-License-Identifier: Apache-2.0 */", "/* Made by tools/embed.py. */"]
    lines += ["\t.section .rodata", "\t.balign 16", "page_bytes:"]
    lines += [f'\t.incbin "{pathlib.Path(blob_path).resolve()}"', "\t.byte 0"]
    for i, row in enumerate(rows):
        for name, text in zip(("path", "type", "etag"), row):
            lines += [f"page_{name}_{i}:", f'\t.asciz "{text}"']
    lines += ['\t.section .data.rel.ro,"aw"', "\t.balign 8", "\t.globl server_assets"]
    lines += ["server_assets:"]
    for i, (_, _, _, offset, length, immutable) in enumerate(rows):
        lines.append(f"\t.quad page_path_{i}, page_type_{i}, page_etag_{i}")
        lines.append(f"\t.quad page_bytes + {offset}, {length}, {immutable}")
    lines += ["\t.quad 0, 0, 0, 0, 0, 0"]
    lines += ["\t.type server_assets, %object", "\t.size server_assets, . - server_assets"]
    lines += ['\t.section .note.GNU-stack,"",%progbits', ""]
    pathlib.Path(out).write_text("\n".join(lines))
    targets = f"{out} {blob_path}"
    pathlib.Path(depfile).write_text(f"{targets}: {' '.join(str(p) for p in depends)}\n")


if __name__ == "__main__":
    main()
