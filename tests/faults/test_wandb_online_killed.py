"""A run in W&B online, whose feeder is killed: the next attempt goes on with the same run there."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

import servers
import wandb_stand_in
from hostler.analysis import foreign
from hostler.records.run import tracked
from hostler.spec.tracking import Tracking
from worker_world import World, until

wandb = servers.later("wandb")

TRAIN = """
import json, os, time
place = os.path.join(os.environ["HOSTLER_CHECKPOINT_DIR"], "step")
begun = int(open(place).read()) if os.path.exists(place) else 0
for step in range(begun + 1, 4 + begun):
    print(json.dumps({"step": step, "loss": 1 / step}), flush=True)
    with open(place + ".new", "w") as file:
        file.write(str(step))
    os.replace(place + ".new", place)
while not os.path.exists(os.environ["MARKS"] + "/go"):
    time.sleep(0.05)
raise SystemExit(not begun)
"""
SOON = {"WANDB__FILE_STREAM_TRANSMIT_INTERVAL": "0.2"}  # seconds; 15 by itself


def feeders(folder: Path) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if b"trackers.feeder" in words and str(folder).encode() in words:
            found.append(int(entry.name))
    return found


def test_killed_feeders_run_goes_on_with_its_id_online(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.quick(tracker=120.0)
    with wandb_stand_in.serving() as server:
        reached = {"WANDB_BASE_URL": server.url, "WANDB_API_KEY": wandb_stand_in.KEY}
        tracking = Tracking("wandb", {"mode": "online", "project": "digits"})
        job = world.submit(
            TRAIN, trackers=(tracking,), env={**reached, **SOON}, retries=1, runs=[{"lr": 0.1}]
        )

        def records() -> list[tracked.Tracked]:
            return tracked.read(world.store, world.key(job).run)

        with world.working():
            until(lambda: [len(run.curve("loss")) for run in server.runs.values()] == [3], 200)
            for pid in feeders(world.cache):
                os.kill(pid, signal.SIGKILL)
            world.mark("go").touch()
            until(lambda: [one.state for one in records()][-1:] == ["closed"], 200)
        assert world.state(job).state == "done" and world.state(job).attempts == 2, world.log(job)
        (record,) = records()
        assert record.url.endswith(f"/me/digits/runs/{record.id}"), record
        (run,) = server.runs.values()
        assert run.name == record.id, "both attempts are one run there"
        assert run.curve("loss") == [(n, 1 / n) for n in range(1, 7)], "each step once"
        assert run.config["lr"] == 0.1 and run.told["groupName"] == "job"
        assert run.ends[-1] == 0 and server.unknown == []
        for name, value in reached.items():
            monkeypatch.setenv(name, value)
        try:
            (past,) = foreign.past("wandb", "me/digits")
        finally:
            wandb.teardown()
        assert past.state == "done"
        assert [point.step for point in past.points if "loss" in point.values] == [*range(1, 7)]
