"""A store with runs in it, for tests that read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hostler.records.run.attempt import claim
from hostler.records.run.entries import Claim
from hostler.records.run.log import RunKey, RunLog
from hostler.records.series.metrics import MetricWriter, Origin
from hostler.records.series.points import Point
from hostler.records.sweep import sweeps
from hostler.spec.job import Job
from hostler.store import Store, open_store


class Filled:
    def __init__(self, url: str) -> None:
        self.url = url
        self.store: Store = open_store(url)

    def sweep(self, name: str, runs: list[dict[str, Any]], **given: Any) -> Job:
        job = Job(name=name, command=("python", "train.py"), runs=tuple(runs), **given)
        assert sweeps.submit(self.store, job)
        return job

    def attempt(self, job: Job, index: int, points: list[Point], *, origin: Origin | None = None) -> Any:
        run_log = RunLog(self.store, RunKey(job.name, job.run_id(index))).read_on()
        attempt = claim(self.store, run_log, 60.0, lambda: 0.0, Claim("s", facts={"host": "h"}))
        assert attempt is not None
        writer = MetricWriter(self.store, attempt.key.run, attempt.number)
        if attempt.state.attempts > 1:
            writer.continue_from(origin)
        writer.write(points)
        return attempt

    def done(self, job: Job, index: int, *values: float, **facts: Any) -> None:
        """An ended run with a curve of `a`."""
        points = [Point(n, 100.0 + n, {"a": value}) for n, value in enumerate(values)]
        self.attempt(job, index, points).end("done", **{"attempts": 1, "total": 5.0, "host": "h", **facts})


def filled(folder: Path) -> Filled:
    return Filled(str(folder / "store"))
