#!/usr/bin/env python3
"""The whole path: `firn up` as root on this host, programs of known shape, the answers of the API.

    test_up.py PROGRAM WORKLOADS_DIR [SECONDS]

SECONDS is how long each load runs (default 15).
"""

import json
import os
import pwd
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error

import firn

TYPE = "parca_agent:samples:count:cpu:nanoseconds:delta"
MARKER = 15
KERNEL = 2
FREQUENCY_HZ = 997  # so that a share of a few seconds is exact to well under a point


def flame(server, selector, begin, end):
    """Rows of the flame graph as dictionaries, the root first."""
    answer = server.json("/api/flamegraph", query=TYPE + selector, **{"from": begin, "to": end, "trim": 0})
    nodes, strings = answer["nodes"], answer["strings"]
    rows = []
    for i in range(len(nodes["parent"])):
        rows.append(
            {
                "parent": nodes["parent"][i],
                "name": strings[nodes["name"][i]],
                "binary": strings[nodes["binary"][i]],
                "kind": nodes["kind"][i],
                "self": nodes["self"][i],
                "total": nodes["total"][i],
            }
        )
    return rows


def share_whole(rows, not_copied=0):
    """Share of the value whose stacks reach their root: no marker frame at the root side. Without so many samples
    that the agent counted as such."""
    total = rows[0]["total"]
    cut = sum(r["total"] for r in rows[1:] if r["parent"] == 0 and r["kind"] == MARKER)
    cut = max(0, cut - not_copied * 1e9 / FREQUENCY_HZ)
    return 1 - cut / total if total else 0.0


def share_named(rows):
    """Share of the value whose leaf frame says at least which binary and where in it: a function's
    name, or binary+0xoffset where the binary was stripped of it."""
    total = rows[0]["total"]
    bare = sum(r["self"] for r in rows[1:] if re.match(r"0x|\[(unknown|file gone|jit)", r["name"]))
    return 1 - bare / total if total else 0.0


def totals_by_name(rows):
    """Total of each function, a recursion counted once."""
    totals = {}
    for i, row in enumerate(rows):
        up = row["parent"]
        seen = False
        while up:
            seen = seen or rows[up]["name"] == row["name"]
            up = rows[up]["parent"]
        if i and not seen:
            totals[row["name"]] = totals.get(row["name"], 0) + row["total"]
    return totals


def check_burner(checks, server, workloads, seconds):
    """C++ without frame pointers, stripped, 40 calls deep, measuring its own functions."""
    not_copied, stolen = server.not_copied(), firn.stolen_seconds()
    begin = time.time()
    run = subprocess.run(
        [os.path.join(workloads, "burner"), str(seconds)], capture_output=True, text=True, check=True
    )
    end = time.time()
    stolen = firn.stolen_seconds() - stolen
    server.settle(end)
    not_copied = server.not_copied() - not_copied
    own = json.loads(run.stdout)
    rows = flame(server, '{comm="burner"}', begin, end)
    whole = share_whole(rows, not_copied)
    checks.check(whole >= 0.99, f"burner: {whole:.2%} of the stacks reach the root ({not_copied:.0f} not copied)")
    depth = {}
    for i, row in enumerate(rows):
        depth[i] = depth[row["parent"]] + 1 if i else 0
    user = max(depth[i] for i, r in enumerate(rows) if r["kind"] != KERNEL)
    checks.check(user >= 40, f"burner: {user} frames deep")
    return own, rows, stolen


def check_shares(checks, own, rows, stolen):
    """Stripped: the program prints the address of each function, which names it in the answer. Of a share of one
    half five standard deviations are chance; what is stolen may be all of one function."""
    total = rows[0]["total"]
    totals = totals_by_name(rows)
    samples = max(1, total / 1e9 * FREQUENCY_HZ)
    most = max(0.02, 2.5 / samples**0.5) + stolen / max(0.1, total / 1e9)
    for function in own["functions"]:
        measured = function["share"]
        seen = sum(v for k, v in totals.items() if matches(k, function)) / total
        what = f"burner: {function['name']} {seen:.1%} of samples, {measured:.1%} by its own clock"
        checks.check(abs(seen - measured) <= most, f"{what} (at most {most:.1%} apart)")


def matches(name, function):
    """Name as in the answer: the symbol, or binary+0xoffset within the function's range."""
    if name == function["name"]:
        return True
    head, plus, offset = name.rpartition("+0x")
    if not plus or not head.startswith("burner"):
        return False
    return function["begin"] <= int(offset, 16) < function["end"]


