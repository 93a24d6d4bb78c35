"""Scripts of training libraries: swept, killed at a random moment, finished from their newest checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cli_world import World
from library_scripts import LIBRARIES
from script_walk import VICTIMS, walk

KINDS = list(LIBRARIES)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.close()


@pytest.mark.parametrize("kind", KINDS)
def test_killed_script_of_any_library_finishes_from_its_checkpoint(world: World, kind: str) -> None:
    walk(world, LIBRARIES[kind], VICTIMS[KINDS.index(kind) % 3], 0)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("victim", VICTIMS)
@pytest.mark.parametrize("kind", KINDS)
def test_library_script_killed_anywhere_finishes(world: World, kind: str, victim: str, seed: int) -> None:
    walk(world, LIBRARIES[kind], victim, seed)
