#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""store.soak_growth_mib: resident memory of a server at full ingest with queries at the same time.

    bench_store_soak.py [SECONDS [STORAGE_MEMORY_MIB]]

Twenty minutes by default, for which the result is defined. Progress goes to standard error; one line of JSON to
standard output. Fails when a check of tests/system/test_soak.py does: memory that is not flat, or above the
flag, or a sample that was acknowledged and is not stored.
"""

import os
import subprocess
import sys

SECONDS = "1200"
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def main():
    seconds, *memory = sys.argv[1:] or [SECONDS]
    soak = os.path.join(ROOT, "tests/system/test_soak.py")
    program = os.path.join(ROOT, "build-release/firn")
    command = [sys.executable, soak, program, seconds, *memory]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
        for line in run.stdout:
            print(line, end="", flush=True, file=sys.stdout if line.startswith("{") else sys.stderr)
    sys.exit(run.returncode)


if __name__ == "__main__":
    main()
