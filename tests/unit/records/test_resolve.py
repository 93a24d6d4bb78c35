"""From what a person types to runs."""

from __future__ import annotations

import pytest

from hostler.errors import MissingError, UsageError
from hostler.records.run import resolve
from hostler.records.run.log import RunKey
from hostler.records.sweep import sweeps
from hostler.spec.job import Job
from hostler.spec.names import slug
from hostler.store.memory import MemoryStore

SIZES = {"train": 1, "train-big": 3, "other": 12, "0000001-odd": 1}


@pytest.fixture
def jobs(memory: MemoryStore) -> dict[str, Job]:
    made = {
        name: Job(name=name, command=("x",), runs=tuple({"i": i} for i in range(size)))
        for name, size in SIZES.items()
    }
    for job in made.values():
        assert sweeps.submit(memory, job)
    return made


def keys(job: Job, *indices: int) -> list[RunKey]:
    return [RunKey(job.name, job.run_id(i)) for i in indices]


def test_sweep_name_means_all_its_runs_and_beats_longer_names(
    memory: MemoryStore, jobs: dict[str, Job]
) -> None:
    assert resolve.runs(memory, "train-big") == keys(jobs["train-big"], 0, 1, 2)
    assert resolve.runs(memory, "train") == keys(jobs["train"], 0)
    assert resolve.run(memory, "train") == keys(jobs["train"], 0)[0]


def test_the_beginning_of_one_name_is_enough(memory: MemoryStore, jobs: dict[str, Job]) -> None:
    assert len(resolve.runs(memory, "oth")) == 12
    assert resolve.run(memory, "train-b/2") == keys(jobs["train-big"], 2)[0]


def test_the_beginning_of_two_is_refused_and_they_are_named(
    memory: MemoryStore, jobs: dict[str, Job]
) -> None:
    with pytest.raises(UsageError, match="train, train-big"):
        resolve.runs(memory, "tra")


@pytest.mark.parametrize("cut", [None, -1, -5, -7, -9])
def test_an_id_or_its_beginning(memory: MemoryStore, jobs: dict[str, Job], cut: int | None) -> None:
    key = keys(jobs["train-big"], 1)[0]
    assert resolve.run(memory, key.run[:cut]) == key


def test_a_runs_id_whose_sweeps_name_begins_anothers(memory: MemoryStore, jobs: dict[str, Job]) -> None:
    key = keys(jobs["train"], 0)[0]
    assert resolve.run(memory, key.run) == key
    assert resolve.run(memory, "0000000-train") == key


def test_the_beginning_of_several_ids_is_refused(memory: MemoryStore, jobs: dict[str, Job]) -> None:
    with pytest.raises(UsageError, match="matches 2 runs"):
        resolve.run(memory, "0000000-tr")


def test_a_sweep_that_is_named_like_an_id(memory: MemoryStore, jobs: dict[str, Job]) -> None:
    assert resolve.run(memory, "0000001-odd") == keys(jobs["0000001-odd"], 0)[0]


def test_one_of_many_must_be_named(memory: MemoryStore, jobs: dict[str, Job]) -> None:
    with pytest.raises(UsageError, match="other/0 … other/11"):
        resolve.run(memory, "other")


@pytest.mark.parametrize(
    "word", ["other/12", "0000012-other", "nothing", "train/²", "0000000-nothing", "other/-1"]
)
def test_what_is_not_there_is_missing(memory: MemoryStore, jobs: dict[str, Job], word: str) -> None:
    with pytest.raises(MissingError):
        resolve.run(memory, word)


def test_a_slip_gets_did_you_mean(memory: MemoryStore, jobs: dict[str, Job]) -> None:
    with pytest.raises(MissingError, match="did you mean other"):
        resolve.runs(memory, "ohter")


@pytest.mark.parametrize("title", ["My Sweep (2)", "läuft/gut", "with/3"])
def test_a_sweep_is_found_by_its_title_too(memory: MemoryStore, title: str) -> None:
    job = Job(name=slug(title), title=title, command=("x",), runs=({}, {"i": 1}))
    sweeps.submit(memory, job)
    assert resolve.sweep(memory, title) == job.name
    assert resolve.run(memory, f"{title}/1") == keys(job, 1)[0]
