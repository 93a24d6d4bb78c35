"""What is given to sbatch, word for word; and what its refusals mean."""

# ruff: noqa: E501  (tables)
from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler.backends import arrays as job_arrays
from hostler.backends.base import Launch, PartlyStarted, Question
from hostler.backends.privatefile import PrivateContent
from hostler.backends.slurm import batch
from hostler.backends.slurm.backend import SlurmBackend
from hostler.backends.slurm.refusals import AGAIN, FEWER, NO, SMALLER, refusal
from hostler.backends.terminal import Ran
from hostler.errors import MachineError
from hostler.spec.job import Resources
from hostler.spec.project import Fleet

GOLDEN = Path(__file__).parents[2] / "golden"
LAUNCH = Launch(store="/data/my store", sweeps=("lr-search",), python="python3", runs=200,
                logs="/data/my store/fleets/tau/logs", cache="/scratch/it's")  # fmt: skip


def test_the_slurm_plan_is_word_for_word_what_is_submitted() -> None:
    header = ("#SBATCH --mail-type=END", "module load cuda")
    options = {"partition": "killable", "account": "vision", "qos": "long", "constraint": "a100",
               "time": 86400.0, "header": header}  # fmt: skip
    asked = Resources(cpus=4, gpus=1, memory=16 * 10**9)
    fleet = Fleet(name="tau", scope="cifar", backend="slurm", workers=32, options=options, resources=asked)
    text = SlurmBackend().plan(fleet, LAUNCH).text
    assert text == (GOLDEN / "slurm_plan.txt").read_text().rstrip("\n") + "\n"


@given(runs=st.integers(1, 5000), workers=st.integers(1, 100), limit=st.integers(1, 1000))
def test_every_run_has_a_task_and_arrays_stay_small(runs: int, workers: int, limit: int) -> None:
    arrays = job_arrays.arrays(Fleet("f", "slurm", workers=workers), runs, limit)
    assert sum(one.tasks for one in arrays) == runs and all(one.tasks <= limit for one in arrays)
    assert all(one.runs == 1 and one.at_once <= workers for one in arrays)


@given(runs=st.integers(2, 5000))
def test_fewer_tasks_still_take_every_run(runs: int) -> None:
    arrays = job_arrays.arrays(Fleet("f", "slurm", workers=8), runs)
    while arrays:
        assert sum(one.tasks * (one.runs or 0) for one in arrays) >= runs
        arrays = job_arrays.fewer(arrays)


def test_a_job_says_whose_it_is_and_for_which_sweeps() -> None:
    tau, other = Fleet("tau", "slurm", scope="p"), Fleet("tau-2", "slurm", scope="p")
    for sweeps in ((), ("a",), ("a", "b")):
        said = batch.comment(tau, Launch("s", sweeps))
        assert batch.sweeps_of(tau, said) == sweeps and batch.sweeps_of(other, said) is None
    assert batch.sweeps_of(tau, batch.comment(other, Launch("s", ("a",)))) is None
    many = tuple(f"sweep-{n}" for n in range(1000))
    assert batch.sweeps_of(tau, batch.comment(tau, Launch("s", many))) == ()


@given(path=st.text(min_size=1))
def test_any_path_reaches_the_worker_as_one_word(path: str) -> None:
    script = batch.script(Fleet("f", "slurm"), Launch(store=path), job_arrays.Array(1, 1, 1))
    command = script.split("exec ", 1)[1]
    assert shlex.split(command)[3] == path


@pytest.mark.parametrize(("shape", "words"), [
    ("cpu", ["--cpus-per-task=4", "--mem=15259M"]),
    ("small-gpu", ["--cpus-per-task=4", "--mem=30518M", "--gres=gpu:1"]),
    ("large-gpu", ["--cpus-per-task=16", "--mem=122071M", "--gres=gpu:1"]),
])  # fmt: skip
def test_a_ready_made_shape_is_what_it_says(shape: str, words: list[str]) -> None:
    fleet = Fleet("f", "slurm", options={"shape": shape})
    assert batch.options(fleet, LAUNCH, job_arrays.Array(1, 1, 1))[-len(words) :] == words


def test_the_runs_own_resources_count_where_the_fleet_is_silent() -> None:
    launch = Launch(store="s", resources=Resources(gpus=0.5, nodes=4))
    words = batch.options(Fleet("f", "slurm"), launch, job_arrays.Array(1, 1, 1))
    assert words[-3:] == ["--nodes=4", "--ntasks-per-node=1", "--gres=gpu:1"]


