"""Advice for a sweep without a metric: the line to add, with candidates from its points or its output."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hostler.records.rows import Row
from hostler.records.series import reread
from hostler.records.sweep import summary
from hostler.spec.job import Job
from hostler.spec.states import ENDED
from hostler.store import Store

LOOKED_AT = 3  # runs whose output is searched
_LOW = re.compile(r"loss|err|mse|mae|nll|perplexity|ppl|wer|cer|fid", re.IGNORECASE)
_HELD_OUT = re.compile(r"val|eval|test|dev", re.IGNORECASE)
_RESULT = re.compile(r"loss|acc|auc|f1|score|err|mse|mae|reward", re.IGNORECASE)


def advice(store: Store, job: Job, found: Sequence[Row]) -> str:
    """The lines to add to the sweep's file, and to type until then."""
    if there := ranked(summary.logged(found)):
        return f"{_line(job, there[0])}, or --metric {there[0]} (logged: {', '.join(there)})"
    ended = [row.copy_of or row.id for row in found if row.state in ENDED][:LOOKED_AT]
    if there := ranked(reread.candidates(store, ended)):
        return (
            f"hostler metrics {job.name} reads {', '.join(there)} from the stored output;"
            f" then {_line(job, there[0])}, or --metric {there[0]}"
        )
    worked = [row.copy_of or row.id for row in found if row.state in ENDED and row.state != "failed"]
    if found_one := reread.fitting_pattern(store, worked[:LOOKED_AT]):
        name, pattern = found_one
        return (
            f"hostler metrics {job.name} --pattern '{pattern}' reads {name} from the stored output;"
            f" then {_line(job, name)}, or --metric {name}"
        )
    return f"print a line like loss=0.5 in the script, or log it by run.log; then {_line(job, 'loss')}"


def ranked(names: Sequence[str]) -> list[str]:
    """Names in the order in which they are likely to be the one that matters. Pure."""
    return sorted(names, key=lambda name: (not _RESULT.search(name), not _HELD_OUT.search(name)))


def _line(job: Job, name: str) -> str:
    goal = "min" if _LOW.search(name) else "max"
    if job.file:
        return f"add `metric: {{name: {name}, goal: {goal}}}` to {job.file}"
    return f"add `metric: {name}` and `goal: {goal}` to hostler.yaml"
