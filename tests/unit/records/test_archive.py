from __future__ import annotations

import math
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostler.records import layout
from hostler.records.body import decode, encode
from hostler.records.checkpoint import archive, archive_files, checkpoints, outputs
from hostler.records.checkpoint.archive import ArchivedRun, ArchiveTerms
from hostler.records.checkpoint.checkpoints import Place
from hostler.records.checkpoint.tree import hash_file
from hostler.records.run import control
from hostler.records.run.attempt import claim
from hostler.records.run.entries import Claim
from hostler.records.run.log import RunKey, RunLog
from hostler.records.series import segments
from hostler.records.series.metrics import MetricWriter
from hostler.records.series.points import Point
from hostler.records.sweep import sweeps
from hostler.spec.job import Job, Source
from hostler.store import Store, open_store

LOW = ArchiveTerms(2, "loss", "min")


@pytest.fixture
def store() -> Store:
    return open_store("memory:")


def submit(store: Store, name: str, count: int, **given: Any) -> Job:
    job = Job(name=name, command=("x",), runs=tuple({"lr": n} for n in range(count)), metric="loss", **given)
    assert sweeps.submit(store, job)
    return job


def done(
    store: Store, job: Job, index: int, loss: float, folder: Path, state: str = "done"
) -> ArchivedRun | None:
    """A run with a curve and weights; as a candidate."""
    key = RunKey(job.name, job.run_id(index))
    held = claim(store, RunLog(store, key).read_on(), 60.0, lambda: 0.0, Claim("s", facts={"host": "h"}))
    assert held is not None
    MetricWriter(store, key.run, held.number).write(
        [Point(0, 1.0, {"loss": loss + 1}), Point(1, 2.0, {"loss": loss})]
    )
    (folder / "w").mkdir(exist_ok=True)
    (folder / "w" / "weights.bin").write_bytes(f"weights of {key.run} {loss}".encode())
    checkpoints.save(store, key.run, Place(held.number, 1), folder / "w", dict, lambda: None)
    total = {"loss": {"last": loss, "min": loss, "max": loss + 1, "step": 1}}
    held.end(state, attempts=1, metrics=total, host="h")
    assert held.ended is not None
    return archive.candidate(key, *held.ended, LOW)


def enter_all(store: Store, found: list[ArchivedRun | None], terms: ArchiveTerms) -> None:
    for one in found:
        there = archive.entries(store, terms)
        if one and archive.would_stay(one, there, terms):
            archive.enter(store, one, terms)
    for one in archive.beyond(archive.entries(store, terms), terms):
        archive.remove(store, one.run)


def values(store: Store, terms: ArchiveTerms) -> list[float]:
    return [one.value for one in archive.kept(archive.entries(store, terms), terms)]


def test_smallest_values_are_kept_for_min_and_largest_for_max(store: Store, tmp_path: Path) -> None:
    job = submit(store, "s", 4)
    found = [done(store, job, n, loss, tmp_path) for n, loss in enumerate([3.0, 1.0, 4.0, 2.0])]
    enter_all(store, found, LOW)
    assert values(store, LOW) == [1.0, 2.0]
    high = replace(LOW, goal="max")
    enter_all(store, found, high)
    assert values(store, high) == [4.0, 3.0]


def test_every_run_of_every_sweep_is_a_candidate(store: Store, tmp_path: Path) -> None:
    one, two = submit(store, "one", 3), submit(store, "two", 3)
    for n in range(3):
        done(store, one, n, 10.0 + n, tmp_path)
        done(store, two, n, 5.0 + n, tmp_path)
    assert sorted(c.value for c in archive.candidates(store, LOW)) == [5.0, 6.0, 7.0, 10.0, 11.0, 12.0]
    enter_all(store, list(archive.candidates(store, LOW)), replace(LOW, top=4))
    assert values(store, replace(LOW, top=4)) == [5.0, 6.0, 7.0, 10.0]