@pytest.mark.parametrize(("gres", "gpus", "words"), [
    (None, 2, ["--gres=gpu:2"]), (None, 0, []), ("gpu", 3, ["--gres=gpu:3"]),
    ("gpu:a100", 4, ["--gres=gpu:a100:4"]), ("gpu:a100", 0, ["--gres=gpu:a100"]),
    ("gpu:a100:2", 1, ["--gres=gpu:a100:2"]), ("gpu:1,shard:2", 4, ["--gres=gpu:1,shard:2"]),
    ("--gpus", 4, ["--gpus=4"]), ("--gpus", 0.5, ["--gpus=1"]), ("--gpus", 0, []),
    ("--gpus=a100", 2, ["--gpus=a100:2"]), ("--gpus-per-node=a100", 8, ["--gpus-per-node=a100:8"]),
    ("--gpus=a100:2", 1, ["--gpus=a100:2"]), ("--gpus=3", 1, ["--gpus=3"]),
])  # fmt: skip
def test_gpus_are_asked_for_in_the_way_of_the_site(gres: str | None, gpus: float, words: list[str]) -> None:
    fleet = Fleet("f", "slurm", options={"gres": gres} if gres else {})
    launch = Launch(store="s", resources=Resources(gpus=gpus))
    plan = SlurmBackend().plan(fleet, launch)
    assert [word for word in plan.commands[0] if "gres" in word or "gpus" in word] == words
    assert all(word in plan.text for word in words)


@pytest.mark.parametrize(("time", "seconds"), [(None, 90), (86400.0, 90), (120.0, 30), (20.0, 10)])
def test_notice_comes_early_enough_and_leaves_time_to_work(time: float | None, seconds: int) -> None:
    assert batch.notice(Fleet("f", "slurm", options={"time": time})) == seconds


@pytest.mark.parametrize(("text", "does"), [
    ('#!/bin/bash\n"$@"\n', True), ('srun "$@"', True), ("exec $*", True), ('x "${@:1}"', True),
    ("python train.py # $@", False), ("# \"$@\"\npython train.py", False), ("", False),
])  # fmt: skip
def test_script_that_runs_its_arguments_is_told_from_others(text: str, does: bool) -> None:
    assert batch.takes_arguments(text) is does


BATCH = "sbatch: error: Batch job submission failed: "


@pytest.mark.parametrize(("said", "what", "message"), [
    ("sbatch: error: invalid partition specified: nope\n" + BATCH + "Invalid partition name specified",
     NO, "the partition does not exist: invalid partition specified: nope"),
    (BATCH + "Invalid job array specification", SMALLER, "the array is larger than this site allows"),
    ("sbatch: error: QOSMaxSubmitJobPerUserLimit\n" + BATCH + "Job violates accounting/QOS policy (job submit "
     "limit, user's size and/or time limits)", FEWER, "as many jobs as you may submit are in the queue"),
    ("sbatch: error: AssocMaxSubmitJobLimit\n" + BATCH + "Job violates accounting/QOS policy", FEWER, "as many jobs"),
    (BATCH + "Socket timed out on send/recv operation", AGAIN, "Slurm's controller does not answer"),
    (BATCH + "Unable to contact slurm controller (connect failure)", AGAIN, "does not answer"),
    (BATCH + "Slurm temporarily unable to accept job, sleeping and retrying", AGAIN, ""),
    (BATCH + "Invalid account or account/partition combination specified", NO, "the account is not valid"),
    (BATCH + "Invalid qos specification", NO, "the QOS is not valid"),
    (BATCH + "Invalid generic resource (gres) specification", NO, "does not know that GPU"),
    (BATCH + "Requested time limit is invalid (missing or exceeds some limit)", NO, "the time limit is longer"),
    (BATCH + "Requested node configuration is not available", NO, "no machine is large enough"),
    (BATCH + "A thing nobody has heard of", NO, "sbatch refused: Batch job submission failed: A thing nobody"),
    ("", NO, "sbatch refused: no reason given"),
])  # fmt: skip
def test_each_refusal_has_its_consequence(said: str, what: str, message: str) -> None:
    found = refusal(said)
    assert found.what == what and message in found.message


class Busy:
    """A controller that answers only now and then."""

    place = "here"

    def __init__(self, refusals: int) -> None:
        self.left, self.asked = refusals, 0

    def make(self, folder: str) -> None:
        raise AssertionError("no folder for logs was named")

    def has(self, program: str) -> bool:
        return True

    def me(self) -> str:
        return "1000"

    def keep(self, name: str, kept: PrivateContent) -> None:
        raise AssertionError("there is nothing to hide")

    def forget(self, fleet: str, but: str = "") -> None:
        pass

    def run(self, words: list[str], given: str = "", variables: object = None, without: object = ()) -> Ran:
        if words[0] != "sbatch":
            return Ran(0, "", "")
        self.asked, self.left = self.asked + 1, self.left - 1
        return Ran(1, "", BATCH + "Socket timed out") if self.left >= 0 else Ran(0, "Banner\n77;main\n", "")


