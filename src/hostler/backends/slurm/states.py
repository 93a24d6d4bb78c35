"""Slurm's job states, each to what it means for a worker: one table for every version.

`squeue` has the long names; a state may carry a mark (`CANCELLED by 1000`, `CANCELLED+`), and newer
versions list flags after the state (`RUNNING,COMPLETING`).
"""

from __future__ import annotations

import re

from hostler.frozen import dataclass

WAITING, RUNNING, LEAVING, GONE = "waiting", "running", "leaving", "gone"


@dataclass(frozen=True)
class Meaning:
    worker: str  # waiting, running, leaving or gone
    comes_back: bool  # Slurm itself starts it again
    attempt: str  # how an attempt that ran in it ended: preempted, lost, released, or '' while it goes on
    words: str


STATES = {
    "PENDING": Meaning(WAITING, True, "", "waits in the queue"),
    "CONFIGURING": Meaning(WAITING, True, "", "its nodes are being made ready"),
    "REQUEUED": Meaning(WAITING, True, "preempted", "back in the queue"),
    "REQUEUE_FED": Meaning(WAITING, True, "preempted", "back in the queue of another cluster"),
    "REQUEUE_HOLD": Meaning(
        WAITING, False, "preempted", "back in the queue, held: scontrol release lets it go"
    ),
    "SPECIAL_EXIT": Meaning(
        WAITING, False, "released", "held after a special exit: scontrol release lets it go"
    ),
    "RESV_DEL_HOLD": Meaning(WAITING, False, "", "held: its reservation was deleted"),
    "RUNNING": Meaning(RUNNING, True, "", "runs"),
    "SIGNALING": Meaning(RUNNING, True, "", "runs, and is being sent a signal"),
    "SUSPENDED": Meaning(
        RUNNING, True, "", "suspended: its run is taken over when its heartbeat stands still"
    ),
    "STOPPED": Meaning(RUNNING, True, "", "stopped by a signal: its run is taken over meanwhile"),
    "RESIZING": Meaning(RUNNING, True, "", "changes its size"),
    "STAGE_OUT": Meaning(LEAVING, False, "", "brings its files back"),
    "COMPLETING": Meaning(LEAVING, False, "", "is ending"),
    "COMPLETED": Meaning(GONE, False, "released", "ended: no run was left for it"),
    "FAILED": Meaning(GONE, False, "lost", "failed"),
    "TIMEOUT": Meaning(GONE, False, "preempted", "reached its time limit"),
    "DEADLINE": Meaning(GONE, False, "preempted", "reached its deadline"),
    "PREEMPTED": Meaning(GONE, False, "preempted", "had to make room for another job"),
    "NODE_FAIL": Meaning(GONE, False, "lost", "its node failed"),
    "BOOT_FAIL": Meaning(GONE, False, "lost", "its node did not boot"),
    "LAUNCH_FAILED": Meaning(GONE, False, "lost", "could not be launched"),
    "RECONFIG_FAIL": Meaning(GONE, False, "lost", "its node could not be made ready"),
    "OUT_OF_MEMORY": Meaning(GONE, False, "lost", "used more memory than it was given"),
    "CANCELLED": Meaning(GONE, False, "released", "was cancelled"),
    "REVOKED": Meaning(GONE, False, "released", "runs on another cluster"),
}

UNKNOWN = Meaning(RUNNING, False, "", "")


def meaning(native: str) -> Meaning:
    """Meaning of a state; an unknown one counts as a worker that may be there, and is shown as it is."""
    names = re.findall(r"[A-Z_]+", native.upper())
    known = [STATES[name] for name in names if name in STATES]
    if not known:
        return Meaning(UNKNOWN.worker, UNKNOWN.comes_back, UNKNOWN.attempt, native.lower())
    leaving = [one for one in known if one.worker == LEAVING]
    return leaving[0] if leaving else known[0]
