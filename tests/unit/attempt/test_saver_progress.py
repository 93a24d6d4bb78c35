"""Progress of scripts that save often, are killed, or rewrite files: which checkpoints come of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hostler.attempt.folder_parts import Declared
from hostler.attempt.folder_watch import Clocks, FolderWatch
from hostler.attempt.saver import Saver, Target
from hostler.records.checkpoint import checkpoints
from hostler.records.run import handoff
from hostler.spec.job import Checkpointing
from hostler.store.memory import MemoryStore

SETTLE, EVERY = 2.0, 300.0
RESTED = SETTLE + 0.1  # longer than one write takes


class Scene:
    """A script's checkpoint folder, its saver, and a clock that only the test moves."""

    def __init__(self, root: Path, declared: Declared = Declared(), attempt: int = 1) -> None:
        self.folder, self.declared, self.steady = root / "checkpoint", declared, True
        self.folder.mkdir(exist_ok=True)
        self.now, self.said, self.store = 1_000_000.0, list[str](), MemoryStore()
        self.saver = self.begin(attempt)

    def clock(self) -> float:
        return self.now

    def begin(self, attempt: int) -> Saver:
        watch = FolderWatch(
            self.folder,
            Clocks(self.clock, self.clock, lambda seconds: None),
            settle=SETTLE,
            steady=lambda: self.steady,
            say=self.said.append,
            declared=lambda: self.declared,
        )
        target = Target(self.store, "r", attempt, covered=lambda record: {}, guard=lambda: None)
        return Saver(target, watch, Checkpointing(every=EVERY), say=self.said.append, clock=self.clock)

    def write(self, name: str, text: str) -> None:
        """In place."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (self.now, self.now))

    def replace(self, name: str, text: str) -> None:
        """Beside, then renamed."""
        self.write(f"{name}.tmp", text)
        (self.folder / f"{name}.tmp").replace(self.folder / name)

    def remove(self, name: str) -> None:
        (self.folder / name).unlink()

    def after(self, seconds: float) -> dict[str, str]:
        self.now += seconds
        self.saver.tick()
        return self.saved()

    def killed(self) -> dict[str, str]:
        self.steady = False
        self.saver.final(trusted=False)
        return self.saved()

    def saved(self) -> dict[str, str]:
        """The files that the next attempt would find."""
        target = self.folder.with_name("restored")
        if checkpoints.restore_newest(self.store, "r", target, before=10) is None:
            return {}
        files = (path for path in target.rglob("*") if path.is_file())
        return {str(path.relative_to(target)): path.read_text() for path in files}


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_first_copy_is_made_as_soon_as_something_rests(scene: Scene) -> None:
    scene.write("model.pt", "1")
    assert scene.after(1) == {}
    assert scene.after(1) == {"model.pt": "1"}


def test_later_copies_wait_for_every(scene: Scene) -> None:
    scene.write("model.pt", "1")
    scene.after(SETTLE)
    scene.write("model.pt", "2")
    assert scene.after(SETTLE) == {"model.pt": "1"}
    assert scene.after(EVERY) == {"model.pt": "2"}


def test_first_file_of_its_name_does_not_wait_for_every(scene: Scene) -> None:
    scene.write("args.yaml", "lr")
    scene.after(SETTLE)
    scene.write("last.pt", "1")
    assert scene.after(SETTLE) == {"args.yaml": "lr", "last.pt": "1"}


def test_complete_units_are_taken_while_another_is_written(scene: Scene) -> None:
    scene.write("checkpoint-20/model.pt", "20")
    scene.now += 1.5
    scene.write("checkpoint-40/model.pt", "4")
    assert scene.after(0.5) == {"checkpoint-20/model.pt": "20"}


def test_units_saved_twice_a_second_are_kept_after_a_kill(scene: Scene) -> None:
    for n in range(20):
        scene.write(f"epoch={n}.ckpt", str(n))
        scene.after(0.5)
    assert max(map(int, scene.killed().values())) == 15, "all but those younger than the resting time"
    assert "epoch=16.ckpt, epoch=17.ckpt, epoch=18.ckpt and 1 more are not saved" in scene.said[-1]


def test_files_of_one_save_by_number_are_taken_together(scene: Scene) -> None:
    scene.write("model-epoch-5.pt", "5")
    scene.now += 1.5
    scene.write("optimizer-epoch-5.pt", "5")
    assert scene.after(1.0) == {}, "the first is at rest, the unit is not"
    assert len(scene.after(1.0)) == 2


def test_file_replaced_twice_a_second_is_saved_by_its_versions(scene: Scene) -> None:
    for n in range(8):
        scene.replace("last.pt", str(n))
        scene.after(0.5)
    assert scene.saved() == {"last.pt": "0"}
    for n in range(8, 20):
        scene.replace("last.pt", str(n))
        scene.after(0.5)
    kept = scene.killed()
    assert 10 <= int(kept["last.pt"]) <= 19, kept


def test_two_files_replaced_in_turn_are_never_mixed(scene: Scene) -> None:
    for n in range(20):
        scene.replace("model.pt", str(n))
        scene.after(0.25)
        scene.replace("optimizer.pt", str(n))
        scene.after(0.25)
    assert scene.killed() == {}


def test_file_replaced_by_rename_beside_one_rewritten_is_not_taken_alone(scene: Scene) -> None:
    for n in range(40):
        scene.replace("model.pt", str(n))
        scene.write("state.json", str(n))
        scene.after(0.5)
    assert scene.saved() == {}


def test_file_rewritten_in_place_too_often_is_said_once(scene: Scene) -> None:
    for n in range(100):
        scene.write("model.pt", str(n))
        scene.after(0.5)
    assert scene.saved() == {}
    [said] = scene.said
    assert said.startswith("model.pt is rewritten so often that it never rests for 2 s")
    assert "write to a temporary name, then rename" in said


def test_last_quiet_copy_stays_when_a_newer_one_is_torn(scene: Scene) -> None:
    scene.write("latest", "checkpoint-20")
    scene.write("checkpoint-20/model.pt", "20")
    scene.after(SETTLE)
    scene.write("checkpoint-40/model.pt", "40")
    scene.after(RESTED)
    scene.write("latest", "checkpo")
    expected = {"latest": "checkpoint-20", "checkpoint-20/model.pt": "20", "checkpoint-40/model.pt": "40"}
    assert scene.killed() == expected


def test_old_pointer_goes_with_the_unit_that_it_names(scene: Scene) -> None:
    """The script has removed that unit meanwhile."""
    scene.write("latest", "checkpoint-20")
    scene.write("checkpoint-20/model.pt", "20")
    scene.after(SETTLE)
    scene.write("checkpoint-40/model.pt", "40")
    scene.remove("checkpoint-20/model.pt")
    scene.after(RESTED)
    scene.write("latest", "checkpo")
    found = scene.killed()
    assert found["latest"] == "checkpoint-20" and found["checkpoint-20/model.pt"] == "20"
    assert found["checkpoint-40/model.pt"] == "40"


def test_restored_pointer_is_kept_when_it_is_torn_later(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.write("latest", "checkpoint-20")
    scene.write("checkpoint-20/model.pt", "20")
    scene.saver = scene.begin(attempt=2)
    scene.write("checkpoint-40/model.pt", "40")
    scene.after(SETTLE / 2)
    scene.write("latest", "che")
    found = scene.after(SETTLE / 2)
    assert found["latest"] == "checkpoint-20" and found["checkpoint-40/model.pt"] == "40"


def test_unit_that_is_being_removed_is_not_taken(scene: Scene) -> None:
    scene.write("checkpoint-20/a.pt", "20")
    scene.write("checkpoint-20/b.pt", "20")
    scene.write("checkpoint-40/a.pt", "40")
    scene.after(1)
    scene.remove("checkpoint-20/a.pt")
    assert scene.after(1) == {"checkpoint-40/a.pt": "40"}


def test_removal_of_old_units_alone_makes_no_checkpoint(scene: Scene) -> None:
    scene.write("checkpoint-20/a.pt", "20")
    scene.write("checkpoint-40/a.pt", "40")
    scene.after(SETTLE)
    scene.remove("checkpoint-20/a.pt")
    assert len(scene.after(2 * EVERY)) == 2 and scene.saver.commits == 1


def test_unit_rewritten_after_its_rest_counts_with_the_lump(scene: Scene) -> None:
    scene.write("checkpoint-1.pt", "1")
    scene.write("state.json", "1")
    scene.after(RESTED)
    scene.now += EVERY
    scene.write("checkpoint-1.pt", "2")
    scene.after(1.5)
    scene.write("state.json", "tw")
    assert scene.after(1.5) == {"checkpoint-1.pt": "1", "state.json": "1"}, "no mix of two moments"
    scene.write("state.json", "2")
    assert scene.after(SETTLE) == {"checkpoint-1.pt": "2", "state.json": "2"}


def test_new_temporary_file_does_not_hide_files_at_rest(scene: Scene) -> None:
    scene.write("last.pt", "1")
    scene.after(SETTLE)
    scene.write("last.pt", "2")
    scene.after(2 * SETTLE)
    scene.write("last.pt.tmp", "thr")
    assert scene.killed() == {"last.pt": "2"}


def test_declared_file_is_taken_at_once_and_its_scratch_never(tmp_path: Path) -> None:
    scene = Scene(tmp_path, Declared(("lightning.ckpt",), (".lightning.ckpt.new",)))
    scene.write("lightning.ckpt", "1")
    scene.write(".lightning.ckpt.new", "tw")
    assert scene.after(0) == {"lightning.ckpt": "1"}
    scene.now += 0.1
    scene.replace("lightning.ckpt", "2")
    assert scene.killed() == {"lightning.ckpt": "2"} and scene.said == []


def test_marked_checkpoint_is_taken_at_once_and_an_unmarked_one_never(tmp_path: Path) -> None:
    scene = Scene(tmp_path, Declared(marked={"trainer": "done"}))
    scene.write("trainer/checkpoint-5/model.pt", "5")
    scene.write("trainer/checkpoint-10/model.pt", "10")
    assert scene.after(0.1) == {}
    handoff.write(scene.folder / "trainer/checkpoint-5/done", {"files": {"model.pt": 1}})
    assert scene.after(0.1)["trainer/checkpoint-5/model.pt"] == "5"
    assert "trainer/checkpoint-10/model.pt" not in scene.after(100 * SETTLE)
    assert "trainer/checkpoint-10/model.pt" not in scene.killed()


def test_unit_rewritten_while_it_is_sent_is_not_committed(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = checkpoints.send

    def meanwhile(*given: object, **more: object) -> object:
        rows = send(*given, **more)  # type: ignore[arg-type]
        scene.now += 1
        scene.write("checkpoint-20.pt", "21")
        return rows

    scene.write("checkpoint-20.pt", "20")
    monkeypatch.setattr(checkpoints, "send", meanwhile)
    scene.now += SETTLE
    assert scene.saver.try_tick()
    assert scene.saved() == {} and "rewritten while it was being sent" in scene.said[0]


def test_pointer_is_not_taken_without_the_unit_it_may_name(scene: Scene) -> None:
    """Replaced by rename twice a second, while units are removed before they rest."""
    for n in range(30):
        scene.write(f"checkpoint-{n}.pt", str(n))
        if n >= 2:
            scene.remove(f"checkpoint-{n - 2}.pt")
        scene.replace("latest", f"checkpoint-{n}.pt")
        found = scene.after(0.5)
        assert found.get("latest", "checkpoint-0.pt") in {*found, "checkpoint-0.pt"}
    found = scene.killed()
    assert "latest" not in found or found["latest"] in found
