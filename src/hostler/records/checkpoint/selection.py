"""Selection of a kept checkpoint of a run: by its step, the newest, the best, or the one it is ranked by."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any

from hostler.errors import DamagedError, MissingError, NewerFormatError
from hostler.frozen import dataclass
from hostler.records import layout
from hostler.records.body import MISFITS, Record
from hostler.records.checkpoint import checkpoints, restorer, saved_folder
from hostler.records.checkpoint.checkpoints import Checkpoint, Place
from hostler.records.checkpoint.restorer import row_of
from hostler.records.rows import display_name
from hostler.records.run import control
from hostler.records.run.log import RunKey
from hostler.records.series.metrics import Fragment, FragmentCache, Origin, covered
from hostler.records.sweep import sweeps
from hostler.spec import ranking
from hostler.spec.job import Job
from hostler.spec.ranking import Judged
from hostler.spec.reference import AT_BEST, AT_LAST, Step
from hostler.store import NotFound, Store

BEST = "best"  # folder of a checkpoint with the states at the best values
NAMED = 10  # steps that a message names
LARGEST = 64 << 20  # bytes of a state that is read for its best value

Say = Callable[[str], None]


@dataclass(frozen=True)
class KeptCheckpoint:
    """A checkpoint in the store, as people choose it."""

    checkpoint: Checkpoint
    step: int
    value: float | None = None  # of the run's metric: the newest that it covers
    logged: int | None = None  # the step at which that value was logged
    marked: bool = False  # a person has said that it stays
    folder: str = ""  # folder of it that holds the state which is meant; empty: all of it
    inside: bool = False  # whether the state which is meant is a part of the checkpoint's own, a Manager's

    @property
    def place(self) -> Place:
        return self.checkpoint.place

    @property
    def stays(self) -> bool:
        """Whether retention passes it over."""
        return self.marked or bool(self.checkpoint.record.get("kept"))


def kept(
    store: Store,
    run: str,
    metric: str | None,
    fragments: Sequence[Fragment] = (),
    say: Say = lambda line: None,
) -> list[KeptCheckpoint]:
    """All checkpoints of a run that are in the store, newest first; with the metric's values if its
    fragments are given. One that cannot be read is said."""
    listed = [entry.key for entry in store.list(layout.checkpoints(run))]
    by_hand = checkpoints.marked(listed)
    found = _readable(store, run, checkpoints.places_of(listed), say)
    return [
        KeptCheckpoint(
            checkpoint,
            checkpoint.step,
            *_newest_value(checkpoint, metric, fragments),
            checkpoint.place in by_hand,
        )
        for checkpoint in found
    ]


def choose(store: Store, key: RunKey, step: Step) -> KeptCheckpoint:
    """The checkpoint that a step means: a number, `best` or `last`. MissingError names the kept ones,
    DamagedError one that cannot be read and may be what was meant."""
    job, after = sweeps.load(store, key.sweep), control.state_of(store, key).fresh_from
    name = display_name(job, key.index)
    fragments = FragmentCache().update(store, key.run) if step == AT_BEST else ()
    damaged: list[str] = []
    every = kept(store, key.run, job.metric, fragments, damaged.append)
    current = [checkpoint for checkpoint in every if checkpoint.place.attempt > after]
    kept_checkpoints = (
        [checkpoint for checkpoint in every if checkpoint.step == step] if isinstance(step, int) else current
    )
    if damaged and not (kept_checkpoints and (step != AT_LAST or _is_newest(store, kept_checkpoints[0]))):
        hint = f"kept steps: {_steps(every)}" if every else ""
        raise DamagedError(f"{name}@{step} cannot be restored: {damaged[0]}", hint)
    if step == AT_BEST:
        return _best(store, name, job, current)
    if not kept_checkpoints:
        raise _missing(name, step, every)
    return kept_checkpoints[0]


def _is_newest(store: Store, kept_checkpoint: KeptCheckpoint) -> bool:
    run, place = kept_checkpoint.checkpoint.run, kept_checkpoint.place
    return checkpoints.committed(store, run)[:1] == [place]


def ranked(store: Store, key: RunKey, metric: str, judged: Judged) -> KeptCheckpoint | None:
    """The checkpoint with the weights that a run is ranked by: those at the best value if it was that one,
    else the newest; None if it is not kept."""
    after = control.state_of(store, key).fresh_from
    kept_checkpoints = [
        checkpoint for checkpoint in kept(store, key.run, None) if checkpoint.place.attempt > after
    ]
    if not kept_checkpoints or judged.of != ranking.BEST:
        return kept_checkpoints[0] if kept_checkpoints else None
    wanted = (metric, judged.value, judged.step)
    for best in _best_states(store, kept_checkpoints[0]):
        if (best.metric, best.value, best.step) == wanted:
            return _holding(kept_checkpoints[0], best)
    try:
        fragments = FragmentCache().update(store, key.run)
    except (DamagedError, NewerFormatError):
        return None  # which of them it is cannot be told
    valued = [
        checkpoint
        for checkpoint in kept(store, key.run, metric, fragments)
        if checkpoint.place.attempt > after
    ]
    return next(
        (checkpoint for checkpoint in valued if (checkpoint.value, checkpoint.logged) == wanted[1:]), None
    )


def _best(store: Store, name: str, job: Job, found: Sequence[KeptCheckpoint]) -> KeptCheckpoint:
    """The state at the best value, if the script kept one; else the checkpoint with the best value."""
    if not found:
        raise _missing(name, AT_BEST, found)
    newest = found[0]
    states = [best for best in _best_states(store, newest) if job.metric in (None, best.metric)]
    if len(states) == 1:
        return _holding(newest, states[0])
    if job.metric is None:
        raise MissingError(
            f"{name}@best: {job.name} has no metric, so no checkpoint is its best",
            hint=f"add `metric:` to its file, or name a step: {_steps(found)}",
        )
    valued = [one for one in found if one.value is not None and isfinite(one.value)]
    if not valued:
        raise MissingError(
            f"{name}@best: no kept checkpoint has a value of {job.metric}",
            hint=f"log {job.metric} before the script saves, or name a step: {_steps(found)}",
        )
    sign = 1 if job.goal == "max" else -1
    return max(valued, key=lambda one: (sign * (one.value or 0.0), one.place))


def _missing(name: str, step: Step, every: Sequence[KeptCheckpoint]) -> MissingError:
    if not every:
        return MissingError(
            f"{name}: no checkpoint is kept, so there is no {name}@{step}",
            hint="save to $HOSTLER_CHECKPOINT_DIR in the script, then train it again: hostler retry --fresh",
        )
    near = min(every, key=lambda one: abs(one.step - step) if isinstance(step, int) else 0)
    return MissingError(
        f"{name}: step {step} is not kept; kept steps: {_steps(every)}", hint=f"use {name}@{near.step}"
    )


def _steps(found: Iterable[KeptCheckpoint]) -> str:
    steps = sorted({checkpoint.step for checkpoint in found})
    more = f" and {len(steps) - NAMED} before them" if steps[NAMED:] else ""
    return ", ".join(map(str, steps[-NAMED:])) + more


def _readable(store: Store, run: str, places: Collection[Place], say: Say) -> Iterator[Checkpoint]:
    for place in places:
        try:
            yield checkpoints.restorable(store, run, place)
        except NotFound:  # retention was faster
            continue
        except (DamagedError, NewerFormatError) as error:
            say(str(error))


def _newest_value(
    one: Checkpoint, metric: str | None, fragments: Sequence[Fragment]
) -> tuple[float | None, int | None]:
    """The newest value of the metric that a checkpoint covers, and the step at which it was logged."""
    if metric is None or not fragments:
        return None, None
    others = one.record.get("positions") or {}
    origin = Origin(one.place.attempt, one.place.step, one.position, others)
    points = reversed(covered(fragments, origin))
    return next(((p.values[metric], p.step) for p in points if metric in p.values), (None, None))


# States at the best values: `keep_best` writes a folder for each metric, `Manager` has them in its own state.


@dataclass(frozen=True)
class _BestState:
    metric: str
    value: float
    step: int
    folder: str  # empty: it is inside the state of the checkpoint itself


def _holding(newest: KeptCheckpoint, best: _BestState) -> KeptCheckpoint:
    """The newest checkpoint, of which the state at the best value is meant."""
    return replace(
        newest,
        step=best.step,
        value=best.value,
        logged=best.step,
        folder=best.folder,
        inside=not best.folder,
    )


def _best_states(store: Store, one: KeptCheckpoint) -> Iterator[_BestState]:
    rows = {str(row["name"]): row for row in one.checkpoint.record["files"]}
    newest: dict[str, saved_folder.Mark] = {}
    for name in rows:
        folder, _, rest = name.rpartition("/")
        top, mark = folder.rpartition("/")[0], saved_folder.mark_of(folder.rpartition("/")[2])
        if mark and rest == saved_folder.COMMIT and (not top or top.startswith(f"{BEST}/")):
            newest[top] = max(mark, newest.get(top, mark))
    for top, mark in newest.items():
        file = f"{top}/{mark.name}/{saved_folder.state_name(0)}".removeprefix("/")
        if file in rows and (state := _best_in(_tree(store, one.checkpoint, rows[file]), top)):
            yield state


def _best_in(tree: Any, folder: str) -> _BestState | None:
    """The best value that a state tells of: its own, or that of its Manager."""
    try:
        best = tree["state"] if folder else tree["objects"]["manager"]["best"]
        state = _BestState(str(best["metric"]), float(best["value"]), int(best["step"]), folder)
    except MISFITS:
        return None
    return state if isfinite(state.value) else None


def _tree(store: Store, checkpoint: Checkpoint, record: Record) -> Any:
    """The state in a file of a checkpoint; None if it cannot be read, or is too large."""
    row, (run, place) = row_of(record), (checkpoint.run, checkpoint.place)
    if row.size > LARGEST or row.link:
        return None
    with tempfile.TemporaryDirectory(prefix="hostler-") as folder:
        try:
            restorer.restore(
                store,
                [row],
                lambda n: layout.checkpoint_file(run, place.attempt, place.step, n),
                Path(folder),
            )
            return json.loads(Path(folder, row.name).read_bytes())
        except (NotFound, DamagedError, ValueError, RecursionError):
            return None
