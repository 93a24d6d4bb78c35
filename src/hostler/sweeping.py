"""`hostler.sweep`: a sweep from Python, of a command or of a function, and the handle to what becomes of it.

It is the same sweep that a file of these keys would be: the store holds all of it, and whoever runs the
program again finds what is done.
"""

from __future__ import annotations

import inspect
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hostler import env
from hostler.backends.base import Launch
from hostler.backends.registry import backend_of
from hostler.errors import MissingError, UsageError
from hostler.fleet import again, pending
from hostler.fleet.sweep import draft_sweep, submit_sweep
from hostler.records import control, layout, upstream
from hostler.records.rows import Row, rows
from hostler.records.state import PAUSED, QUEUED, RUNNING
from hostler.spec.job import Job
from hostler.spec.names import slug
from hostler.spec.project import Fleet, Project
from hostler.spec.sweepfile import parse_sweep
from hostler.spec.yaml12 import Document
from hostler.store import open_store
from hostler.store.registry import is_folder

if TYPE_CHECKING:
    import pandas

LOOK = 0.3  # seconds between two looks at least

Work = str | Sequence[str] | Callable[..., Any]


@dataclass(frozen=True)
class Sweep:
    """A sweep in a store."""

    name: str
    store: str  # URL

    def wait(self, timeout: float | None = None) -> Sweep:
        """Until nothing runs and nothing more will be taken, or so many seconds are over."""
        begun = time.monotonic()
        while self._goes_on():
            left = None if timeout is None else begun + timeout - time.monotonic()
            if left is not None and left <= 0:
                break
            time.sleep(LOOK if left is None else min(LOOK, left))
        return self

    def rows(self) -> list[Row]:
        """Its runs: parameters, state, last metrics."""
        return rows(open_store(self.store), [self.name])

    def frame(self) -> pandas.DataFrame:
        """Its runs as a data frame, one row each."""
        from hostler.analysis.frame import frame

        return frame(self.store, self.name)

    def best(self) -> Row:
        """Its best finished run, by its metric."""
        key = upstream.best(open_store(self.store), self.name)
        return next(row for row in self.rows() if row.id == key.run)

    def stop(self) -> None:
        """Save and end what is queued or running."""
        store = open_store(self.store)
        for row in self.rows():
            if row.state in (QUEUED, RUNNING, PAUSED):
                control.stop(store, row.key)

    def _goes_on(self) -> bool:
        return pending.goes_on(open_store(self.store), self.rows(), [self.name])


def sweep(
    work: Work,
    parameters: Mapping[str, Any],
    *,
    project: Project,
    name: str | None = None,
    store: str | None = None,
    on: str | None = None,
    start: bool = True,
    **keys: Any,
) -> Sweep:
    """Submit a sweep, start workers for it, return at once. `keys` are those of a sweep file."""
    if env.run_dir():
        raise UsageError(
            "hostler.sweep was called inside a run", hint='put it below if __name__ == "__main__":'
        )
    given = {"parameters": dict(parameters), **_lists(keys), **_command(work, project, keys)}
    given["name"] = name or _name(work)
    file = parse_sweep(Document("hostler.sweep", given, {}), project, Path.cwd() / "sweep.yaml")
    url = store or env.store_url() or file.project.store
    opened = open_store(url)
    draft = draft_sweep(file)
    fleet = _fleet(file.project, on, draft.parallel)
    if start:
        _check(fleet)
    job = submit_sweep(opened, file, draft).job
    again.lift_if_allowed(opened, job)
    if start:
        _start(file.project, url, job, fleet)
    return Sweep(job.name, opened.url)


def _lists(keys: Mapping[str, Any]) -> dict[str, Any]:
    """Rows of Python as those of a file."""
    return {key: list(value) if isinstance(value, tuple) else value for key, value in keys.items()}


def _name(work: Work) -> str:
    if callable(work):
        return str(getattr(work, "__name__", "sweep"))
    words = work.split() if isinstance(work, str) else list(work)
    scripts = [Path(word).stem for word in words if word.endswith((".py", ".sh"))]
    return f"{(scripts or [Path(words[0]).stem if words else 'sweep'])[0]}-sweep"


def _command(work: Work, project: Project, keys: Mapping[str, Any]) -> dict[str, Any]:
    if not callable(work):
        return {"command": work if isinstance(work, str) else [str(word) for word in work]}
    metric = keys.get("metric")
    named = metric.get("name") if isinstance(metric, Mapping) else metric
    words = ["python", "-m", "hostler.sdk.call", _place(work, project)]
    return {"command": [*words, *([named] if isinstance(named, str) else [])], "style": "json"}


def _place(function: Callable[..., Any], project: Project) -> str:
    """`path/of/file.py:function`, from the project's folder on."""
    try:
        file = inspect.getsourcefile(inspect.unwrap(function))
    except TypeError:
        file = None
    name = getattr(function, "__qualname__", "")
    if file is None or not os.path.isfile(file) or "<" in name or not name:
        raise UsageError(
            f"{name or function!r} is not a function of a file",
            hint="workers import it: put it in a .py file",
        )
    path = os.path.relpath(os.path.realpath(file), os.path.realpath(project.root))
    if path.startswith(".."):
        raise UsageError(f"{file} is outside the project {project.root}", hint="run this from its folder")
    return f"{path}:{name}"


def _fleet(project: Project, on: str | None, parallel: int | None) -> Fleet:
    name = on or project.fleet
    if name is not None and name in project.fleets:
        return replace(project.fleets[name], scope=project.name)
    if name not in (None, "local"):
        raise MissingError(f"there is no fleet {name!r}", f"there is: local, {', '.join(project.fleets)}")
    return Fleet(name="here", backend="local", slots=parallel, workers=project.resources.nodes)


def _check(fleet: Fleet) -> None:
    """Before anything is submitted: a cluster behind a login node is only asked by the commands."""
    if fleet.options.get("login"):
        raise UsageError(
            f"{fleet.name} is reached by a login node, and hostler.sweep does not go there",
            hint=f"start=False, then hostler up {fleet.name}",
        )


def _start(project: Project, url: str, job: Job, fleet: Fleet) -> None:
    engine = backend_of(fleet)
    cache = str(project.root / Path(project.cache).expanduser()) if project.cache else None
    shared = cache if engine.capabilities.shares_disk else project.cache
    base = Path(url) if is_folder(url) else env.cache_dir()
    launch = Launch(
        store=url,
        sweeps=(job.name,),
        python=sys.executable,
        cache=shared,
        runs=job.count,
        resources=job.resources,
        logs=str((base / layout.fleet_log(slug(fleet.name), "any")).parent),
    )
    engine.start(engine.plan(fleet, launch))
