"""Ended runs counted by column: the same as run by run, with far fewer reads."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from hostler import settings
from hostler.cli.main import cli
from hostler.errors import DamagedError
from hostler.records import layout, project
from hostler.records.body import encode
from hostler.records.rows import SweepRuns, rows
from hostler.records.run import log
from hostler.records.series import packing
from hostler.records.sweep import summary, sweeps
from hostler.spec import spans
from hostler.spec.job import Job, Objective
from hostler.store import Store, open_store
from hostler.store.folder import FolderStore

RUNS = 240


def total(dice: random.Random) -> dict[str, float]:
    values = [dice.choice([dice.random(), dice.random(), 0.5, math.nan, math.inf]) for _ in range(3)]
    return {"last": values[0], "min": values[1], "max": values[2], "step": 9, "min_step": 3, "max_step": 4}


def an_end(dice: random.Random) -> dict[str, Any]:
    found = {
        "kind": "end",
        "attempt": 1,
        "state": dice.choice(["done", "done", "failed", "stopped", "pruned"]),
    }
    names = dice.choice([(), ("a",), ("a", "b"), ("b", "system/cpu")])
    found |= {"metrics": {name: total(dice) for name in names}, "total": dice.choice([0, 1.5, 7.0])}
    found |= {
        "seconds": 2.5,
        "code": dice.choice(["x", "y", None]),
        "copy_of": dice.choice([None, None, "r-1"]),
    }
    if dice.random() < 0.3:
        kept = {"goal": dice.choice(["max", "min"]), "value": dice.random(), "step": 5}
        found |= {"kept": {"a": kept}, "means": {"a": {"of": dice.choice([3, 5]), "value": dice.random()}}}
    return found


def filled(store: Store, job: Job, seed: int) -> None:
    """A sweep most of whose runs stand in segments; some end later, some run, some wait, some are trashed."""
    dice = random.Random(seed)
    project.ensure(store, "t", settings.timing(one_machine=True))
    assert sweeps.submit(store, job)
    claim = {"kind": "claim", "session": "w-1", "host": "here", "after": None}
    for index in range(RUNS - 10):
        run = job.run_id(index)
        store.put(layout.log_entry(job.name, run, 1), encode(claim))
        if index < RUNS - 20:
            store.put(layout.log_entry(job.name, run, 2), encode(an_end(dice)))
        if index == RUNS - 40:
            packing.compact(store, job)
    for index in (3, 4, RUNS - 22):
        sweeps.put_in_trash(store, job.name, job.run_id(index))
    store.put(layout.log_entry(job.name, job.run_id(7), 3), encode({"kind": "reopen"}))


def a_job(**more: Any) -> Job:
    runs = tuple({"lr": n / 10} for n in range(RUNS))
    return Job(name="s", command=("x",), runs=runs, metric="a", **more)


@pytest.mark.parametrize("of", ["kept", "best", "last", "mean:3"])
@pytest.mark.parametrize("goal", ["max", "min"])
def test_summary_by_column_equals_that_of_rows(of: str, goal: str) -> None:
    store = open_store("memory:")
    job = a_job(goal=goal, of=of, dropped=spans.of([5, RUNS - 1]))
    filled(store, job, seed=hash_of(of, goal))
    found = summary.of_sweep(store, "s")
    expected = summary.summarize(job, rows(store, ["s"], touched=True, trash=True))
    assert repr(replace(found, codes={})) == repr(replace(expected, codes={}))  # NaN is not itself
    assert Counter(found.codes) == Counter(expected.codes)


@pytest.mark.parametrize("of", ["kept", "best", "last", "mean:3"])
def test_leading_runs_of_a_table_are_those_of_rows(of: str) -> None:
    store, by = open_store("memory:"), Objective("a", "max", of)
    job = a_job()
    filled(store, job, seed=5)
    runs = SweepRuns(store, job, by)
    table = runs.ended()
    assert table is not None and len(table.runs) > RUNS // 2
    every = {row.id: row for row in rows(store, ["s"], touched=True, by=by)}
    ranked = summary.ranked(job, [every[run] for run in table.runs], by)
    assert table.leading(10) == [row.id for _, row in ranked[:10]]
    shown = [runs.ended_row(table, run) for run in table.leading(10)]
    assert repr(shown) == repr([row for _, row in ranked[:10]])
    odd = {run for run in table.runs if math.isnan(every[run].metrics.get("a", 0.0))}
    assert odd and set(table.odd()) == odd


def hash_of(*words: str) -> int:
    return sum(map(ord, "".join(words)))


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Keys that are read, and prefixes that are listed with `list `, by stores in folders."""
    seen: list[str] = []
    get, listed, keys = FolderStore.get_part, FolderStore.list, FolderStore.keys

    def get_part(self: FolderStore, key: str, start: int, end: int | None) -> Any:
        seen.append(key)
        return get(self, key, start, end)

    def names(how: Any) -> Any:
        def look(self: FolderStore, prefix: str, *more: Any, **named: Any) -> Any:
            seen.append(f"list {prefix}")
            return how(self, prefix, *more, **named)

        return look

    monkeypatch.setattr(FolderStore, "get_part", get_part)
    monkeypatch.setattr(FolderStore, "list", names(listed))
    monkeypatch.setattr(FolderStore, "keys", names(keys))
    return seen


