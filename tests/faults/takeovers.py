"""Workers that vanish, and when another has their run; real processes, times by the store's own clock."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from killer import RUN, Farm, farm, keys_of, often, send, until

import claim_times
from claim_times import claimed_at, claims
from hostler.records.run import heartbeats
from hostler.spec.job import Job

# The first run of a sweep waits for its gate; the others take a moment.
SCRIPT = """
import os, sys, time
while sys.argv[2] == "0" and not os.path.exists({gate!r}):
    time.sleep(0.05)
time.sleep(0.2)
"""


@contextmanager
def holder(
    url: str,
    folder: Path,
    *words: str,
    name: str = "m",
    runs: int = 1,
    extra: Mapping[str, str] | None = None,
    **times: float,
) -> Iterator[tuple[Farm, Job]]:
    """A worker with one slot that holds the first run of a sweep; `folder / "gate"` lets that end."""
    with farm(url, folder, extra, **times) as made:
        (made.code / "moment.py").write_text(SCRIPT.format(gate=str(folder / "gate")))
        each = tuple({"n": n} for n in range(runs))
        job = Job(name=name, command=(sys.executable, "moment.py"), runs=each, **often())  # type: ignore[arg-type]
        job = made.submit(job)
        made.start("--slots", "1", *words)
        until(lambda: made.processes(RUN), why=made.said)
        yield made, job


def vanish(made: Farm) -> None:
    """Kill all of it, as a power cut does: the parents are frozen first, so that nobody sees them die."""
    own = {parent.pid for parent in made.parents}
    for pid in own:
        send(pid, signal.SIGSTOP)
    while left := set(made.processes()) - own:
        for pid in left:
            send(pid, signal.SIGKILL)
    for parent in made.parents:
        parent.kill()
        parent.wait()


def last_beat(made: Farm, job: Job) -> float:
    """Time of the last beat of the worker that first claimed the run."""
    return claim_times.last_beat(made.store, keys_of(job)[0])


def taken_over(made: Farm, job: Job, seconds: float = 120.0) -> float:
    """Time of the second claim of the run, once it is there."""
    until(lambda: is_taken_over(made, job), seconds, why=made.said)
    return claimed_at(made.store, keys_of(job)[0], 2)


def beats(made: Farm, job: Job) -> int:
    """Number of beats of the worker that first claimed the run."""
    record = heartbeats.read(made.store, str(claims(made.store, keys_of(job)[0])[0][1]["session"]))
    return int(record["sequence"]) if record else 0


def is_taken_over(made: Farm, job: Job) -> bool:
    return len(claims(made.store, keys_of(job)[0])) > 1
