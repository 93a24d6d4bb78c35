"""Ask and tell at 1,000 trials of TPE, in a folder, against Optuna with its own journal file.

Ours: journal and ends are read on, the study is asked, the journal entry, the end and its copy are written,
each durable (the claim between the two is not counted: Optuna has none). Optuna's: one ask with its
suggestions and one tell, over its journal file. All in turns, in the same run. The last row is what a worker
that joins late needs to build its study.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import optuna
from optuna.storages.journal import JournalFileBackend, JournalStorage
from row import Row

from hostler.records.run.attempt import claim, copy_end
from hostler.records.run.entries import Claim
from hostler.records.run.log import RunKey
from hostler.records.sweep import sweeps
from hostler.records.sweep.journal import Journal, JournalEntry
from hostler.records.sweep.queue import Queue
from hostler.records.sweep.rungs import RungReaders
from hostler.search import telling
from hostler.search.base import Trial
from hostler.search.optuna_sampler import OptunaSampler
from hostler.spec import space
from hostler.spec.job import Budget, Job, Objective
from hostler.store.folder import FolderStore
from hostler.worker.claim.search_client import Promoted, SearchClient

TRIALS = 1000
TIMES = 25
NAMES = [f"x{n}" for n in range(5)]
PARAMETERS = {name: {"min": -5.0, "max": 5.0} for name in NAMES}


def main() -> list[Row]:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    rng = random.Random(1)
    past = [{name: rng.uniform(-5, 5) for name in NAMES} for _ in range(TRIALS)]
    with tempfile.TemporaryDirectory(prefix="hostler-bench-") as name:
        ours = _ours(Path(name) / "ours", past)
        file = JournalStorage(JournalFileBackend(str(Path(name) / "optuna.log")))
        theirs = _study(file, past)
        memory = _study(None, past)
        pairs = [(ours(), _timed(theirs), _timed(memory)) for _ in range(TIMES)]
        late = min(_timed(lambda: _late(past)) for _ in range(3))
        added = min(_timed(lambda: _study(None, past)) for _ in range(3))
    mine, peer, floor = (statistics.median(column) * 1e3 for column in zip(*pairs, strict=True))
    return [
        Row(f"ask and tell at {TRIALS} trials; Optuna with its journal file", mine, peer, 1.5, "ms"),
        Row(f"ask and tell at {TRIALS} trials; Optuna in memory", mine, floor, 2.75, "ms"),
        Row(
            f"a study of {TRIALS} trials, built and asked once; Optuna in memory",
            late * 1e3,
            added * 1e3,
            1.44,
            "ms",
        ),
    ]


def _ours(folder: Path, past: list[dict[str, float]]) -> Callable[[], float]:
    """A sweep with so many trials told; the call asks for one more, tells it, and returns what that took."""
    store = FolderStore(folder)
    found = space.parse(PARAMETERS, method="tpe", runs=10 * TRIALS)
    job = Job(
        name="s",
        command=("train",),
        runs=(),
        method="tpe",
        search=space.to_json(found),
        objectives=(Objective("loss", "min"),),
        budget=Budget(runs=10 * TRIALS),
    )
    sweeps.submit(store, job)
    journal = Journal(store, "s")
    for picks in past:
        journal.append(JournalEntry(picks, picks), None)
    queue, asker = Queue(store, job), SearchClient(store, RungReaders(store), print)
    queue.grow()
    for n, picks in enumerate(past):
        copy_end(store, RunKey("s", queue.job.run_id(n)), 2, {"state": "done", "metrics": _metrics(picks)})

    def ask() -> RunKey:
        queue.grow()
        answer = asker.ask(queue, [])
        assert isinstance(answer, Promoted)
        return answer.run.key

    def ask_and_tell() -> float:
        begun = time.perf_counter()
        key = ask()
        asked = time.perf_counter() - begun
        attempt = claim(store, queue.log(key.run), 60.0, time.monotonic, Claim())
        assert attempt is not None
        value = _metrics(queue.job.params(queue.job.count - 1))
        return asked + _timed(lambda: attempt.end("done", metrics=value))

    ask_and_tell()  # the study is built
    return ask_and_tell


def _metrics(picks: dict[str, float] | object) -> dict[str, dict[str, float]]:
    value = _loss(picks)  # type: ignore[arg-type]
    return {"loss": {"last": value, "min": value, "max": value, "step": 1}}


def _study(storage: JournalStorage | None, past: list[dict[str, float]]) -> Callable[[], None]:
    study = optuna.create_study(storage=storage, sampler=optuna.samplers.TPESampler(seed=1))
    spread = {name: optuna.distributions.FloatDistribution(-5, 5) for name in NAMES}
    for picks in past:
        study.add_trial(optuna.create_trial(params=picks, distributions=spread, value=_loss(picks)))

    def ask_and_tell() -> None:
        trial = study.ask()
        picks = {name: trial.suggest_float(name, -5, 5) for name in NAMES}
        study.tell(trial, _loss(picks))

    ask_and_tell()
    return ask_and_tell


def _late(past: list[dict[str, float]]) -> None:
    found = space.parse(PARAMETERS, method="tpe", runs=10 * TRIALS)
    trials = [
        Trial(n, f"{n:07d}-s-x", telling.DONE, picks, {}, (_loss(picks),)) for n, picks in enumerate(past)
    ]
    OptunaSampler(found, ["min"], 1).next(trials)


def _loss(picks: dict[str, float]) -> float:
    return sum(value * value for value in picks.values())


def _timed(call: Callable[[], object]) -> float:
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


if __name__ == "__main__":
    for row in main():
        print(f"{row.name}: {row.ours:.2f} {row.unit}, {row.floor:.2f}, {row.ratio:.2f}x of {row.bound:g}x")
