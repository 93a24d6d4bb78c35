"""Copies of folders that never rest, taken between two saves: which saves come of them after a kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hostler.attempt import still_copy
from hostler.attempt.folder_parts import LUMP
from hostler.attempt.still_copy import StillCopies
from hostler.records.checkpoint.tree import TreeScan, scan
from saver_world import EVERY, SETTLE, Scene

LOOK = 0.1


class Often(Scene):
    """A script that saves often, looked at ten times a second."""

    def __init__(self, root: Path, still_max: float = 1e6) -> None:
        super().__init__(root, still_max=still_max)

    def point(self, name: str, to: str) -> None:
        path = self.folder / name
        path.unlink(missing_ok=True)
        path.symlink_to(to)
        os.utime(path, (self.now, self.now), follow_symlinks=False)

    def looks(self, seconds: float) -> None:
        for _ in range(round(seconds / LOOK)):
            self.now += LOOK
            self.saver.tick()

    def saves(self, save: Callable[[int], None], times: int, gap: float = 0.5) -> None:
        for n in range(1, times + 1):
            save(n)
            self.looks(gap)


@pytest.fixture
def scene(tmp_path: Path) -> Often:
    return Often(tmp_path)


def rotate(scene: Often, n: int) -> None:
    if (scene.folder / "ckpt.pt").exists():
        (scene.folder / "ckpt.pt").replace(scene.folder / "ckpt.prev.pt")
    scene.write("ckpt.pt", str(n))


def keep_one(scene: Often, n: int) -> None:
    scene.write(f"epoch={n}-val_loss={1 / n:.3f}.ckpt", str(n))
    for old in scene.folder.glob(f"epoch={n - 1}-*"):
        old.unlink()


def number_and_point(scene: Often, n: int) -> None:
    scene.write(f"model-{n}.pt", str(n))
    scene.write("latest", f"model-{n}.pt")


def number_and_link(scene: Often, n: int) -> None:
    scene.write(f"epoch={n}.ckpt", str(n))
    scene.point("last.ckpt", f"epoch={n}.ckpt")


def with_best(scene: Often, n: int) -> None:
    scene.write("model.pt", str(n))
    if n % 3 == 0:
        scene.write("best.pt", str(n))


HABITS: dict[str, Callable[[Often, int], None]] = {
    "in place": lambda scene, n: scene.write("model.pt", str(n)),
    "with best": with_best,
    "pointer": number_and_point,
    "symlink": number_and_link,
    "top k": keep_one,
    "rotation": rotate,
    "by turns": lambda scene, n: scene.write("ab"[n % 2] + ".pt", str(n)),
    "pair": lambda scene, n: (scene.write("model.pt", str(n)), scene.write("optim.pt", str(n)))[0],
}


def newest(habit: str, found: dict[str, str]) -> int:
    """The number that the script would go on from."""
    if habit in ("in place", "with best"):
        return int(found["model.pt"])
    if habit == "pointer":
        return int(found[found["latest"]])
    if habit == "symlink":
        return int(found["last.ckpt"])
    if habit == "rotation":
        assert int(found["ckpt.prev.pt"]) == int(found["ckpt.pt"]) - 1
        return int(found["ckpt.pt"])
    if habit == "pair":
        assert found["model.pt"] == found["optim.pt"]
    return max(map(int, found.values()))


@pytest.mark.parametrize("habit", HABITS)
def test_saves_twice_a_second_are_kept_after_a_kill(scene: Often, habit: str) -> None:
    scene.saves(lambda n: HABITS[habit](scene, n), 20)
    assert newest(habit, scene.saved()) <= 6, "the first copy does not wait"
    HABITS[habit](scene, 21)
    assert newest(habit, scene.killed()) >= 19


@pytest.mark.parametrize("habit", HABITS)
def test_worker_killed_with_its_script_leaves_the_newest_copy(scene: Often, habit: str) -> None:
    scene.saves(lambda n: HABITS[habit](scene, n), 20)
    HABITS[habit](scene, 21)
    scene.steady = False
    scene.saver = scene.begin(2, dict(scene.noted))
    assert newest(habit, scene.killed()) >= 19


@pytest.mark.parametrize("habit", HABITS)
def test_file_held_open_for_writing_is_never_copied(scene: Often, habit: str) -> None:
    def save(n: int) -> None:
        HABITS[habit](scene, n)
        files = [path for path in scene.folder.iterdir() if not path.is_symlink()]
        opened.append(open(max(files, key=lambda path: path.stat().st_mtime), "r+b"))  # noqa: SIM115

    opened: list[object] = []
    scene.saves(save, 20)
    assert not list(scene.folder.with_name("still").glob("*"))


@pytest.mark.parametrize("pause, rest", [(0.2, 0.3), (0.5, 0.5), (0.4, 0.1), (1.0, 0.3), (0.3, 1.5)])
def test_pair_written_with_a_pause_between_is_never_mixed(scene: Often, pause: float, rest: float) -> None:
    for n in range(40):
        scene.write("model.pt", str(n))
        scene.looks(pause)
        scene.write("optim.pt", str(n))
        scene.looks(rest)
        found = scene.saved()
        assert found.get("model.pt") == found.get("optim.pt")
    scene.write("model.pt", "40")
    found = scene.killed()
    assert found.get("model.pt") == found.get("optim.pt")


def test_pair_whose_second_file_is_late_is_taken_whole(scene: Often) -> None:
    for n in range(20):
        scene.write("model.pt", str(n))
        scene.looks(0.1)
        scene.write("optim.pt", str(n))
        scene.looks(1.2)
    scene.write("model.pt", "20")
    scene.looks(0.1)
    assert scene.killed() == {"model.pt": "19", "optim.pt": "19"}


def test_two_networks_named_a_and_b_are_not_turns(scene: Often) -> None:
    for n in range(20):
        scene.write("net_G_A.pt", str(n))
        scene.looks(0.1)
        scene.write("net_G_B.pt", str(n))
        scene.looks(0.6)
    scene.write("net_G_A.pt", "20")
    found = scene.killed()
    assert found.get("net_G_A.pt") == found.get("net_G_B.pt")


def test_parts_of_one_save_with_numbers_are_not_saves(scene: Often) -> None:
    for n in range(6):
        scene.write(f"model_{n}.pt", "part")
        scene.looks(0.3)
    assert scene.killed() == {}


def test_file_of_a_script_failing_in_a_save_is_left(scene: Often) -> None:
    """It closes the file, and lives on for a while."""
    scene.saves(lambda n: scene.write("model.pt", f"whole {n}"), 20)
    scene.write("model.pt", "whol")
    scene.looks(1.5)
    assert scene.killed() == {"model.pt": "whole 20"}


def test_restored_pair_is_not_taken_between_its_first_two_writes(tmp_path: Path) -> None:
    scene = Often(tmp_path)
    for name in ("model.pt", "optim.pt"):
        scene.write(name, "restored")
    scene.saver = scene.begin(2)
    scene.looks(1.0)
    scene.write("model.pt", "1")
    scene.looks(1.0)
    assert scene.killed() == {}


def test_files_at_rest_are_released_once_the_store_has_them(scene: Often) -> None:
    scene.saves(lambda n: scene.write("model.pt", str(n)), 1, gap=30.0)
    assert scene.saved() == {"model.pt": "1"} and not scene.folder.with_name("still").exists()


def test_files_at_rest_replace_the_copies_from_between_saves(scene: Often) -> None:
    scene.saves(lambda n: scene.write("model.pt", str(n)), 10)
    assert len(list(scene.folder.with_name("still").iterdir())) == 2
    scene.looks(SETTLE + 0.2)
    [held] = scene.folder.with_name("still").iterdir()
    assert (held / "model.pt").read_text() == "10"
    assert scene.killed() == {"model.pt": "10"}


@pytest.mark.parametrize("habit", [habit for habit in HABITS if habit != "top k"])
@pytest.mark.parametrize("with_worker", [True, False])
def test_slow_save_survives_a_kill_inside_the_next(scene: Often, habit: str, with_worker: bool) -> None:
    """Each rests, and the store takes one only every five minutes."""
    scene.saves(lambda n: HABITS[habit](scene, n), 8, gap=3.0)
    HABITS[habit](scene, 9)
    if with_worker:
        scene.steady = False
        scene.saver = scene.begin(2, dict(scene.noted))
    assert newest(habit, scene.killed()) == 8


def test_large_file_is_held_by_link_until_renamed_over(tmp_path: Path) -> None:
    scene = Often(tmp_path, still_max=10)
    scene.saves(lambda n: scene.replace("model.pt", f"{n:020d}"), 8, gap=3.0)
    scene.replace("model.pt", "torn")
    assert scene.killed() == {"model.pt": f"{8:020d}"}


def test_large_file_rewritten_in_place_is_not_the_held_one(tmp_path: Path) -> None:
    scene = Often(tmp_path, still_max=10)
    scene.saves(lambda n: scene.write("model.pt", f"{n:020d}"), 8, gap=3.0)
    scene.write("model.pt", "torn")
    assert scene.killed() == {"model.pt": f"{1:020d}"}, "as the store has it"


def test_file_at_rest_that_is_kept_open_is_not_held(scene: Often) -> None:
    scene.saves(lambda n: scene.write("model.pt", str(n)), 2, gap=3.0)
    with open(scene.folder / "model.pt", "r+b"):
        scene.write("model.pt", "3")
        scene.looks(3.0)
        held = [path.read_text() for path in scene.folder.with_name("still").rglob("model.pt")]
    assert "3" not in held


def test_folder_above_the_limit_is_left_to_its_rest(tmp_path: Path) -> None:
    scene = Often(tmp_path, still_max=10)
    scene.saves(lambda n: scene.write("model.pt", str(n) * 20), 60)
    assert scene.killed() == {} and "rewritten so often" in scene.said[0]


@pytest.mark.parametrize("waited, copies", [(0.0, 1), (0.9, 2)])
def test_wait_for_a_processor_does_not_delay_next_copy(tmp_path: Path, waited: float, copies: int) -> None:
    """A copy takes a second, of which so much is spent in waiting; three seconds later the next is tried."""
    folder, now = tmp_path / "checkpoint", [0.0]
    folder.mkdir()

    def look() -> dict[str, TreeScan]:
        now[0] += 1.0
        return {LUMP: scan(folder)}

    copied = StillCopies(folder, tmp_path / "still", 1e6, lambda: now[0], lambda: waited * now[0])
    for n in range(2):
        (folder / "model.pt").write_text("x" * (n + 1))
        copied.take({LUMP: scan(folder)}, look)
        now[0] += 3.0
    assert len(list((tmp_path / "still").iterdir())) == copies


def test_disk_without_leases_is_left_to_its_rest(scene: Often, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(still_copy, "is_closed", lambda path: None)
    scene.saves(lambda n: scene.write("model.pt", str(n)), 60)
    assert scene.killed() == {} and "rewritten so often" in scene.said[0]


def test_numbered_saves_go_on_beside_a_file_that_never_rests(scene: Often) -> None:
    """Its rhythm is lost after a while."""
    scene.saves(lambda n: scene.write("state.json", str(n)), 10)
    with open(scene.folder / "state.json", "r+b"):
        for n in range(1, 5):
            scene.write(f"checkpoint-{n}/model.pt", str(n))
            for _ in range(8):
                scene.now += EVERY / 8
                scene.write("state.json", "open")
                scene.saver.tick()
            assert scene.saved()[f"checkpoint-{n}/model.pt"] == str(n)


def test_lease_never_signals_the_process_that_asks(tmp_path: Path) -> None:
    """A writer that opens the file again and again, in another process."""
    path = tmp_path / "file"
    path.touch()
    script = "import sys\nwhile True:\n    open(sys.argv[1], 'r+b').close()\n"
    with subprocess.Popen([sys.executable, "-c", script, str(path)]) as writer:
        found = set[bool | None]()
        while False not in found and writer.poll() is None:  # until it has begun
            found.add(still_copy.is_closed(path))
        found |= {still_copy.is_closed(path) for _ in range(20_000)}
        writer.send_signal(signal.SIGKILL)
    assert found == {True, False}
