#!/usr/bin/env python3
"""Put the built page, or the pages of docs/, into an assembler file: the tables `server_assets` and
`server_docs` of src/server/api/assets.h.

usage: embed.py OUT.S OUT.bin OUT.d SOURCE_ROOT [DIST]
       embed.py --docs OUT.S OUT.bin OUT.d SOURCE_ROOT     what tools/make_site --served makes

Without DIST, without DIST/index.html, or without lowdown, the table is empty and the server says so.
"""

import gzip
import hashlib
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

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
    """Files of the page; those that scripts/setup adds begin with a dot and are left out."""
    return [p for p in dist.rglob("*") if not p.name.startswith(".")]


def collect(dist, below=""):
    """(URL path, file) of all files, index.html first and as "/"."""
    files = sorted(p for p in visible(dist) if p.is_file() and p.suffix != ".map")
    files.sort(key=lambda p: p != dist / "index.html")
    if len(files) > FILES_MAX:
        sys.exit(f"embed.py: {len(files)} files in {dist}; at most {FILES_MAX}")
    for path in files:
        if path.suffix not in TYPES:
            sys.exit(f"embed.py: {path}: no content type for {path.suffix}")
        url = "/" if path == dist / "index.html" else "/" + path.relative_to(dist).as_posix()
        yield below + url, path


def pack(files):
    """Rows of the table, and the bytes to which they point."""
    rows, blob = [], bytearray()
    for url, path in files:
        raw = path.read_bytes()
        packed = gzip.compress(raw, 9, mtime=0)
        etag = '\\"' + hashlib.sha256(raw).hexdigest()[:16] + '\\"'
        rows.append((url, TYPES[path.suffix], etag, len(blob), len(packed), int(bool(HASHED.search(path.name)))))
        blob += packed
    return rows, blob


def write(table, rows, blob, out, blob_path):
    name_of = table.removeprefix("server_")
    pathlib.Path(blob_path).write_bytes(blob)
    lines = ["/* SPDX-License-Identifier: Apache-2.0 */", "/* Made by tools/embed.py. */"]
    lines += ["\t.section .rodata", "\t.balign 16", f"{name_of}_bytes:"]
    lines += [f'\t.incbin "{pathlib.Path(blob_path).resolve()}"', "\t.byte 0"]
    for i, row in enumerate(rows):
        for name, text in zip(("path", "type", "etag"), row):
            lines += [f"{name_of}_{name}_{i}:", f'\t.asciz "{text}"']
    lines += ['\t.section .data.rel.ro,"aw"', "\t.balign 8", f"\t.globl {table}"]
    lines += [f"{table}:"]
    for i, (_, _, _, offset, length, immutable) in enumerate(rows):
        lines.append(f"\t.quad {name_of}_path_{i}, {name_of}_type_{i}, {name_of}_etag_{i}")
        lines.append(f"\t.quad {name_of}_bytes + {offset}, {length}, {immutable}")
    lines += ["\t.quad 0, 0, 0, 0, 0, 0"]
    lines += [f"\t.type {table}, %object", f"\t.size {table}, . - {table}"]
    lines += ['\t.section .note.GNU-stack,"",%progbits', ""]
    pathlib.Path(out).write_text("\n".join(lines))


def embed_docs(out, blob_path, root):
    """Writes the pages of docs/; returns the files from which they are made."""
    rows, blob = [], bytearray()
    maker = root / "tools/make_site"
    if shutil.which("lowdown"):
        with tempfile.TemporaryDirectory() as site:
            subprocess.run([maker, "--served", site], check=True)
            rows, blob = pack(collect(pathlib.Path(site), "/docs"))
        rows.append(("/docs/index.html", *rows[0][1:]))  # as the pages link to the first one
    write("server_docs", rows, blob, out, blob_path)
    return [maker, root / "docs", *root.glob("*.md"), *root.glob("docs/*.md"), *root.glob("docs/*.png")]


def embed_page(out, blob_path, root, dist_name):
    """Writes the page; returns paths whose times tell when it changes."""
    dist = root / dist_name if dist_name else None
    rows, blob, depends = [], bytearray(), []
    if dist:
        # The time of an existing folder of ui/dist tells when something was added to it.
        folder = dist
        while not folder.exists():
            folder = folder.parent
        depends = [folder]
        if folder == dist:
            depends += visible(dist)
    if dist and (dist / "index.html").exists():
        rows, blob = pack(collect(dist))
    write("server_assets", rows, blob, out, blob_path)
    return depends


def main():
    docs = sys.argv[1] == "--docs"
    out, blob_path, depfile, root, dist_name = (sys.argv[1 + docs:] + [""])[:5]
    root = pathlib.Path(root)
    depends = embed_docs(out, blob_path, root) if docs else embed_page(out, blob_path, root, dist_name)
    pathlib.Path(depfile).write_text(f"{out} {blob_path}: {' '.join(str(p) for p in depends)}\n")


if __name__ == "__main__":
    main()
