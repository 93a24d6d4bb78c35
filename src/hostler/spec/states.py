"""States of a run, by name."""

from __future__ import annotations

QUEUED, RUNNING, PAUSED = "queued", "running", "paused"
DONE, FAILED, DIVERGED, PRUNED, STOPPED = ENDED = ("done", "failed", "diverged", "pruned", "stopped")
ALL = (QUEUED, RUNNING, PAUSED, *ENDED)
