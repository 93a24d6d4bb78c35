"""The checkpointer with objects that need neither torch nor NumPy."""

from __future__ import annotations

import errno
import json
import os
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hostler.errors import DamagedError, NewerFormatError, UsageError
from hostler.records.checkpoint import saved_folder
from hostler.records.checkpoint.saved_folder import Mark
from hostler.sdk.checkpoint import part
from hostler.sdk.checkpoint.checkpointer import Checkpointer
from hostler.sdk.checkpoint.interval import Cost
from hostler.sdk.checkpoint.policy import SavePolicy


class Thing:
    """Anything with a state."""

    def __init__(self, **state: Any) -> None:
        self.state = state

    def state_dict(self) -> dict[str, Any]:
        return dict(self.state)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.state = state


class Scene:
    def __init__(self, folder: Path, **more: Any) -> None:
        self.folder, self.said, self.now = folder, list[str](), 0.0
        policy = more.pop("policy", SavePolicy(every_steps=1))
        self.checkpointer = Checkpointer(
            folder, policy=policy, say=self.said.append, clock=lambda: self.now, **more
        )

    def save(self, step: int, **state: Any) -> None:
        self.checkpointer.save(step, state, wait=True)

    @property
    def steps(self) -> list[int]:
        return [mark.step for mark in saved_folder.committed(self.folder)]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path / "checkpoints")


@pytest.mark.parametrize("rank", [0, 1])
def test_rank_zero_alone_says_how_often_is_saved(tmp_path: Path, rank: int) -> None:
    scene = Scene(tmp_path, policy=SavePolicy(), rank=rank, world=2)
    scene.checkpointer._schedule.cost(Cost(0.5, 1.0))
    assert [line for line in scene.said if "a checkpoint every" in line] == scene.said
    assert len(scene.said) == (1 if rank == 0 else 0)


def test_what_was_saved_comes_back_in_another_process(scene: Scene) -> None:
    thing = Thing(epoch=3, seen={1: (2, b"x")}, rate=float("inf"))
    scene.checkpointer.track(thing=thing)
    scene.save(7, best=(0.5, 3), run="abc")
    later, other = Scene(scene.folder), Thing()
    found = later.checkpointer.restore()
    assert found and found.step == 7 and found.state == {"best": (0.5, 3), "run": "abc"}
    assert found.finished is None
    later.checkpointer.track(thing=other)
    assert other.state == thing.state


def test_what_is_tracked_before_the_restore_is_loaded_too(scene: Scene) -> None:
    scene.checkpointer.track(thing=Thing(n=1))
    scene.save(1)
    later, other = Scene(scene.folder), Thing()
    later.checkpointer.track(thing=other)
    assert later.checkpointer.restore() and other.state == {"n": 1}


def test_a_folder_without_checkpoints_is_the_beginning(scene: Scene) -> None:
    assert scene.checkpointer.restore() is None and scene.said == []


def test_python_goes_on_drawing_the_numbers_it_would_have_drawn(scene: Scene) -> None:
    random.seed(5)
    random.random()
    scene.save(1)
    expected = [random.random() for _ in range(3)]
    later = Scene(scene.folder)
    later.checkpointer.restore()
    random.seed(99)
    assert later.checkpointer.resume_rng()
    assert [random.random() for _ in range(3)] == expected
    later.save(2)
    assert not later.checkpointer.resume_rng(), "after a save the training has moved on"


def test_a_generator_of_ones_own_can_be_tracked(scene: Scene) -> None:
    own = random.Random(3)
    scene.checkpointer.track(own=own)
    scene.save(1)
    expected = own.random()
    later, other = Scene(scene.folder), random.Random(0)
    later.checkpointer.restore()
    later.checkpointer.track(own=other)
    assert other.random() == expected


def test_an_object_without_state_dict_is_refused_by_name(scene: Scene) -> None:
    with pytest.raises(UsageError, match="history cannot be tracked: list has no state_dict"):
        scene.checkpointer.track(history=[1])


def test_a_class_in_place_of_an_object_is_refused(scene: Scene) -> None:
    with pytest.raises(UsageError, match="model cannot be tracked: it is the class Thing"):
        scene.checkpointer.track(model=Thing)


def test_a_name_tracked_twice_is_refused(scene: Scene) -> None:
    scene.checkpointer.track(model=Thing())
    with pytest.raises(UsageError, match="model is tracked already"):
        scene.checkpointer.track(model=Thing())


def test_unsavable_value_is_named_once_and_again_when_missed(scene: Scene) -> None:
    scene.checkpointer.track(thing=Thing(n=1, hook=print))
    scene.save(1)
    scene.save(2)
    said = "thing.hook (a value of type builtins.builtin_function_or_method)"
    assert scene.said == [f"cannot be saved in checkpoints: {said}"]
    later, other = Scene(scene.folder), Thing()
    later.checkpointer.restore()
    later.checkpointer.track(thing=other)
    assert other.state == {"n": 1} and later.said == [f"the checkpoint was saved without {said}"]


