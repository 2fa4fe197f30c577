"""An agent and a server that knows its clients by certificate, and that goes away.

The server asks for a client's certificate; the agent has one, and has to trust the server's. The
server is stopped, the agent is killed meanwhile and started again, and the server comes back: what
was sampled while it was away is there, each once. An agent with a certificate of nobody known is
turned away and keeps its samples. `firn up` with a certificate for its own agent. Needs root.
"""

import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request

import firn

TYPE = "parca_agent:samples:count:cpu:nanoseconds:delta"
HZ = 49


def openssl(folder, *arguments):
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


def make_authority(folder, name):
    openssl(folder, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
            "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.crt")  # fmt: skip


def make_certificate(folder, name, authority, address=None):
    openssl(folder, "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")  # fmt: skip
    extra = []
    if address:
        with open(os.path.join(folder, "san"), "w", encoding="utf-8") as file:
            file.write(f"subjectAltName=IP:{address}\n")
        extra = ["-extfile", "san"]
    openssl(folder, "x509", "-req", "-in", f"{name}.csr", "-CA", f"{authority}.crt", "-CAkey", f"{authority}.key",
            "-CAcreateserial", "-days", "2", "-out", f"{name}.crt", *extra)  # fmt: skip


class Agent:
    """`firn agent`, which says by its own /metrics how it fares."""

    def __init__(self, program, storage, server, certificates, who, *arguments):
        self.log_path = os.path.join(storage, "agent.log")
        self.log = open(self.log_path, "ab")
        start = self.log.tell()
        command = [
            program, "agent", f"--remote-store-address={server}", "--http-address=127.0.0.1:0",
            f"--spool-path={storage}/spool", f"--cache-path={storage}/cache", "--profiling-duration=1s",
            f"--profiling-cpu-sampling-frequency={HZ}", f"--remote-store-ca-file={certificates}/ca.crt",
            f"--remote-store-client-cert={certificates}/{who}.crt",
            f"--remote-store-client-key={certificates}/{who}.key", "--debuginfo-upload-disable", *arguments,
        ]  # fmt: skip
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log)
        deadline = time.monotonic() + 60
        self.address = None
        while not self.address and time.monotonic() < deadline:
            time.sleep(0.1)
            with open(self.log_path, encoding="utf-8", errors="replace") as file:
                file.seek(start)
                found = re.search(r"agent listens.*address=(\S+)", file.read())
            self.address = found and found.group(1)

    def metric(self, name):
        with urllib.request.urlopen(f"http://{self.address}/metrics", timeout=10) as answer:
            text = answer.read().decode()
        found = re.findall(rf"^{re.escape(name)}(?:{{[^}}]*}})? (\S+)$", text, re.M)
        return sum(map(float, found))

    def wait(self, name, good, seconds=60):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if good(self.metric(name)):
                return True
            time.sleep(0.2)
        return False

    def sent_at_last(self):
        """By the line that it writes when it ends."""
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return int(re.findall(r'"agent stopped".* sent=(\d+)', file.read())[-1])

    def end(self, how):
        self.process.send_signal(how)
        code = self.process.wait(60)
        self.log.close()
        return code


def start_server(program, storage, certificates, context, address=None):
    extra = [f"--http-address={address}"] if address else []
    return firn.Firn(
        program, "server", storage, f"--tls-cert-file={certificates}/server.crt",
        f"--tls-key-file={certificates}/server.key", f"--tls-client-ca-file={certificates}/ca.crt", *extra,
        context=context,
    )  # fmt: skip


def seconds_with_samples(server, begin, end):
    series = server.json("/api/series", query=TYPE, step="1s", **{"from": begin, "to": end})
    return sum(1 for s in series["series"] for point in s["points"] if point[1] > 0)


