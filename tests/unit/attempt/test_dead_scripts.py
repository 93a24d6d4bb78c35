"""What a dead script by hand left in the cache: who delivers it, when, and what a killed deliverer leaves."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from dead_world import DEAD, Scene
from hostler import env
from hostler.attempt import dead_script, dead_scripts
from hostler.errors import StoreError
from hostler.records.checkpoint import checkpoints
from hostler.records.run import handoff, holder
from hostler.records.run.attempt import claim
from hostler.records.run.control import kill, stop
from hostler.records.run.entries import Claim
from hostler.records.run.handoff import Handoff
from hostler.records.series import metrics
from hostler.records.series.metrics import MetricWriter
from hostler.records.series.points import Point, pack
from hostler.sdk.checkpoint.checkpointer import Checkpointer
from hostler.sdk.checkpoint.policy import SavePolicy
from hostler.store import open_store
from hostler.store.memory import MemoryStore


class Killed(BaseException):
    """The deliverer dies here."""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(env.CACHE, str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path / "cache"


@pytest.fixture
def scene() -> Scene:
    return Scene(MemoryStore())


def before(scene: Scene, act: Callable[[str, str], None]) -> None:
    assert isinstance(scene.store, MemoryStore)
    scene.store.before = act


def test_points_checkpoint_and_outputs_are_delivered(scene: Scene, tmp_path: Path) -> None:
    scene.deliver()
    scene.check_whole(tmp_path / "restored")
    assert "its script died" in scene.said[-1]


def test_release_says_lost_with_step_and_metrics(scene: Scene) -> None:
    scene.deliver()
    release = scene.log().entries[-1]
    assert (release["why"], release["counts"], release["progress"], release["step"]) == (
        "lost",
        "lost",
        True,
        19,
    )
    assert release["metrics"]["loss"]["max"] == 1.0
    assert (scene.row.lost, scene.row.counted, scene.row.state) == (True, "lost", "queued")


def test_second_look_delivers_nothing(scene: Scene) -> None:
    scene.deliver()

    def refuse(operation: str, key: str) -> None:
        raise AssertionError(f"{operation} {key}")

    before(scene, refuse)
    scene.deliver()


def _writes(scene: Scene) -> int:
    """How many writes a delivery makes."""
    count = 0

    def add(operation: str, key: str) -> None:
        nonlocal count
        count += operation in ("put", "delete", "upload")

    before(scene, add)
    scene.deliver()
    return count


def test_deliverer_killed_before_any_write_loses_nothing(tmp_path: Path) -> None:
    total = _writes(Scene(MemoryStore("count")))
    assert total >= 8
    for moment in range(total):
        for again in (None, 0, 1, 3):
            scene = Scene(MemoryStore(f"{moment}-{again}"))
            for stop_at in (moment, again):
                _deliver_until(scene, stop_at)
            scene.deliver()
            scene.check_whole(tmp_path / f"restored-{moment}-{again}")


def _deliver_until(scene: Scene, moment: int | None) -> None:
    """Kill the deliverer before its write of this number."""
    left = moment

    def die(operation: str, key: str) -> None:
        nonlocal left
        if left is not None and operation in ("put", "delete", "upload"):
            if left == 0:
                raise Killed
            left -= 1

    before(scene, die)
    if moment is not None:
        with suppress(Killed):
            scene.deliver()
    before(scene, lambda operation, key: None)


def test_folder_half_removed_is_not_delivered_again(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    remove = shutil.rmtree

    def die(path: Path, ignore_errors: bool) -> None:
        if not path.name.startswith("."):
            return remove(path, ignore_errors=ignore_errors)
        next(path.rglob("COMMIT")).unlink()
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", die)
        with suppress(Killed):
            scene.deliver()
    saved = scene.saved()
    assert len(os.listdir(scene.folder.folder.parent)) == 1
    scene.deliver()
    assert os.listdir(scene.folder.folder.parent) == [] and scene.saved() == saved


def test_several_readers_at_once_deliver_once(scene: Scene, tmp_path: Path) -> None:
    gate = threading.Barrier(4)

    def read() -> None:
        gate.wait()
        scene.deliver()

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    scene.check_whole(tmp_path / "restored")
    assert len([line for line in scene.said if "its script died" in line]) == 1


def test_readers_without_locks_double_nothing(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(handle: int, operation: int) -> None:
        raise OSError("no locks here")

    monkeypatch.setattr(dead_script.fcntl, "flock", refuse)
    inside = False

    def race(operation: str, key: str) -> None:
        nonlocal inside
        if operation == "put" and not inside:
            inside = True
            scene.deliver()

    before(scene, race)
    scene.deliver()
    assert scene.kinds == ["claim", "release"] and scene.steps() == list(range(20))


def test_living_script_is_left_alone(scene: Scene) -> None:
    scene.note(holder=holder.me())
    scene.deliver()
    assert scene.kinds == ["claim"] and scene.is_there and scene.fragments() == list(range(5))


def test_script_of_another_machine_or_boot_is_left_alone(scene: Scene) -> None:
    scene.note(holder={**DEAD, "place": "other boot namespace"})
    scene.deliver()
    assert scene.kinds == ["claim"] and scene.is_there


def test_process_number_used_again_is_another_process(scene: Scene) -> None:
    scene.note(holder={**DEAD, "pid": os.getpid()})
    scene.deliver()
    assert scene.kinds == ["claim", "release"]


def test_attempt_that_was_taken_over_gets_nothing_more(scene: Scene) -> None:
    scene.take_over()
    scene.deliver()
    assert scene.kinds == ["claim", "claim"] and scene.fragments() == list(range(5)) and scene.saved() == []
    assert scene.is_there and "another attempt has its run" in scene.said[-1]
    scene.said.clear()
    scene.deliver()
    assert scene.said == []


@pytest.mark.parametrize("kind", ["COMMIT", "checkpoint", "metrics", "log"])
def test_takeover_during_delivery_fences_the_deliverer(scene: Scene, kind: str) -> None:
    taken = False

    def take(operation: str, key: str) -> None:
        nonlocal taken
        if operation in ("put", "upload") and kind in key and not taken:
            taken = True
            scene.take_over()

    before(scene, take)
    scene.deliver()
    assert taken and scene.kinds == ["claim", "claim"] and scene.state.attempt == 2
    assert scene.is_there and bool(scene.saved()) == (kind in ("COMMIT", "log"))


def test_stop_request_of_a_dead_script_is_answered(scene: Scene) -> None:
    stop(scene.store, scene.key)
    scene.deliver()
    assert scene.kinds == ["claim", "stop-request", "end"] and scene.state.state == "stopped"
    assert scene.steps() == list(range(20))


def test_run_that_a_person_ended_keeps_its_files(scene: Scene) -> None:
    kill(scene.store, scene.key)
    scene.deliver()
    assert scene.kinds == ["claim", "end"] and scene.is_there and scene.fragments() == list(range(5))


def test_finished_script_is_ended_as_done(scene: Scene) -> None:
    keeper = Checkpointer(scene.folder.checkpoint, policy=SavePolicy(every_steps=1), say=scene.said.append)
    keeper.save(8, {"n": 8}, finished={"total": 8}, wait=True)
    scene.deliver()
    end = scene.state.end
    assert end is not None and (end["state"], end["result"]) == ("done", {"total": 8})
    assert scene.row.state == scene.row.counted == "done"


def test_store_that_cannot_be_written_leaves_everything(scene: Scene) -> None:
    def refuse(operation: str, key: str) -> None:
        if operation in ("put", "delete", "upload"):
            raise StoreError("the file system is read-only")

    before(scene, refuse)
    scene.deliver()
    assert "could not be delivered: the file system is read-only" in scene.said[-1]
    assert scene.is_there and scene.kinds == ["claim"]
    assert (scene.row.state, scene.row.counted, scene.row.stale) == ("running", "lost", True)


def test_cache_that_others_can_write_to_is_passed_over(scene: Scene, cache: Path) -> None:
    cache.chmod(0o777)
    scene.deliver()
    assert scene.kinds == ["claim"] and scene.is_there and scene.said == []


def test_cache_of_another_user_is_passed_over(scene: Scene, cache: Path) -> None:
    if os.geteuid():
        pytest.skip("only root gives a folder away")
    os.chown(cache, 12345, 12345)
    scene.deliver()
    assert scene.kinds == ["claim"] and scene.is_there and scene.said == []


def test_script_of_another_store_is_left_alone(scene: Scene) -> None:
    dead_scripts.deliver(MemoryStore("other"), scene.said.append)
    assert scene.is_there and scene.said == []


def test_store_that_does_not_know_the_claim_gets_nothing(scene: Scene) -> None:
    other = MemoryStore()
    dead_scripts.deliver(other, scene.said.append)
    assert scene.is_there and list(other.list("")) == []


def test_link_to_a_store_is_the_same_store(tmp_path: Path) -> None:
    scene = Scene(open_store(str(tmp_path / "store")))
    (tmp_path / "link").symlink_to("store")
    dead_scripts.deliver(open_store(str(tmp_path / "link")), scene.said.append)
    scene.check_whole(tmp_path / "restored")


def test_folder_of_a_script_killed_before_its_claim_is_removed(scene: Scene) -> None:
    other = Handoff(scene.folder.folder.with_name("0000000-r-1-bbbbbb"))
    other.make({})
    handoff.write(other.script, {**(handoff.read(scene.folder.script) or {}), "attempt": 2})
    scene.deliver()
    assert os.listdir(scene.folder.folder.parent) == []


def test_attempt_after_a_checkpoint_counts_its_totals_on(scene: Scene, tmp_path: Path) -> None:
    scene.deliver()
    run_log = scene.log()
    folder = Handoff(scene.folder.folder.with_name(f"{scene.key.run}-3-cccccc"))
    folder.make({})
    facts = {"host": "here", "holder": DEAD, "folder": str(folder.folder)}
    assert claim(scene.store, run_log, 60.0, lambda: 0.0, Claim("c", facts=facts)) is not None
    origin = checkpoints.committed(scene.store, scene.key.run)[0]
    MetricWriter(scene.store, scene.key.run, 3).continue_from(metrics.Origin(1, origin.step, 20))
    folder.metrics.write_bytes(pack([Point(20, 200.0, {"loss": 0.5})]))
    scene.folder = folder
    scene.note(attempt=3)
    scene.deliver()
    release = scene.log().entries[-1]
    assert release["restored"] == origin.name and release["metrics"]["loss"]["max"] == 1.0
    assert scene.steps() == list(range(21))


def test_stray_files_beside_the_folders_are_passed_over(scene: Scene) -> None:
    (scene.folder.folder.parent / "stray").write_text("")
    scene.deliver()
    assert scene.kinds == ["claim", "release"] and scene.is_there is False


def test_nothing_left_costs_two_looks(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []
    real = os.listdir
    monkeypatch.setattr(os, "listdir", lambda path: looks.append(str(path)) or real(path))

    def refuse(*words: Any, **named: Any) -> Any:
        raise AssertionError(words)

    monkeypatch.setattr(os, "mkdir", refuse)
    monkeypatch.setattr(dead_scripts, "_deliver", refuse)
    dead_scripts.deliver(MemoryStore(), refuse)
    assert len(looks) == 2 and not cache.exists()
