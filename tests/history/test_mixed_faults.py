"""Faults mixed at random by a seed, one truth afterwards; a failure names its smallest part to try again."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import proxy
import pytest
import schedule
from killer import TIMES
from mixed import NAME, MixedFarm, Mixer
from recorder import Recorder
from schedule import BUCKET, FOLDER, Deed
from small_disk import small_disk

import servers

ROOT = Path(__file__).parents[2]
HERE = "tests/history/test_mixed_faults.py"
MISSED = "nobody met: "
SHRINKING = 400.0  # seconds after which no further half is tried


@contextmanager
def mixed_farm(place: str, folder: Path, url: str | None, endpoint: str | None) -> Iterator[MixedFarm]:
    """A farm on a small disk of its own, or behind two wires to a bucket."""
    with ExitStack() as stack:
        if place == FOLDER:
            disk = stack.enter_context(small_disk(folder / "disk"))
            room = {"HOSTLER_DISK_MIN": "1000"}
            times = {**TIMES, "lease": 2.0}
            made = MixedFarm(str(folder / "disk" / "store"), folder / "farm", times, room, disk=disk)
        else:
            wires = [stack.enter_context(proxy.running(str(endpoint))) for _ in range(2)]
            times = {**TIMES, "lease": 6.0}
            made = MixedFarm(str(url), folder / "farm", times, wires=wires)
        stack.callback(made.end)
        yield made


def suffer(
    deeds: Sequence[Deed],
    folder: Path,
    place: str,
    runs: int,
    workers: int,
    server: Sequence[str | None],
    each: bool = False,
) -> list[str]:
    """Violations after these deeds; with `each`, kinds of fault that nobody met, too."""
    folder.mkdir(parents=True)
    with mixed_farm(place, folder, *server) as made:
        recorder = Recorder(made.url, folder / "evidence", NAME, made.environ)
        made.history = recorder
        mixer = Mixer(made, recorder, runs, workers)
        mixer.prepare()
        try:
            with recorder:
                mixer.carry_out(deeds, seconds=180.0)
        except AssertionError as error:
            return [f"not finished: {error}"]
        missed = mixer.missed(deeds) if each else []
        return [*mixer.judged(), *(f"{MISSED}{kind}" for kind in missed)]


def dose(
    folder: Path, place: str, seed: int, *, runs: int, workers: int, seconds: float, count: int,
    server: Sequence[str | None] = (None, None), test: str = HERE, each: bool = False,
) -> None:  # fmt: skip
    """One schedule; where it fails, its halves, and the command of the smallest part that still does. `each`:
    every kind of fault once, not so many at random."""
    seed = int(os.environ.get("HOSTLER_SEED", seed))
    whole = (
        schedule.one_of_each(seed, place, seconds) if each else schedule.schedule(seed, place, seconds, count)
    )
    deeds = schedule.chosen(whole, os.environ.get("HOSTLER_DEEDS"))
    print(f"{len(deeds)} deeds: {schedule.command(test, seed)}")
    found = suffer(deeds, folder / "whole", place, runs, workers, server, each)
    if not found:
        return
    if all(line.startswith(MISSED) for line in found):
        pytest.fail("\n".join([*found, "again: " + schedule.command(test, seed)]), pytrace=False)
    deadline = time.monotonic() + SHRINKING

    def fails(part: range) -> bool:
        if time.monotonic() > deadline:
            return False
        name = folder / f"{part.start}-{part.stop}"
        chosen = deeds[part.start : part.stop]
        return bool(suffer(chosen, name, place, runs, workers, server))

    part = schedule.smallest(len(deeds), fails) if len(deeds) == len(whole) else None
    lines = [*found, "", *map(str, deeds if part is None else deeds[part.start : part.stop])]
    pytest.fail("\n".join([*lines, "again: " + schedule.command(test, seed, part)]), pytrace=False)


@pytest.mark.timeout(1800)
def test_runs_survive_each_fault_once_in_a_folder(tmp_path: Path) -> None:
    """By the commit's seed; `HOSTLER_SEED` repeats one."""
    name = f"{HERE}::test_runs_survive_each_fault_once_in_a_folder"
    seed = schedule.seed_of_commit(ROOT)
    dose(tmp_path, FOLDER, seed, runs=6, workers=2, seconds=5.0, count=0, test=name, each=True)


@pytest.fixture(params=["seaweed", "gcs", "azurite"])
def bucket(request: pytest.FixtureRequest) -> tuple[str, str, str]:
    """Name of a bucket's server, URL of a fresh store on it, and endpoint without a wire between."""
    name = request.param
    if name == "gcs":
        return name, f"gs://{servers.BUCKET}/mixed", request.getfixturevalue("gcs").url
    return name, request.getfixturevalue(f"{name}_store_url"), request.getfixturevalue(f"{name}_url")


@pytest.mark.real
@pytest.mark.timeout(1800)
def test_runs_survive_each_fault_once_in_a_bucket(tmp_path: Path, bucket: tuple[str, str, str]) -> None:
    kind, *server = bucket
    name = f"{HERE}::test_runs_survive_each_fault_once_in_a_bucket[{kind}]"
    seed = schedule.seed_of_commit(ROOT)
    dose(tmp_path, BUCKET, seed, runs=6, workers=2, seconds=5.0, count=0, server=server, test=name, each=True)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_runs_survive_mixed_faults_long_in_a_folder(tmp_path: Path, seed: int) -> None:
    name = f"{HERE}::test_runs_survive_mixed_faults_long_in_a_folder[{seed}]"
    dose(tmp_path, FOLDER, seed, runs=30, workers=4, seconds=30.0, count=60, test=name)


@pytest.mark.soak
@pytest.mark.real
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_runs_survive_mixed_faults_long_in_a_bucket(
    tmp_path: Path, seed: int, bucket: tuple[str, str, str]
) -> None:
    kind, *server = bucket
    name = f"{HERE}::test_runs_survive_mixed_faults_long_in_a_bucket[{kind}-{seed}]"
    dose(tmp_path, BUCKET, seed, runs=30, workers=4, seconds=30.0, count=60, server=server, test=name)
