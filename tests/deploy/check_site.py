#!/usr/bin/env python3
"""The site that tools/make_site makes: each page is there and whole, links within it lead somewhere, and no
page asks another host for anything.

usage: check_site.py
"""

import html
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
problems = []


def expect(good, what):
    if not good:
        problems.append(what)


def check_page(page, site):
    text = page.read_text()
    name = page.relative_to(site)
    body = re.sub(r"<(pre|code)\b.*?</\1>", "", text, flags=re.S)
    expect("<h1" in text and text.endswith("</html>\n"), f"{name}: not one whole page")
    expect("\n|" not in body and "```" not in body, f"{name}: a table or an example is shown as it is written")
    for kind, address in re.findall(r'<(?:link|img|script|iframe)\b[^>]*?\b(src|href)="([^"]*)"', body):
        expect(not re.match(r"[a-z]+:|//", address), f"{name}: {kind} {address} is a request to another host")
        expect((page.parent / address).is_file(), f"{name}: {address} is not there")
    for address in re.findall(r'<a href="([^"]*)"', body):
        address = html.unescape(address)
        if re.match(r"https?:", address):
            continue
        file, _, anchor = address.partition("#")
        target = page.parent / file if file else page
        expect(target.is_file(), f"{name}: {address} leads nowhere")
        if anchor and target.is_file():
            expect(f'id="{anchor}"' in target.read_text(), f"{name}: no heading #{anchor} in {target.name}")


def check_site(site, words, count):
    made = subprocess.run([ROOT / "tools/make_site", *words, site], capture_output=True, text=True, check=False)
    expect(made.returncode == 0 and not made.stderr, f"make_site: {made.stderr}")
    pages = sorted(site.rglob("*.html"))
    expect(count(len(pages)), f"{site.name}: {len(pages)} pages")
    for page in pages:
        check_page(page, site)


def main():
    if not shutil.which("lowdown"):
        print("skipped: lowdown is not here")
        return 77
    every = len([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
    with tempfile.TemporaryDirectory() as temporary:
        check_site(pathlib.Path(temporary) / "site", [], lambda n: n == every)
        # What firn serves at /docs, whose policy refuses inline styles.
        served = pathlib.Path(temporary) / "served"
        check_site(served, ["--served"], lambda n: 20 < n < every)
        for page in served.rglob("*.html"):
            expect(' style="' not in page.read_text(), f"{page.name}: an inline style")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
