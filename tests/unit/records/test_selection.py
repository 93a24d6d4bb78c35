"""A kept checkpoint is chosen by its step, as the newest, or as the best by the run's metric."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hostler.errors import DamagedError, MissingError, UsageError
from hostler.records import layout
from hostler.records.body import encode
from hostler.records.checkpoint import checkpoints, selection
from hostler.records.checkpoint.checkpoints import Checkpoint, Place
from hostler.records.run import control, resolve
from hostler.records.run.attempt import Attempt, claim
from hostler.records.run.entries import Claim
from hostler.records.run.log import RunKey, RunLog
from hostler.records.series.metrics import FragmentCache, MetricWriter, Origin
from hostler.records.series.points import Point
from hostler.records.sweep import sweeps
from hostler.spec.job import Job
from hostler.spec.ranking import Judged
from hostler.store import Store


def submit(store: Store, **given: Any) -> RunKey:
    job = Job(**{"name": "s", "command": ("x",), "metric": "acc", "goal": "max", **given})
    assert sweeps.submit(store, job)
    return RunKey(job.name, job.run_id(0))


def take(store: Store, key: RunKey) -> Attempt:
    held = claim(store, RunLog(store, key).read_on(), 60.0, lambda: 0.0, Claim("w", facts={"host": "h"}))
    assert held is not None
    return held


def save(
    store: Store, key: RunKey, tmp: Path, attempt: int, number: int, files: dict[str, str], **facts: Any
) -> Checkpoint:
    folder = tmp / f"{attempt}-{number}"
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return checkpoints.save(store, key.run, Place(attempt, number), folder, lambda: facts, lambda: None)


def library(step: int, **others: str) -> dict[str, str]:
    """Files of a checkpoint that the library wrote."""
    top = f"step-{step:012d}"
    return {f"{top}/COMMIT": "", f"{top}/state-0000.json": "{}", **others}


def best_state(number: int, value: float, step: int, metric: str = "acc") -> dict[str, str]:
    """A state that `keep_best` kept, as a folder of a checkpoint."""
    top = f"best/{metric}/step-{number:012d}"
    state = {"metric": metric, "goal": "max", "value": value, "step": step, "number": number}
    text = json.dumps({"state": state, "objects": {"model": {}}})
    return {f"{top}/COMMIT": "", f"{top}/state-0000.json": text, f"{top}/weights": f"of {value}"}


def trained(store: Store, tmp: Path, *values: float) -> RunKey:
    """A run with a checkpoint after each of these values, at steps 10, 20, …"""
    key = submit(store)
    held = take(store, key)
    writer = MetricWriter(store, key.run, held.number)
    for n, value in enumerate(values, start=1):
        writer.write([Point(10 * n, 0.0, {"acc": value})])
        save(store, key, tmp, held.number, n, {"w": str(value)}, position=n, metric_step=10 * n)
    return key


def test_checkpoint_is_chosen_by_its_step_best_or_last(store: Store, tmp_path: Path) -> None:
    key = trained(store, tmp_path, 0.5, 0.9, 0.7)
    for word, step in ((10, 10), (30, 30), ("last", 30), ("best", 20)):
        assert selection.choose(store, key, word).step == step
    assert selection.choose(store, key, "best").value == 0.9


def test_kept_checkpoint_has_the_value_it_covers(store: Store, tmp_path: Path) -> None:
    key = trained(store, tmp_path, 0.5, 0.9)
    control.kill(store, key)
    control.resume(store, key)
    held = take(store, key)
    writer = MetricWriter(store, key.run, held.number)
    writer.continue_from(Origin(1, 1, 1))  # the value of step 20 is not on its chain
    save(store, key, tmp_path, held.number, 3, {"w": "x"}, position=0, metric_step=10)
    writer.write([Point(11, 0.0, {"acc": 0.6})])
    save(store, key, tmp_path, held.number, 4, {"w": "y"}, position=1, metric_step=11)
    writer.write([Point(12, 0.0, {"acc": 0.99})])
    kept = selection.kept(store, key.run, "acc", FragmentCache().update(store, key.run))
    assert [(one.place.step, one.step, one.value) for one in kept] == [
        *((4, 11, 0.6), (3, 10, 0.5), (2, 20, 0.9), (1, 10, 0.5))
    ]
    assert selection.choose(store, key, 10).place == Place(held.number, 3)  # the newest of two


def test_step_of_the_library_is_that_of_its_folder(store: Store, tmp_path: Path) -> None:
    key = submit(store)
    alone = save(store, key, tmp_path, 1, 1, library(150_000), metric_step=149_900)
    several = {f"step-{7:012d}/part-0001.json": ""}
    together = save(store, key, tmp_path, 1, 2, library(7, **several), metric_step=5)
    assert (alone.step, together.step) == (150_000, 5)
    assert save(store, key, tmp_path, 1, 3, {"w": ""}).step == 0


def test_best_is_the_state_that_the_script_kept(store: Store, tmp_path: Path) -> None:
    key = trained(store, tmp_path, 0.5, 0.6)
    files = library(40) | best_state(2, 0.8, 24) | best_state(3, 0.95, 25) | best_state(9, 7.0, 1, "other")
    save(store, key, tmp_path, 1, 9, files, position=2)
    best = selection.choose(store, key, "best")
    assert (best.step, best.value, best.folder) == (25, 0.95, "best/acc")
    checkpoints.restore(store, best.checkpoint, tmp_path / "to", best.folder)
    assert (tmp_path / "to" / "step-000000000003" / "weights").read_text() == "of 0.95"
    assert not (tmp_path / "to" / "best").exists()


def test_best_of_a_manager_is_in_its_newest_checkpoint(store: Store, tmp_path: Path) -> None:
    key = trained(store, tmp_path, 0.5, 0.6)
    best = {"metric": "acc", "goal": "max", "value": 0.97, "step": 12, "number": 4}
    text = json.dumps({"state": {}, "objects": {"manager": {"best": best}}})
    saved = save(store, key, tmp_path, 1, 9, library(40) | {"step-000000000040/state-0000.json": text})
    found = selection.choose(store, key, "best")
    assert (found.checkpoint.place, found.step, found.value, found.folder) == (saved.place, 12, 0.97, "")
    assert found.inside
    assert selection.ranked(store, key, "acc", Judged(0.97, 12, "best")) == found


def test_ranked_weights_are_those_of_the_value_and_step(store: Store, tmp_path: Path) -> None:
    key = trained(store, tmp_path, 0.5, 0.9, 0.7)
    kept = {
        one.value: one
        for one in selection.kept(store, key.run, "acc", FragmentCache().update(store, key.run))
    }
    assert selection.ranked(store, key, "acc", Judged(0.9, kept[0.9].logged, "best")) == kept[0.9]
    last = selection.ranked(store, key, "acc", Judged(0.7, 30, "last"))
    assert last and last.place == kept[0.7].place
    assert selection.ranked(store, key, "acc", Judged(0.95, 25, "best")) is None


@pytest.mark.parametrize(
    "text", ["no JSON", "[]", '{"state": {"metric": "acc", "value": NaN, "step": 1}}', "{}"]
)
def test_best_state_that_cannot_be_read_is_passed_over(store: Store, tmp_path: Path, text: str) -> None:
    key = trained(store, tmp_path, 0.9, 0.6)
    files = library(40) | best_state(1, 1.0, 1) | {"best/acc/step-000000000001/state-0000.json": text}
    save(store, key, tmp_path, 1, 9, files, position=2)
    assert selection.choose(store, key, "best").value == 0.9


def test_nan_is_never_the_best(store: Store, tmp_path: Path) -> None:
    key = trained(store, tmp_path, float("nan"), 0.4, float("nan"))
    assert selection.choose(store, key, "best").value == 0.4


def test_step_that_is_not_kept_names_those_that_are(store: Store, tmp_path: Path) -> None:
    key = trained(store, tmp_path, 0.5, 0.9, 0.7)
    with pytest.raises(MissingError, match="s: step 25 is not kept; kept steps: 10, 20, 30") as error:
        selection.choose(store, key, 25)
    assert error.value.hint == "use s@30" and "\n" not in error.value.message


def test_last_that_cannot_be_read_is_refused_and_named(store: Store, tmp_path: Path) -> None:
    key = trained(store, tmp_path, 0.5, 0.9)
    newest = checkpoints.committed(store, key.run)[0]
    commit = layout.commit(key.run, newest.attempt, newest.step)
    rows = [{"name": "w", "n": 0, "parts": 10**12, "size": 1, "sha256": "0"}]
    store.put(commit, encode({"files": rows}))
    with pytest.raises(DamagedError, match=f"s@last cannot be restored: {commit}") as error:
        selection.choose(store, key, "last")
    assert error.value.hint == "kept steps: 10"
    assert selection.choose(store, key, 10).step == selection.choose(store, key, "best").step == 10


def test_best_without_a_kept_checkpoint_says_what_to_do(store: Store, tmp_path: Path) -> None:
    key = submit(store)
    with pytest.raises(MissingError, match="s: no checkpoint is kept, so there is no s@best") as error:
        selection.choose(store, key, "best")
    assert "HOSTLER_CHECKPOINT_DIR" in error.value.hint
    save(store, key, tmp_path, 1, 1, {"w": ""}, metric_step=7)
    with pytest.raises(MissingError, match="no kept checkpoint has a value of acc") as error:
        selection.choose(store, key, "best")
    assert "name a step: 7" in error.value.hint


def test_best_without_a_metric_says_what_to_do(store: Store, tmp_path: Path) -> None:
    key = submit(store, metric=None)
    save(store, key, tmp_path, 1, 1, {"w": ""}, metric_step=7)
    with pytest.raises(MissingError, match="s@best: s has no metric, so no checkpoint is its best") as error:
        selection.choose(store, key, "best")
    assert "add `metric:`" in error.value.hint and "7" in error.value.hint


def test_fresh_start_leaves_old_checkpoints_to_their_steps(store: Store, tmp_path: Path) -> None:
    key = trained(store, tmp_path, 0.5, 0.9)
    control.kill(store, key)
    control.retry(store, key, fresh=True)
    assert selection.choose(store, key, 20).step == 20
    for word in ("best", "last"):
        with pytest.raises(MissingError):
            selection.choose(store, key, word)


def test_name_with_step_is_split_unless_it_is_a_name(store: Store) -> None:
    submit(store)
    assert resolve.with_step(store, "s@150000") == ("s", 150_000)
    assert resolve.with_step(store, "s/0@best") == ("s/0", "best")
    assert resolve.with_step(store, "s") == ("s", None)
    submit(store, name="a@1")
    assert resolve.with_step(store, "a@1") == ("a@1", None)
    with pytest.raises(UsageError, match="s@bst: 'bst' is not a step") as error:
        resolve.with_step(store, "s@bst")
    assert error.value.hint == "s@150000, s@best or s@last"