def test_the_newest_are_kept_and_older_ones_removed(scene: Scene) -> None:
    for step in (1, 2, 3, 4):
        scene.save(step)
        assert scene.steps[:2] == [step, step - 1][:step]
    scene.checkpointer.close()
    assert scene.steps == [4, 3] and len(list(scene.folder.iterdir())) == 2


def test_durable_save_does_not_wait_for_old_ones_to_go(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, gate, remove = threading.Event(), threading.Event(), saved_folder.remove

    def slowly(folder: Path, mark: Mark) -> None:
        begun.set()
        assert gate.wait(30)
        remove(folder, mark)

    monkeypatch.setattr(saved_folder, "remove", slowly)
    for step in (1, 2, 3):
        scene.save(step)
    assert begun.wait(30) and scene.steps == [3, 2, 1]
    scene.checkpointer.save(4, {})
    assert not scene.checkpointer.wait(0.05), "room is made before the next one is written"
    gate.set()
    assert scene.checkpointer.wait(30) and scene.steps[:2] == [4, 3] and 1 not in scene.steps
    scene.checkpointer.close()
    assert scene.steps == [4, 3] and scene.said == []


def test_old_checkpoint_that_stays_is_said_and_saves_go_on(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(folder: Path, mark: Mark) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(saved_folder, "remove", refuse)
    for step in (1, 2, 3, 4):
        scene.save(step)
    scene.checkpointer.close()
    assert scene.steps == [4, 3, 2, 1]
    assert scene.said and all("cannot be removed" in line for line in scene.said)


def test_second_checkpoint_of_a_step_spares_the_first_until_whole(scene: Scene) -> None:
    scene.save(5, n=1)
    scene.checkpointer.save(5, {"n": 2}, finished={"score": 0.5})
    assert saved_folder.committed(scene.folder) == [Mark(5, 1), Mark(5, 0)]
    found = Scene(scene.folder).checkpointer.restore()
    assert found and found.state == {"n": 2} and found.finished == {"score": 0.5}


def hurt(folder: Path, how: str) -> None:
    state, commit = folder / "state-0000.json", folder / "COMMIT"
    if how == "cut":
        os.truncate(state, 10)
    elif how == "flipped":
        data = bytearray(state.read_bytes())
        data[len(data) // 2] ^= 1
        state.write_bytes(data)
    elif how == "missing":
        state.unlink()
    elif how == "commit cut":
        os.truncate(commit, 20)
    elif how == "commit changed":
        commit.write_bytes(commit.read_bytes().replace(b'"step": ', b'"step": 9'))
    else:
        record = json.loads(commit.read_bytes())["record"]
        commit.write_bytes(saved_folder.seal({**record, "format": 99}))


HURTS = {
    "cut": "state-0000.json has 10 bytes of",
    "flipped": "state-0000.json is not what was written",
    "missing": "state-0000.json is missing",
    "commit cut": "COMMIT is cut short",
    "commit changed": "COMMIT is not what was written",
    "newer": "was written by a newer hostler",
}


@pytest.mark.parametrize("how", HURTS)
def test_damaged_checkpoint_is_reported_and_the_one_before_used(scene: Scene, how: str) -> None:
    scene.save(1, n=1)
    scene.save(2, n=2)
    hurt(scene.folder / Mark(2).name, how)
    later = Scene(scene.folder)
    found = later.checkpointer.restore()
    assert found and found.state == {"n": 1}
    assert (
        len(later.said) == 1 and HURTS[how] in later.said[0] and "the one before it is used" in later.said[0]
    )


@pytest.mark.parametrize("how", HURTS)
def test_no_good_checkpoint_is_an_error_never_the_beginning(scene: Scene, how: str) -> None:
    scene.save(1)
    hurt(scene.folder / Mark(1).name, how)
    wanted = NewerFormatError if how == "newer" else DamagedError
    with pytest.raises(wanted, match=HURTS[how]):
        Scene(scene.folder).checkpointer.restore()


def test_what_a_killed_save_left_is_no_checkpoint_and_goes(scene: Scene) -> None:
    scene.save(1)
    half = scene.folder / Mark(2).name
    half.mkdir()
    (half / "state-0000.json").write_text("{")
    found = Scene(scene.folder).checkpointer.restore()
    assert found and found.step == 1 and not half.exists()


def test_full_disk_is_reported_harmless_and_the_next_save_retries(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.save(1)
    scene.save(2)

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(part, "write_file", full)
    scene.save(3)
    assert scene.steps == [2], "the older one made room"
    assert "checkpoint of step 3 not saved, the next one will try again" in scene.said[0]
    monkeypatch.undo()
    scene.save(4)
    assert scene.steps == [4, 2]


def test_unwritable_folder_is_reported_and_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    scene = Scene(tmp_path / "file" / "checkpoints")
    scene.save(1)
    assert len(scene.said) == 1 and "not saved" in scene.said[0]


def test_failing_state_dict_is_reported_and_the_training_goes_on(scene: Scene) -> None:
    class Broken(Thing):
        def state_dict(self) -> dict[str, Any]:
            raise RuntimeError("no state today")

    scene.checkpointer.track(broken=Broken())
    scene.save(1)
    assert scene.steps == [] and "RuntimeError: no state today" in scene.said[0]


def slow_disk(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    gate, write = threading.Event(), part.write_file

    def slow(*words: Any) -> Any:
        gate.wait(30)
        return write(*words)

    monkeypatch.setattr(part, "write_file", slow)
    return gate.set


def test_slow_disk_delays_checkpoints_not_the_loop_and_reports_once(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = slow_disk(monkeypatch)
    scene.checkpointer.save(1, {})
    assert [scene.checkpointer.due(step) for step in (2, 3, 4)] == [False] * 3
    scene.checkpointer.save(4, {})
    assert len(scene.said) == 1 and "the one of step 1 is still being written" in scene.said[0]
    assert not scene.checkpointer.wait(0)
    release()
    assert scene.checkpointer.wait(30) and scene.steps == [1]
    assert scene.checkpointer.due(5), "what was put off is owed"


def test_the_last_checkpoint_waits_for_the_one_before_it(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = slow_disk(monkeypatch)
    scene.checkpointer.save(1, {})
    release()
    scene.checkpointer.save(2, {}, finished={})
    assert scene.steps == [2, 1]


def test_the_state_is_that_of_the_moment_of_the_save(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    release = slow_disk(monkeypatch)
    inner = {"n": [1]}
    scene.checkpointer.track(thing=Thing(inner=inner))
    scene.checkpointer.save(1, {})
    inner["n"].append(2)
    release()
    scene.checkpointer.wait()
    later, other = Scene(scene.folder), Thing()
    later.checkpointer.restore()
    later.checkpointer.track(thing=other)
    assert other.state == {"inner": {"n": [1]}}


def test_names_that_come_or_go_between_two_runs_are_said(scene: Scene) -> None:
    scene.checkpointer.track(old=Thing(n=1))
    scene.save(1)
    later = Scene(scene.folder)
    later.checkpointer.restore()
    later.checkpointer.track(new=Thing())
    later.save(2)
    assert later.said == [
        "the checkpoint does not contain new: it keeps its current state",
        "the checkpoint contains old, which is not tracked now: its state is dropped",
    ]


def test_a_load_that_fails_says_whose_it_is(scene: Scene) -> None:
    class Strict(Thing):
        def load_state_dict(self, state: dict[str, Any]) -> None:
            raise KeyError("momentum")

    scene.checkpointer.track(optimizer=Strict())
    scene.save(1)
    later = Scene(scene.folder)
    later.checkpointer.restore()
    with pytest.raises(UsageError, match=r"does not fit optimizer: KeyError: 'momentum'.*resume=\"never\""):
        later.checkpointer.track(optimizer=Strict())


def test_a_fork_of_the_training_saves_nothing(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getpid", lambda: -1)
    scene.save(1)
    assert not scene.checkpointer.due(2)
    monkeypatch.undo()
    assert scene.steps == []


def test_several_ranks_commit_once_all_have_written(tmp_path: Path) -> None:
    ranks = [Scene(tmp_path, rank=rank, world=3) for rank in range(3)]
    for rank, scene in enumerate(ranks):
        scene.checkpointer.track(thing=Thing(rank=rank))
    for scene in ranks[:2]:
        scene.checkpointer.save(4, {})
    assert ranks[1].checkpointer.wait(30) and saved_folder.committed(tmp_path) == []
    ranks[2].checkpointer.save(4, {})
    assert ranks[0].checkpointer.wait(30) and saved_folder.committed(tmp_path) == [Mark(4)]
    for rank in range(3):
        later, thing = Scene(tmp_path, rank=rank, world=3), Thing()
        later.checkpointer.restore()
        later.checkpointer.track(thing=thing)
        assert thing.state == {"rank": rank}


def test_rank_with_a_neighbours_damaged_part_chooses_the_same_checkpoint(tmp_path: Path) -> None:
    ranks = [Scene(tmp_path, rank=rank, world=2) for rank in range(2)]
    for step in (1, 2):
        for scene in reversed(ranks):
            scene.save(step)
    os.truncate(tmp_path / Mark(2).name / "state-0001.json", 3)
    found = [Scene(tmp_path, rank=rank, world=2).checkpointer.restore() for rank in range(2)]
    assert [one and one.step for one in found] == [1, 1]


def test_another_number_of_processes_is_refused(tmp_path: Path) -> None:
    Scene(tmp_path).save(1)
    with pytest.raises(UsageError, match="saved by 1 processes, but this run has 2"):
        Scene(tmp_path, world=2).checkpointer.restore()


def test_after_close_nothing_is_held(scene: Scene) -> None:
    scene.checkpointer.track(thing=Thing())
    scene.save(1)
    scene.checkpointer.close()
    scene.checkpointer.track(thing=Thing())
