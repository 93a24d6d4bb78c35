from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hostler.records import layout
from hostler.records.rows import rows
from hostler.records.run import log as run_log
from hostler.records.run.log import RunKey
from hostler.records.series import packing, segments
from hostler.store.base import StoreError
from hostler.worker import compactor
from worker_world import World

SCRIPT = """
import json, os
for step in range(3):
    print(json.dumps({"step": step, "loss": 1.0 / (step + 1)}))
"""


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def keys(world: World, prefix: str) -> list[str]:
    return [entry.key for entry in world.store.list(prefix)]


def test_a_worker_packs_what_it_ended_from_memory(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "RUNS", 4)
    monkeypatch.setattr(packing, "pack", lambda *given: pytest.fail("it was read back"))
    job = world.submit(SCRIPT, runs=[{"lr": n} for n in range(8)])
    assert world.work() == 0
    found = packing.read(world.store, job.name)
    assert [segment.rows for segment in found.values()] == [4, 4]
    newest = run_log.heads(world.store, job.name)
    assert sorted(packing.covered(found, newest).rows) == [job.run_id(n) for n in range(8)]
    group = next(one for one in found[1].header["tracks"] if "loss" in one["names"])
    assert group["counts"] == [3, 3, 3, 3]


def test_a_few_runs_are_not_worth_a_segment(world: World) -> None:
    job = world.submit(SCRIPT, runs=[{"lr": n} for n in range(2)])
    world.work()
    assert keys(world, layout.segments(job.name)) == []


def test_what_is_left_goes_when_the_worker_leaves(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compactor, "FEW", 2)
    job = world.submit(SCRIPT, runs=[{"lr": n} for n in range(3)])
    world.work()
    assert (
        len(
            packing.ends(
                world.store, job.name, {**run_log.heads(world.store, job.name), "x": 1, "y": 2, "z": 3}
            )
        )
        == 3
    )


def test_retried_run_is_packed_with_its_whole_curve(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "RUNS", 1)
    script = SCRIPT + "\nassert os.environ['HOSTLER_ATTEMPT'] != '1'\n"
    job = world.submit(script, command=(sys.executable, "-u", "train.py"), retries=2)
    assert world.work() == 0
    (segment,) = packing.read(world.store, job.name).values()
    key = RunKey(job.name, segment.runs[0])
    end = packing.end_of(world.store, key, segment.ks[0])
    assert end is not None and end["state"] == "done"
    own = segments.packed(key.run, segment.ks[0], end, {}, packing.points(world.store, key.run, end))
    loss = next(track for track in own.tracks or () if "loss" in track.names)
    group = next(one for one in segment.header["tracks"] if "loss" in one["names"])
    assert group["counts"] == [len(loss.steps)]


def test_a_segment_that_cannot_be_written_costs_no_run(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "RUNS", 2)

    def refuse(*given: object) -> int:
        raise StoreError("no room for segments")

    monkeypatch.setattr(segments, "write", refuse)
    world.submit(SCRIPT, runs=[{"lr": n} for n in range(4)])
    assert world.work() == 0
    assert [row.state for row in rows(world.store)] == ["done"] * 4
    assert any("no room for segments" in line for line in world.said)


def test_parameters_a_script_chose_and_its_defaults_are_recorded(world: World) -> None:
    script = """
from dataclasses import dataclass
import hostler

@dataclass
class Config:
    lr: float = 0.1
    width: int = 8

run = hostler.start(Config(lr=0.3))
run.log(loss=1.0)
run.finish()
"""
    from hostler.records import defaults

    source = str(Path(__file__).parents[3] / "src")
    job = world.submit(script, runs=[{"lr": 0.3}], env={"PYTHONPATH": source})
    assert world.work() == 0
    end = packing.end_of(world.store, RunKey(job.name, job.run_id(0)), 2)
    assert end is not None and end["config"] == {"width": 8}
    (known,) = defaults.history(world.store)
    assert known[1][" ".join(job.command)] == {"lr": 0.1, "width": 8}
