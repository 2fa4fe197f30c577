#!/usr/bin/env python3
"""Make the tables of src/schema (struct pb_file and below) from .proto files.

usage: proto.py OUT.c FOLDER FILE.proto...      FILE is its name under FOLDER

Reads the part of proto3 that the files in proto/ use: messages, enums, oneofs, maps, services, imports; no
options, extensions or groups. Anything else is an error with file and line. Two comments have a meaning:

    service Health {  // C: schema_health      the table's name in schema/schema.h
    bytes trace_id = 1;  // JSON: hex          JSON has it in hexadecimal, not in base64
"""

import pathlib
import re
import sys

SCALARS = set(
    "double float int64 uint64 int32 fixed64 fixed32 bool string bytes uint32 sfixed32 sfixed64"
    " sint32 sint64".split()
)
# Types whose tables are in pb/pb.h, which also writes them as text.
OF_PB = {
    "google/protobuf/timestamp.proto": "google.protobuf.Timestamp",
    "google/protobuf/duration.proto": "google.protobuf.Duration",
}
MEMBERS_MAX = 64  # PB_MEMBERS_MAX
ONEOFS_MAX = 4  # struct pb_desc
TOKEN = re.compile(r'\s+|(//[^\n]*)|("[^"\n]*")|([A-Za-z_][\w.]*)|(-?\d+)|([{}()<>=;,])')


class Tokens:
    def __init__(self, name, text):
        self.name, self.list, self.at = name, [], 0
        line, i = 1, 0
        while i < len(text):
            m = TOKEN.match(text, i)
            if not m:
                sys.exit(f"{name}:{line}: {text[i:i + 10]!r} is not known here")
            if m.lastindex:
                self.list.append((m.group().strip(), line))
            line += m.group().count("\n")
            i = m.end()

    def fail(self, what):
        line = self.list[min(self.at, len(self.list) - 1)][1]
        sys.exit(f"{self.name}:{line}: {what}")

    def comments(self):
        """The comments that come next, which may belong to the line before."""
        out = []
        while self.at < len(self.list) and self.list[self.at][0].startswith("//"):
            out.append(self.list[self.at][0])
            self.at += 1
        return " ".join(out)

    def peek(self):
        self.comments()
        return self.list[self.at][0] if self.at < len(self.list) else ""

    def next(self):
        token = self.peek()
        if not token:
            self.fail("the file ends here")
        self.at += 1
        return token

    def take(self, token):
        found = self.peek() == token
        self.at += found
        return found

    def need(self, token):
        if not self.take(token):
            self.fail(f"{self.peek()!r} where {token!r} was expected")

    def line_comment(self):
        """The comment on the line of the token before, or ""."""
        before = self.list[self.at - 1][1]
        if self.at < len(self.list) and self.list[self.at][0].startswith("//"):
            text, line = self.list[self.at]
            return text if line == before else ""
        return ""


