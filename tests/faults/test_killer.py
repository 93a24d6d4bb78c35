"""Nothing lost, nothing twice: many short runs, workers killed and frozen at random, one truth afterwards.

Each run writes a history, and is judged by tests/history/checker.py, which knows nothing of hostler."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from killer import Killer, farm, keys_of, often, outcome, send
from recorder import undisturbed
from schedule import repeatable

import servers
from frozen import processes
from hostler.emulators.gcs import GcsEmulator
from hostler.spec.job import Job

STEPS = 9

# Knows nothing of hostler but the folder's name. Every fifth saves nothing.
COUNT = f"""
import json, os, sys, time
i = int(sys.argv[sys.argv.index("--i") + 1])
path = os.path.join(os.environ["HOSTLER_CHECKPOINT_DIR"], "state.json")
saves, pace = i % 5 != 4, float(os.environ.get("PACE", "1"))
state = json.load(open(path)) if os.path.exists(path) else {{"step": 0, "total": 0}}
for step in range(state["step"], {STEPS} if saves else 3):
    value = (step * 31 + i * 7) % 101
    print(json.dumps({{"step": step, "value": value}}))
    state = {{"step": step + 1, "total": state["total"] + value}}
    time.sleep(0.02 * pace)
    if saves and step % 3 == 2:
        with open(path + ".tmp", "w") as file:
            json.dump(state, file)
        os.replace(path + ".tmp", path)
        time.sleep(0.3 * pace)
print(json.dumps({{"step": state["step"], "total": state["total"]}}))
"""


def rage(
    url: str,
    folder: Path,
    *,
    runs: int,
    workers: int,
    seconds: float,
    seed: int | None = None,
    **times: float,
) -> None:
    with farm(url, folder, **times) as made:
        (made.code / "count.py").write_text(COUNT)
        job = made.submit(
            Job(
                name="count",
                command=(sys.executable, "count.py"),
                runs=tuple({"i": i} for i in range(runs)),
                **often(),  # type: ignore[arg-type]
            )
        )
        killer = Killer(made, repeatable(seed), workers)
        with made.record(job) as history:
            words = {key.run: ("--i", str(i)) for i, key in enumerate(keys_of(job))}
            history.expect(undisturbed(COUNT, folder / "undisturbed", words))
            made.tend(workers)
            killer.rage(seconds)
            made.finish(job, workers=workers, seconds=240 + runs, meanwhile=killer.let_go_on)
            made.start().wait(60)
        assert history.close(list(words), made.cache, folder / "tmp") == []
        attempts = sum(outcome(made.store, key).state.attempts for key in keys_of(job))
        assert attempts > runs, f"the killer hit nobody: {killer.deeds}"


@pytest.mark.timeout(600)
def test_nothing_is_lost_and_nothing_counted_twice_in_a_folder(tmp_path: Path) -> None:
    rage(str(tmp_path / "store"), tmp_path, runs=8, workers=2, seconds=6)


@pytest.mark.timeout(600)
def test_nothing_is_lost_or_counted_twice_in_a_bucket(tmp_path: Path, seaweed_store_url: str) -> None:
    rage(seaweed_store_url, tmp_path, runs=8, workers=2, seconds=6, lease=6.0)


@pytest.mark.timeout(600)
def test_nothing_is_lost_or_doubled_despite_lost_answers(tmp_path: Path, gcs: GcsEmulator) -> None:
    gcs.faults.rate(0.05, seed=repeatable())
    rage(f"gs://{servers.BUCKET}/k", tmp_path, runs=8, workers=2, seconds=6, lease=6.0)


@pytest.mark.timeout(600)
def test_nothing_is_lost_while_the_bucket_stands_still(
    tmp_path: Path, azurite_store_url: str, azurite_url: str
) -> None:
    """A server that is too busy to answer for eight seconds: longer than a worker tries, and than a lease."""
    with stalling(azurite_url, seconds=8.0, pause=6.0, times=2):
        rage(azurite_store_url, tmp_path, runs=8, workers=2, seconds=12, lease=6.0)


@contextmanager
def stalling(url: str, seconds: float, pause: float, times: int) -> Iterator[None]:
    """Freezes azurite so many times, for so many seconds, with a pause before each."""
    port, over = url.rpartition(":")[2], threading.Event()
    [server] = processes("--blobPort", port)

    def freeze() -> None:
        for _ in range(times):
            if over.wait(pause):
                return
            send(server, signal.SIGSTOP)
            over.wait(seconds)
            send(server, signal.SIGCONT)

    thread = threading.Thread(target=freeze)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("store", ["azurite", "gcs with faults"])
def test_nothing_is_lost_or_doubled_in_every_other_bucket(
    tmp_path: Path, request: pytest.FixtureRequest, store: str
) -> None:
    if store == "gcs with faults":
        request.getfixturevalue("gcs").faults.rate(0.05, seed=6)
        url = f"gs://{servers.BUCKET}/soak"
    else:
        url = request.getfixturevalue("azurite_store_url")
    rage(url, tmp_path, runs=150, workers=6, seconds=40, seed=6, lease=8.0)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_nothing_is_lost_or_doubled_long_in_a_folder(tmp_path: Path) -> None:
    rage(str(tmp_path / "store"), tmp_path, runs=300, workers=6, seconds=60, seed=3)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_nothing_is_lost_or_doubled_long_in_a_real_bucket(tmp_path: Path, seaweed_store_url: str) -> None:
    rage(seaweed_store_url, tmp_path, runs=300, workers=6, seconds=60, seed=4, lease=6.0)
