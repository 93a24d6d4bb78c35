"""Command line and environment of an attempt's process."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, Protocol

from hostler import env
from hostler.records.run.handoff import Handoff
from hostler.records.run.log import RunKey
from hostler.spec import resume
from hostler.spec.argv import Built, build, filled
from hostler.spec.job import Job

PATH = "PYTHONPATH"


class Numbered(Protocol):
    """An attempt, whoever leads it."""

    key: RunKey
    number: int


def invocation(
    job: Job,
    params: Mapping[str, Any],
    attempt: Numbered,
    folder: Handoff,
    *,
    base: Mapping[str, str],
    store: str,
    visible: str | None,
    resuming: bool,
) -> Built:
    """`base` is the environment preparation left; `visible` the GPUs the run may see (None: as it is)."""
    fits = resumed(job, params, attempt, folder) if resuming else None
    built = build(fits or job, params, _places(params, attempt, folder), resuming=fits is not None)
    devices = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    given = {**base, **devices, **built.env, **_path(base, built.env), **_own(attempt, folder, store)}
    given |= {env.FUNCTION: job.source.function} if job.source.function else {}
    return Built(built.argv, given)


def resumed(job: Job, params: Mapping[str, Any], attempt: Numbered, folder: Handoff) -> Job | None:
    """The job with the `resume` that fits what was restored; None if none does. Before the process starts."""
    places = _places(params, attempt, folder)
    return resume.fitting(
        job, lambda words: filled(job, words, params, places), str(folder.checkpoint), os.path.exists
    )


def _places(params: Mapping[str, Any], attempt: Numbered, folder: Handoff) -> dict[str, str]:
    return {
        "checkpoint_dir": str(folder.checkpoint),
        "output_dir": str(folder.output),
        "data_dir": str(folder.data),
        "run_id": attempt.key.run,
        "params_file": str(folder.params),
        "params_json": json.dumps(params, default=str),
    }


def _path(base: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """A project's own PYTHONPATH comes first, and the library stays within reach behind it."""
    if PATH not in given or PATH not in base:
        return {}
    library = base[PATH].rpartition(os.pathsep)[2]
    return {PATH: os.pathsep.join(filter(None, [given[PATH], library]))}


def _own(attempt: Numbered, folder: Handoff, store: str) -> dict[str, str]:
    return {
        env.STORE: store,
        env.SWEEP: attempt.key.sweep,
        env.RUN: attempt.key.run,
        env.ATTEMPT: str(attempt.number),
        env.RUN_DIR: str(folder.folder),
        env.CHECKPOINT_DIR: str(folder.checkpoint),
        env.OUTPUT_DIR: str(folder.output),
        env.DATA: str(folder.data),
        env.PARAMS: str(folder.params),
    }
