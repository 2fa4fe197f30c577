"""No chain of calls in a BPF program is longer, or has more stack, than kernels of 5.10 to 6.12 allow.

Newer kernels give each function of a tracing program a stack of its own: what loads there is
refused before them. The sum is the verifier's (check_max_stack_depth()): 512 bytes, each function's
rounded up to 32, in at most 8 functions.

Usage: check_bpf_stack.py OBJECT...
"""

import glob
import re
import shutil
import subprocess
import sys

STACK_BYTES_MAX = 512
FUNCTIONS_MAX = 8


def disassemble(path):
    versions = sorted(glob.glob("/usr/lib/llvm-*/bin/llvm-objdump"))
    tool = shutil.which("llvm-objdump") or (versions[-1] if versions else "llvm-objdump")
    run = subprocess.run([tool, "-d", "-r", "--no-show-raw-insn", path], check=True, capture_output=True, text=True)
    return run.stdout.splitlines()


def functions(lines):
    """What begins in each section: {section: {instruction: name}}."""
    found, section = {}, None
    for line in lines:
        if m := re.match(r"Disassembly of section (\S+):", line):
            section = found.setdefault(m[1], {})
        elif (m := re.match(r"([0-9a-f]+) <([^>]+)>:", line)) and not m[2].startswith("LBB"):
            section[int(m[1], 16) // 8] = m[2]
    return found


def read_object(path):
    """Sections of programs, and of each function its bytes of stack and those that it calls."""
    lines = disassemble(path)
    begins = functions(lines)
    stack, calls, section, name, copies = {}, {}, None, None, set()
    for line, after in zip(lines, lines[1:] + [""]):
        if m := re.match(r"Disassembly of section (\S+):", line):
            section = m[1]
        elif m := re.match(r"([0-9a-f]+) <([^>]+)>:", line):
            if not m[2].startswith("LBB"):
                name = m[2]
                stack[name], calls[name], copies = 0, set(), set()
        elif name:
            if m := re.search(r"\b(r\d) = r10$", line):
                copies.add(m[1])
            elif m := re.search(r"\(r10 - (0x[0-9a-f]+|\d+)\)", line):
                stack[name] = max(stack[name], int(m[1], 0))
            elif (m := re.search(r"\b(r\d) \+= -(0x[0-9a-f]+|\d+)$", line)) and m[1] in copies:
                stack[name] = max(stack[name], int(m[2], 0))
                copies.discard(m[1])
            elif m := re.match(r"\s*(\d+):\s+call (-?0x[0-9a-f]+|-?\d+)", line):
                to = re.search(r"R_BPF_64_32\s+(\S+)", after)
                if to:
                    at = begins[".text"].get(int(m[2], 0) + 1)
                    calls[name].add(at if to[1] == ".text" else to[1])
    programs = [n for s, of in begins.items() if s != ".text" for n in of.values()]
    return programs, stack, calls


def chains(name, stack, calls, before=()):
    path = before + (name,)
    yield path
    for to in sorted(calls.get(name, ())):
        if to in path:
            raise SystemExit(f"{' > '.join(path)} > {to}: recursion")
        yield from chains(to, stack, calls, path)


def main():
    bad = False
    for path in sys.argv[1:]:
        programs, stack, calls = read_object(path)
        unknown = {to for of in calls.values() for to in of} - stack.keys()
        if not programs or not any(stack.values()) or unknown:
            raise SystemExit(f"{path}: cannot be read: {len(programs)} programs, unknown functions {unknown}")
        for program in programs:
            size, longest = max(
                (sum(-(-max(stack[f], 1) // 32) * 32 for f in chain), chain) for chain in chains(program, stack, calls)
            )
            count = max(len(chain) for chain in chains(program, stack, calls))
            wrong = size > STACK_BYTES_MAX or count > FUNCTIONS_MAX
            bad = bad or wrong
            text = " > ".join(f"{f} ({stack[f]})" for f in longest)
            print(f"{'FAILED ' if wrong else 'ok     '} {program}: {size} bytes, {count} functions: {text}")
    sys.exit(bad)


main()
