"""Reloads under load: no sample is lost, and no descriptor and no thread is left over.

Samples come by OTLP, from a scraped program and, for root, from an agent, each counted where it is sent. Meanwhile
the configuration is read again: by POST /-/reload, by SIGHUP, because the file has changed, and in vain because it
is wrong. A second job comes, changes and goes with it. Arguments: the program, how many reloads.
"""

import http.client
import http.server
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import firn
import otlp

AGENT = "parca_agent:samples:count:cpu:nanoseconds:delta"
PUSHED = "pushed:samples:count:cpu:nanoseconds:delta"
STEADY = """- job_name: steady
  scrape_interval: 1s
  static_configs: [{targets: ['%s']}]
  profiling_config:
    pprof_config:
      process_cpu: {path: /steady, delta: true, seconds: 1}
      memory: {enabled: false}
      block: {enabled: false}
      goroutine: {enabled: false}
      mutex: {enabled: false}
"""
OTHER = """- job_name: other-%d
  scrape_interval: 1s
  static_configs: [{targets: ['%s'], labels: {round: 'r%d'}}]
  profiling_config:
    pprof_config:
      process_cpu: {path: /other, delta: true, seconds: 1}
      memory: {enabled: false}
      block: {enabled: false}
      goroutine: {enabled: false}
      mutex: {enabled: false}
"""


def pprof():
    """One sample with the value 1."""
    strings = ["", "main", "samples", "count"]
    kind = otlp.number(1, 2) + otlp.number(2, 3)
    out = [otlp.message(1, kind), otlp.message(2, otlp.message(1, b"\1"), otlp.message(2, b"\1"))]
    out += [otlp.message(4, otlp.number(1, 1), otlp.message(4, otlp.number(1, 1)))]
    out += [otlp.message(5, otlp.number(1, 1), otlp.number(2, 1))]
    out += [otlp.message(6, s.encode()) for s in strings]
    return b"".join(out + [otlp.number(9, time.time_ns()), otlp.number(10, 10**9), otlp.message(11, kind), otlp.number(12, 1)])


class Program:
    """A program that serves profiles, and counts those that it has sent whole."""

    def __init__(self):
        program = self
        self.sent = {"/steady": 0, "/other": 0}
        self.lock = threading.Lock()
        self.ends = False

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                with program.lock:
                    body = b"" if program.ends else pprof()
                    program.sent[self.path.partition("?")[0]] += not program.ends
                self.send_response(200 if body else 503)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.address = "127.0.0.1:%d" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def end(self):
        with self.lock:
            self.ends = True


class Sender(threading.Thread):
    """Sends samples by OTLP over HTTP, some forty a second, until it is told to end."""

    def __init__(self, address, name):
        super().__init__(daemon=True)
        self.address, self.who = address, name
        self.taken, self.failures, self.ends = 0, [], False

    def run(self):
        connection = http.client.HTTPConnection(self.address, timeout=60)
        while not self.ends:
            body = otlp.request("pushed", [(["main", self.who], 1)], {"host.name": self.who}, time.time_ns())
            try:
                connection.request("POST", "/v1development/profiles", body, {"content-type": "application/x-protobuf"})
                answer = connection.getresponse()
                answer.read()
                if answer.status == 200:
                    self.taken += 1
                else:
                    self.failures.append(answer.status)
            except OSError as problem:
                self.failures.append(problem)
                connection.close()
            time.sleep(0.025)
        connection.close()


