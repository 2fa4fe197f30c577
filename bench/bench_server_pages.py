#!/usr/bin/env python3
"""Ten live pages on one host's data: each asks for the flame graph, the table and the series of the last
15 minutes at once, every five seconds. Counts answers that were refused. Against a server that runs and
has samples (firn up):

  bench_server_pages.py http://127.0.0.1:7070 [SECONDS [PAGES]]
"""

import json
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

if len(sys.argv) < 2:
    print("skipped: wants the address of a server that has samples", file=sys.stderr)
    sys.exit(0)
BASE = sys.argv[1].rstrip("/")
SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 60
PAGES = int(sys.argv[3]) if len(sys.argv) > 3 else 10
EVERY = 5

with urllib.request.urlopen(BASE + "/api/types", timeout=30) as answer:
    TYPE = urllib.parse.quote(json.load(answer)["types"][0]["type"])
CALLS = [
    f"/api/flamegraph?query={TYPE}&from=now-15m",
    f"/api/top?query={TYPE}&from=now-15m&limit=500",
    f"/api/series?query={TYPE}&from=now-15m&by=comm",
]
lock = threading.Lock()
times, refused = [], []


def ask(path):
    begun = time.monotonic()
    try:
        with urllib.request.urlopen(BASE + path, timeout=60) as answer:
            answer.read()
        problem = None
    except urllib.error.HTTPError as error:
        problem = f"{error.code} {error.read(300).decode(errors='replace')}"
    except OSError as error:
        problem = str(error)
    with lock:
        times.append(time.monotonic() - begun)
        if problem:
            refused.append(f"{path.split('?')[0]}: {problem}")


def page(number, end):
    time.sleep(number * EVERY / PAGES / 10)  # nearly at once
    while time.monotonic() < end:
        begun = time.monotonic()
        calls = [threading.Thread(target=ask, args=(path,)) for path in CALLS]
        for call in calls:
            call.start()
        for call in calls:
            call.join()
        time.sleep(max(0.0, EVERY - (time.monotonic() - begun)))


end = time.monotonic() + SECONDS
pages = [threading.Thread(target=page, args=(i, end)) for i in range(PAGES)]
for one in pages:
    one.start()
for one in pages:
    one.join()
times.sort()
for problem in refused[:3]:
    print(problem, file=sys.stderr)
note = f"{PAGES} pages, {SECONDS:.0f} s; {1000 * times[len(times) // 2]:.0f} ms, slowest {1000 * times[-1]:.0f} ms"
print(
    json.dumps(
        {
            "name": "server.pages_refused",
            "value": len(refused),
            "unit": "answers",
            "against": "answers",
            "ratio": len(refused) / max(1, len(times)),
            "note": f"of {len(times)}: {note}",
        }
    )
)
