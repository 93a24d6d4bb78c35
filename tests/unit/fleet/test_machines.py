"""Which launch takes a sweep, and what of a cloud nobody needs any more."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hostler.backends.base import Thing
from hostler.cli.doctor.clouds import orphans
from hostler.fleet.machines import agree, joinable, over
from hostler.money.tariff import Funded
from hostler.records.launch import closing, launches
from hostler.records.launch.launches import Generation
from hostler.spec.job import Budget, Job
from hostler.spec.project import Fleet
from hostler.store.memory import MemoryStore

FLEET = Fleet(name="burst", backend="gce")
JOB = Job(name="grid", command=("python", "train.py"))


def thing(kind: str, generation: str, fleet: str = "burst", *, works: bool = False) -> Thing:
    name = f"hostler-cifar-{fleet}-{generation}"
    return Thing(kind, name, "path", "cifar", fleet, "0123456789", generation, works=works)


def launched(**more: object) -> MemoryStore:
    store = MemoryStore()
    one = Generation("burst", 1, launch="token", workers=2, sweeps=("other",))
    assert launches.begin(store, replace(one, **more))
    assert closing.has_shape(store, "burst", 1, "shape")
    return store


def test_a_launch_that_works_takes_another_sweep() -> None:
    found = joinable(launched(), FLEET, [JOB], "shape")
    assert found is not None and found.name == "burst/1"


def test_unsuitable_launch_takes_no_more_sweeps() -> None:
    closed, gone = launched(), launched()
    closing.close(closed, "burst", 1)
    launches.close(gone, "burst", 1)
    assert joinable(closed, FLEET, [JOB], "shape") is None
    assert joinable(gone, FLEET, [JOB], "shape") is None
    assert joinable(launched(deadline=1.0), FLEET, [JOB], "shape") is None
    assert joinable(launched(), FLEET, [JOB], "another") is None
    assert joinable(MemoryStore(), FLEET, [JOB], "shape") is None


def test_failed_launch_is_over_whatever_went_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = MemoryStore()

    def fund() -> Funded:
        one = Generation("burst", 1, launch="token", sweeps=("grid",))
        assert launches.begin(store, one)
        return Funded(one.name)

    def breaks(*words: object) -> bool:
        raise RuntimeError("a bug")

    monkeypatch.setattr(closing, "serve", breaks)
    with pytest.raises(RuntimeError, match="a bug"):
        agree(store, FLEET, [JOB], "shape", fund)
    assert launches.gone_at(store, "burst", 1) is not None


def test_a_machine_for_hand_work_takes_no_sweep() -> None:
    assert joinable(launched(by_hand=True), FLEET, [JOB], "shape") is None


def test_budgeted_sweep_joins_only_its_reserved_launch() -> None:
    bounded = replace(JOB, budget=Budget(cost=5.0))
    assert joinable(launched(), FLEET, [bounded], "shape") is None
    assert joinable(launched(reserved={"grid": 5.0}), FLEET, [bounded], "shape") is not None


def test_launch_reserved_for_fewer_workers_is_not_joined() -> None:
    assert joinable(launched(), replace(FLEET, workers=2), [JOB], "shape") is not None
    assert joinable(launched(), replace(FLEET, workers=3), [JOB], "shape") is None
    assert joinable(launched(), replace(FLEET, workers=2), [JOB], "shape", most=4) is None


def test_things_of_gone_and_closed_launches_are_over() -> None:
    found = [
        *(thing(kind, "1", works=kind == "VM") for kind in ("VM", "disk", "template")),
        *(thing(kind, "2") for kind in ("group", "template")),
        *(thing(kind, "3", works=kind == "group") for kind in ("group", "template")),
        *(thing(kind, "4") for kind in ("group", "template")),
        thing("VM", "", works=True),
    ]
    left = over(found, gone=lambda n: n == 1, closed=lambda n: n in (2, 3))
    assert [(one.kind, one.generation) for one in left] == [
        ("VM", "1"),
        ("disk", "1"),
        ("template", "1"),
        ("group", "2"),
        ("template", "2"),
    ]


def test_orphan_is_ours_and_of_no_open_launch() -> None:
    found = [thing("VM", "1"), thing("VM", "2"), thing("VM", "1", "old"), thing("VM", "")]
    found.append(replace(thing("VM", "1"), project="another"))
    found.append(replace(thing("VM", "1"), ours=False))
    left = orphans(found, "cifar", ["burst"], lambda fleet, number: number == 2)
    assert left == [found[0], found[2]]
