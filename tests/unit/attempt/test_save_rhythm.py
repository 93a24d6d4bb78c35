"""The rhythm of saves: where it is at its edge, and when the next look at the folder is worth it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hostler.attempt.folder_parts import LUMP
from hostler.attempt.folder_watch import OFTEN
from hostler.attempt.save_rhythm import QUIET, SaveRhythm
from hostler.records.checkpoint.tree import FileRow, TreeScan
from saver_world import SETTLE, Scene

Save = Callable[[float, int], list[FileRow]]


def row(name: str, at: float, inode: int) -> FileRow:
    return FileRow(name, 100, round(at * 1e9), inode, 0o644, "")


def pair(took: float) -> Save:
    return lambda at, n: [row("model.pt", at, 1), row("optim.pt", at + took, 2)]


def single(at: float, n: int) -> list[FileRow]:
    return [row("model.pt", at, 1)]


def rhythm(save: Save, gap: float, times: int = 12) -> SaveRhythm:
    """What is known of a script that was looked at after each of its saves."""
    found = SaveRhythm(SETTLE)
    for n in range(times):
        found.look({LUMP: TreeScan(tuple(save(1000.0 + n * gap, n)))}, (lambda row: True) if n else None)
    return found


@pytest.mark.parametrize(
    "save, gap, is_at_edge",
    [
        (pair(0.0), 0.08, True),
        (pair(0.004), 0.1, True),
        (pair(0.02), 0.1, True),
        (pair(0.0), 0.5, False),
        (pair(0.045), 0.5, True),
        (pair(0.06), 0.1, False),
        (pair(0.2), 0.5, False),
        (single, 0.06, True),
        (single, 0.1, False),
        (single, 0.5, False),
    ],
)
def test_rhythm_is_at_its_edge_where_load_would_decide(save: Save, gap: float, is_at_edge: bool) -> None:
    assert rhythm(save, gap).is_at_edge() is is_at_edge


def test_rhythm_of_few_saves_is_not_spoken_of() -> None:
    assert not rhythm(pair(0.0), 0.08, times=5).is_at_edge()
    assert rhythm(pair(0.0), 0.08, times=6).is_at_edge()


def test_one_hurried_save_among_slow_ones_is_no_edge() -> None:
    found = rhythm(pair(0.0), 0.5)
    found.look({LUMP: TreeScan(tuple(pair(0.0)(1005.53, 12)))}, lambda row: True)
    assert not found.is_at_edge()


def test_files_of_one_moment_have_no_time_between_saves() -> None:
    """Unpacked from an archive, they carry the time that they had in it."""
    found = SaveRhythm(SETTLE)
    found.look({}, None)
    files = {f"epoch={n}": TreeScan((row(f"epoch={n}.ckpt", 1000.0, n),)) for n in range(4)}
    found.look(files, lambda row: True)
    assert not found.is_between_saves(1001.0) and not found.is_at_edge()


class Closely(Scene):
    """A script that saves many times a second."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, still_max=1e6)

    def write_pair(self, n: int) -> None:
        for name in ("model.pt", "optim.pt"):
            self.write(name, str(n))

    def saves(self, save: Callable[[int], None], gap: float, times: int = 30) -> None:
        for n in range(times):
            save(n)
            self.now += gap
            self.saver.tick()


def test_pair_rewritten_ten_times_a_second_is_at_the_edge(tmp_path: Path) -> None:
    scene = Closely(tmp_path)
    scene.saves(scene.write_pair, 0.1)
    assert scene.noted["at_edge"]


def test_pair_rewritten_twice_a_second_is_not_at_the_edge(tmp_path: Path) -> None:
    scene = Closely(tmp_path)
    scene.saves(scene.write_pair, 0.5)
    assert not scene.noted["at_edge"]


def test_edge_is_not_noted_where_versions_are_complete(tmp_path: Path) -> None:
    scene = Closely(tmp_path)
    scene.saves(lambda n: scene.replace("last.pt", str(n)), 0.06)
    assert not scene.noted["at_edge"]


def test_edge_is_not_noted_where_earlier_numbers_are_complete(tmp_path: Path) -> None:
    scene = Closely(tmp_path)
    scene.saves(lambda n: scene.write(f"step-{n}.pt", str(n)), 0.06)
    assert not scene.noted["at_edge"]


@pytest.mark.parametrize("age, wait", [(0.0, QUIET), (0.03, QUIET - 0.03), (0.06, OFTEN), (0.5, OFTEN)])
def test_next_look_comes_once_the_last_write_is_quiet(tmp_path: Path, age: float, wait: float) -> None:
    scene = Closely(tmp_path)
    scene.write("model.pt", "1")
    scene.now += age
    scene.saver.tick()
    assert wait <= scene.watch.next_look() <= wait + 0.005


def test_folder_at_rest_need_not_be_looked_at_often(tmp_path: Path) -> None:
    scene = Closely(tmp_path)
    assert scene.watch.next_look() == float("inf")
    scene.write("model.pt", "1")
    scene.now += SETTLE + 0.1
    scene.saver.tick()
    assert scene.watch.next_look() == float("inf")


def test_first_looks_come_soon_and_then_every_tick(tmp_path: Path) -> None:
    scene, waits = Closely(tmp_path), list[float]()

    class Waking:
        def wait(self, seconds: float) -> None:
            waits.append(seconds)
            scene.now += seconds
            scene.saver._closed = scene.now > 1_000_020.0

        def clear(self) -> None: ...

    scene.saver._wake = Waking()  # type: ignore[assignment]
    scene.saver._loop(1.0)
    assert waits[0] == 0.05 and sum(wait < 0.2 for wait in waits) > 10
    assert waits[-5:] == [1.0] * 5 and len(waits) < 60


def test_looks_end_with_the_process(tmp_path: Path) -> None:
    """The rest is saved once, by `final`: a save a moment before would send the same files twice."""
    scene, looks = Closely(tmp_path), list[float]()

    class Waking:
        def wait(self, seconds: float) -> None:
            scene.now += seconds
            scene.saver._closed = scene.now > 1_000_020.0

        def clear(self) -> None: ...

    scene.saver._wake = Waking()  # type: ignore[assignment]
    scene.saver.tick = lambda: looks.append(scene.now)  # type: ignore[method-assign]
    scene.saver._exited = lambda: scene.now > 1_000_010.0
    scene.saver._loop(1.0)
    assert 1_000_009.0 < max(looks) <= 1_000_010.0
