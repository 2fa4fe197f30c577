#!/usr/bin/env python3
"""Hold an exported flame graph against what its format's own page says.

    check_export.py speedscope|firefox|html FILE    prints what it adds up to
"""

import html.parser
import json
import sys


def speedscope(text):
    """Open and close events nest, times ascend, frames are in range."""
    data = json.loads(text)
    profile = data["profiles"][data["activeProfileIndex"]]
    assert profile["type"] == "evented" and profile["startValue"] == 0
    frames, open_frames, at, own = data["shared"]["frames"], [], 0, {}
    for event in profile["events"]:
        if open_frames:
            name = frames[open_frames[-1]]["name"]
            own[name] = own.get(name, 0) + event["at"] - at
        else:
            assert event["at"] == at, "a gap at the root"
        assert event["at"] >= at
        at = event["at"]
        if event["type"] == "O":
            open_frames.append(event["frame"])
        else:
            assert event["type"] == "C" and open_frames.pop() == event["frame"]
    assert not open_frames and at == profile["endValue"]
    return profile["unit"], own


def firefox(text):
    """Columns of a table are equally long, every index is in range, prefixes come first."""
    data = json.loads(text)
    assert data["meta"]["preprocessedProfileVersion"] == 46
    (thread,) = data["threads"]
    sizes = {}
    for name, table in thread.items():
        if isinstance(table, dict):
            sizes[name] = table["length"]
            for key, column in table.items():
                assert not isinstance(column, list) or len(column) == table["length"], (name, key)

    def check(table, column, other, null=None):
        for value in thread[table][column]:
            assert value == null or 0 <= value < other, (table, column, value)

    strings = len(thread["stringArray"])
    check("samples", "stack", sizes["stackTable"])
    check("stackTable", "frame", sizes["frameTable"])
    check("stackTable", "prefix", sizes["stackTable"])
    check("stackTable", "category", len(data["meta"]["categories"]))
    check("frameTable", "func", sizes["funcTable"])
    check("funcTable", "name", strings)
    check("funcTable", "fileName", strings)
    check("funcTable", "resource", sizes["resourceTable"], -1)
    check("resourceTable", "name", strings)
    for i, prefix in enumerate(thread["stackTable"]["prefix"]):
        assert prefix is None or prefix < i
    own = {}
    samples = thread["samples"]
    for stack, weight in zip(samples["stack"], samples["weight"]):
        frame = thread["stackTable"]["frame"][stack]
        name = thread["stringArray"][thread["funcTable"]["name"][thread["frameTable"]["func"][frame]]]
        own[name] = own.get(name, 0) + weight
    return samples["weightType"], own


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.data, self.inside, self.scripts = "", False, 0

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        assert not {"src", "href"} & set(attributes), "reaches for something else"
        self.scripts += tag == "script"
        self.inside = attributes.get("id") == "data"

    def handle_endtag(self, tag):
        self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.data += data


def page(text):
    """Two scripts whatever the names are, and the data as it went in."""
    parser = Page()
    parser.feed(text)
    assert parser.scripts == 2, "a name became markup"
    data = json.loads(parser.data)
    own = {}
    for name, value in zip(data["nodes"]["name"], data["nodes"]["self"]):
        if value:
            own[data["strings"][name]] = own.get(data["strings"][name], 0) + value
    return data["unit"], own


def main():
    with open(sys.argv[2], encoding="utf-8") as file:
        unit, own = {"speedscope": speedscope, "firefox": firefox, "html": page}[sys.argv[1]](file.read())
    print(unit, " ".join(f"{name}={value:g}" for name, value in sorted(own.items()) if value))


if __name__ == "__main__":
    main()
