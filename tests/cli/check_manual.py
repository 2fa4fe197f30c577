#!/usr/bin/env python3
"""Every verb and flag that `firn VERB --help` shows is in its man page and in each completion.

usage: check_manual.py FIRN
Also: man reads each page without a warning, each shell reads its script, and bash completes a few
lines. A shell or man that is not here is named and left out.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

FIRN = sys.argv[1]
problems = []


def run(*words, **more):
    return subprocess.run(words, capture_output=True, text=True, timeout=60, **more)


def expect(good, what):
    if not good:
        problems.append(what)


def help_of(*verb):
    return run(FIRN, *verb, "--help").stdout


def flags_of(text):
    return re.findall(r"^  (?:-\w, )?--([\w.-]+)", text, re.M)


def find_commands():
    overview = run(FIRN, "help").stdout
    verbs = [v for v in re.findall(r"^  (\w+) +\w", overview.split("Verbs:")[1], re.M) if v != "help"]
    for verb in verbs:
        subs = re.search(r"usage: firn \w+ ([a-z]+(?:\|[a-z]+)+) ", help_of(verb))
        for sub in subs.group(1).split("|") if subs else []:
            yield verb, sub
        yield (verb,)


def section(text, begin, end):
    """What a completion script has for one verb."""
    at = text.find(begin)
    return text[at : text.find(end, at)] if at >= 0 else ""


def check_command(share, scripts, verb):
    name = " ".join(verb)
    page = (share / f"man/man1/firn-{'-'.join(verb)}.1").read_text().replace("\\-", "-")
    expect(f"firn-{'-'.join(verb)}" in (share / "man/man1/firn.1").read_text().replace("\\-", "-"),
           f"firn.1 does not name {name}")
    bash = section(scripts["bash"], f"\t'{name} '*)", ";;\n\t'")
    zsh = section(scripts["zsh"], f"\t'{name} '*)", ";;\n\t'")
    for flag in flags_of(help_of(*verb)):
        expect(f"--{flag}\\fR" in page, f"man page of {name}: no --{flag}")
        expect(re.search(rf"--{re.escape(flag)}[ ']", bash), f"bash: {name} has no --{flag}")
        expect(re.search(rf"--{re.escape(flag)}=?\[", zsh), f"zsh: {name} has no --{flag}")
        expect(f"'__firn_verb {name}' -l {flag} " in scripts["fish"],
               f"fish: {name} has no --{flag}")


def check_bash(script):
    for line, wanted in (("firn rec", "record"), ("firn up --storage-retention-t",
                          "--storage-retention-time"), ("firn up --log-level w", "warn"),
                         ("firn store ver", "verify"), ("firn store delete --he", "--help"),
                         ("firn up --log-level = de", "debug")):
        words = line.split(" ")
        listed = " ".join(f"'{w}'" for w in words)
        out = run("bash", "-c", f"source {script}; COMP_WORDS=({listed}); "
                  f"COMP_CWORD={len(words) - 1}; _firn; echo \"${{COMPREPLY[@]}}\"")
        expect(out.stdout.split() == [wanted], f"bash completes {line!r} to {out.stdout!r} {out.stderr}")


def check_fish(script):
    for line, wanted in (("firn rec", "record"), ("firn up --storage-retention-t",
                          "--storage-retention-time"), ("firn up --log-level w", "warn"),
                         ("firn store ver", "verify"), ("firn store delete --hel", "--help")):
        out = run("fish", "--no-config", "-c", f"source {script}; complete -C '{line}'")
        found = [row.split("\t")[0] for row in out.stdout.splitlines()]
        expect(found == [wanted], f"fish completes {line!r} to {out.stdout!r} {out.stderr}")


def main():
    with tempfile.TemporaryDirectory() as temporary:
        share = pathlib.Path(temporary) / "share"
        made = run(FIRN, "manual", str(share))
        expect(made.returncode == 0, f"firn manual: {made.stderr}")
        places = {"bash": share / "bash-completion/completions/firn",
                  "zsh": share / "zsh/site-functions/_firn",
                  "fish": share / "fish/vendor_completions.d/firn.fish"}
        scripts = {shell: place.read_text() for shell, place in places.items()}
        commands = list(find_commands())
        expect(len(commands) > 15 and ("store", "verify") in commands, f"verbs: {commands}")
        for verb in commands:
            check_command(share, scripts, verb)
        for shell, place in places.items():
            if not shutil.which(shell):
                print(f"{shell} is not here: its script was not read")
                continue
            read = run(shell, "-n", str(place))
            expect(read.returncode == 0 and not read.stderr, f"{shell}: {read.stderr}")
        check_bash(places["bash"])
        if shutil.which("fish"):
            check_fish(places["fish"])
        keys = (share / "man/man5/firn.yaml.5").read_text()
        shown = run(FIRN, "config", "show", "up").stdout
        for key in re.findall(r"^(\w+):", shown, re.M):
            expect(f"\\fB{key}\\fR" in keys, f"firn.yaml.5: no {key}")
        for page in sorted(share.glob("man/*/*")) if shutil.which("groff") else []:
            read = run("groff", "-Kutf8", "-man", "-Tutf8", "-ww", "-z", str(page))
            expect(not read.stderr, f"{page.name}: {read.stderr}")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
