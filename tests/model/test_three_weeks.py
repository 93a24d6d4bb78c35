"""A script of three weeks that is preempted again and again, on a virtual clock: its weights are the same.

The workers are real (finder, claimer, execution, saver, uploader, pulse, records); the script is played. Each
worker lives for some hours by a seed, and is then killed before one of its requests, frozen until another has
taken over and was preempted itself, or loses an answer or its way to the store before it dies. After a lease
the next one comes.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import checker
import pytest
import staged
from recorder import events_of
from schedule import repeatable
from staged import LEASE, Clock, Happening, Killed, Script, Stage, StagedWorker
from verdict import frame, restore
from virtual_evidence import WatchedStore, evidence

from hostler.records.run import control, log
from hostler.spec.states import DONE

WEEKS = 3 * 7 * 24 * 3600.0
HOWS = ("killed", "frozen", "unanswered", "unreached")


@dataclass
class Weeks:
    """How long the script is: its steps, and the virtual seconds of each."""

    steps: int
    save_every: int
    pace: float = 0.0

    def __post_init__(self) -> None:
        self.pace = self.pace or WEEKS / self.steps


def weights_of(steps: int) -> str:
    """What an undisturbed script ends with."""
    found = ""
    for step in range(1, steps + 1):
        found = trained(found, step)
    return found


def trained(weights: str, step: int) -> str:
    return hashlib.sha256(f"{weights} {step}".encode()).hexdigest()


class LongScript(Script):
    """Trains for weeks; its weights follow from all its steps, in their order."""

    weeks: Weeks
    clock: Clock

    def __init__(self, folder: Path, log: Path, attempt: int, between: Happening | None) -> None:
        super().__init__(folder, log, attempt, between)
        state = json.loads(self._weights.read_text()) if self._weights.exists() else {"step": 0, "w": ""}
        self._step, self._value = int(state["step"]), str(state["w"])

    def wait(self, timeout: float | None = None) -> staged.Exit | None:
        if not self._up:
            self._up = True
            return None
        if self._exit is None and self._step < self.weeks.steps:
            self._train(self._step + 1)
            assert self._between is not None
            self._between()
        elif self._exit is None:
            self._output.write_text(f"by {self._attempt}")
            self._exit = staged.Exit(code=0)
        return self._exit

    def _train(self, step: int) -> None:
        self._step, self._value = step, trained(self._value, step)
        self.clock.now += self.weeks.pace
        with open(self._log, "a") as output:
            print(json.dumps({"step": step, "loss": 1 / step, "by": self._attempt}), file=output)
        if step % self.weeks.save_every == 0 or step == self.weeks.steps:
            fresh = self._weights.with_name("new")
            fresh.write_text(json.dumps({"step": step, "w": self._value}))
            fresh.replace(self._weights)


@dataclass
class Career:
    """The workers of one run, one after the other, until it has ended."""

    stage: Stage
    weeks: Weeks
    preemptions: int
    rng: random.Random
    life: tuple[int, int]  # requests after it has read the run's log, before which a worker goes
    now: float = 0.0
    told: list[str] = field(default_factory=list)  # how each was preempted

    def carry_out(self) -> list[str]:
        for _ in range(4 * self.preemptions + 20):
            self._one()
            if self.stage.state.state == DONE:
                return self.told
        raise AssertionError(f"not done after {len(self.told)} preemptions: {self.stage.state}")

    def _one(self) -> None:
        worker = self._worker()
        if len(self.told) < self.preemptions:
            self._disturb(worker)
        self._note("started", worker)
        worker.work()
        self.now = max(self.now, worker.clock.now) + 2 * LEASE

    def _note(self, what: str, worker: StagedWorker, **facts: Any) -> None:
        self.watched.note(what, worker.clock.now, session=worker.session, **facts)

    @property
    def watched(self) -> WatchedStore:
        assert isinstance(self.stage.store, WatchedStore)
        return self.stage.store

    def _worker(self) -> StagedWorker:
        worker = self.stage.worker("w")
        worker.clock.now = self.now
        self.watched.clock = worker.clock
        kind = type("Played", (LongScript,), {"weeks": self.weeks, "clock": worker.clock})

        def start(argv: list[str], *, cwd: Path, env: dict[str, str], folder: Path, log: Path) -> Any:
            assert worker.execution is not None
            return kind(folder, log, worker.execution.attempt.number, worker._between)

        worker._machine = replace(worker._machine, start=start)
        return worker

    def _disturb(self, worker: StagedWorker) -> None:
        """It works for a while; before one of its requests it is gone, or another has taken its run."""
        how, request = self.rng.choice(HOWS), self.stage.state.head + self.rng.randint(*self.life)
        self.told.append(how)

        def dies() -> None:
            self._note("killed", worker, how=how)
            worker.seat.dead = True
            raise Killed

        def sleeps() -> None:
            self._note("frozen", worker)
            self.now = worker.clock.now + 2 * LEASE
            worker.seat.before[request + self.rng.randint(3, 40)] = dies  # soon after it goes on
            self._one()
            worker.clock.now = self.now
            self._note("goes-on", worker)
            self.watched.clock = worker.clock

        if how == "unanswered":
            worker.seat.lose.add(request - 1)
        if how == "unreached":
            worker.seat.refuse.update((request - 2, request - 1))
        worker.seat.before[request] = sleeps if how == "frozen" else dies


def judge(stage: Stage, weeks: Weeks) -> Iterator[str]:
    kinds = [entry["kind"] for entry in control.entries_of(stage.store, stage.key)]
    if kinds.count(log.END) != 1 or kinds[-1] != log.END:
        yield f"{kinds.count(log.END)} ends, the last entry is {kinds[-1]}"
    steps = [point.step for point in frame(stage)]
    if steps != list(range(1, weeks.steps + 1)):
        yield f"steps have gaps or repeats: {len(steps)} of {weeks.steps}"
    restored = restore(stage)
    state: object = restored[1] if restored else None
    if state != {"step": weeks.steps, "w": weights_of(weeks.steps)}:
        yield f"the weights are {state}, not those of the undisturbed script"


def evidence_of(career: Career, place: Path) -> Path:
    """As of a farm: the checker, which knows nothing of hostler, judges it once more."""
    steps, key = career.weeks.steps, career.stage.key
    state = json.dumps({"step": steps, "w": weights_of(steps)})
    weights = {"weights.json": hashlib.sha256(state.encode()).hexdigest()}
    curves = {"loss": [(step, 1 / step) for step in range(1, steps + 1)]}
    row = {"state": DONE, "curves": curves, "weights": weights, "judged": "^weights.json$"}
    return evidence(place, career.watched, [key], {key.run: row})


def three_weeks(
    folder: Path, weeks: Weeks, preemptions: int, life: tuple[int, int], seed: int | None = None
) -> None:
    stage = Stage(folder, WatchedStore())
    career = Career(stage, weeks, preemptions, random.Random(repeatable(seed)), life)
    told = career.carry_out()
    assert list(judge(stage, weeks)) == []
    assert [str(violation) for violation in checker.check(evidence_of(career, folder / "evidence"))] == []
    entries = control.entries_of(stage.store, stage.key)
    attempts = sum(entry["kind"] == log.CLAIM for entry in entries)
    print(f"{len(told)} preemptions of {attempts} attempts, {dict(Counter(told))}")
    assert len(told) == preemptions, "it was over before"
    assert attempts > preemptions / 2


def test_script_of_weeks_survives_a_few_preemptions(folder: Path) -> None:
    three_weeks(folder, Weeks(steps=60, save_every=2), preemptions=8, life=(12, 120))


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_script_of_weeks_survives_five_hundred_preemptions(folder: Path) -> None:
    part = float(os.environ.get("HOSTLER_DOSE", "1"))
    weeks = Weeks(steps=round(20_000 * part), save_every=2)
    three_weeks(folder, weeks, preemptions=round(500 * part), life=(40, 400), seed=1)


def test_judge_sees_other_weights_and_missing_steps(folder: Path) -> None:
    stage, weeks = Stage(folder, WatchedStore()), Weeks(steps=12, save_every=2)
    Career(stage, weeks, 0, random.Random(1), (12, 120)).carry_out()
    assert list(judge(stage, weeks)) == []
    assert len(list(judge(stage, Weeks(steps=13, save_every=2)))) == 2


def test_checker_sees_a_torn_history_of_weeks(folder: Path) -> None:
    stage, weeks = Stage(folder, WatchedStore()), Weeks(steps=12, save_every=2)
    career = Career(stage, weeks, 1, random.Random(1), (12, 40))
    career.carry_out()
    place = evidence_of(career, folder / "evidence")
    assert checker.check(place) == []
    events = events_of(place)
    whole = {"started", "killed", "entry", "saved", "expected", "read", "left"}
    assert whole <= {event["what"] for event in events}
    claims = [event for event in events if event.get("kind") == "claim"]
    assert len({event["session"] for event in claims}) == 2 and all(event["theirs"] for event in claims)
    next((place / "store").glob("runs/*/metrics/*")).unlink()
    assert checker.check(place) != []
