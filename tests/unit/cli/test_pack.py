from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from hostler import env
from hostler.cli import here
from hostler.cli.keep import pack
from hostler.errors import HostlerError, UsageError
from hostler.records import layout
from hostler.records.body import encode
from hostler.records.packs import due
from hostler.records.packs.packed_store import PAUSE, PackedStore, open_store
from hostler.records.run import heartbeats
from hostler.spec.job import Job
from packed_world import submit, take

WEEK = 7 * 86400.0


@pytest.fixture
def store(tmp_path: Path) -> PackedStore:
    return open_store(str(tmp_path / "store"))


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that the verb would have waited."""
    found: list[float] = []
    monkeypatch.setattr(pack.time, "sleep", found.append)
    return found


def over(store: PackedStore, name: str, ended: int = 2, count: int = 2) -> Job:
    job = submit(store, count, name)
    for index in range(ended):
        take(store, job, index).end("done", attempts=1, metrics={})
    return job


def files(store: PackedStore) -> list[str]:
    return [entry.key for entry in store.inner.list("sweeps/") if "/log/" in entry.key]


def verb(store: PackedStore, *names: str, everything: bool = False, older: str | None = None) -> int:
    return pack.command(names, everything, older, store.url, as_json=False)


def test_verb_packs_waits_and_tells(
    store: PackedStore, waited: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    over(store, "grid")
    assert verb(store, "grid") == 0
    told = capsys.readouterr()
    assert told.out == "grid: 2 runs packed, 6 objects gone\n"
    assert "the originals go in 1" in told.err and PAUSE - 5 < waited[0] <= PAUSE
    assert files(store) == []
    assert verb(store, "grid") == 0
    assert capsys.readouterr().out == "grid: packed already\n"
    assert len(waited) == 1


def test_open_sweep_is_refused_in_a_line(
    store: PackedStore, waited: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    over(store, "grid", ended=1)
    assert verb(store, "grid") == 1
    assert capsys.readouterr().out == "grid is not over: 1 run open; hostler status grid\n"
    assert len(files(store)) == 2 and not waited


def test_all_packs_what_is_over_and_old(
    store: PackedStore, waited: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    over(store, "open", ended=1)
    over(store, "young")
    over(store, "old")
    long_ago = time.time() - WEEK - 60
    for path in (Path(store.url) / "sweeps" / "old" / "ends").iterdir():
        os.utime(path, (long_ago, long_ago))
    assert verb(store, everything=True, older="7d") == 0
    assert capsys.readouterr().out.startswith("old: 2 runs packed")
    assert verb(store, everything=True) == 0
    assert capsys.readouterr().out == "old: packed already\nyoung: 2 runs packed, 6 objects gone\n"


def test_damaged_sweep_is_left_alone_and_others_packed(
    store: PackedStore, waited: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    over(store, "grid")
    over(store, "odd")
    store.put(layout.seal("odd", 1), b"HSTL")
    assert verb(store, everything=True) == 1
    told = capsys.readouterr()
    assert told.out == "grid: 2 runs packed, 6 objects gone\n"
    assert "hostler: odd is left alone: sweeps/odd/sealed/000001" in told.err
    assert len(files(store)) == 4


def test_listings_on_a_network_are_waited_for(
    store: PackedStore,
    waited: list[float],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(due, "is_network", lambda folder: True)
    over(store, "grid")
    assert verb(store, "grid") == 0
    assert due.STALE - 5 < waited[0] <= due.STALE and len(waited) == 2
    assert "grid has ended this minute; packed in " in capsys.readouterr().err
    long_ago = time.time() - due.STALE - 1
    over(store, "old")
    for path in (Path(store.url) / "sweeps" / "old" / "log").iterdir():
        os.utime(path, (long_ago, long_ago))
    assert due.unsettled(store, "old") == 0.0


def test_json_has_a_row_for_each_sweep(
    store: PackedStore, waited: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    over(store, "grid")
    assert pack.command(("grid",), False, None, store.url, as_json=True) == 0
    [row] = json.loads(capsys.readouterr().out)
    assert row == {"sweep": "grid", "runs": 2, "gone": 6, "open": 0, "left": 0, "beaten": False}


def test_names_or_all_are_needed_and_ages_checked(store: PackedStore) -> None:
    over(store, "grid")
    with pytest.raises(UsageError, match="or give --all"):
        verb(store)
    with pytest.raises(UsageError, match="--older"):
        verb(store, "grid", older="soon")


def test_older_worker_that_beats_is_waited_for(store: PackedStore, waited: list[float]) -> None:
    over(store, "grid")
    store.put(layout.alive("vm-1"), encode({"sequence": 1, "host": "vm"}))
    with pytest.raises(HostlerError, match="vm-1 is a worker of an older hostler"):
        verb(store, "grid")
    heartbeats.beat(store, "vm-1", 2, {"host": "vm"})
    assert verb(store, "grid") == 0


def test_packing_by_itself_begins_once_a_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTLER_CACHE", str(tmp_path / "cache"))
    started: list[list[str]] = []
    assert due.begin(str(tmp_path), WEEK, started.append)
    assert not due.begin(str(tmp_path), WEEK, started.append)
    assert due.begin("s3://bucket/x", WEEK, started.append)
    assert started[0][3:] == ["pack", "--all", "--older", "604800s", "--store", str(tmp_path)]
    mark = next((env.cache_dir() / "packs").iterdir())
    long_ago = time.time() - due.EVERY - 1
    for mark in (env.cache_dir() / "packs").iterdir():
        os.utime(mark, (long_ago, long_ago))
    assert due.begin(str(tmp_path), WEEK, started.append)


@pytest.mark.parametrize(("text", "began"), [("pack: 7d\n", [WEEK]), ("", [])])
def test_command_in_a_project_with_pack_begins_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, began: list[float]
) -> None:
    (tmp_path / "hostler.yaml").write_text(f"name: p\n{text}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HOSTLER_STORE", raising=False)
    here.project.cache_clear()
    found: list[float] = []
    monkeypatch.setattr(due, "begin", lambda url, age: found.append(age))
    here.open_here(None)
    here.project.cache_clear()
    assert found == began
