#!/usr/bin/env python3
"""Hold src/LAYERS: a folder includes only what its line allows, and only public headers."""

import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
# Headers besides <folder>/<folder>.h that other folders may include.
PUBLIC = {"unwind/rule.h"}
# Written by the build.
GENERATED = re.compile(r"\.skel\.h$")


def read_layers(path):
    layers, allowed = {}, {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        line = line.split("#")[0].strip()
        if not line:
            continue
        match = re.fullmatch(r"(\d+) (\w+):((?: \w+)*)", line)
        if not match:
            sys.exit(f"{path}:{number}: not of the form 'layer folder: folders'")
        layer, folder, names = match.groups()
        layers[folder], allowed[folder] = int(layer), names.split()
    return layers, allowed


def main():
    src = pathlib.Path("src")
    layers, allowed = read_layers(src / "LAYERS")
    problems = []
    for folder, names in allowed.items():
        for name in names:
            if name not in layers:
                problems.append(f"src/LAYERS: {folder} names {name}, which has no line")
            elif layers[name] >= layers[folder] and folder != "cli":
                problems.append(f"src/LAYERS: {folder} may not use {name}: not a lower layer")
    for path in sorted(p for p in src.rglob("*") if p.suffix in (".c", ".h", ".cc")):
        folder = path.relative_to(src).parts[0]
        if folder not in layers:
            problems.append(f"{path}: folder {folder} has no line in src/LAYERS")
            continue
        for include in INCLUDE.findall(path.read_text()):
            if GENERATED.search(include):
                continue
            target = include.split("/")[0] if "/" in include else folder
            public = include == f"{target}/{target}.h" or include in PUBLIC or target == "base"
            if target == folder:
                if not (src / include).exists() and not (path.parent / include).exists():
                    problems.append(f'{path}: "{include}" does not exist')
            elif target not in allowed[folder]:
                problems.append(f'{path}: {folder} may not include "{include}"')
            elif not public:
                problems.append(f'{path}: "{include}" is private to {target}')
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
