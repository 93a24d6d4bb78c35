"""Runs that share a process, through a real worker: each has its own log and end, whoever leaves or dies."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hostler.records.rows import rows
from hostler.records.run import control
from hostler.spec.job import DataItem, Job, Together
from worker_world import World, until

SCRIPT = """
import os, sys, time
from hostler.sdk.shared_process import limit, seats

marks = os.environ["MARKS"]
found = seats()
if not found:
    print("alone", *sys.argv[1:])
    sys.exit(0)
for seat in found:
    seat.print(f"in {os.getpid()} of {len(found)}: {' '.join(seat.words)}")
    seat.print(f"at most {limit()}")
%s
for seat in found:
    if not seat.folder.seat.exists():
        seat.leave(0)
"""
FREE = Together(limit=8, free=("lr",))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def submit(world: World, body: str = "", count: int = 3, **given: object) -> Job:
    given = {"together": FREE, "runs": [{"lr": n} for n in range(count)], **given}
    return world.submit(SCRIPT % body, **given)  # type: ignore[arg-type]


def processes(world: World, job: Job) -> list[str]:
    """Of each run, the process of its last attempt, or `alone`."""
    logs = [world.log(job, index) for index in range(job.count)]
    return [re.findall(r"^(alone|in \d+)", log, re.MULTILINE)[-1] for log in logs]


def test_runs_of_one_key_share_a_process_with_own_logs(world: World) -> None:
    job = submit(world)
    world.work()
    assert len(set(processes(world, job))) == 1
    for index in range(3):
        assert world.state(job, index).state == "done"
        assert f"--lr {index}" in world.log(job, index) and "of 3" in world.log(job, index)
        assert f"--lr {(index + 1) % 3}" not in world.log(job, index)
        assert world.ended(job, index)["together"] == 2
    assert [row.together for row in rows(world.store)] == [2, 2, 2]


def test_data_named_by_commands_is_shared_in_a_process(world: World, tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "a").write_text("here")
    body = """
for seat in found:
    seat.print("reads " + seat.words[-1])
    seat.print(open(seat.words[-1] + "/set/a").read())
"""
    data = (DataItem("set", path=str(tmp_path / "set")),)
    job = submit(world, body, 2, command=("python", "train.py", "{lr}", "{data_dir}"), data=data)
    world.work()
    logs = [world.log(job, index) for index in range(2)]
    assert len({re.findall(r"^reads .*", log, re.MULTILINE)[-1] for log in logs}) == 1, logs
    assert all("\nhere" in log for log in logs)


def test_runs_that_differ_in_more_than_numbers_have_own_processes(world: World) -> None:
    job = submit(world, runs=[{"lr": n, "size": n % 2} for n in range(4)])
    world.work()
    found = processes(world, job)
    assert found[0] == found[2] != found[1] == found[3]


def test_no_more_than_the_limit_share_one(world: World) -> None:
    job = submit(world, count=5, together=Together(limit=2, free=("lr",)))
    world.work()
    found = processes(world, job)
    assert max(found.count(one) for one in found) == 2 and "alone" not in found


def test_a_machine_may_be_told_to_train_one_by_one(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTLER_TOGETHER", "0")
    job = submit(world)
    world.work()
    assert processes(world, job) == ["alone"] * 3


def test_failed_run_is_retried_alone_and_spares_the_others(world: World) -> None:
    job = submit(world, "found[1].fail(ValueError('only mine'))")
    world.work()
    assert [world.state(job, index).state for index in range(3)] == ["done"] * 3
    assert [world.state(job, index).attempts for index in range(3)] == [1, 2, 1]
    assert processes(world, job)[1] == "alone"
    assert "ValueError: only mine" in world.log(job, 1) and "only mine" not in world.log(job, 0)


def test_dying_process_tells_its_runs_why_and_they_fail_apart(world: World) -> None:
    job = submit(world, "found[0].leave(0)\nraise RuntimeError('common trouble')")
    world.work()
    assert [world.state(job, index).attempts for index in range(3)] == [1, 2, 2]
    assert processes(world, job)[1:] == ["alone"] * 2
    assert "common trouble" not in world.log(job, 0)
    assert all("RuntimeError: common trouble" in world.log(job, index) for index in (1, 2))


def test_killed_process_is_formed_again_by_all_of_its_runs(world: World) -> None:
    once = "mark = os.path.join(marks, 'killed')\nif not os.path.exists(mark):\n"
    once += "    open(mark, 'w').close()\n    os.kill(os.getpid(), 9)"
    job = submit(world, once)
    world.work()
    assert [world.state(job, index).attempts for index in range(3)] == [2, 2, 2]
    assert len(set(processes(world, job))) == 1
    assert [world.ended(job, index)["together"] for index in range(3)] == [2, 2, 2]


def test_runs_sent_back_go_alone_or_in_smaller_groups_uncounted(world: World) -> None:
    body = "if len(found) > 2:\n    for one in found[2:]:\n        one.send_back('no room', limit=2)"
    job = submit(world, body, count=4)
    world.work()
    found = processes(world, job)
    assert found[0] == found[1] != found[2] == found[3]
    assert world.state(job, 2).tally.failures == 0
    assert "left to another process: no room" in world.log(job, 2)
    assert "at most 8" in world.log(job, 0) and "at most 2" in world.log(job, 2)
    other = submit(world, "found[-1].send_back('began alone', alone=True)", name="other")
    world.work()
    assert processes(world, other)[2] == "alone" and processes(world, other)[0] != "alone"


def test_one_run_is_stopped_by_a_person_and_others_continue(world: World) -> None:
    wait = "while not any(seat.folder.stop.exists() for seat in found):\n    time.sleep(0.02)\n"
    wait += "[seat.leave(75) for seat in found if seat.folder.stop.exists()]"
    job = submit(world, wait)
    with world.working():
        until(lambda: all("of 3" in world.log(job, index) for index in range(3)))  # in the process by now
        control.stop(world.store, world.key(job, 1))
        until(lambda: all(world.state(job, index).ended for index in range(3)))
    assert [world.state(job, index).state for index in range(3)] == ["done", "stopped", "done"]


def test_parallel_holds_for_runs_that_share_a_process(world: World) -> None:
    job = submit(world, count=4, parallel=2)
    world.work()
    found = processes(world, job)
    assert max(found.count(one) for one in found) <= 2


TRAINER = """
from pathlib import Path

