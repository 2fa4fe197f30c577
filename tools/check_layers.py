#!/usr/bin/env python3
"""Check src/LAYERS: a folder includes only what its line allows, and only public headers.

A folder may have sub-folders, each with a line of its own ("9 agent/send: base os agent/host"). A folder's line
names the folders that it may include: those of a lower layer, and sub-folders of its own top folder. A
sub-folder may also name its top folder, for that folder's public header. Circles are errors: of folders by
their lines, of files by their includes. A file is a .c with its .h. A folder's public header is a node of its
own, because several files implement it; it may include other headers of the folder. A line names only top
folders that something in the folder includes, except base.
"""

import pathlib
import re
import sys

SRC = pathlib.Path("src")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
# The comment of a header about its folder: "Layer 2 (may use base, os)."
SAYS = re.compile(r"\bLayer (\d+)(?:\s\(may\suse\s([^)]*)\))?")
# Headers besides <folder>/<name of the folder>.h that other folders may include: separate interfaces, and
# headers that BPF programs share, which must not include more than they need.
PUBLIC = {
    "agent/bpf/layout.h",
    "agent/bpf/oom_shared.h",
    "agent/bpf/shared.h",
    "profile/translate.h",
    "runtimes/record.h",
    "samples/sink.h",
    "unwind/rule.h",
}
# Written by the build.
GENERATED = re.compile(r"\.skel\.h$")


def top(folder):
    return folder.split("/")[0]


def public_header(folder):
    return f"{folder}/{folder.split('/')[-1]}.h"


def read_layers(path):
    layers, allowed = {}, {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        line = line.split("#")[0].strip()
        if not line:
            continue
        match = re.fullmatch(r"(\d+) (\w+(?:/\w+)?):((?: \w+(?:/\w+)?)*)", line)
        if not match:
            sys.exit(f"{path}:{number}: not of the form 'layer folder: folders'")
        layer, folder, names = match.groups()
        layers[folder], allowed[folder] = int(layer), names.split()
    return layers, allowed


def find_circles(edges):
    """The strongly connected components of more than one node (Tarjan)."""
    index, low, stack, on_stack, found = {}, {}, [], set(), []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        on_stack.add(node)
        for other in sorted(edges.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in on_stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            at = stack.index(node)
            on_stack.difference_update(stack[at:])
            if len(stack) - at > 1:
                found.append(tuple(sorted(stack[at:])))
            del stack[at:]

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return found


def circle_problems(what, circles):
    return [f"a circle of files that {what}: {' '.join(circle)}" for circle in circles]


def check_lines(layers, allowed):
    problems, edges = [], {}
    for folder, names in allowed.items():
        if "/" in folder and top(folder) not in layers:
            problems.append(f"src/LAYERS: {folder}: {top(folder)} has no line")
        for name in names:
            if name not in layers:
                problems.append(f"src/LAYERS: {folder} names {name}, which has no line")
            elif top(name) == top(folder):
                if name != top(folder):  # only the public header, not the files that implement it
                    edges.setdefault(folder, set()).add(name)
            elif "/" in name:
                problems.append(f"src/LAYERS: {folder} may not use {name}: private to {top(name)}")
            elif layers[name] >= layers[folder] and top(folder) != "cli":
                problems.append(f"src/LAYERS: {folder} may not use {name}: not a lower layer")
    for circle in find_circles(edges):
        problems.append(f"src/LAYERS: a circle of folders: {' '.join(circle)}")
    return problems


def folder_of(path, layers):
    """The folder of LAYERS that contains a path below src/, or None."""
    parts = path.split("/")
    if len(parts) > 3:
        return None
    folder = "/".join(parts[:-1])
    return folder if folder in layers else None


def resolve(path, include):
    """The path below src/ that an include names; None: there is no such file."""
    for base in (SRC, path.parent):
        target = base / include
        if target.exists():
            return str(target.resolve().relative_to(SRC.resolve()))
    return None


def unit(name, layers):
    """The node of a file in the graph of includes: a .c and its .h are one."""
    folder = folder_of(name, layers)
    if folder and name == public_header(folder):
        return name
    return re.sub(r"\.\w+$", "", name)


def check_files(layers, allowed):
    problems, edges, headers, used = [], {}, {}, set()
    for path in sorted(p for p in SRC.rglob("*") if p.suffix in (".c", ".h", ".cc")):
        name = str(path.relative_to(SRC))
        folder = folder_of(name, layers)
        if not folder:
            problems.append(f"{path}: its folder has no line in src/LAYERS")
            continue
        for include in INCLUDE.findall(path.read_text()):
            if GENERATED.search(include):
                continue
            target = resolve(path, include)
            if not target:
                problems.append(f'{path}: "{include}" does not exist')
                continue
            other = folder_of(target, layers)
            used |= {(folder, other), (top(folder), other)}
            one, two = unit(name, layers), unit(target, layers)
            gathers = name == public_header(folder) and other == folder
            if top(target) == top(name) and one != two and not gathers:
                edges.setdefault(one, set()).add(two)
            if path.suffix == ".h":
                headers.setdefault(name, set()).add(target)
            if other == folder:
                continue
            if other not in allowed[folder]:
                problems.append(f'{path}: {folder} may not include "{include}"')
            elif target not in PUBLIC | {public_header(other)} and other != "base":
                problems.append(f'{path}: "{include}" is private to {other}')
    for folder, names in allowed.items():
        for name in names:
            near = name == "base" or top(name) == top(folder)
            if not near and (folder, name) not in used:
                problems.append(f"src/LAYERS: {folder} includes nothing of {name}: take it out")
    for circle in find_circles(headers):
        problems.append(f"a circle of headers: {' '.join(circle)}")
    return problems + circle_problems("include one another", find_circles(edges))


def check_words(layers, allowed):
    """Check that comments of headers agree with src/LAYERS."""
    problems = []
    for path in sorted(SRC.rglob("*.h")):
        folder = folder_of(str(path.relative_to(SRC)), layers)
        text = re.sub(r"\n \*\s*", " ", path.read_text())
        for layer, names in SAYS.findall(text) if folder else ():
            if int(layer) != layers[folder]:
                problems.append(f"{path}: says layer {layer}, src/LAYERS {layers[folder]}")
            said = set(re.findall(r"[\w/]+", names))
            named = {n for n in allowed[folder] if top(n) != top(folder)}
            if names and said != named:
                problems.append(f"{path}: may use {' '.join(sorted(named))}, says {' '.join(sorted(said))}")
    return problems


def main():
    layers, allowed = read_layers(SRC / "LAYERS")
    problems = check_lines(layers, allowed) + check_files(layers, allowed) + check_words(layers, allowed)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
