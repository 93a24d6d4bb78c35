"""Sweeps are written once, and what changes gets a new number."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hostler.errors import DamagedError, MissingError
from hostler.records import layout
from hostler.records.run.state import RunState
from hostler.records.sweep import sweeps
from hostler.spec.job import Job, Objective, Source, to_json
from hostler.store import Store
from hostler.store.folder import FolderStore

JOB = Job(name="s", command=("python", "train.py"), runs=({"lr": 0.1}, {"lr": 0.2}), tags=("base",))


def test_a_sweep_is_submitted_once(store: Store) -> None:
    assert sweeps.submit(store, JOB)
    assert not sweeps.submit(store, replace(JOB, command=("other",)))
    assert sweeps.load(store, "s") == JOB
    assert sweeps.names(store) == ["s"]
    assert [*sweeps.run_ids(JOB)] == [JOB.run_id(0), JOB.run_id(1)]


def test_an_edit_is_a_new_version_and_the_newest_holds(store: Store) -> None:
    sweeps.submit(store, JOB)
    edited = replace(JOB, runs=({"lr": 0.3},))
    assert sweeps.submit(store, edited, version=2)
    assert sweeps.load_version(store, "s") == (edited, 2)


def test_of_many_submitters_one_wins(store: Store) -> None:
    won: list[int] = []

    def submit(me: int) -> None:
        if sweeps.submit(store, replace(JOB, title=str(me))):
            won.append(me)

    threads = [threading.Thread(target=submit, args=(me,)) for me in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sweeps.load(store, "s").title == str(won[0])
    assert len(won) == 1


def test_a_sweep_that_is_not_there_is_missing(store: Store) -> None:
    with pytest.raises(MissingError, match="no sweep named 'none'"):
        sweeps.load(store, "none")
    assert not sweeps.is_there(store, "none")
    assert sweeps.names(store) == []


def test_a_halt_holds_until_it_is_lifted(store: Store) -> None:
    assert sweeps.halted(store, "s") is None
    assert sweeps.halt(store, "s", "the same error", by="a")
    assert sweeps.halt(store, "s", "again")
    assert (sweeps.halted(store, "s") or {})["why"] == "the same error"
    sweeps.lift(store, "s")
    sweeps.lift(store, "s")
    assert sweeps.halted(store, "s") is None
    assert sweeps.halt(store, "s", "another")
    assert (sweeps.halted(store, "s") or {})["why"] == "another"


def test_tags_are_added_and_removed_for_one_run_or_all(store: Store) -> None:
    run = JOB.run_id(0)
    sweeps.tag(store, "s", run, ["good", "good", "new"], [])
    sweeps.tag(store, "s", run, [], ["new"])
    sweeps.tag(store, "s", "", ["paper"], ["base"])
    assert sweeps.tags(store, JOB) == {"": ["paper"], run: ["good"]}


def test_stray_name_among_tags_is_said_and_changes_nothing(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "tagged")
    sweeps.submit(store, job := Job(name="s", command=("x",)))
    sweeps.tag(store, "s", "", ["a"], [])
    (tmp_path / "tagged" / layout.tags("s") / "\x01").write_bytes(b"{}")
    said = list[str]()
    assert sweeps.tags(store, job, said.append) == {"": ["a"]} == sweeps.tags(store, job)
    assert len(said) == 1 and "passed over" in said[0] and "\x01" not in said[0]


def test_tags_given_at_once_are_all_there(store: Store) -> None:
    threads = [
        threading.Thread(target=sweeps.tag, args=(store, "s", JOB.run_id(0), [f"t{me}"], []))
        for me in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(sweeps.tags(store, JOB)[JOB.run_id(0)]) == [f"t{me}" for me in range(8)]


def test_the_trash_is_entered_and_left(store: Store) -> None:
    first, second = JOB.run_id(0), JOB.run_id(1)
    for _ in range(2):
        sweeps.put_in_trash(store, "s", first)
    sweeps.put_in_trash(store, "s", second)
    assert sweeps.trashed(store, "s") == {first: 1, second: 1}
    for _ in range(2):
        sweeps.take_out_of_trash(store, "s", first)
    assert sweeps.trashed(store, "s") == {second: 1}
    sweeps.put_in_trash(store, "s", first)
    assert sweeps.trashed(store, "s") == {first: 3, second: 1}


def test_a_reopen_may_bring_other_code() -> None:
    job = replace(JOB, source=Source(snapshot="old", commit="c"))
    assert sweeps.with_source(job, RunState()) == sweeps.with_source(job, RunState(reopened={"source": None}))
    assert sweeps.with_source(job, RunState(reopened={"source": {"snapshot": "new"}})).source == Source(
        snapshot="new", commit="c"
    )
    newer = {"snapshot": "new", "commit": None, "": 1, "of a newer hostler": "x", "ref": ["no text"]}
    assert sweeps.with_source(job, RunState(claim={"source": newer})).source == Source(snapshot="new")


@pytest.mark.parametrize(
    "odd",
    [{"metric": 5.3e16}, {"goal": ["max"]}, {"title": 7}, {"objectives": [{"name": 1.5, "goal": "max"}]}],
)
def test_spec_whose_text_is_something_else_is_damaged(odd: Mapping[str, Any]) -> None:
    """Whoever shows it would join it to other texts."""
    record = to_json(Job(name="grid", command=("true",), metric="loss", objectives=(Objective("loss"),)))
    assert sweeps.job_of(record, "spec").objectives == (Objective("loss"),)
    with pytest.raises(DamagedError, match="spec is not what hostler writes there"):
        sweeps.job_of({**record, **odd}, "spec")
