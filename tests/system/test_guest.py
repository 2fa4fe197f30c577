"""What the agent keeps of its privileges, and that it sees everything without them.

As root (else: skipped): every set of capabilities of each process of `firn up`; a program that only
another user may read and that has been deleted, seen whole and with its labels; new programs, seen
whole while a file system hangs that another program lies on; the same agent as an ordinary user
with just the capabilities that it asks for, with some of them less, and with CAP_SYS_ADMIN alone.
"""

import os
import pwd
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

import firn
import hanging

SECONDS = 6
FRESH_SECONDS = 3
HZ = 19
BROKER = {2, 19, 34, 38, 39, 40}  # DAC_READ_SEARCH, SYS_PTRACE, SYSLOG, PERFMON, BPF, CHECKPOINT_RESTORE
TYPE = "parca_agent:samples:count:cpu:nanoseconds:delta"
TABLES = "--bpf-table-memory=64MiB"  # for all that runs on this host
NEEDED = ("bpf", "perfmon", "sys_ptrace", "dac_read_search", "checkpoint_restore", "syslog")


def status_of(pid):
    """Fields of /proc/PID/status, and the process' name."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file)


def capabilities(text):
    value = int(text, 16)
    return {bit for bit in range(64) if value >> bit & 1}


def processes_of(server):
    found = {}
    for pid in firn.descendants(server.process.pid):
        try:
            found[status_of(pid)["Name"]] = pid
        except FileNotFoundError:
            continue  # the short-lived reader of symbols
    return found


def wait_sampling(checks, server):
    """Until the agent has told its figures: then it has given up what it does not need."""
    told = firn.wait_until(lambda: server.metric("firn_agent_files_with_table") is not None, 120)
    checks.check(told, "it samples")


def check_capabilities(checks, server, is_root):
    found = processes_of(server)
    for name, want in {"firn-agent": set(), "firn-broker": BROKER}.items():
        status = status_of(found[name]) if name in found else {}
        if not checks.check(bool(status), f"{name} is there"):
            continue
        # The bounding set is emptied by CAP_SETPCAP, which only root had.
        for which in ("CapEff", "CapPrm", "CapInh", "CapAmb") + (("CapBnd",) if is_root else ()):
            have = capabilities(status[which])
            wanted = want if which in ("CapEff", "CapPrm") else set()
            checks.check(have == wanted, f"{name}: {which} is {sorted(have)}")
        checks.check(status["NoNewPrivs"] == "1", f"{name} gains no privileges")
        checks.check(status["Seccomp"] == "2", f"{name} is under seccomp")
        for task in os.listdir(f"/proc/{found[name]}/task"):
            own = status_of(f"{found[name]}/task/{task}")
            same = all(own[k] == status[k] for k in ("CapEff", "CapPrm", "Seccomp", "NoNewPrivs"))
            checks.check(same, f"{name}: thread {own['Name']} has no more than the others")
    return found


def run_secret(workloads, folder):
    """A busy program in a folder of mode 0700 of another user, deleted as soon as it runs."""
    nobody = pwd.getpwnam("nobody")
    secret = os.path.join(folder, "secret")
    os.makedirs(secret)
    path = os.path.join(secret, "hidden_burner")
    shutil.copy(os.path.join(workloads, "burner"), path)
    os.chmod(path, 0o700)
    for each in (path, secret):
        os.chown(each, nobody.pw_uid, nobody.pw_gid)
    os.chmod(secret, 0o700)
    os.chmod(folder, 0o755)
    command = ["setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups"]
    child = subprocess.Popen([*command, path, str(SECONDS)], stdout=subprocess.DEVNULL)
    firn.wait_until(lambda: os.readlink(f"/proc/{child.pid}/exe") == path)
    shutil.rmtree(secret)
    return child


def top_of(server, begin, end, comm):
    query = TYPE + '{comm="%s"}' % comm
    return server.json("/api/top", query=query, limit=0, **{"from": begin, "to": end})


def flame_of(server, begin, end, comm):
    query = TYPE + '{comm="%s"}' % comm
    return server.json("/api/flamegraph", query=query, **{"from": begin, "to": end})


def check_whole(checks, graph, not_copied, what):
    """No more than two samples, or one of a hundred, have a marker at their root; without those that the agent
    counted as such, but never nearly all."""
    nodes, strings = graph["nodes"], graph["strings"]
    total = nodes["total"][0]
    cut = 0
    for i in range(1, len(nodes["total"])):
        if nodes["parent"][i] == 0 and strings[nodes["name"][i]].startswith("[unwind"):
            cut += nodes["total"][i]
    shown = f"{1 - cut / max(1, total):.2%} of the stacks are whole"
    most = min(max(0.01 * total, 2.5e9 / HZ) + not_copied * 1e9 / HZ, 0.9 * total)
    checks.check(0 < total and cut <= most, f"{what}: {shown} ({not_copied:.0f} not copied)")


def check_secret(checks, server, workloads, folder, what):
    not_copied = server.not_copied()
    begin = time.time()
    # Beside it, so that the kernel is seen too.
    calls = subprocess.Popen(["dd", "if=/dev/zero", "of=/dev/null", "bs=1"], stderr=subprocess.DEVNULL)
    run_secret(workloads, folder).wait()
    end = time.time()
    calls.kill()
    calls.wait()
    server.settle(end)
    graph = flame_of(server, begin, end, "hidden_burner")
    check_whole(checks, graph, server.not_copied() - not_copied, what)
    series = server.json("/api/series", query=TYPE + '{comm="hidden_burner"}', by="executable", step="10s")
    names = [str(s) for s in series["series"] if "hidden_burner" in str(s)]
    checks.check(len(names) == len(series["series"]) == 1, f"{what}: its executable is known")


def check_tables(checks, server):
    """Each executable has its unwind table, also those that need more kernel memory than at the start."""
    text = server.get("/metrics").decode()
    tables = re.search(r"^firn_agent_files_with_table (\d+)$", text, re.M)
    files = re.search(r"^firn_agent_files (\d+)$", text, re.M)
    memory = re.search(r"^firn_agent_unwind_table_bytes (\d+)$", text, re.M)
    shown = f"{tables[1]} of {files[1]} files have tables, of {int(memory[1]) / 2**20:.1f} MiB together"
    checks.check(int(tables[1]) >= int(files[1]) * 0.95, shown)


def check_as_root(checks, program, workloads, storage):
    server = firn.Firn(program, "up", os.path.join(storage, "root"), TABLES)
    try:
        wait_sampling(checks, server)
        found = check_capabilities(checks, server, True)
        check_secret(checks, server, workloads, os.path.join(storage, "root", "work"), "root")
        checks.check(bool(server.metric("firn_agent_broker_requests_total")), "the broker was asked")
        check_tables(checks, server)
        # The broker's end is seen, and the two are started again; each has its name a moment after its pid.
        os.kill(found["firn-broker"], 9)
        deadline = time.time() + 120
        new = set()
        while len(new) < 2 and time.time() < deadline:
            time.sleep(0.5)
            again = processes_of(server)
            new = {name for name in ("firn-agent", "firn-broker") if again.get(name, found[name]) != found[name]}
        checks.check(len(new) == 2, f"a broker that was killed is back, and an agent with it ({found}, {again})")
    finally:
        checks.check(server.stop() == 0, "stops cleanly")
    left = [pid for pid in again.values() if os.path.exists(f"/proc/{pid}")]
    checks.check(not left, f"no process is left behind ({left})")


def run_fresh(workloads, folder, name):
    """A busy program that was never seen, on a disk."""
    path = os.path.join(folder, name)
    shutil.copy(os.path.join(workloads, "burner"), path)
    begin = time.time()
    subprocess.run([path, str(FRESH_SECONDS)], stdout=subprocess.DEVNULL, check=True)
    return begin, time.time()


def check_beside_hanging(checks, program, workloads, storage, mount):
    """Its program runs before the agent begins, which finds it, opens it, and waits for its bytes."""
    burning = subprocess.Popen([mount.path, "600"], stdout=subprocess.DEVNULL)
    broker = None
    try:
        firn.wait_until(lambda: os.readlink(f"/proc/{burning.pid}/exe") == mount.path)
        mount.hang()
        server = firn.Firn(program, "up", os.path.join(storage, "hanging"), TABLES)
        try:
            wait_sampling(checks, server)
            hangs = firn.wait_until(lambda: server.metric("firn_agent_broker_overdue"), 120)
            # Another one of this host may, too.
            checks.check(hangs, f"a file system hangs ({hangs} answers are overdue)")
            broker = processes_of(server).get("firn-broker")
            for name in ("fresh_first", "fresh_second"):
                not_copied = server.not_copied()
                begin, end = run_fresh(workloads, storage, name)
                server.settle(end)
                graph = flame_of(server, begin, end, name)
                check_whole(checks, graph, server.not_copied() - not_copied, f"{name} beside what hangs")
            page = server.get("/agent").decode()
            checks.check("does not answer" in page, "the status page says that a file system does not answer")
            hangs = firn.wait_until(lambda: server.metric("firn_agent_broker_overdue"), 120)
            checks.check(hangs, f"it hangs still ({hangs} answers are overdue)")
        finally:
            checks.check(server.stop() == 0, "stops cleanly, while it hangs")
    finally:
        mount.end()
        burning.kill()
        burning.wait()
    gone = broker and firn.wait_until(lambda: not os.path.exists(f"/proc/{broker}"))
    checks.check(gone, f"the broker has ended with the file system ({broker})")


def check_hanging(checks, program, workloads, storage):
    path = os.path.join(storage, "on_fuse")
    with open(os.path.join(workloads, "burner"), "rb") as file:
        content = file.read()
    with open(path, "wb"):
        pass
    try:
        mount = hanging.HangingFile(path, content)
    except OSError as error:
        checks.skip("a file system that hangs", str(error))
        return
    try:
        check_beside_hanging(checks, program, workloads, storage, mount)
    finally:
        mount.end()


def as_user(program, folder, names):
    """The agent's program as nobody, with these capabilities alone."""
    nobody = pwd.getpwnam("nobody")
    os.makedirs(folder)
    copy = os.path.join(folder, "firn")
    shutil.copy(program, copy)
    os.chmod(copy, 0o755)
    os.chmod(os.path.dirname(folder), 0o755)
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    caps = ",".join("+" + name for name in names)
    return [
        "setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups",
        f"--inh-caps=-all,{caps}", f"--ambient-caps=-all,{caps}", "env", f"HOME={folder}", copy,
    ]  # fmt: skip


