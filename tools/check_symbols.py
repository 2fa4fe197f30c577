#!/usr/bin/env python3
"""Every global function and table of src/<folder> is declared in a header of that folder.

What no header declares should have been static. Symbols for the tests of their own file end in
_portable or begin with test_.
"""

import pathlib
import re
import subprocess
import sys


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build")
    problems = []
    for library in sorted(build.glob("src/*/lib*.a")):
        folder = library.parent.name
        headers = "\n".join(p.read_text() for p in pathlib.Path("src", folder).rglob("*.h"))
        command = ["nm", "-g", "--defined-only", str(library)]
        run = subprocess.run(command, capture_output=True, text=True)
        for line in run.stdout.splitlines():
            fields = line.split()
            if len(fields) != 3 or fields[1] not in "TDBR":
                continue
            name = fields[2]
            if name.startswith(("_Z", "__", "test_")) or name.endswith("_portable"):
                continue
            if not re.search(r"\b%s\b" % re.escape(name), headers):
                problems.append(f"{library}: {name} is global, but no header of {folder} declares it")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