def test_failed_nan_and_trashed_runs_are_not_archived(store: Store, tmp_path: Path) -> None:
    job = submit(store, "s", 4)
    assert done(store, job, 0, 1.0, tmp_path, state="failed") is None
    assert done(store, job, 1, math.nan, tmp_path) is None
    done(store, job, 2, 2.0, tmp_path)
    done(store, job, 3, 3.0, tmp_path)
    sweeps.put_in_trash(store, "s", job.run_id(2))
    assert [one.value for one in archive.candidates(store, LOW)] == [3.0]


def test_it_shrinks_with_n_and_grows_again(store: Store, tmp_path: Path) -> None:
    job = submit(store, "s", 5)
    found = [done(store, job, n, float(n), tmp_path) for n in range(5)]
    five = replace(LOW, top=5)
    enter_all(store, found, five)
    assert values(store, five) == [0.0, 1.0, 2.0, 3.0, 4.0]
    enter_all(store, [], LOW)
    assert values(store, five) == [0.0, 1.0]
    assert list(store.list(layout.archived(job.run_id(4)))) == []
    enter_all(store, list(archive.candidates(store, five)), five)
    assert values(store, five) == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_entry_has_parameters_curves_weights_and_its_origin(store: Store, tmp_path: Path) -> None:
    job = submit(store, "s", 1, source=Source(snapshot="c" * 64, commit="abc"))
    one = done(store, job, 0, 1.5, tmp_path)
    assert one is not None
    store.put(layout.output_file(one.run, 1, 0), b"report")
    (tmp_path / "r").write_bytes(b"report")
    sha = hash_file(tmp_path / "r")
    rows = [{"name": "report.txt", "size": 6, "sha256": sha, "n": 0}]
    store.put(layout.output_commit(one.run, 1), encode({"run": one.run, "files": rows}))
    assert outputs.newest(store, one.run) is not None
    made = archive.enter(store, one, LOW)
    (entry,) = archive.entries(store, LOW)
    record = entry.record
    assert (record["params"], record["sweep"], record["host"]) == ({"lr": 0}, "s", "h")
    assert record["source"]["snapshot"] == "c" * 64 and record["source"]["commit"] == "abc"
    assert entry.size == made.size > 0
    segment = archive.curves(store, one.run)
    assert segment.header["tracks"][0]["counts"] == [2]
    for row in store.list(layout.run(one.run)):  # the run itself may go: the archive has it all
        store.delete(row.key)
    target = tmp_path / "pulled"
    archive_files.deliver(store, record, target)
    assert (target / "checkpoint" / "weights.bin").read_text() == f"weights of {one.run} 1.5"
    assert (target / "outputs" / "report.txt").read_text() == "report"


def test_what_is_tried_again_replaces_what_it_was(store: Store, tmp_path: Path) -> None:
    job = submit(store, "s", 1)
    enter_all(store, [done(store, job, 0, 2.0, tmp_path)], LOW)
    control.retry(store, RunKey("s", job.run_id(0)), fresh=True)
    enter_all(store, [done(store, job, 0, 1.0, tmp_path)], LOW)
    assert values(store, LOW) == [1.0]
    target = tmp_path / "pulled"
    archive_files.deliver(store, archive.entries(store, LOW)[0].record, target)
    assert (target / "checkpoint" / "weights.bin").read_text().endswith(" 1.0")


def test_disk_budget_keeps_what_fits_and_always_the_best() -> None:
    found = [ArchivedRun(f"{n}", "s", float(n), 2, size=100) for n in range(5)]
    terms = ArchiveTerms(4, "loss", "min", size=250)
    assert [one.value for one in archive.kept(found, terms)] == [0.0, 1.0]
    assert [one.value for one in archive.kept(found, replace(terms, size=1))] == [0.0]
    assert archive.kept(found, replace(terms, top=0)) == []


def test_the_trend_outlives_the_models(store: Store, tmp_path: Path) -> None:
    job = submit(store, "s", 4)
    one = replace(LOW, top=1)
    for n, loss in enumerate([3.0, 5.0, 2.0, 1.0]):
        enter_all(store, [done(store, job, n, loss, tmp_path)], one)
    assert values(store, one) == [1.0]
    assert [(line["value"], line["best"]) for line in archive.trend(store, one)] == [
        (3.0, 3.0),
        (2.0, 2.0),
        (1.0, 1.0),
    ]


