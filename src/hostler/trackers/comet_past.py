"""Reads runs from Comet's offline archives, without its library."""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hostler.errors import DamagedError, MissingError
from hostler.records.series.points import Point
from hostler.trackers.past import Past, Say

_AUTO = "auto-logged"
_OWN = "process duration"  # a metric of Comet's own


def read(where: str, say: Say) -> Iterator[Past]:
    """Runs of one archive, or of all in a folder; files that are not archives are reported."""
    place = Path(where)
    files = sorted(place.rglob("*.zip")) if place.is_dir() else [place]
    if not files or not files[0].is_file():
        raise MissingError(
            f"the Comet archive {where} does not exist", hint="give comet:FOLDER or comet:FILE.zip"
        )
    for file in files:
        try:
            yield _run(file)
        except DamagedError as error:
            if file == place:
                raise
            say(error.message)


def _run(file: Path) -> Past:
    try:
        with zipfile.ZipFile(file) as archive:
            head = json.loads(archive.read("experiment.json"))
            lines = archive.read("messages.json").decode("utf-8", "replace").splitlines()
            key = str(head["offline_id"])
    except (KeyError, TypeError, ValueError, EOFError, zlib.error, zipfile.BadZipFile):
        raise DamagedError(f"{file} is not a Comet archive, or an incomplete one") from None
    comet_past = _CometPast()
    for line in lines:
        comet_past.take(line)
    return Past(
        id=key,
        name=str(comet_past.others.get("Name") or key),
        group=str(comet_past.others.get("hostler sweep") or head.get("project_name") or ""),
        state=str(comet_past.others.get("state") or ""),
        params=comet_past.params,
        tags=tuple(head.get("tags") or ()),
        started=(head.get("start_time") or 0) / 1000 or None,
        ended=(head.get("stop_time") or 0) / 1000 or None,
        points=comet_past.points,
    )


class _CometPast:
    def __init__(self) -> None:
        self.params: dict[str, Any] = {}
        self.others: dict[str, Any] = {}
        self.points: list[Point] = []

    def take(self, line: str) -> None:
        try:
            message = json.loads(line)
            self._understand(message["type"], message["payload"])
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
            return  # of another version's, or damaged: the others count

    def _understand(self, kind: str, payload: dict[str, Any]) -> None:
        if kind == "log_other":
            self.others[payload["key"]] = payload["value"]
        elif kind == "parameter_msg":
            self._param(
                payload["params"] if "params" in payload else payload["param"]
            )  # a list, or one value
        elif kind == "metric_msg":
            self._metric(payload["metric"], float(payload.get("local_timestamp") or 0) / 1000)

    def _param(self, param: dict[str, Any]) -> None:
        if param.get("source") != _AUTO:
            self.params[param["paramName"]] = param["paramValue"]

    def _metric(self, metric: dict[str, Any], time: float) -> None:
        if metric["metricName"] != _OWN:
            value = float(metric["metricValue"])
            self.points.append(Point(int(metric.get("step") or 0), time, {metric["metricName"]: value}))
