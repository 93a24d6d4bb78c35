"""The saver of a run by hand, and that of what a killed process left. A run that only logs never loads it.

A note on the local disk says in which state the script's own files were last seen at rest. Whoever delivers
them after a kill takes those that are still in that state, and those that came to rest before the last sign
of life: others may be half written.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from hostler.attempt.delivery import Delivery
from hostler.attempt.folder_parts import NOTHING, Declared
from hostler.attempt.folder_watch import FolderWatch
from hostler.attempt.saver import Saver, Target
from hostler.records import layout
from hostler.records.body import Record
from hostler.records.checkpoint import checkpoints
from hostler.records.checkpoint.tree import FileRow, TreeScan
from hostler.records.run import handoff
from hostler.settings import Timing
from hostler.spec.job import Checkpointing


def living(
    delivery: Delivery,
    policy: Checkpointing,
    timing: Timing,
    *,
    steady: Callable[[], bool],
    say: Callable[[str], None],
) -> Saver:
    """The saver of this process. All that is in the folder is new, unless it was restored just now."""
    note = partial(handoff.write, delivery.folder.rested)
    watch = _watch(delivery, timing, steady, say, None if delivery.restored else {}, note)
    return _saver(delivery, policy, watch, say, None if delivery.restored else NOTHING, 0)


def left_behind(
    delivery: Delivery,
    timing: Timing,
    policy: Checkpointing = Checkpointing(),
    *,
    say: Callable[[str], None],
) -> Saver:
    """The saver of a process that was killed, for what it left in its folder."""
    run, number = delivery.attempt.key.run, delivery.attempt.number
    keys = [entry.key for entry in delivery.store.list(layout.checkpoints(run))]
    places = filter(None, map(layout.split_checkpoint, keys))
    used = [step for attempt, step in places if attempt == number]
    saved = [place for place in checkpoints.committed(delivery.store, run) if place.attempt == number]
    begun = delivery.restored.record["files"] if delivery.restored else []
    newest = checkpoints.read(delivery.store, run, saved[0]).record["files"] if saved else begun
    noted = handoff.read(delivery.folder.rested) or {}
    watch = _watch(delivery, timing, lambda: False, say, noted, lambda memory: None)
    watch.learn_of_dead(delivery.last_sign)
    rows = {_told(row.record()): row for row in watch.rows()}
    known = [rows.get(_told(row)) or _elsewhere(row) for row in newest]
    return _saver(delivery, policy, watch, say, TreeScan(tuple(known)), max(used, default=0))


def _watch(
    delivery: Delivery,
    timing: Timing,
    steady: Callable[[], bool],
    say: Callable[[str], None],
    memory: Record | None,
    note: Callable[[dict[str, Any]], None],
) -> FolderWatch:
    return FolderWatch(
        delivery.folder.checkpoint,
        settle=timing.settle,
        steady=steady,
        say=lambda line: say(f"{delivery.attempt.key.run}: {line}"),
        declared=lambda: Declared.read(handoff.read(delivery.folder.atomic)),
        memory=memory,
        note=note,
    )


def _saver(
    delivery: Delivery,
    policy: Checkpointing,
    watch: FolderWatch,
    say: Callable[[str], None],
    known: TreeScan | None,
    last: int,
) -> Saver:
    run = delivery.attempt.key.run
    target = Target(
        delivery.store,
        run,
        delivery.attempt.number,
        covered=lambda record: _covered(delivery, record),
        guard=delivery.status.guard,
        last=last,
    )
    return Saver(
        target, watch, policy, say=lambda line: say(f"{run}: {line}"), clock=time.monotonic, known=known
    )


def _covered(delivery: Delivery, record: Mapping[str, Any]) -> Record:
    """The reach of a checkpoint; of one that the library made last, that the run is finished, too."""
    uploader = delivery.uploader
    facts: Record = uploader.covered(record.get("points") if record.get("world", 1) == 1 else None)
    if record.get("finished") is not None:
        facts |= {"finished": True, "result": {"summary": record["finished"], **delivery.result}}
    return facts


def _told(row: Record) -> tuple[Any, ...]:
    """A file by what a copy has in common with it: a symbolic link's time is its own."""
    return row["name"], row["size"], row["link"], 0 if row["link"] else row["mtime"]


def _elsewhere(row: Record) -> FileRow:
    """A file that is in the store alone."""
    return FileRow(row["name"], row["size"], row["mtime"], 0, row["mode"], row["link"])