@pytest.mark.parametrize("words", [["status"], ["best", "s"], ["show", "s/9"]])
def test_verb_reads_the_spec_once_and_no_ended_log(words: list[str], tmp_path: Path, read: list[str]) -> None:
    store = open_store(str(tmp_path / "store"))
    job = a_job()
    filled(store, job, seed=1)
    packing.compact(store, job)
    for index in range(RUNS - 20, RUNS - 10):
        store.delete(layout.log_entry("s", job.run_id(index), 1))
    store.delete(layout.log_entry("s", job.run_id(7), 3))
    read.clear()
    done = CliRunner().invoke(cli, [*words, "--store", str(tmp_path / "store")])
    assert done.exit_code == 0, done.output
    assert read.count(layout.spec("s", 1)) == 1
    trashed = [job.run_id(index) for index in (3, 4, RUNS - 22)]
    logs = [key for key in read if key.startswith(layout.logs_of("s"))]
    if words[0] == "show":
        assert not any(key.startswith(f"list {layout.logs_of('s')}") for key in read)
        assert all(job.run_id(9) in key for key in logs)
    else:
        assert read.count(f"list {layout.logs_of('s')}") == 1
        assert all(any(run in key for run in trashed) for key in logs)


def test_newest_entries_are_found_among_strays() -> None:
    runs = [f"000000{n}-s-abc" for n in range(4)]
    names = sorted(f"{run}-{k:06d}.json" for run in runs for k in (1, 2, 3))
    assert log.newest_of(names) == dict.fromkeys(runs, 3)
    strays = ["notes.txt", f"{runs[0]}-000004.json~", f"{runs[1]}-00000x.json", "x-000001.json", "a"]
    more = [f"{runs[2]}-1000000.json", f"{runs[3]}-0000009.json", "000000٣-s-abc-000001.json"]
    assert log.newest_of(sorted([*names, *strays])) == dict.fromkeys(runs, 3)
    assert log.newest_of([*names, *more]) == {**dict.fromkeys(runs, 3), runs[2]: 1000000}
    assert log.newest_of([]) == {}


@pytest.mark.parametrize("cells", [[1.0, math.nan], [1.0, math.inf, -math.inf], [1e300, 2.0]])
def test_column_with_an_impossible_number_is_damage(cells: list[float]) -> None:
    log.check_block("seconds", [1.0, 2.5, -3.0], "k")
    log.check_block("seconds", [], "k")
    with pytest.raises(DamagedError, match="k is damaged: its seconds"):
        log.check_block("seconds", cells, "k")
    with pytest.raises(DamagedError, match="its exit"):
        log.check_block("exit", [1.0], "k")