def check_away(checks, program, storage, certificates, context):
    server = start_server(program, storage, certificates, context)
    address = server.address
    agent = Agent(program, storage, address, certificates, "client")
    busy = subprocess.Popen(["sh", "-c", "while :; do :; done"])
    try:
        checks.check(agent.wait("firn_agent_sent_samples_total", bool), "a client with a certificate is let in")
        checks.check(server.stop() == 0, "the server stops")
        begin = time.time()
        checks.check(agent.wait("firn_agent_spool_batches", lambda n: n >= 3), "batches wait on disk while it is away")
        checks.check(agent.process.poll() is None, "the agent does not end because the server is away")
        agent.end(signal.SIGKILL)
        agent = Agent(program, storage, address, certificates, "client")
        checks.check(agent.metric("firn_agent_send_recovered_total") > 0, "an agent that was killed finds them again")
        time.sleep(3)
        end = time.time()
        server = start_server(program, storage, certificates, context, address)
        done = agent.wait("firn_agent_spool_batches", lambda n: n == 0, 120)
        checks.check(done, "they are sent when it is back")
        checks.check(agent.end(signal.SIGTERM) == 0, "the agent ends with status 0")
        sent = agent.sent_at_last()
        covered = seconds_with_samples(server, begin, end)
        # Starting the agent again takes a moment, or more, in which nobody samples.
        checks.check(covered >= 2, f"{covered} of {end - begin:.0f} s without a server have samples")
        total = server.json("/api/top", query=TYPE, limit=0, **{"from": begin, "to": end})["total"]
        checks.check(total > 0, f"{total / 1e9:.1f} s of CPU time in them")
        stored = server.metric("firn_store_samples_total")
        checks.check(stored == sent, f"{sent:.0f} samples sent, {stored:.0f} stored: each once")
    finally:
        busy.kill()
        busy.wait()
        server.stop()
    return address


def check_stranger(checks, program, storage, certificates, context):
    server = start_server(program, storage, certificates, context)
    agent = Agent(program, storage, server.address, certificates, "stranger")
    try:
        checks.check(agent.wait("firn_agent_send_failures_total", bool), "a stranger is turned away")
        kept = agent.wait("firn_agent_spool_batches", bool)
        checks.check(kept and agent.metric("firn_agent_send_lost_total") == 0, "and keeps its samples")
    finally:
        agent.end(signal.SIGTERM)
        server.stop()


def check_page(checks, agent):
    """The status page, while a process with a hostile name and stacks that lead nowhere runs."""
    with urllib.request.urlopen(f"http://{agent.address}/", timeout=10) as answer:
        page, policy = answer.read().decode(), answer.headers["content-security-policy"]
    for part in ("What it sees", "CPUs sampled", "Samples lost", "Executables that could not be read"):
        checks.check(part in page, f"the status page says: {part}")
    checks.check("default-src 'none'" in policy and "<script" not in page, "and runs nothing")
    with urllib.request.urlopen(f"http://{agent.address}/ready", timeout=10) as answer:
        checks.check(answer.status == 200, "/ready says so")


def check_upload_keeps_nothing(checks, program, storage, folder):
    """What waits for its server, and is stopped, has sent nothing, removed nothing, and could do nothing else."""
    before = sorted(name for name in os.listdir(folder) if name.endswith(".batch"))
    upload = subprocess.Popen(
        [program, "agent", f"--offline-mode-storage-path={folder}", "--offline-mode-upload",
         "--remote-store-address=127.0.0.1:1", f"--cache-path={storage}/cache"], stderr=subprocess.DEVNULL)  # fmt: skip
    status = {}
    deadline = time.monotonic() + 60
    while status.get("Seccomp") != "2" and upload.poll() is None and time.monotonic() < deadline:
        time.sleep(0.1)
        with open(f"/proc/{upload.pid}/status", encoding="utf-8") as file:
            status = dict(line.rstrip("\n").split(":\t", 1) for line in file)
    caps = {name: status.get(name, "").strip("0") for name in ("CapEff", "CapPrm", "CapInh", "CapAmb", "CapBnd")}
    checks.check(not any(caps.values()) and status.get("Seccomp") == "2", f"offline: an upload keeps no capability ({caps})")
    upload.terminate()
    checks.check(upload.wait(60) == 0, "offline: an upload that is stopped ends with status 0")
    after = sorted(name for name in os.listdir(folder) if name.endswith(".batch"))
    checks.check(before == after != [], "offline: and its batches wait")


