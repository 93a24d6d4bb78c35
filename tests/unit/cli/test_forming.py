"""A run whose workers have not all come says how many have, and for whom it waits."""

from __future__ import annotations

from pathlib import Path

import pytest

from gang_world import MEETS, gang, team
from hostler.cli.terminal import hints
from hostler.cli.terminal.table import state_text
from hostler.records.rows import rows
from worker_world import World, until


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
