#!/usr/bin/env python3
"""A server that starts while its clock is ahead by more than the retention loses nothing.

    test_clock.py PROGRAM WRONG_CLOCK_LIBRARY

It is started so twice, as by a supervisor, and then with the right time. (tests/store/test_age_clock.c
lets the waits pass.)
"""

import http.client
import shutil
import sys
import tempfile
import time

import firn
import otlp

TYPE = "clock:samples:count:cpu:nanoseconds:delta"
DAY = 86400
AHEAD_DAYS = 40
AGES_DAYS = (9, 2, 0)  # of batches; retention is 14 days
LOOKED_SECONDS = 120


def send(server, time_s, name):
    body = otlp.request("clock", [([name, "main"], 1)], {"host.name": "a"}, int(time_s * 1e9))
    connection = http.client.HTTPConnection(server.address, timeout=60)
    connection.request("POST", "/v1development/profiles", body, {"Content-Type": "application/x-protobuf"})
    status = connection.getresponse().status
    connection.close()
    return status


def total(server, begin):
    parameters = {"from": begin - 10 * DAY, "to": begin + 60, "limit": 1}
    return server.json("/api/top", query=TYPE, **parameters)["total"]


def wait_for(condition):
    deadline = time.monotonic() + LOOKED_SECONDS
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.1)
    return condition()


def main():
    program, library = sys.argv[1], sys.argv[2]
    checks = firn.Checks()
    storage = tempfile.mkdtemp(prefix="firn-test-clock-")
    wrong = ["env", f"LD_PRELOAD={library}", f"WRONG_CLOCK_S={AHEAD_DAYS * DAY}", program]
    arguments = ["--storage-retention-time=14d", "--storage-thin=7d=1h/*"]
    begin = time.time()
    try:
        server = firn.Firn(program, "server", storage, *arguments)
        statuses = [send(server, begin - age * DAY, f"age{age}") for age in AGES_DAYS]
        checks.check(statuses == [200] * len(AGES_DAYS), f"batches of some days ago are taken: {statuses}")
        checks.check(server.stop() == 0, "the server ends well")
        for life in (1, 2):
            server = firn.Firn(wrong, "server", storage, *arguments)
            waits = wait_for(lambda: (server.metric("firn_store_age_wait_seconds") or 0) > 3000)
            checks.check(waits, f"life {life} with a wrong clock waits for an hour")
            said = "hours more than this store knows of" in server.log_text()
            checks.check(said, "and says why")
            sent = send(server, begin + AHEAD_DAYS * DAY, "ahead")
            checks.check(sent == 200, f"what comes with that time is taken: {sent}")
            gone = [
                server.metric(f"firn_store_{name}_total")
                for name in ("parts_expired", "expired_rows", "thinned_parts")
            ]
            checks.check(gone == [0, 0, 0], f"nothing has gone by age: {gone}")
            checks.check(total(server, begin) == len(AGES_DAYS), "all samples are there")
            server.stop()
        server = firn.Firn(program, "server", storage, *arguments)
        waits = wait_for(lambda: 0 < (server.metric("firn_store_age_wait_seconds") or 0) <= 600)
        checks.check(waits, "with the right time it waits for ten minutes at most")
        checks.check(total(server, begin) == len(AGES_DAYS), "and all samples are there")
        server.stop()
    finally:
        shutil.rmtree(storage, ignore_errors=True)
    checks.finish()


if __name__ == "__main__":
    main()