from hostler.sdk.shared_process import Common, seats
from hostler.sdk.start import Wish

OUTPUTS = ("spec.yaml", "config.yaml", "stats.csv", "training.log", "done", "model.safetensors")


class Part:
    def state_dict(self):
        return {"weights": [0.5, 0.25]}

    def load_state_dict(self, state):
        pass


signals = Common(print, wanted=())
for seat in seats():
    run = seat.take({}, Wish(), signals)
    run.track(model=Part(), optimizer=Part(), sums=Part())
    for step in range(1, 4):
        run.log({"train/loss": 1 / step, "test/last/accuracy": step / 4}, step=step)
    run.save(wait=True)
    for name in OUTPUTS:
        Path(run.output_dir, name).write_text(name * 50)
    run.close(None)
    seat.leave(0)
"""
FEW = 11  # the objects of a run, with its part of those of its sweep


def test_run_of_a_group_leaves_few_files(world: World) -> None:
    world.quick(flush=60.0, flush_max=60.0)  # a training of a moment, on a machine however slow
    runs = [{"lr": n} for n in range(8)]
    job = world.submit(TRAINER, runs=runs, together=FREE)
    before = len(files_of(world))
    world.work()
    assert [world.ended(job, index)["together"] for index in range(8)] == [7] * 8
    assert all(len(world.committed(job, index)) for index in range(8))
    left = files_of(world)
    assert (len(left) - before) / 8 <= FEW, [path for path in left if job.run_id(0) in path]


def files_of(world: World) -> list[str]:
    store = world.root / "store"
    return sorted(str(path.relative_to(store)) for path in store.rglob("*") if path.is_file())


STAYS = """
import os, sys
from hostler.sdk.shared_process import next_group, seats

group, found = 1, seats()
while found:
    print(f"output of group {group}", flush=True)
    for seat in found:
        seat.print(f"in {os.getpid()}, group {group}: {' '.join(seat.words)}")
        seat.print(f"as {os.environ['HOSTLER_RUN']} in {os.getcwd()}, {os.path.realpath('/proc/self/fd/1')}")
%s
    for seat in found:
        seat.leave(0)
    group += 1
    found = next_group() and seats()
"""
TWO = Together(limit=2, free=("lr",))


def told(world: World, job: Job, text: str) -> list[str]:
    """What this expression finds last in each log."""
    return [re.findall(text, world.log(job, index), re.MULTILINE)[-1] for index in range(job.count)]


def staying(world: World, body: str = "", **given: object) -> Job:
    given = {"together": TWO, "runs": [{"lr": n} for n in range(4)], **given}
    job = world.submit(STAYS % body, **given)  # type: ignore[arg-type]
    world.work()
    assert [world.state(job, index).state for index in range(job.count)] == ["done"] * job.count
    return job


def test_second_group_of_a_worker_goes_on_in_the_same_process(world: World) -> None:
    job = staying(world)
    groups = told(world, job, r"group (\d+)")
    assert sorted(groups) == ["1", "1", "2", "2"]
    assert len(set(told(world, job, r"^in (\d+)"))) == 1
    firsts = told(world, job, r"^as (\S+)")
    assert all(firsts[index] == job.run_id(groups.index(groups[index])) for index in range(4)), firsts
    folders = told(world, job, r"^as \S+ in ([^,]+)")
    assert all(run in folder for run, folder in zip(firsts, folders, strict=True))
    outputs = dict(zip(groups, told(world, job, r", (/\S+output.log)$"), strict=True))
    assert len(set(outputs.values())) == 2
    assert [world.state(job, index).attempts for index in range(4)] == [1] * 4
    assert [world.ended(job, index)["together"] for index in range(4)] == [1] * 4
    assert not list((world.cache / "runs").rglob("kept-*"))


def test_process_killed_in_its_second_group_costs_that_group_alone(world: World) -> None:
    once = "    mark = os.path.join(os.environ['MARKS'], 'killed')\n"
    once += "    if group == 2 and not os.path.exists(mark):\n"
    once += "        open(mark, 'w').close()\n        os.kill(os.getpid(), 9)"
    job = staying(world, once)
    assert sorted(world.state(job, index).attempts for index in range(4)) == [1, 1, 2, 2]
    by_attempts = {
        world.state(job, index).attempts: one for index, one in enumerate(told(world, job, r"^in (\d+)"))
    }
    assert by_attempts[1] != by_attempts[2]


@pytest.mark.parametrize("given", [{"warm": False}, {"warm": "strict"}, {"env": {"RATE": "{lr}"}}])
def test_process_is_not_kept_where_a_new_one_would_differ(world: World, given: dict[str, object]) -> None:
    job = staying(world, **given)
    assert told(world, job, r"group (\d+)") == ["1"] * 4
    assert len(set(told(world, job, r"^in (\d+)"))) == 2