class File:
    def __init__(self, name, text):
        self.name, self.imports = name, []
        self.messages, self.enums, self.services = {}, {}, {}
        t = Tokens(name, text)
        t.need("syntax"), t.need("="), t.need('"proto3"'), t.need(";")
        t.need("package")
        self.package = t.next()
        t.need(";")
        while t.peek():
            word = t.next()
            if word == "import":
                self.imports.append(t.next().strip('"'))
                t.need(";")
            elif word == "message":
                self.message(t, self.package)
            elif word == "enum":
                self.enum(t, self.package)
            elif word == "service":
                self.service(t)
            else:
                t.fail(f"{word!r} is not known here")

    def message(self, t, scope):
        full = scope + "." + t.next()
        m = self.messages[full] = {"fields": [], "oneofs": [], "where": t}
        t.need("{")
        while not t.take("}"):
            word = t.next()
            if word == "message":
                self.message(t, full)
            elif word == "enum":
                self.enum(t, full)
            elif word == "oneof":
                m["oneofs"].append(t.next())
                t.need("{")
                while not t.take("}"):
                    self.field(t, full, m, t.next(), len(m["oneofs"]))
            else:
                self.field(t, full, m, word, 0)
        if len(m["fields"]) > MEMBERS_MAX or len(m["oneofs"]) > ONEOFS_MAX:
            t.fail(f"{full} has more fields or oneofs than pb.h allows")

    def field(self, t, full, m, word, oneof):
        f = {"oneof": oneof, "flags": [], "scope": full}
        if word == "map":
            f["flags"] += ["PB_REPEATED", "PB_MAP"]
            t.need("<")
            key = t.next()
            t.need(",")
            f["map"] = (key, t.next())
            t.need(">")
        else:
            for label in ("repeated", "optional"):
                if word == label:
                    f["flags"].append("PB_" + label.upper())
                    word = t.next()
                    break
            f["type"] = word
        f["name"] = t.next()
        t.need("=")
        f["number"] = int(t.next())
        t.need(";")
        if "JSON: hex" in t.line_comment():
            f["flags"].append("PB_HEX")
        m["fields"].append(f)

    def enum(self, t, scope):
        values = self.enums[scope + "." + t.next()] = []
        t.need("{")
        while not t.take("}"):
            name = t.next()
            t.need("=")
            values.append((name, int(t.next())))
            t.need(";")

    def service(self, t):
        name = t.next()
        t.need("{")
        told = re.search(r"C: (\w+)", t.line_comment())
        if not told:
            t.fail(f"service {name} has no comment with its name in C")
        s = self.services[self.package + "." + name] = {"c": told[1], "methods": []}
        while not t.take("}"):
            t.need("rpc")
            method = {"name": t.next(), "streams": [], "types": [], "where": t}
            for side in ("client_streams", "server_streams"):
                t.need("(")
                if t.take("stream"):
                    method["streams"].append(side)
                method["types"].append(t.next())
                t.need(")")
                if side == "client_streams":
                    t.need("returns")
            t.need(";")
            s["methods"].append(method)


def c_name(full):
    if full.startswith("google.protobuf."):
        return "pb_" + full.rsplit(".", 1)[1].lower()
    return full.replace(".", "_")


def c_file(name):
    if name in OF_PB:
        return "pb_file_" + pathlib.PurePath(name).stem
    return "file_" + re.sub(r"\W", "_", name)


