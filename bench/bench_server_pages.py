#!/usr/bin/env python3
"""Ten live pages on one host's data: each sends the page's requests for the last 15 minutes, all at once and
every five seconds, which is more often than the page does. Counts answers that were refused. Against a server
that runs and has samples (firn up):

  bench_server_pages.py http://127.0.0.1:7070 [SECONDS [PAGES]]
"""

import json
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

PAGES = 10
EVERY = 5
# The page's own: ui/src/app/data.ts and series.ts.
QUESTIONS = (
    "/api/flamegraph?query={type}&from=now-15m&trim=0.00002&depth=1",
    "/api/top?query={type}&from=now-15m&limit=20000",
    "/api/series?query={type}&from=now-15m&by=comm&step=10s&limit=8",
    "/api/types?from=0",
    "/api/labels?query={type}&from=now-15m",
)


class Pages:
    """Threads that send requests until `stop`; `times` and `refused` are complete when `join` has returned."""

    def __init__(self, base, pages=PAGES):
        self.base, self.count = base.rstrip("/"), pages
        name = urllib.parse.quote(self.type_name())
        self.calls = [question.format(type=name) for question in QUESTIONS]
        self.lock, self.done = threading.Lock(), threading.Event()
        self.times, self.refused = [], []
        self.threads = [threading.Thread(target=self.page, args=(i,)) for i in range(pages)]
        for one in self.threads:
            one.start()

    def type_name(self):
        for _ in range(60):
            with urllib.request.urlopen(self.base + "/api/types", timeout=30) as answer:
                types = json.load(answer)["types"]
            if types:
                return types[0]["type"]
            time.sleep(1)
        sys.exit("the server has no samples")

    def ask(self, path):
        begun = time.monotonic()
        try:
            with urllib.request.urlopen(self.base + path, timeout=60) as answer:
                answer.read()
            problem = None
        except urllib.error.HTTPError as error:
            problem = f"{error.code} {error.read(300).decode(errors='replace')}"
        except OSError as error:
            problem = str(error)
        with self.lock:
            self.times.append(time.monotonic() - begun)
            if problem:
                self.refused.append(f"{path.split('?')[0]}: {problem}")

    def page(self, number):
        self.done.wait(number * EVERY / self.count / 10)  # nearly at once
        while not self.done.is_set():
            begun = time.monotonic()
            calls = [threading.Thread(target=self.ask, args=(path,)) for path in self.calls]
            for call in calls:
                call.start()
            for call in calls:
                call.join()
            self.done.wait(max(0.0, EVERY - (time.monotonic() - begun)))

    def stop(self):
        self.done.set()
        for one in self.threads:
            one.join()
        self.times.sort()

    def note(self):
        times = self.times or [0]
        middle, most = 1000 * times[len(times) // 2], 1000 * times[-1]
        late = 1000 * times[int(len(times) * 0.99)]
        return f"of {len(self.times)}; {self.count} pages; {middle:.0f} ms, 99 of 100 {late:.0f}, slowest {most:.0f} ms"


def main():
    if len(sys.argv) < 2:
        print("skipped: wants the address of a server that has samples", file=sys.stderr)
        return
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 60
    pages = Pages(sys.argv[1], int(sys.argv[3]) if len(sys.argv) > 3 else PAGES)
    time.sleep(seconds)
    pages.stop()
    for problem in pages.refused[:3]:
        print(problem, file=sys.stderr)
    refused = len(pages.refused)
    row = {"name": "server.pages_refused", "value": refused, "unit": "answers", "against": "answers"}
    note = f"{pages.note()}; {seconds:.0f} s"
    print(json.dumps({**row, "ratio": refused / max(1, len(pages.times)), "note": note}))


if __name__ == "__main__":
    main()
