"""Store requests for each run at 100 workers and 10,000 trivial runs: to find, take and end it.

Counted at the store, with the worker's own finder and log; heartbeats, metrics and logs are not counted.
The floor is the least the protocol allows: a claim, an end, and the end's copy for readers.
"""

from __future__ import annotations

import threading
import time
from collections import Counter

from row import Row

from hostler.records.run import heartbeats
from hostler.records.sweep import sweeps
from hostler.settings import Timing
from hostler.spec.job import Job
from hostler.store.memory import MemoryStore
from hostler.worker.claim.claimant import Claimant
from hostler.worker.claim.finder import Finder

WORKERS, RUNS = 100, 10_000
RUN = 0.05  # seconds a trivial run takes; without it one thread would end its share before another begins
FLOOR = 3


def main() -> list[Row]:
    store = MemoryStore()
    sweeps.submit(store, Job(name="s", command=("true",), runs=tuple({"i": i} for i in range(RUNS))))
    sessions = [f"w{n:03d}" for n in range(WORKERS)]
    for session in sessions:
        heartbeats.beat(store, session, 1, {})
    counted: Counter[str] = Counter()
    store.before = lambda op, key: counted.update([op] if not key.startswith("alive/") else [])
    threads = [threading.Thread(target=_work, args=(store, session)) for session in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ended = sum(1 for _ in MemoryStore.list(store, "sweeps/s/ends/"))
    assert ended == RUNS, f"{ended} of {RUNS} runs ended"
    each = sum(counted.values()) / RUNS
    return [Row(f"requests a run, {WORKERS} workers, {RUNS} runs", each, FLOOR, 1, "requests")]


def _work(store: MemoryStore, session: str) -> None:
    finder = Finder(store, Claimant(session), Timing(), time.monotonic)
    while taken := finder.find(lambda ask: True, lambda ask: True).taken:
        time.sleep(RUN)
        taken.attempt.end("done")


if __name__ == "__main__":
    for row in main():
        print(row.name, round(row.ours, 2), "bound", round(row.bound * row.floor, 2))
