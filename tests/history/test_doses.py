"""The full doses of `make reliability` that no other test has; HOSTLER_DOSE=0.002 takes a part of each.

`make test` has one of them with two kills.

HOSTLER_DOSE=0.002 .venv/bin/python -m pytest tests/history/test_doses.py -m soak -k folder
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
from killer import RUN, farm, keys_of, often, outcome, send, until
from recorder import sweep_as_it_is
from schedule import repeatable
from test_exact_torch import SCRIPT, killed_it_is_the_same
from test_killed_together import in_the_middle, project, submitted, violations, worked
from test_killer import rage

import servers
from hostler.records.checkpoint import checkpoints
from hostler.spec.job import Job

PART = float(os.environ.get("HOSTLER_DOSE", "1"))
SEED = int(os.environ.get("HOSTLER_SEED", "11"))
STORES = ("folder", "seaweed", "gcs", "azurite")
TRAINED = ("loss", "lr", "epoch/best")  # metrics of the torch training


def part_of(whole: float, least: float) -> int:
    """A part of a dose, as large as it is asked for."""
    return round(max(least, PART * whole))


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A fresh store of the kind that the test's parameter names."""
    kind = request.getfixturevalue("store")
    if kind == "gcs":
        request.getfixturevalue("gcs")
        return f"gs://{servers.BUCKET}/dose"
    return str(tmp_path / "store") if kind == "folder" else request.getfixturevalue(f"{kind}_store_url")


def lease_of(url: str) -> float:
    return 8.0 if "://" in url else 3.0


@pytest.mark.soak
@pytest.mark.timeout(14400)
@pytest.mark.parametrize("store", STORES)
def test_ten_thousand_runs_survive_ten_minutes_of_kills(tmp_path: Path, store: str, url: str) -> None:
    workers, seconds = part_of(16, 3), part_of(600, 6)
    runs = part_of(10_000, 12)
    rage(url, tmp_path, runs=runs, workers=workers, seconds=seconds, seed=SEED, lease=lease_of(url))


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("seed", range(5))
def test_torch_training_by_hand_survives_twenty_kills_a_seed(tmp_path: Path, seed: int) -> None:
    """Five seeds are a hundred kills."""
    killed_it_is_the_same(tmp_path, "mlp", part_of(20, 2), seed=SEED + seed)


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("store", STORES)
def test_torch_training_of_a_worker_survives_a_hundred_kills(
    tmp_path_factory: pytest.TempPathFactory, store: str, url: str
) -> None:
    killed_at_work(short(tmp_path_factory), url, kills=part_of(100, 2), seed=SEED)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("store", ["folder"])
def test_torch_training_of_a_worker_survives_two_kills(
    tmp_path_factory: pytest.TempPathFactory, store: str, url: str
) -> None:
    killed_at_work(short(tmp_path_factory), url, kills=2, seed=repeatable())


def short(folders: pytest.TempPathFactory) -> Path:
    """A folder with a short name: a loader's processes make sockets there, of 107 letters at most."""
    return folders.mktemp("t")


def killed_at_work(folder: Path, url: str, *, kills: int, seed: int) -> None:
    """A worker's torch training whose process is killed, each time once it has saved since the last kill."""
    if find_spec("torch") is None:
        servers.missing("torch is not installed")
    chance = random.Random(seed)
    epochs = f"EPOCHS, SIZE, BATCH = {max(4, kills)}"
    script = SCRIPT.replace("sys.argv[1]", "'mlp'").replace("EPOCHS, SIZE, BATCH = 4", epochs)
    with farm(url, folder, {"OMP_NUM_THREADS": "1"}, lease=lease_of(url)) as made:
        (made.code / "train.py").write_text(script)
        command = (sys.executable, "train.py")
        calm = made.submit(Job(name="calm", command=command, **often()))  # type: ignore[arg-type]
        made.finish(calm, workers=1, seconds=600)
        job = made.submit(Job(name="killed", command=command, **often()))  # type: ignore[arg-type]
        [[unhurt], [key]] = keys_of(calm), keys_of(job)
        with made.record(job) as history:
            made.tend(1)
            for _ in range(kills):
                newest = _newest(made.store, key.run)
                until(lambda newest=newest: _newest(made.store, key.run) > newest, 240, why=made.said)  # type: ignore[misc]
                time.sleep(chance.uniform(0.0, 0.2))
                victims = made.processes(RUN)
                history.add("killed", kind=RUN, pids=list(victims))
                for pid in victims:
                    send(pid, signal.SIGKILL)
            made.finish(job, workers=1, seconds=1200)
        [row] = sweep_as_it_is(url, "calm", made.environ, metrics=TRAINED, judged="^$")
        history.expect({unhurt.run: row, key.run: row})
        assert history.close([key.run], made.cache, folder / "tmp") == []
        assert outcome(made.store, key).state.attempts > kills, "it was over before it could be killed"


def _newest(store: checkpoints.Store, run: str) -> int:
    """The newest attempt that has saved something."""
    return max((place.attempt for place in checkpoints.committed(store, run)), default=0)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_group_of_thirty_two_in_one_process_survives_kills(tmp_path: Path) -> None:
    """The process and its worker are killed by turns, each time once all runs have saved since."""
    world, rates = project(tmp_path), [0.001 * (n + 1) for n in range(part_of(32, 4))]
    try:
        for name in ("calm", "killed"):
            submitted(world, name, rates)
        assert {row.together for row in worked(world, "calm")} == {len(rates) - 1}
        begun, attempt = world.start("worker", str(world.store), "--sweep", "killed"), 0
        for n in range(part_of(6, 2)):
            attempt = in_the_middle(world, "killed", after=attempt)
            if n % 2:
                world.kill_workers()  # another one is started in its place
            else:
                for pid in world.processes(holding="hostler train"):
                    send(pid, signal.SIGKILL)
        (tmp_path / "go-on" / "killed").touch()
        begun.communicate(timeout=1200)
        found = worked(world, "killed")
        assert all(row.attempt > part_of(6, 2) for row in found)
        assert violations(world, tmp_path, ["killed"]) == []
    finally:
        world.close()
