"""A run that was started warm, on a real worker: whoever is killed, nothing of it is left, and it goes on."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from killer import (
    PARENT,
    RUN,
    SPAWNER,
    SUPERVISOR,
    WARM,
    WORKER,
    Farm,
    farm,
    keys_of,
    often,
    outcome,
    send,
    until,
)

from hostler import proctable
from hostler.spec.job import Job

GONE = 60.0  # seconds after which nothing of a run may be left: long before a lease is over
FAR = 600.0  # a lease that nobody lives to see

# Run 0 waits until there is a parent; run 1 leaves a stray in a session of its own, as launchers do.
SCRIPT = """
import os, subprocess, sys, time
if sys.argv[-1] == "0":
    while not os.path.exists(os.environ["GO"] + "-first"):
        time.sleep(0.05)
elif os.environ["HOSTLER_ATTEMPT"] == "1":
    subprocess.Popen(["sleep", "1000"], start_new_session=True)
    while not os.path.exists(os.environ["GO"]):
        time.sleep(0.05)
"""


def is_warm(pid: int) -> bool:
    return b"warm_parent.py" in Path(f"/proc/{pid}/cmdline").read_bytes()


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Farm]:
    with farm(str(tmp_path / "store"), tmp_path, lease=FAR) as found:
        yield found


def submitted(made: Farm) -> Job:
    (made.code / "two.py").write_text(SCRIPT)
    job = Job(
        name="two",
        command=(sys.executable, "two.py"),
        runs=({"n": 0}, {"n": 1}),
        env={"GO": str(made.folder / "go")},
        **often(),  # type: ignore[arg-type]
    )
    return made.submit(job)


def second_run(made: Farm) -> list[int]:
    """The processes of the run that was forked from the parent."""

    def found() -> list[int]:
        pids = list(made.processes(RUN))
        return pids if len(pids) == 2 and any(map(is_warm, pids)) else []

    until(found, why=made.said)
    return found()


@pytest.mark.parametrize("kind", [WORKER, SUPERVISOR, PARENT, SPAWNER, WARM])
def test_any_kill_leaves_nothing_of_a_warm_run_and_resumes(made: Farm, kind: str) -> None:
    job = submitted(made)
    made.start("--slots", "1")
    until(lambda: made.processes(WARM), why=made.said)
    time.sleep(1.0)  # it imports four small modules
    (made.folder / "go-first").touch()
    run = second_run(made)
    starts = [proctable.start_of(pid) for pid in run]
    victims = list(made.processes(kind))
    if kind == SUPERVISOR:  # the warm one's, not one that waits for its next run
        rows = proctable.table()
        victims = [pid for pid in victims if any(rows[one].parent == pid for one in run if one in rows)]
    assert victims, made.processes()
    for pid in victims:
        send(pid, signal.SIGKILL)
    undisturbed = kind in (SPAWNER, WARM)
    if not undisturbed:
        until(lambda: not any(map(proctable.is_alive, run, starts)), GONE, why=made.said)
    assert undisturbed == all(map(proctable.is_alive, run, starts))
    (made.folder / "go").touch()
    made.finish(job, workers=1)
    states = [outcome(made.store, key).state for key in keys_of(job)]
    assert [state.state for state in states] == ["done", "done"]
    assert states[1].attempts == (1 if undisturbed else 2)
    until(lambda: made.processes() == {}, GONE)
