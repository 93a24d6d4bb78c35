"""One honest store and one process that has loaded hostler, for all enemies of a test session."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from arena import Attack, Breach, Ground, VerbServer, ground
from enemy import Deed, needed
from honest_store import fill

sys.path.insert(0, str(Path(__file__).parents[1] / "history"))  # seeds


@pytest.fixture(scope="session")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOSTLER_CACHE", str(tmp_path_factory.mktemp("machine")))
        return fill(tmp_path_factory.mktemp("honest") / "world")


@pytest.fixture(scope="session")
def server() -> Iterator[VerbServer]:
    started = VerbServer()
    yield started
    started.close()


@pytest.fixture(scope="session")
def grounds(
    honest: Path, server: VerbServer, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[], Iterator[Ground]]:
    """A fresh ground at every call."""
    root, numbers = tmp_path_factory.mktemp("grounds"), itertools.count()
    return lambda: ground(root / str(next(numbers)), honest, server)


@pytest.fixture(scope="session")
def attack(grounds: Callable[[], Iterator[Ground]]) -> Attack:
    """Run verbs over a store after these deeds: the promises they broke."""

    def attacked(
        deeds: Sequence[Deed], verbs: Sequence[Sequence[str]], seconds: float = 10.0
    ) -> list[Breach]:
        with grounds() as place:
            for deed in deeds:
                deed.do(place)
            return place.breaches(verbs, rest=not any(needed(deed.key) for deed in deeds), seconds=seconds)

    return attacked
