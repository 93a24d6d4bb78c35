"""The words and the whole environment one attempt's process is started with. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol

from hostler import env
from hostler.records.handoff import Handoff
from hostler.records.log import RunKey
from hostler.spec.argv import Built, build
from hostler.spec.job import Job


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
    places = {
        "checkpoint_dir": str(folder.checkpoint),
        "output_dir": str(folder.output),
        "data_dir": str(folder.data),
        "run_id": attempt.key.run,
        "params_file": str(folder.params),
        "params_json": json.dumps(params, default=str),
    }
    built = build(job, params, places, resuming=resuming)
    devices = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    return Built(built.argv, {**base, **devices, **built.env, **_own(attempt, folder, store)})


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
