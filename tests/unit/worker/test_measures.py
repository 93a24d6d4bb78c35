from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from hostler.attempt.usage import Usage
from hostler.spec.job import Job, Resources
from hostler.worker.claim.measures import HEADROOM, SPARE, Measures, Need, asked, at_once, held
from hostler.worker.claim.memory import Promises
from hostler.worker.claim.room import Room, at_a_time
from hostler.worker.claim.slots import Device, Offer, Placement
from hostler.worker.run.exit import Exit
from hostler.worker.run.meter import SETTLED, Peak

GB = 10**9
MACHINE = Offer(cpus=8, memory=16 * GB)
TWO_GPUS = Offer(cpus=8, memory=64 * GB, gpus=(Device("a", 24 * GB), Device("b", 24 * GB)))
AUTO = Job("s", ("x",), auto=True)


@dataclass(frozen=True)
class Used:
    cpus: float = 1.0
    memory: int = 2 * GB
    gpu_memory: int = 0
    settled: bool = True
    held: int = 0


def room(tmp_path: Path, free: int = 16 * GB, name: str = "p") -> Room:
    return Room(MACHINE, available=lambda: free, promises=Promises(tmp_path / name))


def fill(here: Room, used: Used, most: int = 100) -> int:
    """How many are placed one after another, each measured as it is."""
    taken: list[Placement] = []
    while len(taken) < most and isinstance(found := here.find(MACHINE, AUTO), Placement):
        here.take(found, AUTO)
        taken.append(found)
        here.measure((AUTO, one, used) for one in taken)  # type: ignore[misc]
    return len(taken)


def test_choice_says_its_number_and_its_bound_once() -> None:
    measures = Measures(MACHINE)
    assert measures.take(AUTO, Used(settled=False)) == ""
    said = measures.take(AUTO, Used(cpus=0.9))
    assert said == (
        "s: 6 at once on this machine: a run takes 0.9 of 8 CPUs, 2.4 GB of 14.4 GB of memory; "
        "the bound is memory"
    )
    assert measures.take(AUTO, Used(cpus=0.9)) == measures.take(AUTO, Used(memory=GB)) == ""
    lowered = measures.take(AUTO, Used(memory=4 * GB, settled=False))
    assert lowered.startswith("s: 3 at once on this machine, 6 before: a run takes 1 of 8 CPUs, 4.8 GB")


def test_run_out_of_memory_raises_the_need_of_all() -> None:
    measures = Measures(TWO_GPUS)
    measures.take(AUTO, Used(cpus=0.5, gpu_memory=5 * GB))
    assert measures.strain(AUTO, "error") == ""
    assert measures.strain(AUTO, "cuda-memory").startswith("s: 4 at once on this machine, 8 before")
    assert "s: 4" not in measures.strain(AUTO, "memory")


def test_first_run_is_alone_and_others_fit_by_its_measure(tmp_path: Path) -> None:
    here = room(tmp_path)
    first = here.find(MACHINE, AUTO)
    assert isinstance(first, Placement) and first.alone
    here.take(first, AUTO)
    assert here.full and isinstance(here.find(MACHINE, AUTO), str)
    here.measure([(AUTO, first, Used(settled=False))])  # type: ignore[list-item]
    assert here.full
    here.measure([(AUTO, first, Used())])  # type: ignore[list-item]
    assert not here.full and isinstance(here.find(MACHINE, AUTO), Placement)


def test_first_run_is_measured_though_its_cpus_are_given(tmp_path: Path) -> None:
    here, job = room(tmp_path), replace(AUTO, resources=Resources(cpus=1))
    first = here.find(MACHINE, job)
    assert isinstance(first, Placement)
    here.take(first, job)
    assert here.find(MACHINE, job) == "the first run of this sweep here is being measured"


def test_run_larger_than_the_memory_still_runs_alone(tmp_path: Path) -> None:
    assert fill(room(tmp_path), Used(memory=40 * GB)) == 1
    here = room(tmp_path)
    fill(here, Used(memory=40 * GB))
    here.give_back(here._placed[0][0])
    assert isinstance(here.find(MACHINE, AUTO), Placement)