def cpu_of_children():
    """Seconds, of those that have been waited for, with theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def check_churn(checks, server, seconds):
    """Processes of a few milliseconds: compilers, ls, sort."""
    source = "int f(int x) { return x * 3; }\nint main(void) { return f(2); }\n"
    loop = 'while :; do echo "$S" | gcc -O2 -x c -c -o /dev/null - ; ls -l /usr/bin | sort -k5 >/dev/null; done'
    not_copied, stolen, used = server.not_copied(), firn.stolen_seconds(), cpu_of_children()
    begin = time.time()
    child = subprocess.Popen(["sh", "-c", loop], env=dict(os.environ, S=source), start_new_session=True)
    time.sleep(seconds)
    end = time.time()
    os.killpg(child.pid, 15)
    child.wait()
    stolen, used = firn.stolen_seconds() - stolen, cpu_of_children() - used
    server.settle(end)
    not_copied = server.not_copied() - not_copied
    rows = flame(server, '{comm=~"^(cc1|as|gcc|ls|sort|sh)$"}', begin, end)
    seen = rows[0]["total"] / 1e9
    checks.check(
        seen > 0 and seen >= 0.7 * used - stolen,
        f"churn: {seen:.2f} s of CPU time seen of {used:.2f} s that was used ({stolen:.2f} s stolen)",
    )
    whole = share_whole(rows, not_copied)
    checks.check(whole >= 0.95, f"churn: {whole:.2%} of the stacks are whole ({not_copied:.0f} not copied)")
    checks.check(share_named(rows) >= 0.95, f"churn: {share_named(rows):.2%} of the leaves are named")
    kernel = sum(r["self"] for r in rows if r["kind"] == KERNEL)
    checks.check(kernel > 0, "churn: kernel frames are there")
    bare = [r["name"] for r in rows if r["kind"] == KERNEL and "+0x" in r["name"]]
    checks.check(not bare, f"churn: kernel frames have names ({bare[:3]})")
    return end


def check_reports_agree(checks, server, begin, end):
    """One total, whichever way it is asked for. A sample may come late, while its file was not known: then all
    is asked once more."""
    times = {"from": begin, "to": end}
    for _ in range(20):
        rows = flame(server, "", begin, end)
        top = server.json("/api/top", query=TYPE, limit=0, **times)
        series = server.json("/api/series", query=TYPE, by="comm", step="1s", **times)
        total = rows[0]["total"]
        if flame(server, "", begin, end)[0]["total"] == total:
            break
        time.sleep(1)
    by_time = sum(point[1] for s in series["series"] for point in s["points"])
    checks.check(total > 0 and top["total"] == total, "flame graph and table have one total")
    checks.check(sum(r["self"] for r in top["rows"]) == total, "self values of the table sum to it")
    checks.check(by_time == total, f"the series sum to it ({by_time} of {total})")
    labels = set(server.json("/api/labels", query=TYPE)["labels"])
    wanted = {"node", "comm", "pid", "thread_id", "thread_name", "cpu", "executable", "cgroup"}
    checks.check(wanted <= labels, f"labels are there (missing: {wanted - labels})")


def check_figures(checks, server):
    """The agent's own counters, in the server's /metrics: each sample taken is delivered or counted as lost."""
    taken = server.metric("firn_agent_samples_taken_total") or 0
    lost = server.metric("firn_agent_samples_lost_total")
    stored = server.metric("firn_store_samples_total")
    age = server.metric("firn_agent_figures_age_seconds")
    checks.check(taken > 0 and age < 30, f"the agent's figures are there, {age} s old")
    # What is under way between the two: some intervals at full rate.
    way = 4 * 5 * FREQUENCY_HZ * os.cpu_count()
    checks.check(
        abs(taken - lost - stored) <= way,
        f"{taken:.0f} samples taken, {lost:.0f} counted as lost, {stored:.0f} stored",
    )


def check_page(checks, server):
    """The agent's status page at the server's port."""
    page = server.get("/agent").decode()
    age = re.search(r"Told by the agent (\d+) s ago\. ", page)
    checks.check(bool(age), f"/agent: the agent's page, {age.group(1) if age else '?'} s old")
    taken = re.search(r"<td>samples taken</td><td>(\d+)</td>", page)
    checks.check(bool(taken) and int(taken.group(1)) > 0, "/agent: how many samples it took")
    checks.check("<script" not in page and page.endswith("</body></html>\n"), "/agent: whole, without a script")


def check_room(checks, server, storage):
    """Compilers, each a file of its own, whose tables do not fit all: what is missing is said everywhere."""
    cc1 = subprocess.run(["gcc", "-print-prog-name=cc1"], capture_output=True, text=True, check=True).stdout.strip()
    source = os.path.join(storage, "source.c")
    with open(source, "w", encoding="utf-8") as file:
        file.writelines(f"int f{i}(int *p) {{ return p[{i}] * p[{i + 1}] + {i}; }}\n" for i in range(20000))
    begin, running = time.time(), []
    try:
        for i in range(6):
            copy = os.path.join(storage, f"cc1-{i}")
            shutil.copy(cc1, copy)
            loop = f"while :; do {copy} -O2 -quiet {source} -o /dev/null; done"
            running.append(subprocess.Popen(["sh", "-c", loop], start_new_session=True))
        cut = 'firn_agent_stacks_total{end="NO_ROOM"}'
        firn.wait_until(lambda: (server.metric(cut) or 0) > 0)
        said = firn.wait_until(lambda: "more_by=--bpf-table-memory" in server.log_text())
        missing = r"What it does not see, and why</h2><table>.*had no room in 4 MiB: .* --bpf-table-memory</td>"
        page = firn.wait_until(lambda: re.search(missing, server.get("/agent").decode()))
    finally:
        for process in running:
            os.killpg(process.pid, 9)
            process.wait()
    checks.check(server.metric(cut) > 0, f"no room: {server.metric(cut):.0f} stacks are counted as cut for it")
    checks.check(said, "no room: a warning on the terminal names the flag")
    checks.check(page, "no room: the status page says how many stacks, and which flag gives more")
    server.settle(time.time())
    names = {r["name"] for r in flame(server, "", begin, time.time()) if r["kind"] == MARKER}
    marker = "[unwind: no room for this file's table: --bpf-table-memory]"
    checks.check(marker in names, f"no room: the stacks say so ({sorted(names)})")


def check_unprivileged(checks, program, storage):
    """As another user: one sentence what is missing, and the server part runs."""
    home = os.path.join(storage, "unprivileged")
    os.makedirs(home)
    nobody = pwd.getpwnam("nobody")
    os.chmod(storage, 0o755)
    os.chown(home, nobody.pw_uid, nobody.pw_gid)
    copy = os.path.join(home, "firn")
    shutil.copy(program, copy)
    os.chmod(copy, 0o755)
    wrapper = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", copy]
    server = firn.Firn(wrapper, "up", home)
    said = firn.wait_until(lambda: [line for line in server.log_text().splitlines() if "CAP_" in line])
    checks.check(bool(said), f"as nobody: says what is missing: {said[:1]}")
    checks.check(server.get("/healthy") is not None, "as nobody: the server runs")
    try:
        code = len(server.get("/agent"))
    except urllib.error.HTTPError as e:
        code = e.code
    checks.check(code == 503, f"as nobody: no page of an agent ({code})")
    checks.check(server.stop() == 0, "as nobody: stops cleanly")


def main():
    program, workloads = sys.argv[1], sys.argv[2]
    seconds = int(sys.argv[3]) if len(sys.argv) > 3 else 15
    checks = firn.Checks()
    if os.geteuid() != 0:
        checks.skip("the agent on the real kernel", "needs root to load BPF programs")
        checks.finish()
    storage = tempfile.mkdtemp(prefix="firn-test-up-")
    server = None
    try:
        begin = time.time()
        server = firn.Firn(program, "up", storage, f"--profiling-cpu-sampling-frequency={FREQUENCY_HZ}")
        own, rows, stolen = check_burner(checks, server, workloads, seconds)
        check_shares(checks, own, rows, stolen)
        end = check_churn(checks, server, seconds)
        check_reports_agree(checks, server, begin, end)
        check_figures(checks, server)
        check_page(checks, server)
        before = server.json("/api/top", query=TYPE, limit=0, **{"from": begin, "to": end})["total"]
        children = firn.descendants(server.process.pid)
        checks.check(server.stop() == 0, "Ctrl-C stops it with status 0")
        alive = [pid for pid in children if os.path.exists(f"/proc/{pid}")]
        checks.check(not alive, f"no process is left behind ({alive})")
        few = ["--bpf-table-memory=4MiB", f"--profiling-cpu-sampling-frequency={FREQUENCY_HZ}"]
        server = firn.Firn(program, "up", storage, *few)
        after = server.json("/api/top", query=TYPE, limit=0, **{"from": begin, "to": end})["total"]
        # And what was still to be finished when it was stopped.
        same = before <= after <= 1.02 * before
        checks.check(same, f"after a restart the same samples are there ({before / 1e9:.2f} s, {after / 1e9:.2f} s)")
        check_room(checks, server, storage)
        checks.check(server.stop() == 0, "stops again")
        check_unprivileged(checks, program, storage)
    finally:
        if server and server.process.poll() is None:
            server.stop()
        shutil.rmtree(storage, ignore_errors=True)
    checks.finish()


if __name__ == "__main__":
    main()
