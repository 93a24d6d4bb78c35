"""Progress of scripts that save often, are killed, or rewrite files: which checkpoints come of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostler.attempt.folder_parts import Declared
from hostler.records.checkpoint import checkpoints
from hostler.records.run import handoff
from saver_world import EVERY, RESTED, SETTLE, Scene


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
    assert max(map(int, scene.killed().values())) == 18, "all but the one that may be half written"
    assert "epoch=19.ckpt is not saved: it may have changed when the process died" in scene.said[-1]


def test_newest_two_units_are_kept_after_a_kill(scene: Scene) -> None:
    """The script removes older ones long before they rest."""
    for n in range(20):
        scene.write(f"ckpt_{n}.pt", str(n))
        if n >= 2:
            scene.remove(f"ckpt_{n - 2}.pt")
        found = scene.after(0.3)
        assert n == 0 or found, "the first copy does not wait for a rest"
    assert scene.killed() == {"ckpt_18.pt": "18"}


def test_unit_written_after_a_later_one_began_is_not_complete(scene: Scene) -> None:
    scene.write("ckpt_1.pt", "1")
    scene.now += 0.3
    scene.write("ckpt_2.pt", "2")
    scene.now += 0.3
    scene.write("ckpt_1.pt", "on")
    assert scene.after(0.1) == {} and scene.killed() == {}


def test_numbered_parts_of_one_save_must_rest(scene: Scene) -> None:
    for n in range(4):
        scene.write(f"model_{n}.pt", str(n))
        scene.now += 0.3
    assert scene.after(0.1) == {} and scene.killed() == {}


def test_last_and_best_replaced_by_rename_are_both_kept(scene: Scene) -> None:
    for n in range(30):
        scene.replace("last.pt", str(n))
        if n % 3 == 0:
            scene.replace("model_best.pt", str(n))
        scene.after(0.3)
    found = scene.killed()
    assert int(found["last.pt"]) >= 27 and int(found["model_best.pt"]) >= 21, found


def test_older_last_is_never_saved_over_a_newer_one(scene: Scene) -> None:
    """The best is rewritten in place too often to rest; the last is torn at the kill."""
    scene.write("last.pt", "1")
    scene.write("best.pt", "1")
    scene.after(RESTED)
    scene.write("last.pt", "2")
    for n in range(200):
        scene.write("best.pt", str(n))
        scene.after(1.9)
    assert scene.saved() == {"last.pt": "2", "best.pt": "1"}
    scene.write("last.pt", "torn")
    assert scene.killed() == {"last.pt": "2", "best.pt": "1"}


def test_best_that_is_half_written_is_kept_as_it_was(scene: Scene) -> None:
    scene.write("last.pt", "1")
    scene.write("best.pt", "1")
    scene.after(RESTED)
    scene.write("best.pt", "hal")
    scene.write("last.pt", "2")
    scene.now += 1.5
    scene.write("best.pt", "half")
    scene.after(RESTED - 1.5)
    assert scene.killed() == {"last.pt": "2", "best.pt": "1"}


def test_torn_best_beside_a_declared_file_is_kept_unchanged(tmp_path: Path) -> None:
    scene = Scene(tmp_path, Declared(("lightning.ckpt",)))
    scene.write("lightning.ckpt", "1")
    scene.write("best.pt", "1")
    scene.after(RESTED)
    scene.write("best.pt", "hal")
    scene.replace("lightning.ckpt", "2")
    assert scene.killed() == {"lightning.ckpt": "2", "best.pt": "1"}


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
    assert scene.killed() == {"last.pt": "18"}, "the newest that was replaced"


def test_version_is_kept_though_looks_find_the_file_at_rest(scene: Scene) -> None:
    """Replaced as often as it takes to rest, on a disk that holds nothing else: a kill comes before the next
    rest."""
    for n in range(12):
        scene.replace("last.pt", str(n))
        scene.after(1.0)
        scene.after(1.0 + n % 2 * 0.1)
    assert scene.saved() == {"last.pt": "0"}
    scene.replace("last.pt", "12")
    scene.after(0.5)
    assert scene.killed() == {"last.pt": "11"}


def test_version_older_than_the_saved_one_is_forgotten(scene: Scene) -> None:
    for n in range(4):
        scene.replace("last.pt", str(n))
        scene.after(0.5)
    scene.after(EVERY)
    assert scene.saved() == {"last.pt": "3"}
    scene.write("last.pt", "torn")
    assert scene.killed() == {"last.pt": "3"}
    assert not list(scene.folder.with_name("versions").iterdir()), "no second copy stays on the disk"


def test_two_files_replaced_in_turn_are_never_mixed(scene: Scene) -> None:
    for n in range(20):
        scene.replace("model.pt", str(n))
        scene.after(0.25)
        scene.replace("optimizer.pt", str(n))
        scene.after(0.25)
    assert scene.killed() == {}


def test_advice_for_two_files_replaced_in_turn_is_one_file(scene: Scene) -> None:
    for n in range(100):
        scene.replace("model.pt", str(n))
        scene.replace("optimizer.pt", str(n))
        scene.after(0.3)
    [said] = scene.said
    assert said.startswith(
        "model.pt, optimizer.pt are rewritten so often that they are never unchanged for 2 s"
    )
    assert "save them in one file" in said and "checkpoint-20.pt" in said


def test_renamed_file_beside_a_rewritten_one_is_not_taken_alone(scene: Scene) -> None:
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
    assert said.startswith("model.pt is rewritten so often that it is never unchanged for 2 s")
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


def test_marked_checkpoint_is_taken_at_once_an_unmarked_never(tmp_path: Path) -> None:
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


@pytest.mark.parametrize("log", ["train.log", "logs/metrics.csv", "runs/events.out.tfevents.17.host.1"])
def test_log_that_grows_all_the_time_holds_nothing_back(scene: Scene, log: str) -> None:
    scene.write("last.pt", "1")
    for n in range(1, 6):
        scene.write(log, "line\n" * n)
        saved = scene.after(0.6)
    assert saved == {"last.pt": "1", log: "line\n" * 4}
    scene.write("last.pt", "2")
    for n in range(6, 12):
        scene.write(log, "line\n" * n)
        scene.after(0.6)
    assert scene.killed()["last.pt"] == "2"


def test_log_that_grew_since_the_last_look_holds_nothing_back(scene: Scene) -> None:
    scene.write("train.log", "a\n")
    scene.write("last.pt", "1")
    scene.after(SETTLE)
    scene.write("last.pt", "2")
    scene.after(RESTED)
    scene.write("train.log", "a\nb\n")
    assert scene.killed() == {"last.pt": "2", "train.log": "a\nb\n"}


def test_growing_log_alone_makes_no_checkpoint(scene: Scene) -> None:
    scene.write("last.pt", "1")
    scene.write("train.log", "a\n")
    scene.after(RESTED)
    for n in range(2, 6):
        scene.write("train.log", "a\n" * n)
        scene.after(EVERY / 2 if n == 5 else 0.5)
    assert scene.saver.commits == 1


def test_table_that_is_rewritten_shorter_counts_with_the_others(scene: Scene) -> None:
    for text in ("a\n", "a\nb\n", "a"):
        scene.write("last.pt", text)
        scene.write("history.csv", text)
        assert scene.after(0.5) == {}
    assert scene.after(SETTLE) == {"last.pt": "a", "history.csv": "a"}