@given(
    peak=st.integers(10**6, 20 * GB),
    grown=st.floats(0, 1),
    strangers=st.integers(0, 16 * GB),
    cpus=st.floats(0.01, 9),
)
def test_measured_runs_never_take_more_than_is_free(
    peak: int, grown: float, strangers: int, cpus: float
) -> None:
    """However far they have grown, and whatever strangers use: all that they may take is there."""
    taken: list[Placement] = []
    used = Used(cpus=cpus, memory=peak, held=int(peak * grown))
    free = lambda: 16 * GB - strangers - used.held * len(taken)  # noqa: E731
    here = Room(MACHINE, available=free, promises=NoPromises())
    while isinstance(found := here.find(MACHINE, AUTO), Placement):
        here.take(found, AUTO)
        taken.append(found)
        here.measure((AUTO, one, used) for one in taken)  # type: ignore[misc]
    assert len(taken) == 1 or len(taken) * peak * HEADROOM + strangers <= 16 * GB * (1 - SPARE) + len(taken)
    assert len(taken) == 1 or len(taken) * max(cpus, 0.25) <= 8 + 1e-6


class NoPromises(Promises):
    def write(self, amount: int) -> None: ...

    def others(self) -> int:
        return 0


def test_two_workers_of_one_machine_share_its_memory(tmp_path: Path) -> None:
    one, other = room(tmp_path), room(tmp_path)
    both = fill(one, Used(cpus=0.1, memory=GB), most=8) + fill(other, Used(cpus=0.1, memory=GB))
    assert both * GB * HEADROOM <= 16 * GB * (1 - SPARE)
    one.close()
    assert isinstance(other.find(MACHINE, AUTO), Placement), "one that is gone holds nothing"


def test_measured_runs_share_gpus_by_their_memory() -> None:
    ask = asked(Resources(), Need(1, GB, 6 * GB), TWO_GPUS)
    assert (ask.gpu_memory, at_once(TWO_GPUS, ask)) == (6 * GB, (8, "CPUs"))
    first = held(Placement(("a",), share=1.0), Resources(), Need(1, GB, 6 * GB), TWO_GPUS)
    assert (first.share, first.gpu_memory) == (0.25, 6 * GB)
    whole = held(Placement(("a",), share=1.0), Resources(gpus=1), Need(1, GB, 6 * GB), TWO_GPUS)
    assert whole.share == 1.0, "a person's own number holds"
    assert asked(Resources(memory=GB, cpus=2), Need(1, 3 * GB), MACHINE).memory == GB


def test_peak_settles_after_a_minute_without_growth() -> None:
    now = [0.0]
    peak = Peak(lambda: now[0])
    peak.take(Usage(cpu_seconds=0, rss=GB))
    now[0] = SETTLED - 1
    peak.take(Usage(cpu_seconds=30, rss=GB))
    assert not peak.settled
    now[0] = SETTLED
    assert peak.settled
    peak.take(Usage(cpu_seconds=30, rss=2 * GB))
    assert not peak.settled and peak.memory == 2 * GB
    now[0] = 2 * SETTLED
    assert peak.settled and peak.held == 2 * GB


def test_peak_of_a_failed_run_never_settles_by_its_end() -> None:
    failed, done = Peak(lambda: 0.0), Peak(lambda: 0.0)
    failed.end(Exit(code=1, max_rss=GB))
    done.end(Exit(code=0, max_rss=GB, cpu_seconds=3, seconds=2))
    assert not failed.settled and done.settled
    assert (done.memory, done.cpus) == (GB, 1.5)


def test_gpu_memory_of_others_on_a_shared_device_is_not_counted() -> None:
    alone, shares = Peak(lambda: 0.0), Peak(lambda: 0.0, whole=False)
    for peak in (alone, shares):
        peak.take(Usage(rss=1, gpu_memory=5 * GB))
    assert (alone.gpu_memory, shares.gpu_memory) == (5 * GB, 0)
    shares.take(Usage(rss=1, gpu_memory=2 * GB, gpu_own=True))
    assert shares.gpu_memory == 2 * GB


def test_sweep_on_this_machine_says_how_many_at_a_time() -> None:
    job = Job("s", ("x",))
    assert at_a_time(job, MACHINE) == "1 at a time; `resources: {cpus: 1}` allows 8"
    assert at_a_time(job, TWO_GPUS) == "2 at a time; `resources: {gpus: 0.5}` allows 4"
    assert at_a_time(job, Offer(cpus=1, memory=GB)) == "1 at a time"
    assert at_a_time(replace(job, resources=Resources(cpus=2)), MACHINE) == ""
    assert at_a_time(job, replace(MACHINE, slots=3)) == ""
    assert at_a_time(AUTO, MACHINE).startswith("as many at a time as fit in this machine's memory")
