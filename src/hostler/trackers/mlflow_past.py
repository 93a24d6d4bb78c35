"""Reads runs from MLflow: a tracking server, a database or a folder, or one experiment of it."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hostler.errors import HostlerError, MachineError, MissingError
from hostler.records.series.points import Point
from hostler.spec.scalars import parse_value
from hostler.spec.states import DONE, FAILED, QUEUED, RUNNING, STOPPED
from hostler.trackers import registry
from hostler.trackers.past import Past, Say
from hostler.trackers.reach import reach

_STATES = {"FINISHED": DONE, "FAILED": FAILED, "KILLED": STOPPED, "RUNNING": RUNNING, "SCHEDULED": QUEUED}
_PAGE = 500
_WORDS = {"None": None, "inf": math.inf, "-inf": -math.inf, "nan": math.nan}  # as Python writes them


def read(where: str, say: Say) -> Iterator[Past]:
    """`uri`, or `uri#experiment`."""
    uri, _, name = where.partition("#")
    _check_there(uri)
    if not registry.is_here("mlflow"):
        raise MachineError(
            "mlflow: reading its runs needs the package mlflow", hint=registry.remedy("mlflow")
        )
    from hostler.trackers.mlflow import client

    reach("mlflow", uri, "start the server, or give another: mlflow:http://host:5000")
    try:
        yield from _read(client(uri), uri, name)
    except HostlerError:
        raise
    except Exception as error:  # its own, its database's, its connection's
        raise MachineError(f"MLflow at {uri}: {' '.join(str(error).split())[:200]}") from None


def _check_there(uri: str) -> None:
    """MLflow makes a database or a folder that is not there: a reader must not."""
    path = uri.removeprefix("sqlite:///").removeprefix("file://")
    if "://" not in path and not Path(path).exists() and uri != "databricks":
        raise MissingError(
            f"{path} does not exist", hint="give mlflow:URI, such as mlflow:sqlite:///mlflow.db"
        )


def _read(asked: Any, uri: str, name: str) -> Iterator[Past]:
    found = [
        search_experiment
        for search_experiment in asked.search_experiments()
        if not name or search_experiment.name == name
    ]
    if name and not found:
        raise MissingError(
            f"MLflow at {uri} has no experiment named {name!r}", hint="mlflow:URI reads all experiments"
        )
    for experiment in found:
        for run in _runs(asked, experiment.experiment_id):
            yield _past(asked, experiment.name, run)


def _runs(client: Any, experiment: str) -> Iterator[Any]:
    token: str | None = None
    while True:
        page = client.search_runs([experiment], max_results=_PAGE, page_token=token, order_by=["start_time"])
        yield from page
        token = page.token
        if not token:
            return


def _past(client: Any, experiment: str, run: Any) -> Past:
    info, tags = run.info, dict(run.data.tags)
    own = [tag.removeprefix("hostler.tag.") for tag in tags if tag.startswith("hostler.tag.")]
    others = [tag for tag in tags if not tag.startswith(("mlflow.", "hostler."))]
    return Past(
        id=info.run_id,
        name=info.run_name or info.run_id,
        group=experiment,
        state=tags.get("hostler.state") or _STATES.get(info.status, ""),
        params={name: _value(text) for name, text in run.data.params.items()},
        tags=(*own, *others),
        started=info.start_time / 1000 if info.start_time else None,
        ended=info.end_time / 1000 if info.end_time else None,
        points=_points(client, info.run_id, run.data.metrics),
    )


def _points(client: Any, run: str, names: Any) -> list[Point]:
    rows = [row for name in names for row in client.get_metric_history(run, name)]
    rows.sort(key=lambda row: (row.timestamp, row.step))
    return [Point(row.step, row.timestamp / 1000, {row.key: _number(row.value)}) for row in rows]


def _value(text: str) -> Any:
    """MLflow keeps parameters as text: numbers are numbers again, so that conditions on them hold."""
    return _WORDS[text] if text in _WORDS else parse_value(text)


def _number(value: float) -> float:
    """A database of MLflow's holds the largest number for an infinite one."""
    return math.copysign(math.inf, value) if abs(value) == sys.float_info.max else value
