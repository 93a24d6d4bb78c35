"""Runs that outgrew a GPU, once a pruner or a search lets them go on, or they could share a process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hostler.records import project
from hostler.records.run.log import RunKey
from hostler.records.sweep import rungs, sweeps
from hostler.settings import Timing
from hostler.spec import space
from hostler.spec.job import Budget, Job, Objective, Resources, Together
from hostler.spec.states import PAUSED, QUEUED
from hostler.store.memory import MemoryStore
from hostler.worker.claim.claimant import Claimant
from hostler.worker.claim.claimer import Taken
from hostler.worker.claim.finder import Finder, Found
from hostler.worker.claim.room import GpuLocks, Room
from hostler.worker.claim.slots import Device, Offer, Placement, place
from hostler.worker.held_runs import HeldRuns
from hostler.worker.loop import Worker, WorkerTerms
from hostler.worker.machine import Machine

GB = 10**9
SMALL, LARGE = Device("small", 16 * GB), Device("large", 40 * GB)
ASHA: dict[str, Any] = {
    "prune": {"method": "asha"},
    "objectives": (Objective("loss", "min"),),
    "resources": Resources(gpus=1),
}


def grid(count: int, **given: Any) -> Job:
    return Job(name="s", command=("x",), runs=tuple({"x": n} for n in range(count)), **{**ASHA, **given})


def learning(runs: int) -> Job:
    found = space.parse({"x": {"min": 0.0, "max": 1.0}}, method="tpe", runs=runs)
    search = {"method": "tpe", "search": space.to_json(found), "budget": Budget(runs=runs)}
    return Job(name="s", command=("x",), runs=(), **search, **ASHA)  # type: ignore[arg-type]


@dataclass
class Gpu:
    """A worker whose machine has one GPU."""

    finder: Finder
    offer: Offer

    def find(self) -> Found:
        def ever(ask: Resources) -> bool:
            return isinstance(place(self.offer, (), ask), Placement)

        return self.finder.find(lambda job: ever(job.resources), ever)

    def take(self) -> Taken:
        taken = self.find().taken
        assert taken is not None
        return taken


class Fleet:
    """Machines with a small and a large GPU over one store; runs are played."""

    def __init__(self, job: Job) -> None:
        self.store = MemoryStore()
        sweeps.submit(self.store, job)
        self.small, self.large = self.worker("small", SMALL), self.worker("large", LARGE)

    def worker(self, session: str, *gpus: Device) -> Gpu:
        finder = Finder(self.store, Claimant(session), Timing(lease=1e9), lambda: 0.0)
        return Gpu(finder, Offer(cpus=8, memory=1 << 40, gpus=gpus))

    def pause(self, taken: Taken, loss: float) -> None:
        rungs.write(self.store, taken.attempt.key, 1, loss, 1, taken.attempt.number)
        taken.attempt.release(then=PAUSED, why="rung")

    def paused(self, losses: dict[float, bool]) -> None:
        """Runs paused at the first rung; of each whether it outgrew the small GPU before."""
        begun = [self.small.take() for _ in losses]
        for taken, (loss, outgrew) in zip(begun, losses.items(), strict=True):
            if outgrew:
                taken.attempt.release(then=QUEUED, outgrew=16 * GB)
                self.pause(self.returned(self.large), loss)
            else:
                self.pause(taken, loss)

    def returned(self, worker: Gpu) -> Taken:
        """One that was given back, which a glance does not see."""
        found = worker.finder.find(lambda job: True, lambda ask: True, whole=True)
        assert found.taken is not None
        return found.taken


def index(taken: Taken) -> int:
    return taken.attempt.key.index


def test_promoted_run_that_outgrew_a_gpu_is_left_to_larger() -> None:
    fleet = Fleet(grid(9))
    fleet.paused({0.5: False, 0.1: True, 0.9: False})
    assert index(fleet.small.take()) == 3, "a new one: the best has outgrown this GPU"
    taken = fleet.large.take()
    assert (index(taken), taken.attempt.state.until) == (1, 3)


def test_small_gpu_promotes_the_next_best_that_fits() -> None:
    fleet = Fleet(grid(9))
    fleet.paused({0.1: True, 0.9: False, 0.2: False, 0.8: False, 0.7: False, 0.6: False})
    assert [index(fleet.small.take()), index(fleet.large.take())] == [2, 0]


def test_winner_that_outgrew_its_gpu_asks_for_a_larger() -> None:
    fleet = Fleet(grid(3))
    fleet.paused({0.5: False, 0.1: True, 0.9: False})
    found, run = fleet.small.find(), grid(3).run_id(1)
    assert (found.taken, found.unfit, found.paused, found.becoming) == (None, 1, 2, 0)
    assert found.outgrown == (run, 16 * GB)
    assert index(fleet.large.take()) == 1


def test_larger_gpu_of_the_same_machine_is_waited_for() -> None:
    fleet = Fleet(grid(3))
    fleet.paused({0.5: False, 0.1: True, 0.9: False})
    both = fleet.worker("both", SMALL, LARGE)
    found = both.finder.find(lambda job: not job.resources.gpu_memory, lambda ask: True)  # large: in use
    assert (found.taken, found.unfit, found.becoming, found.outgrown) == (None, 0, 1, None)


def test_search_goes_on_beside_a_run_for_larger_gpus() -> None:
    fleet = Fleet(learning(9))
    fleet.paused({0.5: False, 0.1: True, 0.9: False})
    assert index(fleet.small.take()) == 3
    assert index(fleet.large.take()) == 1


def mates(worker: Gpu, taken: Taken) -> list[int]:
    found = worker.finder.mates.claim(taken, lambda job, run: 9, {taken.attempt.key.run})
    return sorted(index(one) for one in found)


def test_open_mate_needs_no_larger_gpu_than_the_first() -> None:
    fleet = Fleet(grid(4, together=Together(limit=9, free=("x",)), prune={}))
    begun = [fleet.small.take() for _ in range(4)]
    begun[0].attempt.release(then=QUEUED)
    first = fleet.returned(fleet.small)
    for one, outgrew in zip(begun[1:], (16 * GB, None, 16 * GB), strict=True):
        one.attempt.release(then=QUEUED, outgrew=outgrew)
    assert mates(fleet.small, first) == [2]
    first = fleet.returned(fleet.large)
    assert sorted([index(first), *mates(fleet.large, first)]) == [1, 3]


def test_promoted_mate_needs_no_larger_gpu_than_the_first() -> None:
    fleet = Fleet(grid(9, together=Together(limit=9, free=("x",))))
    fleet.paused({loss: loss == 0.2 for loss in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)})
    first = fleet.small.take()
    assert index(first) == 0 and mates(fleet.small, first) == [2]


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Worker, list[tuple[int, Placement]]]:
    """A machine with GPUs of two sizes, and where its runs were put."""
    fleet, begun = Fleet(grid(9)), list[tuple[int, Placement]]()
    fleet.paused({0.5: False, 0.1: True, 0.9: False})
    project.ensure(fleet.store, "test", Timing())
    machine = Machine(fleet.store, tmp_path, "session", Timing(), say=lambda line: None)
    offer = Offer(cpus=8, memory=1 << 40, gpus=(SMALL, LARGE))
    room = Room(offer, GpuLocks(tmp_path / "locks"), read=list)

    def begin(self: HeldRuns, taken: Taken, placement: Placement) -> None:
        begun.append((index(taken), placement))

    monkeypatch.setattr(HeldRuns, "begin", begin)
    return Worker(machine, room, WorkerTerms()), begun


def test_promoted_run_gets_the_larger_gpu_of_two(
    worker: tuple[Worker, list[tuple[int, Placement]]],
) -> None:
    one, begun = worker
    one._look()
    assert [(n, placement.devices) for n, placement in begun] == [(1, ("large",))]


def test_run_is_never_begun_on_a_smaller_place(
    worker: tuple[Worker, list[tuple[int, Placement]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, begun = worker
    state = SimpleNamespace(outgrew=16 * GB)
    taken = SimpleNamespace(job=grid(9), attempt=SimpleNamespace(state=state, key=RunKey("s", "0000001-s")))

    def find(fits: Any, *args: Any, **given: Any) -> Any:
        assert fits(taken.job)
        return SimpleNamespace(taken=taken, joined=None)

    monkeypatch.setattr(one._finder, "find", find)
    with pytest.raises(KeyError):
        one._look()
    assert begun == []
