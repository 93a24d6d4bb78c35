"""What a killed run by hand left on this machine, delivered before the next attempt begins.

The dead process's points and its newest whole checkpoint go into the store as its own attempt's: it is known
to be dead, so there is still one writer.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from hostler.errors import HostlerError
from hostler.records.attempt import Attempt
from hostler.records.handoff import Handoff
from hostler.records.log import RunLog
from hostler.records.metrics import MetricWriter
from hostler.records.state import RunState
from hostler.sdk import holder
from hostler.sdk.alone.courier import Courier
from hostler.sdk.alone.route import Route
from hostler.settings import Timing
from hostler.store import Store


def folder_of(lost: RunState | None) -> Path | None:
    """The lost attempt's folder, if it was on this machine and is still there."""
    claim = (lost.claim or {}) if lost else {}
    if holder.is_gone(claim) is not True or not claim.get("folder"):
        return None
    folder = Path(claim["folder"])
    return folder if folder.is_dir() else None


def deliver(
    store: Store, run_log: RunLog, lost: RunState, timing: Timing, *, say: Callable[[str], None]
) -> None:
    folder = folder_of(lost)
    if folder is None:
        return
    attempt = Attempt(store, run_log.copy(), timing.lease, lambda: 0.0)
    attempt.number = lost.attempt
    writer = MetricWriter(store, run_log.key.run, lost.attempt)
    try:
        route = Route(store, attempt, Handoff(folder), lost.session or "", timing)
        Courier(route, writer, say=say, known=writer.go_on()).carry(last=True)
        shutil.rmtree(folder, ignore_errors=True)
    except (HostlerError, OSError) as error:
        say(f"what {folder} holds of the killed attempt could not be delivered: {error}")
