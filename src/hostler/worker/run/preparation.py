"""Preparation of an attempt: inputs from other runs, its checkpoint, then code, packages and data."""

from __future__ import annotations

import os
from pathlib import PurePosixPath

from hostler.attempt import working_files
from hostler.errors import (
    DamagedError,
    MachineError,
    MissingError,
    NewerFormatError,
    PrepareError,
    UsageError,
)
from hostler.records.body import Record
from hostler.records.checkpoint import outputs
from hostler.records.checkpoint.checkpoints import Checkpoint
from hostler.spec.inputs import INIT
from hostler.spec.states import stop_reason
from hostler.store import NotFound
from hostler.worker.prepare import inputs
from hostler.worker.prepare.prepare import Prepared, prepare
from hostler.worker.run import option_forms
from hostler.worker.run.conclude import OUT_OF_TIME, is_out_of_time
from hostler.worker.run.ending import Ending
from hostler.worker.run.failure import Verdict
from hostler.worker.run.invocation import resumed
from hostler.worker.run.kinds import NOT_FINISHED, TIME_LIMIT
from hostler.worker.run.local_attempt import LocalAttempt

# Errors of a run that cannot be started here; any other is a bug, or the store's.
UNREADY = (
    PrepareError,
    MachineError,
    MissingError,
    DamagedError,
    NewerFormatError,
    UsageError,
    NotFound,
    OSError,
)


APPENDED = (".csv", ".tsv", ".txt", ".log", ".jsonl", ".ndjson")
WEIGHTS = (".pt", ".pth", ".ckpt", ".safetensors", ".h5", ".keras", ".tar", ".npz", ".pkl")


def make_ready(local: LocalAttempt, ending: Ending) -> Prepared | None:
    """Bring everything the process needs; None if the attempt is over before it. May be repeated."""
    _take_inputs(local)
    local.job, local.learned = option_forms.learned(local.machine.store, local.job, local.params)
    local.make_folder()
    restored = _restore(local)
    if restored and restored.finished:
        ending.had_finished(restored)
        return None
    if is_out_of_time(local.state, local.job):  # it was lost, or its worker had to go, as the time was up
        ending.conclude(Verdict(TIME_LIMIT, f"not started: {OUT_OF_TIME}"))
        return None
    machine, note = local.machine, local.uploader.note
    place, kept = local.folder.folder, local.kept
    prepared = prepare(local.job, machine.store, machine.cache, place, note, machine.preparations, kept)
    local.code = prepared.code
    if local.inputs.init:
        os.symlink(local.inputs.init, prepared.data / INIT)
    if restored:
        _put_back(local, prepared, restored.place.attempt)
    local.status.check()
    if local.status.stop:
        ending.conclude(Verdict(NOT_FINISHED, f"stopped: {stop_reason(local.status.stop)}"))
        return None
    return prepared


def _take_inputs(local: LocalAttempt) -> None:
    machine, note = local.machine, local.uploader.note
    local.inputs = inputs.bring(local.params, local.job.init, local.run, machine.store, machine.cache, note)


def _restore(local: LocalAttempt) -> Checkpoint | None:
    note = local.uploader.note
    params, folder = local.inputs.params, local.folder
    restored = local.delivery.restore(
        note, lambda: resumed(local.job, params, local.attempt, folder) is not None
    )
    if restored and not restored.finished:
        rounds = local.delivery.rounds
        text = f" ({rounds} boosting rounds)" if rounds else ""
        note(f"goes on from checkpoint {restored.place.name}{text}")
    elif restored is None and local.state.attempts > 1:
        _tell_lost_progress(local)
    return restored


def _put_back(local: LocalAttempt, prepared: Prepared, attempt: int) -> None:
    """Put text that an earlier attempt wrote into the working folder back, so that a script that appends to
    it goes on: where the code has its folder and not the file, as a script may insist on making a folder."""
    store, run, work = local.machine.store, local.run, local.folder.work
    names: list[str] = []
    try:
        kept = [row for row in outputs.before(store, run, attempt) if _is_appended(local, row)]
        rows = [row for row in kept if working_files.is_free(work, row["name"])]
        names = [row["name"] for row in rows]
        outputs.fetch(store, run, rows, work)
    except (NotFound, DamagedError) as error:
        local.uploader.note(f"not put back into the working folder: {error}")
        for name in names:
            (work / name).unlink(missing_ok=True)
        return
    for name in names:
        working_files.note(prepared.files, work, name)
    if names:
        local.uploader.note(f"put back into the working folder: {', '.join(map(working_files.shown, names))}")


def _is_appended(local: LocalAttempt, row: Record) -> bool:
    """Whether it is text of the working folder, as programs append to."""
    name, patterns = PurePosixPath(row["name"]), [pattern.rstrip("/") for pattern in local.job.outputs]
    named = any(path.match(pattern) for pattern in patterns for path in (name, *name.parents))
    return name.suffix.lower() in APPENDED and bool(row.get("unnamed") or named)


def _tell_lost_progress(local: LocalAttempt) -> None:
    """Say where checkpoints belong, if an earlier attempt left some in its working folder."""
    found = outputs.newest(local.machine.store, local.run)
    names = [str(row["name"]) for row in found[1] if row.get("unnamed")] if found else []
    weights = [name for name in names if PurePosixPath(name).suffix.lower() in WEIGHTS]
    if weights:
        local.uploader.note(
            f"starts from the beginning: {working_files.shown(weights[0])} is a file of the working folder, "
            "where no attempt goes on from it: write checkpoints to $HOSTLER_CHECKPOINT_DIR, or pass "
            "{checkpoint_dir} to the script"
        )
