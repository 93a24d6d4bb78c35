"""Trainings with the library, by hand and of several ranks, killed at random: histories, and their judge."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

import pytest
from killer import PARENT, RUN, SUPERVISOR, WORKER, Killer, farm, keys_of, often
from library_training import SCRIPT, undisturbed_training
from recorder import Recorder
from schedule import repeatable

from hostler.records.checkpoint import checkpoints
from hostler.spec.job import Job, Resources
from script_world import Scripts, line_of

PART = float(os.environ.get("HOSTLER_DOSE", "1"))


def killed_by_hand(folder: Path, store: str, *, kills: int, steps: int) -> None:
    """A person starts the script again and again; it is killed at random moments, and ends in the end."""
    scripts, chance = Scripts(folder, store=store), random.Random(repeatable())
    scripts.write(SCRIPT)
    how, history = {"STEPS": str(steps), "PACE": "0.02"}, None
    for n in range(kills + 1):
        with scripts.running(**how) as process:
            line_of(process, "begins")
            if history is None:
                history = Recorder(store, folder / "evidence", scripts.key().sweep, scripts.variables())
            if n < kills:
                time.sleep(chance.uniform(0.1, min(0.4, 0.02 * steps / kills)))
                process.send_signal(signal.SIGKILL)
                history.add("killed", kind="script", pid=process.pid)
            out, err = process.communicate(timeout=120)
            assert process.returncode == (0 if n == kills else -signal.SIGKILL), out + err
            history.look()
    assert history is not None
    row = scripts.row()
    history.expect({row.id: undisturbed_training(steps)})
    assert history.close([row.id], folder / scripts.cache, folder / "tmp") == []
    assert row.attempt == kills + 1


def killed_gang(
    folder: Path, *, nodes: int, steps: int, pace: float, kills: int, every: float, lease: float = 3.0
) -> None:
    """Workers carry out one run together, and one process of theirs after the other is killed."""
    with farm(str(folder / "store"), folder, lease=lease) as made:
        (made.code / "train.py").write_text(SCRIPT)
        job = made.submit(
            Job(
                name="gang",
                command=(sys.executable, "train.py"),
                resources=Resources(nodes=nodes),
                env={"STEPS": str(steps), "PACE": str(pace)},
                **often(),  # type: ignore[arg-type]
            )
        )
        [key] = keys_of(job)
        made.words = ("--slots", "1")
        weights = {RUN: 0.4, WORKER: 0.3, SUPERVISOR: 0.15, PARENT: 0.15}
        killer = Killer(made, repeatable(), nodes, weights=weights, freezes=0.0)
        with made.record(job) as history:
            killer.strike(kills, every, lambda: bool(checkpoints.committed(made.store, key.run)))
            made.finish(job, workers=nodes, seconds=240 + steps * pace, meanwhile=killer.let_go_on)
        history.expect({key.run: undisturbed_training(steps, ranks=nodes)})
        assert history.close([key.run], made.cache, folder / "tmp") == []
        assert len(killer.deeds) == kills


@pytest.mark.timeout(300)
def test_script_by_hand_killed_twice_passes_the_checker(tmp_path: Path) -> None:
    killed_by_hand(tmp_path, str(tmp_path / "store"), kills=2, steps=30)


@pytest.mark.timeout(300)
def test_gang_with_a_killed_process_passes_the_checker(tmp_path: Path) -> None:
    killed_gang(tmp_path, nodes=2, steps=60, pace=0.02, kills=1, every=0.3, lease=2.0)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("store", ["folder", "seaweed"])
def test_script_by_hand_survives_a_hundred_kills(
    tmp_path: Path, request: pytest.FixtureRequest, store: str
) -> None:
    url = str(tmp_path / "store") if store == "folder" else request.getfixturevalue("seaweed_store_url")
    kills = round(max(2, 100 * PART))
    killed_by_hand(tmp_path, url, kills=kills, steps=15 * kills)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_gang_of_four_survives_a_kill_each_ten_seconds(tmp_path: Path) -> None:
    kills = round(max(2, 30 * PART))
    killed_gang(tmp_path, nodes=4, steps=100 * kills, pace=0.05, kills=kills, every=10.0)
