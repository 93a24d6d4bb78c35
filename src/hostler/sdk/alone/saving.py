"""The saver of a run by hand. Loaded when there is something to save; a run that only logs never loads it.

A note on the local disk says in which state the script's own files were last seen at rest. Whoever starts the
script after a kill takes them only if they are still in that state: else they may be half written.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hostler.attempt.delivery import Delivery
from hostler.attempt.folder import split
from hostler.attempt.saver import Saver
from hostler.records import layout
from hostler.records.body import Record
from hostler.records.checkpoint import checkpoints
from hostler.records.checkpoint.tree import TreeScan, scan
from hostler.records.run import handoff
from hostler.settings import Timing
from hostler.spec.job import Checkpointing

NOTHING = TreeScan(())


def living(
    delivery: Delivery,
    policy: Checkpointing,
    timing: Timing,
    *,
    steady: Callable[[], bool],
    say: Callable[[str], None],
) -> Saver:
    """The saver of this process. All that is in the folder is new, unless it was restored just now."""
    known, rested = NOTHING, NOTHING
    if delivery.restored:
        known = split(scan(delivery.folder.checkpoint)).all
        rested = split(known).others
        _write(delivery, rested)
    return _saver(
        delivery, policy, timing, steady, say, known, rested, 0, lambda rows: _write(delivery, rows)
    )


def left_behind(delivery: Delivery, timing: Timing, *, say: Callable[[str], None]) -> Saver:
    """The saver of a process that was killed, for what it left in its folder."""
    run, number = delivery.attempt.key.run, delivery.attempt.number
    left = split(scan(delivery.folder.checkpoint))
    keys = [entry.key for entry in delivery.store.list(layout.checkpoints(run))]
    places = filter(None, map(layout.split_checkpoint, keys))
    used = [step for attempt, step in places if attempt == number]
    saved = [place for place in checkpoints.committed(delivery.store, run) if place.attempt == number]
    newest = checkpoints.read(delivery.store, run, saved[0]).record["files"] if saved else []
    known = left.all if _told(newest) == _told([row.record() for row in left.all.rows]) else NOTHING
    rested = left.others if _is_at_rest(delivery, left.others) else NOTHING
    policy, last = Checkpointing(), max(used, default=0)
    return _saver(delivery, policy, timing, lambda: False, say, known, rested, last, lambda rows: None)


def _saver(
    delivery: Delivery,
    policy: Checkpointing,
    timing: Timing,
    steady: Callable[[], bool],
    say: Callable[[str], None],
    known: TreeScan,
    rested: TreeScan,
    last: int,
    note_rest: Callable[[TreeScan], None],
) -> Saver:
    run = delivery.attempt.key.run
    return Saver(
        delivery.store,
        run,
        delivery.attempt.number,
        delivery.folder.checkpoint,
        policy,
        settle=timing.settle,
        steady=steady,
        covered=lambda record: _covered(delivery, record),
        guard=delivery.status.guard,
        say=lambda line: say(f"{run}: {line}"),
        clock=time.monotonic,
        wall=time.time,
        known=known,
        rested=rested,
        last=last,
        note_rest=note_rest,
    )


def _covered(delivery: Delivery, record: Mapping[str, Any]) -> Record:
    """The reach of a checkpoint; of one that the library made last, that the run is finished, too."""
    uploader = delivery.uploader
    facts: Record = uploader.covered(record.get("points") if record.get("world", 1) == 1 else None)
    if record.get("finished") is not None:
        facts |= {"finished": True, "result": {"summary": record["finished"], "metrics": uploader.totals}}
    return facts


def _note(delivery: Delivery) -> Path:
    return delivery.folder.folder / "rested.json"


def _write(delivery: Delivery, rows: TreeScan) -> None:
    handoff.write(_note(delivery), {"sha256": _digest(_fragile(delivery, rows))})


def _is_at_rest(delivery: Delivery, rows: TreeScan) -> bool:
    """Whether no file of a killed process can be half written."""
    fragile = _fragile(delivery, rows)
    noted = handoff.read(_note(delivery)) or {}
    return not fragile.rows or noted.get("sha256") == _digest(fragile)


def _fragile(delivery: Delivery, rows: TreeScan) -> TreeScan:
    """Files that a kill may leave half written: all but those that their writer said survive it."""
    names = (handoff.read(delivery.folder.atomic) or {}).get("names", [])
    return TreeScan(
        tuple(
            row
            for row in rows.rows
            if not any(row.name == name or row.name.startswith(f"{name}/") for name in names)
        )
    )


def _digest(rows: TreeScan) -> str:
    return hashlib.sha256(repr(rows).encode()).hexdigest()


def _told(rows: list[Record]) -> set[tuple[Any, ...]]:
    """Files by what a copy has in common with them: a symbolic link's time is its own."""
    return {(row["name"], row["size"], row["link"], 0 if row["link"] else row["mtime"]) for row in rows}
