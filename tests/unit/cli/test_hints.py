"""Hints name the command that starts a worker, and the workers that have not come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from gang_world import MEETS, gang, team
from hostler.backends.base import WorkerInfo
from hostler.cli import here
from hostler.cli.machines import up
from hostler.cli.terminal import hints
from hostler.cli.terminal.table import state_text
from hostler.records.rows import rows
from hostler.spec.project import Fleet, Project, default_project
from hostler.store.memory import MemoryStore
from worker_world import World, until

GCE, LAB = Fleet("burst", "gce"), Fleet("lab", "ssh")


def store(url: str = "gs://runs/cifar", used: Sequence[str] = ()) -> MemoryStore:
    made = MemoryStore()
    made.url = url
    for name in used:
        made.put(f"fleets/{name}/000001/spec.json", b"{}")
    return made


def in_project(
    monkeypatch: pytest.MonkeyPatch, *fleets: Fleet, chosen: str | None = None, url: str = "gs://runs/cifar"
) -> None:
    known = {fleet.name: fleet for fleet in fleets}
    made: Project = replace(default_project(Path("/p")), store=url, fleets=known, fleet=chosen)
    monkeypatch.setattr(here, "project", lambda: made)
    monkeypatch.delenv("HOSTLER_STORE", raising=False)


@pytest.mark.parametrize(
    ("fleets", "chosen", "used", "said"),
    [
        ([GCE], None, [], "hostler up burst"),
        ([GCE, LAB], None, [], "hostler up burst (or lab)"),
        ([GCE, LAB], "lab", [], "hostler up lab"),
        ([GCE, LAB], None, ["lab"], "hostler up lab"),
        ([], None, [], "hostler worker gs://runs/cifar"),
        ([Fleet("pc", "local")], None, [], "hostler worker gs://runs/cifar"),
    ],
)
def test_a_fleet_is_started_where_there_is_one(
    monkeypatch: pytest.MonkeyPatch, fleets: list[Fleet], chosen: str | None, used: list[str], said: str
) -> None:
    in_project(monkeypatch, *fleets, chosen=chosen)
    assert hints.worker_command(store(used=used)) == said


def test_foreign_store_and_unused_folder_get_a_worker_hint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    in_project(monkeypatch, GCE)
    assert hints.worker_command(store("gs://other")) == "hostler worker gs://other"
    in_project(monkeypatch, LAB, url="/p/.hostler")
    assert hints.worker_command(store("/p/.hostler")) == "hostler worker /p/.hostler"
    assert hints.worker_command(store("/p/.hostler", used=["lab"])) == "hostler up lab"


def test_full_fleet_does_not_report_started_workers() -> None:
    there = [WorkerInfo("a", "a", True), WorkerInfo("b", "b", True)]
    assert up._said(there, there, "burst") == "2 workers of burst started"
    assert up._said(there[:1], [], "burst") == "1 worker of burst started"
    assert "none was started" in up._said([], there, "burst")
    assert up._said([], [], "burst") == "0 workers of burst started"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "world")


def test_waiting_gang_names_missing_workers(world: World) -> None:
    world.quick(gather=60.0)
    job = world.submit(MEETS, name="four", resources=gang(4))
    with team(world, 2):
        until(lambda: rows(world.store)[0].forming == "2 of 4", 60)
        [row] = rows(world.store)
        assert state_text(row) == "forming 2 of 4"
        [line] = hints.lines(world.store, [row])
        assert line.startswith("four: 2 of 4 workers have joined: ") and "no other worker is alive" in line
        with team(world, 2):
            until(lambda: world.state(job).state == "done", 60)
    assert rows(world.store)[0].forming == "" and list(hints.lines(world.store, rows(world.store))) == []