class Writer:
    def __init__(self, files):
        self.files = files
        self.enums = {e for f in files for e in f.enums}
        self.types = {m for f in files for m in f.messages} | set(OF_PB.values()) | self.enums
        self.out = []

    def resolve(self, t, name, scope):
        """A type's full name, searched for in the scope and in each scope around it."""
        while True:
            full = scope + "." + name if scope else name
            if full in self.types:
                return full
            if not scope:
                sys.exit(f"{t.name}: {name} is not declared")
            scope = scope.rpartition(".")[0]

    def table(self, kind, name, rows):
        """A static array, by its name; None for no rows."""
        if not rows:
            return None
        self.out += [f"static const {kind}{name}[] = {{", *("\t" + r + "," for r in rows), "};"]
        return name

    def member(self, t, f, kind, message=None, values=None):
        text = f'{{ .name = "{f["name"]}", .number = {f["number"]}, .kind = PB_KIND_{kind}'
        if f["flags"]:
            text += ", .flags = " + " | ".join(f["flags"])
        if f["oneof"]:
            text += f", .oneof = {f['oneof']}"
        if message:
            text += f", .message = &{message}"
        if values:
            text += f", .values = &{values}"
        return text + " }"

    def typed(self, t, f, name):
        if name in SCALARS:
            return self.member(t, f, name.upper())
        full = self.resolve(t, name, f["scope"])
        if full in self.enums:
            return self.member(t, f, "ENUM", values=c_name(full))
        return self.member(t, f, "MESSAGE", message=c_name(full))

    def entry(self, t, f):
        """The message that an element of a map is."""
        camel = "".join(w.capitalize() for w in f["name"].split("_"))
        full = f"{f['scope']}.{camel}Entry"
        pair = [
            self.typed(t, dict(f, name=n, number=i + 1, flags=[], oneof=0), f["map"][i])
            for i, n in enumerate(("key", "value"))
        ]
        self.message_table(full, pair, [])
        return self.member(t, f, "MESSAGE", message=c_name(full))

    def message_table(self, full, rows, oneofs):
        text = f'static const struct pb_desc {c_name(full)} = {{ .name = "{full}"'
        name = self.table("struct pb_member ", c_name(full) + "_members", rows)
        if name:
            text += f", .members = {name}, .count = ARRAY_COUNT({name})"
        if oneofs:
            text += ", .oneofs = { " + ", ".join(f'"{o}"' for o in oneofs) + " }"
        self.out += [text + " };"]

    def file(self, f):
        self.out += ["", f"/* {f.name} */"]
        # Messages may hold each other.
        self.out += [f"static const struct pb_desc {c_name(m)};" for m in f.messages]
        for full, values in f.enums.items():
            rows = [f'{{ "{n}", {v} }}' for n, v in values]
            name = self.table("struct pb_enum_value ", c_name(full) + "_values", rows)
            self.out += [f'static const struct pb_enum {c_name(full)} = PB_ENUM("{full}", {name});']
        for full, m in f.messages.items():
            t = m["where"]
            rows = [
                self.entry(t, x) if "map" in x else self.typed(t, x, x["type"]) for x in m["fields"]
            ]
            self.message_table(full, rows, m["oneofs"])
        for full, s in f.services.items():
            self.service(f, full, s)
        own = c_file(f.name)
        text = f'static const struct pb_file {own} = {{ .name = "{f.name}", .package = "{f.package}"'
        for field, count, kind, rows in (
            ("imports", "import_count", "pb_file", [c_file(i) for i in f.imports]),
            ("messages", "message_count", "pb_desc", [c_name(m) for m in f.messages]),
            ("enums", "enum_count", "pb_enum", [c_name(e) for e in f.enums]),
            ("services", "service_count", "pb_service", [s["c"] for s in f.services.values()]),
        ):
            rows = ["&" + r for r in rows]
            name = self.table(f"struct {kind} *const ", f"{own}_{field}", rows)
            if name:
                text += f",\n\t.{field} = {name}, .{count} = ARRAY_COUNT({name})"
        self.out += [text + " };"]

    def service(self, f, full, s):
        rows = []
        for m in s["methods"]:
            ends = [c_name(self.resolve(m["where"], n, f.package)) for n in m["types"]]
            row = f'{{ .name = "{m["name"]}", .input = &{ends[0]}, .output = &{ends[1]}'
            rows.append(row + "".join(f", .{x} = true" for x in m["streams"]) + " }")
        name = self.table("struct pb_method ", c_name(full) + "_methods", rows)
        self.out += [
            f'const struct pb_service {s["c"]} = {{ .name = "{full}",',
            f"\t.methods = {name}, .count = ARRAY_COUNT({name}) }};",
        ]


def in_order(files):
    """Imported ones first."""
    by_name = {f.name: f for f in files}
    done = []

    def visit(f, above):
        if f.name in above:
            sys.exit(f"{f.name} imports itself")
        for name in f.imports:
            if name in by_name:
                visit(by_name[name], above + [f.name])
            elif name not in OF_PB:
                sys.exit(f"{f.name}: {name} is not there to be imported")
        if f not in done:
            done.append(f)

    for f in files:
        visit(f, [])
    return done


def main():
    out, folder, *names = sys.argv[1:]
    names = [n for n in names if n not in OF_PB]
    files = in_order([File(n, (pathlib.Path(folder) / n).read_text()) for n in names])
    w = Writer(files)
    w.out += ["/* Made by tools/proto.py from proto/. */", '#include "schema/schema.h"']
    for f in files:
        w.file(f)
    w.out += ["", "const struct pb_file *const schema_files[] = {"]
    w.out += [f"\t&{c_file(n)}," for n in [*OF_PB, *(f.name for f in files)]]
    w.out += ["\tNULL,", "};", ""]
    pathlib.Path(out).write_text("\n".join(w.out))


if __name__ == "__main__":
    main()