class Agent:
    def __init__(self, program, storage, server):
        self.log_path = os.path.join(storage, "agent.log")
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [program, "agent", f"--remote-store-address={server}", "--remote-store-insecure",
                 "--http-address=127.0.0.1:0", f"--spool-path={storage}/spool", f"--cache-path={storage}/cache",
                 "--profiling-duration=1s", "--debuginfo-upload-disable"], stdout=log, stderr=log)  # fmt: skip

    def end(self):
        """How many samples it has sent."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(120)
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return int((re.findall(r'"agent stopped".* sent=(\d+)', file.read()) or ["-1"])[-1])


def write_config(path, text):
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".new", path)


def config(address, turn):
    """With another job at times, which changes twice meanwhile."""
    other = OTHER % (turn // 30, address, turn // 10) if turn // 30 % 2 else ""
    return "scrape_configs:\n" + STEADY % address + other


def post_reload(server):
    connection = http.client.HTTPConnection(server.address, timeout=120)
    connection.request("POST", "/-/reload")
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status


def reload_often(checks, server, path, address, count):
    """Of 20 reloads one is by a signal, one by the file's change alone, and one finds a wrong file."""
    wrong, bad = 0, []
    for turn in range(count):
        before = server.metric("firn_config_reloads_total")
        how = turn % 20
        if how == 7:
            write_config(path, "scrape_configs: [{job_nam: x}]\n")
            wrong += 1
            bad += [turn] if post_reload(server) == 200 else []
            write_config(path, config(address, turn))
        else:
            write_config(path, config(address, turn))
        if how == 3:
            server.process.send_signal(signal.SIGHUP)
        elif how != 11 and post_reload(server) != 200:
            bad.append(turn)
        if how in (3, 11) and not firn.wait_until(lambda: server.metric("firn_config_reloads_total") > before):
            bad.append(turn)
    checks.check(not bad, f"{count} reloads, {wrong} of them of a wrong file, end as they should {bad[:9]}")


def held(server):
    """Descriptors and threads."""
    pid = server.process.pid
    return len(os.listdir(f"/proc/{pid}/fd")), len(os.listdir(f"/proc/{pid}/task"))


def total(server, query):
    return server.json("/api/top", query=query, limit=0, **{"from": "now-2h", "to": "now+1m"})["total"]


def main():
    program, count = sys.argv[1], int(sys.argv[2])
    checks = firn.Checks()
    storage = tempfile.mkdtemp(prefix="firn-test-reload-")
    scraped = Program()
    path = os.path.join(storage, "firn.yaml")
    write_config(path, config(scraped.address, 0))
    server = firn.Firn(program, "server", storage, f"--config-path={path}", "--log-level=error")
    agent = None
    try:
        if os.geteuid() == 0:
            agent = Agent(program, storage, server.address)
        else:
            checks.skip("an agent's samples", "needs root to load BPF programs")
        senders = [Sender(server.address, name) for name in ("a", "b")]
        for sender in senders:
            sender.start()
        reload_often(checks, server, path, scraped.address, 20)
        firn.wait_until(lambda: scraped.sent["/steady"] > 1)
        if agent:  # it takes some time to begin
            firn.wait_until(lambda: total(server, AGENT) > 0, 120)
        before = held(server)
        reload_often(checks, server, path, scraped.address, count)
        for sender in senders:
            sender.ends = True
            sender.join(60)
        from_agent = agent.end() if agent else 0
        scraped.end()
        write_config(path, config(scraped.address, 0))
        checks.check(post_reload(server) == 200, "the configuration is as it was")
        pushed, failures = sum(s.taken for s in senders), [f for s in senders for f in s.failures]
        checks.check(not failures and pushed, f"{pushed} samples pushed, none refused {failures[:3]}")
        checks.check(total(server, PUSHED) == pushed, "and each is stored once")
        scraped_type = "process_cpu:samples:count:samples:count:delta"
        steady = firn.wait_until(lambda: total(server, scraped_type + '{job="steady"}') == scraped.sent["/steady"], 20)
        checks.check(steady, f"{scraped.sent['/steady']} profiles scraped of what stays, each stored once")
        kept, served = total(server, scraped_type) - scraped.sent["/steady"], scraped.sent["/other"]
        checks.check(kept <= served, f"{kept} of {served} of what comes and goes")
        if agent:
            stored = server.metric("firn_store_samples_total") - pushed - scraped.sent["/steady"] - kept
            checks.check(from_agent > 0 and stored == from_agent, f"{from_agent} samples of the agent, {stored:.0f} stored")
        same = firn.wait_until(lambda: held(server)[0] <= before[0] and held(server)[1] <= before[1], 90)
        checks.check(same, f"descriptors and threads: {before} before, {held(server)} at the end")
        lost = server.metric("firn_ingest_refused_messages_total") + server.metric("firn_ingest_refused_samples_total")
        checks.check(lost == 0, f"{lost:.0f} messages and samples refused")
    finally:
        if agent:
            agent.process.kill()
            agent.process.wait()
        checks.check(server.stop() == 0, "the server stops")
        shutil.rmtree(storage, ignore_errors=True)
    checks.finish()


if __name__ == "__main__":
    main()
