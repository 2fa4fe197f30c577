"""Names of functions on another host: an agent sends a server what names its samples.

The server sees none of the files (it is in a mount namespace where their folder is empty). As root,
else skipped: a C++ program gets its functions' names; so it does from a server that was killed and
comes back with an empty store; and a large one whose upload the server's end has cut in two. Only
these programs are sampled, so that nothing else of this host is sent.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

import firn

HIDDEN = 'mount -t tmpfs none "$0" && exec "$@"'
LARGE_BYTES = 64 << 20
CUT_BYTES = 4 << 20  # of these, when the server ends

# Busy for a fifth of the time: a sample now and then is enough.
CODE = """#include <cstdint>
#include <unistd.h>
namespace SPACE {
template <typename T> __attribute__((noinline)) T basket(T n)
{
	volatile T sum = 0;
	for (T i = 0; i < n; i++)
		sum += i * i;
	return sum;
}
struct Till {
	__attribute__((noinline)) long ring(long n) { return basket<long>(n) + 1; }
};
}
int main()
{
	SPACE::Till till;
	for (volatile long x = 0;; usleep(10000))
		x += till.ring(1000000);
}
"""
BALLAST = f'__asm__(".pushsection .debug_ballast; .fill {LARGE_BYTES >> 3}, 8, 7; .popsection");\n'


def build(folder, space, more=""):
    source, program = (os.path.join(folder, space + end) for end in (".cpp", ""))
    with open(source, "w", encoding="utf-8") as file:
        file.write(CODE.replace("SPACE", space) + more)
    subprocess.run(["g++", "-O1", "-Wl,--build-id", "-o", program, source], check=True)
    return program


def run(program):
    return subprocess.Popen([program], env={**os.environ, "FIRN_TEST_NAMES": "on"})


class Agent:
    def __init__(self, program, storage, server):
        self.log_path = os.path.join(storage, "agent.log")
        self.log = open(self.log_path, "wb")
        command = [
            program, "agent", f"--remote-store-address={server}", "--http-address=127.0.0.1:0",
            f"--spool-path={storage}/spool", f"--cache-path={storage}/cache", "--profiling-duration=1s",
            "--profiling-opt-in-env-var=FIRN_TEST_NAMES", "--metadata-disable-containers",
        ]  # fmt: skip
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log)
        self.address = firn.wait_until(self._address)

    def text(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def _address(self):
        found = re.search(r"agent listens.*address=(\S+)", self.text())
        return found and found.group(1)

    def get(self, path):
        with urllib.request.urlopen(f"http://{self.address}{path}", timeout=60) as answer:
            return answer.read().decode()

    def metric(self, name):
        found = re.findall(rf"^{re.escape(name)} (\S+)$", self.get("/metrics"), re.M)
        return float(found[0]) if found else None

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(60)


class Server(firn.Firn):
    """One that sees nothing of `hidden`."""

    def __init__(self, program, storage, hidden, address="127.0.0.1:0"):
        empty = os.path.join(storage, "empty")
        os.makedirs(empty, exist_ok=True)
        head = ["unshare", "-m", "sh", "-c", HIDDEN, hidden, program]
        super().__init__(head, "server", storage, f"--debug-directories={empty}", f"--http-address={address}")

    def names(self):
        rows = self.json("/api/top", query=firn.CPU_TYPE, limit=1000, **{"from": "now-1h"})["rows"]
        return {row["name"].split("(")[0] for row in rows}

    def has_names_of(self, space):
        return {f"{space}::basket<long>", f"{space}::Till::ring"} <= self.names()


def main():
    program = os.path.abspath(sys.argv[1])
    checks = firn.Checks()
    if os.geteuid() != 0:
        checks.skip("names on another host", "needs root")
        checks.finish()
    probe = subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False)
    if probe.returncode:
        checks.skip("names on another host", f"no mount namespace: {probe.stderr.decode().strip()}")
        checks.finish()
    running = []
    with tempfile.TemporaryDirectory(prefix="firn-names-") as folder:
        hidden = os.path.join(folder, "hidden")
        os.makedirs(hidden)
        small, large = build(hidden, "shop"), build(hidden, "depot", BALLAST)
        server = Server(program, os.path.join(folder, "a"), hidden)
        running.append(run(small))
        agent = Agent(program, folder, server.address)
        try:
            check_all(checks, program, folder, hidden, large, server, agent, running)
        finally:
            for process in (*running, agent.process):
                process.kill()
                process.wait()
    checks.finish()


def check_all(checks, program, folder, hidden, large, server, agent, running):
    checks.check(firn.wait_until(lambda: server.has_names_of("shop")), f"names: {sorted(server.names())}")
    sent = agent.metric("firn_agent_debuginfo_uploaded_total")
    checks.check(sent >= 1, f"{sent:.0f} files were sent")
    checks.check("Names of functions sent to the server" in agent.get("/"), "the status page tells of them")

    server.kill()
    second = os.path.join(folder, "b")
    server = Server(program, second, hidden, server.address)
    checks.check(
        firn.wait_until(lambda: server.has_names_of("shop"), firn.SETTLE_SECONDS),
        f"an empty server in the same place gets them, too: {sorted(server.names())}",
    )

    before = agent.metric("firn_agent_debuginfo_uploaded_bytes_total")
    running.append(run(large))
    begun = firn.wait_until(lambda: agent.metric("firn_agent_debuginfo_uploaded_bytes_total") > before + CUT_BYTES)
    server.kill()  # kill -9, most often in the middle
    checks.check(begun, "a large one is being sent as the server ends")
    time.sleep(2)  # so that the agent sees that it is away
    server = Server(program, second, hidden, server.address)
    checks.check(
        firn.wait_until(lambda: server.has_names_of("depot"), firn.SETTLE_SECONDS),
        f"and is sent whole when it is back: {sorted(server.names())}",
    )
    rest = agent.metric("firn_agent_debuginfo_uploaded_bytes_total") - before
    checks.check(rest >= LARGE_BYTES, f"{rest / 1e6:.0f} MB were sent for it")
    checks.check(agent.stop() == 0, f"the agent stops: {agent.text()[-300:]}")
    checks.check(server.stop() == 0, "the server stops")


if __name__ == "__main__":
    main()
