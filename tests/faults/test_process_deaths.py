"""Whoever of parent, worker and supervisor is killed: nothing of the run is left, and the run goes on."""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from killer import PARENT, RUN, SUPERVISOR, WORKER, Farm, farm, keys_of, often, outcome, send, until

from hostler import proctable
from hostler.records.checkpoint import checkpoints
from hostler.records.run import log
from hostler.records.run.log import RunLog
from hostler.spec.job import Job

STEPS = 20
GONE = 60.0  # seconds after which nothing of a run may be left: long before a lease is over
FAR = 600.0  # a lease that nobody lives to see

# Leaves a stray in a session of its own, as launchers do.
SCRIPT = f"""
import json, os, subprocess, time
subprocess.Popen(["sleep", "1000"], start_new_session=True)
path = os.path.join(os.environ["HOSTLER_CHECKPOINT_DIR"], "step")
begin = int(open(path).read()) if os.path.exists(path) else 0
print("begins at", begin)
for step in range(begin, {STEPS}):
    print(json.dumps({{"step": step, "value": step * step}}))
    with open(path + ".tmp", "w") as file:
        file.write(str(step + 1))
    os.replace(path + ".tmp", path)
    time.sleep(0.3 if step % 5 == 4 else 0.05)
"""


class Scene:
    """One run under way on one worker, with something saved."""

    def __init__(self, made: Farm) -> None:
        self.made = made
        (made.code / "steps.py").write_text(SCRIPT)
        self.job = made.submit(Job(name="steps", command=(sys.executable, "steps.py"), **often()))  # type: ignore[arg-type]
        [self.key] = keys_of(self.job)
        made.start()
        self.wait_for_a_checkpoint_of(1)

    def wait_for_a_checkpoint_of(self, attempt: int) -> None:
        until(
            lambda: any(p.attempt >= attempt for p in checkpoints.committed(self.made.store, self.key.run)),
            why=self.made.said,
        )

    def kill(self, *kinds: str) -> list[int]:
        """Kill all of these kinds at once; the processes of the run as they were."""
        until(lambda: self._has_one_of_each(*kinds))  # a child is its parent's twin until it executes
        found = self.made.processes()
        run = [pid for pid, kind in found.items() if kind == RUN]
        assert len(run) == 2, found
        victims = [pid for kind in kinds for pid, one in found.items() if one == kind]
        for pid in victims:
            send(pid, signal.SIGSTOP)  # so that none acts on another's death
        for pid in victims:
            send(pid, signal.SIGKILL)
        return run

    def _has_one_of_each(self, *kinds: str) -> bool:
        found = Counter(self.made.processes().values())
        return found[RUN] == 2 and all(found[kind] == 1 for kind in kinds)

    def entries(self) -> list[dict[str, object]]:
        return RunLog(self.made.store, self.key).read_on().entries

    def goes_on(self) -> None:
        """The run ends as if nothing had been, from where it was saved, and nothing of it is left."""
        self.made.finish(self.job, workers=1)
        found = outcome(self.made.store, self.key)
        assert found.state.state == "done" and found.state.attempts == 2
        assert found.points["value"] == [(step, float(step * step)) for step in range(STEPS)]
        assert found.files == {"step": str(STEPS).encode()}
        assert found.end["restored"], "it began from the beginning"
        assert self.made.processes() == {}


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Callable[[float], Scene]]:
    with ExitStack() as stack:
        yield lambda lease: Scene(stack.enter_context(farm(str(tmp_path / "store"), tmp_path, lease=lease)))


def are_gone(pids: Iterable[int]) -> bool:
    return not any(proctable.start_of(pid) for pid in pids)


def test_killed_workers_run_continues_elsewhere_before_the_lease_ends(
    scene: Callable[[float], Scene],
) -> None:
    here = scene(FAR)
    run = here.kill(WORKER)
    until(lambda: are_gone(run), GONE)
    here.goes_on()
    assert [e["kind"] for e in here.entries()] == [log.CLAIM, log.CLAIM, log.END]
    after = here.entries()[1]["after"]
    assert after.pop("seconds") > 0
    assert after == {"why": "lost", "counts": "lost", "attempt": 1, "progress": True}


def test_after_the_supervisors_death_the_same_worker_tries_again(scene: Callable[[float], Scene]) -> None:
    here = scene(FAR)
    [worker] = here.made.processes(WORKER)
    run = here.kill(SUPERVISOR)
    until(lambda: are_gone(run), GONE)
    until(lambda: len(here.entries()) >= 3)
    assert list(here.made.processes(WORKER)) == [worker]
    here.goes_on()
    assert [e.get("why") for e in here.entries()][1] == "supervisor-lost"


def test_worker_of_a_killed_parent_returns_the_run_and_leaves(
    scene: Callable[[float], Scene],
) -> None:
    here = scene(FAR)
    run = here.kill(PARENT)
    until(lambda: are_gone(run), GONE)
    until(lambda: here.made.processes() == {})
    assert [e.get("why") for e in here.entries()] == [None, "orphaned"]
    here.goes_on()


def test_next_worker_clears_up_after_all_three_are_killed(
    scene: Callable[[float], Scene],
) -> None:
    here = scene(2.0)
    run = here.kill(PARENT, WORKER, SUPERVISOR)
    until(lambda: sum(bool(proctable.start_of(pid)) for pid in run) == 1)  # the stray is all that is left
    here.made.start()
    until(lambda: are_gone(run), GONE)
    here.goes_on()


def test_a_stray_is_told_from_a_stranger(scene: Callable[[float], Scene], tmp_path: Path) -> None:
    """Nothing but the run's own processes is killed: this very process runs beside them."""
    here = scene(2.0)
    stranger = os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "1000")
    try:
        here.kill(PARENT, WORKER, SUPERVISOR)
        here.goes_on()
        assert proctable.start_of(stranger)
    finally:
        os.kill(stranger, signal.SIGKILL)
        os.waitpid(stranger, 0)
