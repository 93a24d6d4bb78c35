"""Takes over from an earlier attempt by hand: delivers the files its dead process left behind.

Its points and its newest whole checkpoint go into the store as its own attempt's: it is known to be dead, so
there is still one writer. Loaded when there was an attempt before.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

from hostler.attempt.delivery import Delivery
from hostler.attempt.status import AttemptStatus
from hostler.attempt.uploader import Uploader
from hostler.errors import HostlerError
from hostler.records.checkpoint import checkpoints
from hostler.records.run import heartbeats
from hostler.records.run.attempt import Attempt
from hostler.records.run.entries import Lost
from hostler.records.run.handoff import Handoff
from hostler.records.run.log import RunLog
from hostler.records.run.state import RunState
from hostler.records.series.metrics import MetricWriter
from hostler.sdk import holder
from hostler.sdk.alone import saving
from hostler.sdk.alone.choose import Chosen
from hostler.settings import Timing
from hostler.store import Store


def answer(store: Store, chosen: Chosen, timing: Timing, say: Callable[[str], None]) -> Lost | None:
    """The claim's answer for a dead attempt, given once its files are in the store."""
    if chosen.lost is None:
        return None
    _deliver(store, chosen.log, chosen.lost, timing, say)
    if chosen.lost.session:
        heartbeats.silence(store, chosen.lost.session)
    saved = checkpoints.committed(store, chosen.log.key.run)
    return Lost(chosen.lost.attempt, any(place.attempt == chosen.lost.attempt for place in saved))


def folder_of(lost: RunState) -> Path | None:
    """The lost attempt's folder, if it was on this machine and is still there."""
    claim = lost.claim or {}
    if holder.is_gone(claim) is not True or not claim.get("folder"):
        return None
    folder = Path(claim["folder"])
    return folder if folder.is_dir() else None


def _deliver(
    store: Store, run_log: RunLog, lost: RunState, timing: Timing, say: Callable[[str], None]
) -> None:
    folder = folder_of(lost)
    if folder is None:
        return
    attempt = Attempt(store, run_log.copy(), timing.lease, lambda: 0.0)
    attempt.number = lost.attempt
    writer, handed = MetricWriter(store, run_log.key.run, lost.attempt), Handoff(folder)
    try:
        known = writer.go_on()
        uploader = Uploader(handed.metrics, writer, timing, time.monotonic, time.time, known=known)
        status = AttemptStatus(attempt, timing, time.monotonic, say, patience=0.0)
        delivery = Delivery(store, attempt, handed, uploader, status, lost)
        uploader.flush()
        saving.left_behind(delivery, timing, say=say).final(trusted=False)
        shutil.rmtree(folder, ignore_errors=True)
    except (HostlerError, OSError) as error:
        say(f"the killed attempt's files in {folder} could not be delivered: {error}")
