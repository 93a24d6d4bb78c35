"""`parallel: auto` through real workers: measured, filled, lowered, and never over the memory."""

from __future__ import annotations

from pathlib import Path

from hostler.records.sweep import sweeps
from hostler.spec.job import Limits, Resources
from hostler.worker.claim.memory import Promises
from hostler.worker.claim.room import Room
from hostler.worker.claim.slots import Offer
from worker_world import World, until

MB = 1_000_000
# Takes as many megabytes as argv[4] says, then waits for as many others as argv[6] says to be there at once.
HOLDS = """
import os, pathlib, sys, time
marks, n, size, others = pathlib.Path(os.environ["MARKS"]), sys.argv[2], int(sys.argv[4]), int(sys.argv[6])
held = bytearray(os.urandom(1)) * (size * 1_000_000)
(marks / f"in-{n}").touch()
there = lambda: len(list(marks.glob("in-*"))) - len(list(marks.glob("out-*")))
deadline = time.monotonic() + 30
most = 1
while time.monotonic() < deadline:
    most = max(most, there())
    if most >= others or (marks / "go").exists(): break
    time.sleep(0.02)
time.sleep(0.5)
(marks / f"most-{n}").write_text(str(max(most, there())))
(marks / f"out-{n}").touch()
"""


def runs(count: int, size: int, others: int = 1, first: int = 1) -> list[dict[str, int]]:
    return [{"n": n, "size": size, "others": first if n == 0 else others} for n in range(count)]


def room(tmp_path: Path, memory: int, cpus: float = 64, available: int | None = None) -> Room:
    free = memory if available is None else available
    offer = Offer(cpus=cpus, memory=memory)
    return Room(offer, available=lambda: free, promises=Promises(tmp_path / "promises"))


def most(world: World) -> int:
    return max(int(mark.read_text()) for mark in world.mark("").glob("most-*"))


def said(world: World) -> list[str]:
    return [line for line in world.said if "at once on this machine" in line]


def test_auto_measures_the_first_run_then_fills_the_memory(world: World, tmp_path: Path) -> None:
    """Its Python and 100 MB are about 110 to 120 MB, a fifth more 130 to 145, of 450 without a tenth."""
    job = world.submit(HOLDS, runs=runs(7, 100, others=3), retries=0, auto=True)
    assert world.work(room=room(tmp_path, 500 * MB)) == 0
    assert [world.state(job, n).state for n in range(7)] == ["done"] * 7
    assert world.mark("most-0").read_text() == "1", "the first has the machine to itself"
    assert most(world) == 3
    (line,) = said(world)
    assert line.startswith("job: 3 at once on this machine: a run takes") and line.endswith("bound is memory")
    noted = [n for n in range(7) if line in world.log(job, n)]
    assert len(noted) == 1, "and once in a run's log"


def test_auto_keeps_to_the_cpus_that_a_person_asked_for(world: World, tmp_path: Path) -> None:
    wanted = Resources(cpus=2)
    world.submit(HOLDS, runs=runs(5, 1, others=2), retries=0, auto=True, resources=wanted)
    world.work(room=room(tmp_path, 100_000 * MB, cpus=4))
    assert most(world) == 2 and said(world)[0].endswith("the bound is CPUs")


def test_auto_counts_memory_that_strangers_use(world: World, tmp_path: Path) -> None:
    world.submit(HOLDS, runs=runs(4, 100), retries=0, auto=True)
    world.work(room=room(tmp_path, 2000 * MB, available=300 * MB))
    assert most(world) == 1, "300 MB are free, 200 of them are to stay so"


def test_run_that_uses_more_lowers_the_number_once(world: World, tmp_path: Path) -> None:
    sizes = [100, 300, *[100] * 5]
    given = [{"n": n, "size": size, "others": 1} for n, size in enumerate(sizes)]
    world.submit(HOLDS, runs=given, retries=0, auto=True)
    world.work(room=room(tmp_path, 1000 * MB))
    first, *lowered = said(world)
    assert "job: 6 at once on this machine: " in first
    assert [line.partition(" at once")[0] for line in lowered][-1] == "job: 2"
    assert all(", 6 before" in line or " before" in line for line in lowered)


def test_failed_first_run_is_no_measure(world: World, tmp_path: Path) -> None:
    script = HOLDS + "\nif n == '0': raise ValueError('x')\n"
    world.submit(script, runs=runs(3, 100), retries=0, auto=True, limits=Limits(failures=9))
    world.work(room=room(tmp_path, 1000 * MB))
    assert world.mark("most-1").read_text() == "1" and len(said(world)) == 1


def test_two_workers_on_two_machines_fill_by_their_own_measure(world: World, tmp_path: Path) -> None:
    world.submit(HOLDS, runs=runs(12, 100), retries=0, auto=True)
    rooms = [room(tmp_path / str(memory), memory * MB) for memory in (300, 1000)]
    with world.working(room=rooms[0]), world.working(room=rooms[1]):
        until(lambda: len(list(world.mark("").glob("out-*"))) == 12, 120)
    small, large = sorted({int(line.partition(" at once")[0].removeprefix("job: ")) for line in said(world)})
    assert 1 <= small <= 2 and 4 <= large <= 8, "what a Python takes besides is the machine's"


def test_nearly_full_machine_sends_the_youngest_run_back(world: World, tmp_path: Path) -> None:
    free = [1000 * MB]
    offer = Offer(cpus=64, memory=1000 * MB)
    crowded = Room(offer, available=lambda: free[0], promises=Promises(tmp_path / "promises"))
    job = world.submit(HOLDS, runs=runs(4, 50, others=9), retries=0, auto=True)
    with world.working(room=crowded):
        until(lambda: len(list(world.mark("").glob("in-*"))) >= 3, 60)
        free[0] = 10 * MB
        until(lambda: any(e.get("why") == "crowded" for n in range(4) for e in world.entries(job, n)), 30)
        free[0] = 1000 * MB
        world.mark("go").touch()
        until(lambda: all(world.state(job, n).state == "done" for n in range(4)), 60)
    ends = [world.ended(job, n) for n in range(4)]
    assert all(not end.get("failure") for end in ends)


def test_bound_and_auto_hold_together(world: World, tmp_path: Path) -> None:
    world.submit(HOLDS, runs=runs(5, 10, others=2), retries=0, auto=True, parallel=2)
    world.work(room=room(tmp_path, 10_000 * MB))
    assert most(world) == 2


def test_sweep_recorded_before_auto_is_read_as_without(world: World) -> None:
    job = world.submit("", auto=True)
    record = sweeps.newest(world.store, f"sweeps/{job.name}/spec/")
    assert record is not None and record[1]["auto"] is True and record[1]["parallel"] is None
    old = {key: value for key, value in record[1].items() if key != "auto"}
    assert sweeps.job_of(old, "k").auto is False