def check_offline(checks, program, storage, certificates, context):
    """Samples without a server, sent by another process afterwards."""
    folder = os.path.join(storage, "offline")
    agent = Agent(program, storage, "", certificates, "client", f"--offline-mode-storage-path={folder}")
    busy = subprocess.Popen(["sh", "-c", "while :; do :; done"])
    try:
        checks.check(agent.wait("firn_agent_spool_batches", lambda n: n >= 3), "offline: batches are kept")
        check_page(checks, agent)
    finally:
        busy.kill()
        busy.wait()
        checks.check(agent.end(signal.SIGTERM) == 0, "offline: the agent ends with status 0")
    check_upload_keeps_nothing(checks, program, storage, folder)
    server = start_server(program, storage, certificates, context)
    try:
        run = subprocess.run(
            [program, "agent", f"--offline-mode-storage-path={folder}", "--offline-mode-upload",
             f"--remote-store-address={server.address}", f"--remote-store-ca-file={certificates}/ca.crt",
             f"--cache-path={storage}/cache", f"--remote-store-client-cert={certificates}/client.crt",
             f"--remote-store-client-key={certificates}/client.key"],
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        sent = int((re.findall(r"uploaded.* samples=(\d+)", run.stderr) or ["-1"])[0])
        stored = server.metric("firn_store_samples_total")
        checks.check(run.returncode == 0 and sent == stored > 0, f"offline: {sent} samples uploaded, {stored:.0f} stored")
        if sent != stored:
            print(run.stderr, *(l for l in server.get("/metrics").decode().splitlines() if re.match(r"firn_ingest.* [1-9]", l)), sep="\n")
        left = [name for name in os.listdir(folder) if name.endswith(".batch")]
        checks.check(not left, "offline: nothing is left")
    finally:
        server.stop()


def check_up(checks, program, storage, certificates, context):
    server = firn.Firn(
        program, "up", storage, f"--tls-cert-file={certificates}/server.crt",
        f"--tls-key-file={certificates}/server.key", f"--tls-client-ca-file={certificates}/ca.crt",
        f"--remote-store-client-cert={certificates}/client.crt",
        f"--remote-store-client-key={certificates}/client.key", context=context,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 40
        while not (server.metric("firn_store_samples_total") or 0) and time.monotonic() < deadline:
            time.sleep(0.5)
        checks.check(server.metric("firn_store_samples_total") > 0, "firn up: its agent comes with a certificate")
    finally:
        checks.check(server.stop() == 0, "firn up: stops")


def main():
    program = sys.argv[1]
    checks = firn.Checks()
    if os.geteuid() != 0:
        checks.skip("an agent and a server that goes away", "needs root to load BPF programs")
        checks.finish()
    if not shutil.which("openssl"):
        checks.skip("an agent and a server that goes away", "there is no openssl program to make certificates")
        checks.finish()
    storage = tempfile.mkdtemp(prefix="firn-test-away-")
    try:
        make_authority(storage, "ca")
        make_authority(storage, "other")
        make_certificate(storage, "server", "ca", "127.0.0.1")
        make_certificate(storage, "client", "ca")
        make_certificate(storage, "stranger", "other")
        context = ssl.create_default_context(cafile=os.path.join(storage, "ca.crt"))
        context.load_cert_chain(os.path.join(storage, "client.crt"), os.path.join(storage, "client.key"))
        for name, fn in {"away": check_away, "stranger": check_stranger, "offline": check_offline, "up": check_up}.items():
            folder = os.path.join(storage, name)
            os.makedirs(folder)
            fn(checks, program, folder, storage, context)
    finally:
        shutil.rmtree(storage, ignore_errors=True)
    checks.finish()


if __name__ == "__main__":
    main()
