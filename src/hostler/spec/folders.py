"""Folder names for the runs of a sweep: the same for everybody, readable, inside all file systems' limits."""

from __future__ import annotations

import hashlib
import re
from pathlib import PurePosixPath

from hostler.spec.job import Job
from hostler.spec.params import flatten
from hostler.spec.scalars import text

LONGEST = 200  # bytes of one name; most file systems allow 255

STYLES = ("id", "params", "dated", "numbered")


def folder(job: Job, index: int, style: str, date: str) -> PurePosixPath:
    """Where a run's files go below the folder that was asked for.

    `id`: 0000003-lr-search-1f2e3d. `params`: 3_lr=0.1+width=64, only what varies. `dated`:
    2025-01-31-lr-search/3_2025-01-31-lr-search+lr=0.1+width=64. `numbered`:
    2025-01-31-lr-search/003-lr=0.1+width=64.
    """
    if style == "id":
        return PurePosixPath(job.run_id(index))
    varied = "+".join(f"{_safe(k)}={_safe(text(v))}" for k, v in _varied(job, index).items())
    if style == "params":
        return PurePosixPath(_short(f"{index}_{varied}" if varied else str(index), job.mark(index)))
    sweep = f"{date}-{job.name}"
    if style == "numbered":
        name = f"{index:03d}-{varied}" if varied else f"{index:03d}"
        return PurePosixPath(sweep) / _short(name, job.mark(index))
    name = f"{index}_{sweep}+{varied}" if varied else f"{index}_{sweep}"
    return PurePosixPath(sweep) / _short(name, job.mark(index))


def _varied(job: Job, index: int) -> dict[str, object]:
    """Parameters of a run that are not the same in all runs of its sweep, and which repeat it is."""
    params = flatten(job.params(index))
    if index >= job.planned:
        return params if job.count > 1 else {}
    spaces = [one.space for one in job.rounds]
    varying = {key for space in spaces for key in space.varying}
    record = {key: value for key, value in params.items() if key in varying}
    if any(space.repeat.count > 1 and not space.repeat.key for space in spaces):
        record["repeat"] = job.repeat(index)
    return record


def _safe(word: str) -> str:
    return re.sub(r"[^\w.=,@-]+", "_", word)


def _short(name: str, mark: str) -> str:
    """Names that are too long end in a mark of what was cut."""
    data = name.encode()
    if len(data) <= LONGEST:
        return name
    cut = data[: LONGEST - 9].decode("utf-8", "ignore")
    return f"{cut}~{hashlib.sha256(mark.encode()).hexdigest()[:8]}"
