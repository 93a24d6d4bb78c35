"""Exports a stored run to a tracking tool. Repeating it is harmless: no point is sent twice."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from hostler.errors import HostlerError, MachineError
from hostler.frozen import dataclass
from hostler.records import project as projects
from hostler.records.rows import Row
from hostler.records.run import control
from hostler.records.run.log import RunKey
from hostler.records.run.state import RunState
from hostler.records.series import metrics, packing
from hostler.records.series.points import Point
from hostler.records.sweep import sweeps
from hostler.spec.job import Job
from hostler.store import Store
from hostler.trackers import base, registry
from hostler.trackers.base import Closing, Opening
from hostler.trackers.feeder import one_line


@dataclass(frozen=True)
class Exported:
    run: str
    name: str
    id: str
    url: str
    points: int
    note: str = ""


class Exporter:
    """Brings runs of one sweep to one tool."""

    def __init__(self, store: Store, job: Job, kind: str, options: Mapping[str, str], work: Path) -> None:
        """`work`: a folder of ours, for what the tool writes on its way."""
        self._store, self._job, self._kind, self._options = store, job, kind, dict(options)
        self._work = work
        self._project = projects.name(store) or job.name
        self._submission = sweeps.submission(store, job.name)

    def export(self, row: Row) -> Exported:
        key = RunKey(row.sweep, row.id)
        state = control.state_of(self._store, key)
        end = state.end or {}
        points = self._points(row.id, state)
        opening = self._opening(row, state.attempt, end.get("config") or {})
        closing = Closing(
            state=row.state if state.ended else "",
            summary=end.get("result") or {},
            ended=float(end.get("at") or 0.0),
        )
        tracker = registry.load(self._kind)
        try:
            opened = tracker.open(opening)
            tracker.log(points)
            tracker.close(closing)
        except HostlerError:
            raise
        except Exception as error:  # whatever its library raises
            raise MachineError(
                f"{self._kind}: {one_line(error)}", hint="run it again: it continues where this one ended"
            ) from None
        finally:
            shutil.rmtree(opening.folder, ignore_errors=True)
        return Exported(row.id, row.name, opening.id, opened.url, len(points), opened.note)

    def _points(self, run: str, state: RunState) -> list[Point]:
        if state.end and state.end.get("copy_of"):
            return packing.points(self._store, run, state.end)
        return metrics.read(self._store, run, state.attempt) if state.attempt else []

    def _opening(self, row: Row, attempt: int, chosen: Mapping[str, object]) -> Opening:
        return Opening(
            kind=self._kind,
            id=base.run_id(self._submission, row.id),
            run=row.id,
            name=row.name,
            sweep=row.sweep,
            project=self._project,
            attempt=attempt,
            folder=str(self._work / row.id),
            config={**row.params, **chosen},
            tags=row.tags,
            notes=self._job.notes,
            options=self._options,
            started=row.started or 0.0,
        )