@pytest.mark.parametrize(("refusals", "asked"), [(0, 1), (1, 2), (4, 5)])
def test_busy_controller_is_asked_again_no_more_than_needed(refusals: int, asked: int) -> None:
    waits, busy = list[float](), Busy(refusals)
    backend = SlurmBackend(busy, pause=waits.append)
    [started] = backend.start(backend.plan(Fleet("f", "slurm"), Launch("/s")))
    assert started.id == "77" and busy.asked == asked and waits == [2.0, 4.0, 8.0, 16.0][:refusals]


def test_a_controller_that_never_answers_is_given_up_on() -> None:
    busy = Busy(10**6)
    backend = SlurmBackend(busy, pause=lambda seconds: None)
    with pytest.raises(MachineError, match="Slurm's controller does not answer"):
        backend.start(backend.plan(Fleet("f", "slurm"), Launch("/s")))
    assert busy.asked == 6


def test_place_named_like_a_planned_job_is_left_unchanged() -> None:
    said = list[list[str]]()

    class Listening(Busy):
        def run(
            self, words: list[str], given: str = "", variables: object = None, without: object = ()
        ) -> Ran:
            said.append(words)
            return super().run(words, given)

        def make(self, folder: str) -> None:
            assert folder == "/PREVIOUS/logs"

    backend = SlurmBackend(Listening(0))
    backend.start(backend.plan(Fleet("f", "slurm"), Launch("/PREVIOUS", runs=1001, logs="/PREVIOUS/logs")))
    assert all("--output=/PREVIOUS/logs/%A_%a.log" in words for words in said) and len(said) == 2
    assert "--dependency=afterany:77" in said[1]


def test_squeue_is_asked_once_for_all_fleets_until_stale() -> None:
    asked, now = list[str](), [0.0]

    class Listening(Busy):
        def run(
            self, words: list[str], given: str = "", variables: object = None, without: object = ()
        ) -> Ran:
            asked.append(words[0])
            return super().run(words, given)

    backend = SlurmBackend(Listening(0), clock=lambda: now[0])
    count = lambda: asked.count("squeue")  # noqa: E731
    for name in ("a", "b", "c"):
        backend.list(Fleet(name, "slurm"))
    assert count() == 1
    backend.start(backend.plan(Fleet("f", "slurm"), Launch("/s")))
    backend.list(Fleet("a", "slurm"))
    assert count() == 2
    now[0] = 60.0
    backend.list(Fleet("a", "slurm"))
    assert count() == 3


class Full(Busy):
    """Takes one array and then no more."""

    def __init__(self, refusals: int) -> None:
        super().__init__(refusals)
        self.cancelled = list[str]()

    def run(self, words: list[str], given: str = "", variables: object = None, without: object = ()) -> Ran:
        if words[0] == "scancel":
            self.cancelled += words[1:]
            return Ran(0, "", "")
        self.asked += words[0] == "sbatch"
        if self.asked <= 1:
            return Ran(0, "70\n", "")
        return Ran(1, "", BATCH + "Invalid account or account/partition combination specified")


def test_jobs_queued_before_a_refusal_are_named_and_cancellable() -> None:
    site = Full(0)
    backend = SlurmBackend(site, pause=lambda seconds: None)
    with pytest.raises(PartlyStarted, match=r"queued before that: 70 .*scancel 70 takes back") as error:
        backend.start(backend.plan(Fleet("f", "slurm"), Launch("/s", runs=1500)))
    assert not site.cancelled
    error.value.undo()
    assert site.cancelled == ["70"]


def test_without_sbatch_the_survey_names_the_way_and_asks_nothing() -> None:
    class Bare(Busy):
        def has(self, program: str) -> bool:
            return False

        def run(
            self, words: list[str], given: str = "", variables: object = None, without: object = ()
        ) -> Ran:
            raise AssertionError(words)

    (found,) = SlurmBackend(Bare(0)).survey(Fleet("f", "slurm"), Question())
    assert found.problem == "sbatch was not found here" and "login node" in found.hint


def test_a_deadline_is_slurm_s_own_and_the_worker_s() -> None:
    launch = replace(LAUNCH, generation="tau/3", deadline=10_000.5, at=2_800.0)
    text = SlurmBackend().plan(Fleet("tau", "slurm", workers=4), launch).text
    assert "--deadline=now+7200 --time-min=1" in text
    assert "--fleet tau/3 --deadline 10000.5" in text
    assert "--deadline" not in SlurmBackend().plan(Fleet("tau", "slurm", workers=4), LAUNCH).text
