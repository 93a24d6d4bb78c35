"""Preparation of an attempt: inputs from other runs, its checkpoint, then code, packages and data."""

from __future__ import annotations

import os

from hostler.errors import (
    DamagedError,
    MachineError,
    MissingError,
    NewerFormatError,
    PrepareError,
    UsageError,
)
from hostler.records.checkpoint.checkpoints import Checkpoint
from hostler.spec.inputs import INIT
from hostler.store import NotFound
from hostler.worker.prepare import inputs
from hostler.worker.prepare.prepare import Prepared, prepare
from hostler.worker.run import option_forms
from hostler.worker.run.ending import Ending
from hostler.worker.run.failure import Verdict
from hostler.worker.run.invocation import resumed
from hostler.worker.run.kinds import NOT_FINISHED
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


def make_ready(local: LocalAttempt, ending: Ending) -> Prepared | None:
    """Bring everything the process needs; None if the attempt is over before it. May be repeated."""
    _take_inputs(local)
    local.job, local.learned = option_forms.learned(local.machine.store, local.job, local.params)
    local.folder.make(local.inputs.params)
    restored = _restore(local)
    if restored and restored.finished:
        ending.had_finished(restored)
        return None
    machine, note = local.machine, local.uploader.note
    prepared = prepare(
        local.job, machine.store, machine.cache, local.folder.folder, note, machine.preparations
    )
    if local.inputs.init:
        os.symlink(local.inputs.init, prepared.data / INIT)
    local.status.check()
    if local.status.stop:
        ending.conclude(Verdict(NOT_FINISHED, f"stopped: {local.status.stop}"))
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
        note(f"goes on from checkpoint {restored.place.name}")
    return restored