def check_as_user(checks, program, workloads, storage):
    folder = os.path.join(storage, "user")
    server = firn.Firn(as_user(program, folder, NEEDED), "up", folder, TABLES)
    try:
        wait_sampling(checks, server)
        check_capabilities(checks, server, False)
        check_tables(checks, server)
        check_secret(checks, server, workloads, os.path.join(storage, "work"), "a user with six capabilities")
        top = server.json("/api/top", query=TYPE, limit=0, **{"from": "now-5m", "to": "now"})
        kernel = [r for r in top["rows"] if "do_syscall_64" in str(r)]
        checks.check(bool(kernel), "a user with six capabilities: kernel functions have names")
    finally:
        checks.check(server.stop() == 0, "stops cleanly")


def page_of(server):
    """The agent's status page; it comes a few seconds after the figures."""
    firn.wait_until(lambda: b"<h1>firn agent" in server.get("/agent"), 120)
    return server.get("/agent").decode()


def hides_names():
    """From whoever has not CAP_SYSLOG."""
    names = ("/proc/sys/kernel/kptr_restrict", "/proc/sys/kernel/perf_event_paranoid")
    restrict, paranoid = (int(open(name, encoding="utf-8").read()) for name in names)
    return restrict > 0 or paranoid > 1


def check_with_less(checks, program, storage, given, missing):
    """It runs with less than it asks for, and says so in its log, on its page and in its figures."""
    folder = os.path.join(storage, "less-" + given[-1])
    server = firn.Firn(as_user(program, folder, given), "up", folder)
    what = "with " + " ".join(given)
    try:
        wait_sampling(checks, server)
        said = next((line for line in server.log_text().splitlines() if "capabilities are missing" in line), "")
        page = page_of(server)
        text = server.get("/metrics").decode()
        for name in ("CAP_" + name.upper() for name in NEEDED):
            lacks = name in missing
            named = re.search(rf'capabilities="[^"]*{name}', said) is not None
            checks.check(named == lacks, f"{what}: {name} {'is' if lacks else 'is not'} named: {said}")
            checks.check((f"{name} is missing" in page) == lacks, f"{what}: and on the page")
            gauge = re.search(rf'^firn_agent_capability_missing{{.*capability="{name}".*}} (\S+)$', text, re.M)
            checks.check(bool(gauge) and float(gauge[1]) == lacks, f"{what}: and a figure: {gauge and gauge[0]}")
        nameless = "CAP_SYSLOG" in missing and hides_names()
        told = ("names of kernel functions" in page, server.metric("firn_agent_kernel_names_missing") == 1)
        checks.check(told == (nameless, nameless), f"{what}: kernel functions without names: {told}")
        checks.check("firn-agent" in processes_of(server), f"{what}: it runs all the same")
    finally:
        checks.check(server.stop() == 0, "stops cleanly")


