"""What must be true of a staged run once everybody is through: log, end, frame, restore, best."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from staged import STEPS, Stage

from hostler.errors import DamagedError
from hostler.records import layout
from hostler.records.body import decode
from hostler.records.checkpoint import checkpoints
from hostler.records.checkpoint.checkpoints import Place
from hostler.records.run import control, log
from hostler.records.series import metrics
from hostler.records.series.points import Point

Weights = list[list[int]]


def violations(
    stage: Stage, *, states: tuple[str, ...] = ("done",), saved: Weights | None = None
) -> list[str]:
    """Every promise that is broken, in words. `saved`: what a holder had committed, and must not be lost."""
    found = [*_log(stage), *_copy(stage)]
    state = stage.state.state
    if state not in states:
        found.append(f"the run is {state}, not {' or '.join(states)}")
    if state == "done":
        found += [*_done(stage)]
    found += [*_frame(stage), *_kept(stage, saved or [])]
    return found


def newest_weights(stage: Stage) -> Weights:
    """What the newest checkpoint holds, straight from the store; [] if none is whole."""
    restored = _whole(stage)
    return [] if isinstance(restored, str) else restored[1]


def restore(stage: Stage) -> tuple[checkpoints.Checkpoint, Weights] | None:
    with tempfile.TemporaryDirectory(dir=stage.cache) as folder:
        target = Path(folder) / "checkpoint"
        found = checkpoints.restore_newest(stage.store, stage.key.run, target, before=sys.maxsize)
        if found is None:
            return None
        return found, json.loads((target / "weights.json").read_text())


def frame(stage: Stage) -> list[Point]:
    """The run's own curve; what the worker measured beside it is of no account here."""
    points = metrics.read(stage.store, stage.key.run, stage.state.attempt)
    return [point for point in points if "by" in point.values]


def _log(stage: Stage) -> Iterator[str]:
    """Legal as the model has it: ends and releases are the holder's, nothing follows an end but a reopen."""
    holder, ended = 0, False
    for k, entry in enumerate(control.entries_of(stage.store, stage.key), 1):
        kind = entry["kind"]
        if ended != (kind == log.REOPEN):
            yield f"entry {k} is a {kind} {'after the end' if ended else 'of a run that has not ended'}"
        if kind in (log.END, log.RELEASE) and entry["attempt"] != holder:
            yield f"entry {k} is the {kind} of attempt {entry['attempt']}, but {holder} holds the run"
        if kind == log.CLAIM and holder and (entry["after"] or {}).get("attempt") != holder:
            yield f"entry {k} claims a run that {holder} holds"
        holder = k if kind == log.CLAIM else 0 if kind in (log.END, log.RELEASE) else holder
        ended = kind == log.END
    names = [layout.split_log_entry(e.key)[1] for e in stage.store.list(layout.logs_of(stage.key.sweep))]
    if names != [*range(1, len(names) + 1)]:
        yield f"the log has a hole: {names}"


def _copy(stage: Stage) -> Iterator[str]:
    entries = control.entries_of(stage.store, stage.key)
    ends = {k: e for k, e in enumerate(entries, 1) if e["kind"] == log.END}
    copies = {
        layout.split_log_entry(e.key)[1]: decode(stage.store.get(e.key).data, e.key)
        for e in stage.store.list(layout.ends(stage.key.sweep))
    }
    if copies != ends:
        yield f"ends/ holds {sorted(copies)}, the log's ends are {sorted(ends)}, or they differ"


def _done(stage: Stage) -> Iterator[str]:
    end: dict[str, Any] = stage.state.end or {}
    restored = _whole(stage)
    if isinstance(restored, str):
        yield restored
        return
    checkpoint, weights = restored
    if not checkpoint.finished or [step for step, _ in weights] != [*range(1, STEPS + 1)]:
        finished = "finished" if checkpoint.finished else "not finished"
        yield f"the newest checkpoint {checkpoint.place.name} holds {weights}, {finished}"
    came_from = Place(*map(int, (end.get("restored") or "0-0").split("-")))
    if checkpoint.place.attempt not in (end["attempt"], came_from.attempt):
        yield f"the newest checkpoint is {checkpoint.place.name}'s, the end is attempt {end['attempt']}'s"
    for k in _stops(stage):
        if checkpoint.place.attempt > k:
            yield f"entry {k} asked to stop, and attempt {checkpoint.place.attempt} trained after it"
    shown = [[point.step, int(point.values["by"])] for point in frame(stage)]
    if shown != weights:
        yield f"shown is {shown}, the result was trained by {weights}"
    curve = metrics.summary(frame(stage))
    if end["metrics"] != curve:
        yield f"the end's metrics are {end['metrics']}, the curve's {curve}"
    if not [*stage.store.list(layout.output_commit(stage.key.run, checkpoint.place.attempt))]:
        yield f"the outputs of attempt {checkpoint.place.attempt}, which finished, are not there"


def _stops(stage: Stage) -> list[int]:
    """Stop requests that no reopen has taken back."""
    kinds = [entry["kind"] for entry in control.entries_of(stage.store, stage.key)]
    since = max((k for k, kind in enumerate(kinds, 1) if kind == log.REOPEN), default=0)
    return [k for k, kind in enumerate(kinds, 1) if kind == log.STOP_REQUEST and k > since]


def _whole(stage: Stage) -> tuple[checkpoints.Checkpoint, Weights] | str:
    try:
        return restore(stage) or "there is no checkpoint"
    except DamagedError as error:
        return str(error)


def _frame(stage: Stage) -> Iterator[str]:
    points = frame(stage)
    steps = [point.step for point in points]
    if steps != sorted(set(steps)):
        yield f"steps are shown twice or out of order: {steps}"
    if any(point.values["loss"] != 1 / point.step for point in points):
        yield f"a step has another's value: {points}"


def _kept(stage: Stage, saved: Weights) -> Iterator[str]:
    restored = _whole(stage) if saved else None
    if isinstance(restored, str):
        yield f"{saved} was saved, and {restored}"
    elif restored and restored[1][: len(saved)] != saved:
        yield f"{saved} was saved, and passed over for {restored[1]}"
    shown = [[point.step, int(point.values["by"])] for point in frame(stage)]
    if shown[: len(saved)] != saved:
        yield f"{saved} was saved, and {shown} is shown"
