"""States of a run, by name, and reasons to stop one, in words."""

from __future__ import annotations

QUEUED, RUNNING, PAUSED = "queued", "running", "paused"
DONE, FAILED, DIVERGED, PRUNED, STOPPED = ENDED = ("done", "failed", "diverged", "pruned", "stopped")
COUNTED = (DONE, PRUNED, STOPPED)  # ends whose results are compared
ALL = (QUEUED, RUNNING, PAUSED, *ENDED)
DOUBTFUL = "lost?"  # in words for people: running, and its holder has not beaten for a lease

_STOPS = {
    "person": "a person asked for it",
    "pause": "a person paused it",
    "preempted": "it is preempted",
    "interrupt": "it was interrupted",
    "leaving": "its worker has to leave",
    "unreachable": "its worker cannot reach the store",
    "storeless": "its worker has lost the store",
    "orphaned": "its worker's parent is gone",
    "crowded": "its machine is nearly out of memory",
    "rank-lost": "another worker of the run is gone",
    "cap": "its money or time is used up",
    "rung": "other runs are better so far",
    "prune": "it was pruned",
    "hang": "it made no progress for limits.hang",
    "start": "it made no first step within limits.start",
    "time": "it ran for limits.time",
    "memory": "it took more than resources.memory",
}


def stop_reason(reason: str) -> str:
    """The reason of a stop in words; that of a later version as it is."""
    return _STOPS.get(reason, reason)


def asked_to(reason: str) -> str:
    """A stop request in words: `asked to stop`, `asked to pause`, or with its reason."""
    plain = {"person": "asked to stop", "pause": "asked to pause"}
    return plain.get(reason, f"asked to stop: {stop_reason(reason)}")