def rate_of(server, seconds):
    """Samples a second and CPU, those in idle tasks too. The agent's figures come once a second; age and figures
    must be of one moment."""

    def ticks():
        text = server.get("/metrics").decode()
        now = time.monotonic()
        wanted = ("samples_taken_total", "idle_ticks_total", "figures_age_seconds")
        taken, idle, age = (float(re.search(rf"^firn_agent_{w} (\S+)$", text, re.M)[1]) for w in wanted)
        return taken + idle, now - age

    before, begin = ticks()
    time.sleep(seconds)
    after, end = ticks()
    return (after - before) / (end - begin) / os.cpu_count()


def free_low_port():
    """One that only a privileged process may bind."""
    for port in range(1023, 600, -1):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    return None


def check_limits(checks, program, storage):
    """A limit so low that the rate must go down, seen on a port of the privileged; and an interval that is left out."""
    arguments = ["--profiling-cpu-sampling-frequency=499", "--profiling-duration=1s"]
    port = free_low_port()
    server = firn.Firn(
        program, "up", os.path.join(storage, "limit"), *arguments, "--agent-cpu-limit=0.0001",
        f"--agent-http-address=127.0.0.1:{port}",
    )  # fmt: skip
    try:
        wait_sampling(checks, server)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthy", timeout=30) as answer:
            checks.check(answer.status == 200, f"the agent answers on port {port}")
        firn.wait_until(lambda: (server.metric("firn_agent_sampling_frequency_hz") or 499) <= 125, 120)
        wanted = server.metric("firn_agent_sampling_frequency_hz")
        checks.check(wanted <= 125, f"a low limit of CPU time lowers the rate to {wanted:.0f} Hz")
        rate = rate_of(server, 4)
        wanted = max(wanted, server.metric("firn_agent_sampling_frequency_hz"))
        checks.check(rate <= wanted * 1.2, f"and {rate:.1f} samples a second are taken")
        checks.check("CPU time above its limit" in server.log_text(), "and the log says why")
    finally:
        checks.check(server.stop() == 0, "stops cleanly")
    chance = "--profiling-probabilistic-threshold=1"
    server = firn.Firn(program, "up", os.path.join(storage, "chance"), *arguments, chance)
    try:
        wait_sampling(checks, server)
        # The figures come a moment later than what they tell of; and once a minute all may change.
        for _ in range(10):
            paused = server.metric("firn_agent_sampling_paused")
            rate = rate_of(server, 3)
            if (rate == 0) == (paused == 1):
                break
        checks.check((rate == 0) == (paused == 1), f"paused {paused:.0f}: {rate:.1f} samples a second")
    finally:
        checks.check(server.stop() == 0, "stops cleanly")


def main():
    program, workloads = sys.argv[1], sys.argv[2]
    checks = firn.Checks()
    if os.geteuid() != 0:
        checks.skip("the agent's privileges", "needs root to have some")
        checks.finish()
    storage = tempfile.mkdtemp(prefix="firn-test-guest-")
    try:
        check_as_root(checks, program, workloads, storage)
        check_hanging(checks, program, workloads, storage)
        check_as_user(checks, program, workloads, storage)
        less = {"CAP_DAC_READ_SEARCH", "CAP_CHECKPOINT_RESTORE", "CAP_SYSLOG"}
        check_with_less(checks, program, storage, NEEDED[:3], less)
        everything = {"CAP_" + name.upper() for name in NEEDED}
        check_with_less(checks, program, storage, ("sys_admin",), everything)
        check_limits(checks, program, storage)
    finally:
        shutil.rmtree(storage, ignore_errors=True)
    checks.finish()


if __name__ == "__main__":
    main()