def test_a_folder_without_commit_is_no_entry(store: Store, tmp_path: Path) -> None:
    job = submit(store, "s", 1)
    one = done(store, job, 0, 2.0, tmp_path)
    assert one is not None
    store.put(layout.archived_file(one.run, 0), b"cut off")
    assert archive.entries(store, LOW) == []
    enter_all(store, [one], LOW)
    assert values(store, LOW) == [2.0]


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=12),
    st.integers(0, 4),
    st.sampled_from(["min", "max"]),
    st.randoms(use_true_random=False),
)
def test_whoever_enters_and_removes_in_any_order_the_best_stay(
    losses: list[int], top: int, goal: str, dice: Any
) -> None:
    """Each looks at some moment, and acts on what it saw later."""
    terms = ArchiveTerms(top, "loss", goal)
    every = [ArchivedRun(f"{n:07d}", "s", float(loss), 2, size=1) for n, loss in enumerate(losses)]
    there: dict[str, ArchivedRun] = {}
    acts: list[tuple[str, str]] = []
    pending = list(every)
    while pending or acts:
        if pending and dice.random() < 0.5:
            one = pending.pop(dice.randrange(len(pending)))
            if archive.would_stay(one, list(there.values()), terms):
                acts.append(("enter", one.run))
            continue
        if dice.random() < 0.5:
            acts += [("remove", one.run) for one in archive.beyond(list(there.values()), terms)]
        if acts:
            what, run = acts.pop(dice.randrange(len(acts)))
            if what == "enter":
                there[run] = every[int(run)]
            else:
                there.pop(run, None)
    assert archive.kept(there.values(), terms) == archive.kept(every, terms)


def test_many_that_enter_at_once_leave_the_best(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "store"))
    job = submit(store, "s", 12)
    found = [done(store, job, n, float((7 * n) % 12), tmp_path) for n in range(12)]
    threads = [threading.Thread(target=enter_all, args=(store, [one], LOW)) for one in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    enter_all(store, [], LOW)
    assert values(store, LOW) == [0.0, 1.0]
    assert len(archive.entries(store, LOW)) == 2


def test_changed_terms_make_a_new_version_and_equal_ones_none(store: Store) -> None:
    assert archive.terms(store) is None
    archive.agree(store, LOW)
    archive.agree(store, LOW)
    archive.agree(store, replace(LOW, top=9, size=5))
    assert archive.terms(store) == ArchiveTerms(9, "loss", "min", 5)
    assert len(list(store.list(layout.archive_terms()))) == 2


def test_curve_too_long_for_a_segment_is_still_archived(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "LARGE", 10)
    one = done(store, submit(store, "s", 1), 0, 0.5, tmp_path)
    assert one is not None
    archive.enter(store, one, LOW)
    kept = archive.curves(store, one.run)
    assert kept.header["apart"] == [] and kept.header["tracks"][0]["counts"] == [2]


def test_entry_of_an_older_hostler_ranks_by_its_last_value(store: Store, tmp_path: Path) -> None:
    job = submit(store, "s", 1)
    enter_all(store, [done(store, job, 0, 1.0, tmp_path)], LOW)
    key = layout.archived_commit(job.run_id(0))
    record = decode(store.get(key).data, key)
    best = archive.entries(store, replace(LOW, goal="max", of="best"))[0]
    assert best.judged == (2.0, 0, "best")
    for name in ("totals", "kept", "means", "of", "step"):
        del record[name]
    store.put(key, encode(record))
    old = archive.entries(store, replace(LOW, goal="max", of="best"))[0]
    assert old.judged == (1.0, None, "last")


def test_archive_ranks_by_the_state_that_is_kept(store: Store, tmp_path: Path) -> None:
    end = {"state": "done", "metrics": {"loss": {"last": 3.0, "step": 9}}}
    kept = {"loss": {"goal": "min", "value": 1.0, "step": 4}}
    one = archive.candidate(RunKey("s", "0000000-s-abc"), 2, {**end, "kept": kept}, LOW)
    assert one is not None and (one.value, one.judged) == (1.0, (1.0, 4, "best"))
