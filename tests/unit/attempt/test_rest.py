"""Two files of one save, such as weights and their metadata: never one of this save and one of the last."""

from __future__ import annotations

from pathlib import Path

import pytest

from saver_world import EVERY, RESTED, SETTLE, Scene

WEIGHTS, METADATA = "latest.weights.h5", "training_metadata.json"


class Pair(Scene):
    """A script that writes its weights, and then its metadata. `late`: seconds in which its watch does not
    get on after it has asked whether the process runs; that is killed meanwhile."""

    late = 0.0

    @property
    def steady(self) -> bool:
        found, self._runs = self._runs, self._runs and not self.late
        self.now += self.late
        return found

    @steady.setter
    def steady(self, value: bool) -> None:
        self._runs = value

    def save(self, n: int) -> None:
        self.write(WEIGHTS, str(n))
        self.write(METADATA, str(n))


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    scene = Pair(tmp_path)
    scene.save(1)
    assert scene.after(RESTED) == whole(1)
    scene.now += EVERY
    scene.save(2)
    return scene


def whole(n: int) -> dict[str, str]:
    return {WEIGHTS: str(n), METADATA: str(n)}


def test_pair_killed_between_under_a_late_watch_is_left(pair: Pair) -> None:
    assert pair.after(RESTED) == whole(2)
    pair.now += EVERY
    pair.write(WEIGHTS, "3")
    pair.late = RESTED
    assert pair.after(0.01) == whole(2)
    assert pair.killed() == whole(2)


@pytest.mark.parametrize("stop", [SETTLE, 100 * SETTLE])
def test_pair_stopped_between_and_continued_is_not_taken(pair: Pair, stop: float) -> None:
    pair.write(WEIGHTS, "3")
    pair.steady = False
    assert pair.after(stop) == whole(1)
    pair.steady = True
    assert pair.after(0.1) == whole(1)
    pair.write(METADATA, "3")
    assert pair.after(0.1) == whole(1)
    assert pair.after(SETTLE) == whole(3)


@pytest.mark.parametrize("asleep", [SETTLE, 100 * SETTLE])
def test_pair_on_a_suspended_machine_is_not_taken(pair: Pair, asleep: float) -> None:
    pair.write(WEIGHTS, "3")
    pair.saver._watch.expect_look(0.1)
    assert pair.after(asleep) == whole(1)
    pair.write(METADATA, "3")
    pair.saver._watch.expect_look(1.0)
    assert pair.after(1.0) == whole(1)
    pair.saver._watch.expect_look(1.0)
    assert pair.after(1.1) == whole(3)


@pytest.mark.parametrize("late, found", [(RESTED, 2), (0.1, 3)])
def test_print_after_a_missed_look_is_no_sign_of_life(pair: Pair, late: float, found: int) -> None:
    """A launcher prints once its script, killed between two files, has freed its memory."""
    assert pair.after(RESTED) == whole(2)
    pair.now += EVERY
    pair.write(WEIGHTS, "3")
    if found == 3:
        pair.write(METADATA, "3")
        assert pair.after(0.1) == whole(2)
    pair.saver._watch.expect_look(0.1 if found == 2 else RESTED)
    pair.now += RESTED + late
    pair.saver.final(trusted=False, alive=pair.now)
    assert pair.saved() == whole(found)


def test_watch_that_is_a_little_late_delays_nothing(pair: Pair) -> None:
    for _ in range(3):
        pair.saver._watch.expect_look(1.0)
        pair.after(1.2)
    assert pair.saved() == whole(2)
