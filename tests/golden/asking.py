"""Questions to parca.query.v1alpha1 and profilestore.v1alpha1 in Connect's framing, answers as Python."""

import os
import sys
import urllib.error
import urllib.request

from protobuf import fields, message, number, one, real, signed, text, time, varint

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "arrow"))
import arrow_reader

QUERY = "parca.query.v1alpha1.QueryService"
STORE = "parca.profilestore.v1alpha1.ProfileStoreService"
REPORTS = {
    "FLAMEGRAPH_UNSPECIFIED": 0, "PPROF": 1, "TOP": 2, "CALLGRAPH": 3, "FLAMEGRAPH_TABLE": 4,
    "FLAMEGRAPH_ARROW": 5, "SOURCE": 6, "TABLE_ARROW": 7, "PROFILE_METADATA": 8, "FLAMECHART": 9,
}
MEMBERS = {0: 5, 1: 6, 2: 7, 3: 8, 4: 5, 5: 11, 6: 12, 7: 13, 8: 14, 9: 11}


class Refused(Exception):
    pass


def call(address, service, method, body):
    request = urllib.request.Request(
        f"http://{address}/{service}/{method}", data=body, headers={"content-type": "application/proto"}
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.read()
    except urllib.error.HTTPError as error:
        raise Refused(error.read().decode()) from error


def write_raw(address, labels, *files):
    pairs = [message(1, text(1, k), text(2, v)) for k, v in labels.items()]
    series = message(1, *pairs), *[message(2, message(1, f)) for f in files]
    call(address, STORE, "WriteRaw", message(2, *series) + number(3, 1))


def merge(selector, start_ns, end_ns):
    return text(1, selector) + time(2, start_ns) + time(3, end_ns)


def single(selector, at_ns):
    return time(1, at_ns) + text(2, selector)


def selection(side):
    """ProfileDiffSelection of a side: (selector, from, to), or (selector, at)."""
    if len(side) == 2:
        return message(3, single(*side))
    return number(1, 1) + message(2, merge(*side))


def condition(c):
    """A Condition as FilterCriteria."""
    kinds = ["function_name", "system_name", "binary", "filename", "address", "line_number"]
    operators = ["equal", "not_equal", "contains", "not_contains", "starts_with", "not_starts_with"]
    operator = operators.index(c.operator) + 1
    if isinstance(c.value, str):
        inner = message(operator, c.value.encode())
    else:
        inner = varint(operator << 3) + varint(c.value)
    return message(kinds.index(c.field) + 1, inner)


def filters_of(filters):
    """[("stack" or "frame", [Condition])] as repeated Filter."""
    out = []
    for kind, conditions in filters:
        criteria = message(2, *map(condition, conditions))
        out.append(message(12, message(1 if kind == "stack" else 2, criteria)))
    return b"".join(out)


class Answer:
    def __init__(self, raw, report):
        parts = fields(raw)
        self.total, self.filtered = signed(one(parts, 9)), signed(one(parts, 10))
        self.report = parts[MEMBERS[report]][0]
        self.message = fields(self.report) if report != 1 else None

    def columns(self):
        columns, _ = arrow_reader.read(self.message[1][0])
        return {name: values for name, _, _, values in columns}


def query(address, report, side, base=None, filters=(), invert=False, sandwich="", trim=0, group_by=(),
          absolute=True, source=None):
    """side, base: (selector, from, to), or (selector, at) for a single profile."""
    kind = REPORTS[report]
    if base:
        both = message(1, selection(base)), message(2, selection(side))
        body = number(1, 1) + message(2, *both, number(3, absolute))
    elif len(side) == 2:
        body = message(4, single(*side))
    else:
        body = number(1, 2) + message(3, merge(*side))
    body += number(5, kind) + real(7, trim) + filters_of(filters) + number(11, invert) + text(13, sandwich)
    if group_by:
        body += message(8, *[text(1, f) for f in group_by])
    if source:
        body += message(9, text(2, source))
    return Answer(call(address, QUERY, "Query", body), kind)


def flame_of(columns):
    """{path: (cumulative, flat, diff)}, rows checked against each other on the way."""
    rows = len(columns["parent"])
    paths, out = [()], {}

    def text_at(column, i):
        return columns[column][i].decode() if columns[column][i] is not None else ""

    for i in range(1, rows):
        parent = columns["parent"][i]
        assert parent < i and i in columns["children"][parent]
        assert columns["depth"][i] == columns["depth"][parent] + 1
        name = text_at("function_name", i) or (text_at("mapping_file", i), columns["location_address"][i])
        paths.append(paths[parent] + (name,))
        assert paths[i] not in out, "two rows of one path"
        out[paths[i]] = columns["cumulative"][i], columns["flat"][i], columns["diff"][i]
    for i in range(rows):
        children = columns["children"][i] or []
        offset = columns["value_offset"][i]
        for child in children:
            assert columns["value_offset"][child] == offset
            offset += columns["cumulative"][child]
    return out


def table_of(columns):
    """{function: (cumulative, flat, cumulative diff, flat diff)}, {(caller, callee)}."""
    names = [
        n or (m or "", a)
        for n, m, a in zip(columns["function_name"], columns["mapping_file"], columns["location_address"])
    ]
    values = zip(columns["cumulative"], columns["flat"], columns["cumulative_diff"], columns["flat_diff"])
    edges = {(names[c], n) for n, callers in zip(names, columns["callers"]) for c in callers or []}
    assert edges == {(n, names[c]) for n, callees in zip(names, columns["callees"]) for c in callees or []}
    return {n: (a, b, c or 0, d) for n, (a, b, c, d) in zip(names, values)}, edges
