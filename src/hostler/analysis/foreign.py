"""Runs of tracking tools as a sheet: `wandb:FOLDER`, `mlflow:URI`, `tensorboard:FOLDER`, `comet:ZIP`,
`trackio:FOLDER`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from hostler.analysis.chosen import checked
from hostler.analysis.damage_report import Say, warn
from hostler.analysis.names import FACTS, is_low_best
from hostler.analysis.sheet import Sheet
from hostler.errors import MachineError
from hostler.records.series import metrics
from hostler.records.series.points import Point
from hostler.spec.params import flatten
from hostler.spec.tracking import OPTIONS
from hostler.trackers.past import Past


def source(url: str) -> tuple[str, str] | None:
    """(tool, place) that an address names; None for a store's."""
    kind, colon, where = url.partition(":")
    return (kind, where) if colon and where and kind in OPTIONS else None


def past(kind: str, where: str, say: Say = warn) -> Iterator[Past]:
    """Its runs; what of them cannot be read is said."""
    read = import_module(f"hostler.trackers.{kind}_past").read
    try:
        yield from read(where, say)
    except OSError as error:
        raise MachineError(f"{kind}:{where}: {error.strerror or error}") from None


def read(kind: str, where: str, groups: set[str] | None, say: Say = warn) -> Sheet:
    """Its runs, or those of these projects, experiments or groups."""
    return sheet(chosen(list(past(kind, where, say)), groups))


def chosen(runs: Sequence[Past], groups: set[str] | None) -> list[Past]:
    """The runs of these groups, which must exist."""
    wanted = (
        None if groups is None else checked(sorted(groups), dict.fromkeys(run.group for run in runs), "sweep")
    )
    return [run for run in runs if wanted is None or run.group in wanted]


def sheet(runs: Sequence[Past]) -> Sheet:
    totals = [metrics.summary(run.points) for run in runs]
    names = list(dict.fromkeys(name for total in totals for name in total))
    params = [flatten(run.params) for run in runs]
    keys = list(dict.fromkeys(name for param in params for name in param))
    curves = _Curves(runs)
    return Sheet(
        count=len(runs),
        facts=_facts(runs, totals),
        params={name: [param.get(name, math.nan) for param in params] for name in keys},
        totals={name: (_column(totals, name, "last"), _column(totals, name, _best(name))) for name in names},
        curve=curves.of,
    )


class _Curves:
    """Points by run and metric, in order of steps."""

    def __init__(self, runs: Sequence[Past]) -> None:
        self._rows = [_by_name(run.points) for run in runs]

    def of(self, name: str, what: str) -> Any:
        cells = np.empty(len(self._rows), dtype=object)
        for n, rows in enumerate(self._rows):
            steps, values = rows.get(name, ([], []))
            order = np.argsort(np.asarray(steps, dtype=np.int64), kind="stable")
            kind, given = (np.int64, steps) if what == "steps" else (np.float64, values)
            cells[n] = np.asarray(given, dtype=kind)[order]
        return cells


def _by_name(points: Sequence[Point]) -> dict[str, tuple[list[int], list[float]]]:
    found: dict[str, tuple[list[int], list[float]]] = {}
    for point in points:
        for name, value in point.values.items():
            steps, values = found.setdefault(name, ([], []))
            steps.append(point.step)
            values.append(value)
    return found


def _column(totals: Sequence[dict[str, dict[str, float]]], name: str, what: str) -> Any:
    return np.array([total.get(name, {}).get(what, math.nan) for total in totals], dtype=np.float64)


def _best(name: str) -> str:
    return "min" if is_low_best(name, None, "") else "max"


def _facts(runs: Sequence[Past], totals: Sequence[dict[str, dict[str, float]]]) -> dict[str, Any]:
    count = len(runs)
    known: dict[str, Any] = {
        "run": [run.id for run in runs],
        "name": [run.name for run in runs],
        "sweep": [run.group for run in runs],
        "index": np.arange(count, dtype=np.int64),
        "round": np.zeros(count, dtype=np.int64),
        "section": np.zeros(count, dtype=np.int64),
        "state": [run.state for run in runs],
        "attempts": np.ones(count, dtype=np.int64),
        "host": [run.host or math.nan for run in runs],
        "started": [math.nan if run.started is None else run.started for run in runs],
        "ended": [math.nan if run.ended is None else run.ended for run in runs],
        "seconds": [_took(run) for run in runs],
        "step": [max((int(row["step"]) for row in total.values()), default=math.nan) for total in totals],
        "tags": [",".join(run.tags) for run in runs],
    }
    return {name: known.get(name, [math.nan] * count) for name in FACTS}


def _took(run: Past) -> float:
    return run.ended - run.started if run.ended is not None and run.started is not None else math.nan
