"""`hostler.sweep`: a sweep from Python, of a command or of a function, and the handle to what becomes of it.

It is the same sweep that a file of these keys would be: the store holds all of it, and whoever runs the
program again finds what is done.
"""

from __future__ import annotations

import ast
import inspect
import os
import shutil
import sys
import sysconfig
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hostler import env
from hostler.backends.project_file import load_project, parse_sweep
from hostler.backends.registry import HERE
from hostler.errors import MissingError, UsageError
from hostler.fleet import again, machine_choice, pending
from hostler.fleet.function import Packed, name_of, pack
from hostler.fleet.launcher import Launcher, is_served, sweep_launcher
from hostler.fleet.ready import say
from hostler.fleet.secrets import check_secrets
from hostler.fleet.sweep import Swept, as_stored, draft_sweep, submit_sweep
from hostler.frozen import dataclass
from hostler.records.packs.packed_store import open_store
from hostler.records.rows import Row, rows
from hostler.records.run import control, upstream
from hostler.records.series.logs import LogReader
from hostler.records.sweep import summary
from hostler.spec.files.yaml12 import Document
from hostler.spec.project import Project, default_project, find_project
from hostler.spec.states import PAUSED, QUEUED, RUNNING
from hostler.store import Store
from hostler.terminal import visible
from hostler.train.fused.offer import offered
from hostler.worker.claim.room import at_a_time, offer

if TYPE_CHECKING:
    import pandas

LOOK = 0.3  # seconds between two looks at least

_SAID: list[str] = []  # functions that were said to be sent by cloudpickle: the first alone

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

    def frame(self, *, system: bool = False) -> pandas.DataFrame:
        """Its runs as a data frame, one row each. `system`: also metrics of the machine."""
        from hostler.analysis.frame import frame

        return frame(self.store, self.name, system=system)

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

    def plot(self, kind: str = "results", **options: Any) -> Any:
        """A plot of its runs, as `hostler plot` draws it; a notebook shows it. `options` are those of
        `hostler.analysis.plots.draw`: metric, by, legend …"""
        from hostler.analysis.plots import draw

        return draw(self.store, kind, [self.name], **options)

    def runs(self) -> list[SweepRun]:
        """Its runs, each with its logs."""
        return [SweepRun(row, self.store) for row in self.rows()]

    def run(self, index: int) -> SweepRun:
        """One of its runs."""
        sweep_run = next((one for one in self.runs() if one.row.index == index), None)
        if sweep_run is None:
            raise MissingError(f"{self.name} has no run {index}", hint=f"hostler status {self.name}")
        return sweep_run

    def _ipython_display_(self) -> None:
        """In a notebook a table that goes on as the sweep does."""
        from hostler.analysis import live_table

        if live_table.in_notebook():
            live_table.show(self._repr_html_, self._goes_on)
        else:
            print(repr(self))

    def _repr_html_(self) -> str:
        """As Jupyter shows it."""
        from hostler.records import rich
        from hostler.records.sweep import summary, sweeps

        store = open_store(self.store)
        job, found = sweeps.load(store, self.name), rows(store, [self.name], touched=True)
        best = [row for _, row in summary.ranked(job, found)] or found
        return rich.of_sweep(summary.of_sweep(store, self.name), best)

    def _goes_on(self) -> bool:
        return pending.goes_on(open_store(self.store), self.rows(), [self.name])


@dataclass(frozen=True)
class SweepRun:
    """One run of a sweep."""

    row: Row
    store: str  # URL

    def logs(self, tail: int | None = None) -> str:
        """What its attempts have printed so far, or the last lines of it."""
        pieces = LogReader(open_store(self.store), self.row.copy_of or self.row.id).read()
        text = visible(b"".join(piece.data for piece in pieces).decode("utf-8", "replace"))
        if tail is None:
            return text
        lines = text.splitlines(keepends=True)
        return "".join(lines[max(0, len(lines) - tail) :])

    def stop(self) -> None:
        """Save and end it."""
        control.stop(open_store(self.store), self.row.key)

    def _repr_html_(self) -> str:
        """As Jupyter shows it."""
        from hostler.records import rich

        return rich.of_run(self.row)


def sweep(
    work: Work,
    parameters: Mapping[str, Any],
    *,
    project: Project,
    name: str | None = None,
    store: str | Path | None = None,
    on: str | None = None,
    start: bool = True,
    **keys: Any,
) -> Sweep:
    """Submit a sweep, start workers for it, return at once. `keys` are those of a sweep file."""
    if env.run_dir():
        raise UsageError(
            "hostler.sweep was called inside a run", hint='put it below if __name__ == "__main__":'
        )
    check_fleet_name(on)
    function = packed(work, project)
    values = {"parameters": dict(parameters), **as_in_file(keys), **command_of(work, function, project, keys)}
    values["name"] = name or _name(work)
    file = parse_sweep(Document("hostler.sweep", values, {}), project, Path.cwd() / "sweep.yaml")
    url = str(store or env.store_url() or file.project.store)
    opened = open_store(url)
    draft, _ = offered(draft_sweep(file), file.project.root, file.together)
    draft = as_stored(opened, draft)
    workers = sweep_launcher(file.project, url, on, draft.parallel)
    workers = machine_choice.as_learned(workers, opened, [draft])
    if start:
        check_secrets(draft.secrets)
        workers = workers.prepared(opened)
    done = submit_sweep(opened, file, draft, function=function)
    again.lift_if_allowed(opened, done.job)
    if start:
        start_workers(opened, workers, done, always=on is not None, own_python=callable(work))
    return Sweep(done.job.name, opened.url)


def check_fleet_name(on: object) -> None:
    if on is not None and not isinstance(on, str):
        raise UsageError(
            f"on is {on!r:.60}, which is not a text", hint="the name of one fleet of hostler.yaml"
        )


def project_here() -> Project:
    """The project of the current folder: its file's, or the default without one."""
    path = find_project(Path.cwd())
    return load_project(path) if path else default_project(Path.cwd())


def as_in_file(keys: Mapping[str, Any]) -> dict[str, Any]:
    """Rows of Python as those of a file."""
    return {key: list(value) if isinstance(value, tuple) else value for key, value in keys.items()}


def _name(work: Work) -> str:
    if callable(work):
        return name_of(work)
    words = work.split() if isinstance(work, str) else list(work)
    scripts = [Path(word).stem for word in words if word.endswith((".py", ".sh"))]
    return f"{(scripts or [Path(words[0]).stem if words else 'sweep'])[0]}-sweep"


def command_of(
    work: Work, function: Packed | None, project: Project, keys: Mapping[str, Any], *options: str
) -> dict[str, Any]:
    """The keys of a sweep file that run this work; `options` are those of `sdk/call.py`."""
    if not callable(work):
        return {"command": work if isinstance(work, str) else [str(word) for word in work]}
    metric = keys.get("metric")
    named = metric.get("name") if isinstance(metric, Mapping) else metric
    place = function.place if function else place_of(work, project)
    words = ["python", "-m", "hostler.sdk.call", *options, place]
    return {"command": [*words, *([named] if isinstance(named, str) else [])], "style": "json"}


def packed(work: Work, project: Project) -> Packed | None:
    """The function, if workers cannot import it from a file."""
    if not callable(work) or _file(work):
        return None
    name = name_of(work)
    if project.git is not None:
        raise UsageError(
            f"{name} is not in a file, and the code of this project comes from {project.git.url}",
            hint="put it in a .py file of that repository",
        )
    made = pack(work, project.root, project.secrets)
    if not _SAID:
        _SAID.append(name)
        say(f"{name} is not in a file: cloudpickle sends it, with what it uses")
    return made


def place_of(function: Callable[..., Any], project: Project) -> str:
    """`path/of/file.py:function`, from the project's folder on; `module:function` of what is installed."""
    file = _file(function)
    if function.__module__.startswith("hostler.") or _is_installed(file):
        return f"{function.__module__}:{function.__qualname__}"
    path = os.path.relpath(os.path.realpath(file), os.path.realpath(project.root))
    if path.startswith(".."):
        raise UsageError(f"{file} is outside the project {project.root}", hint="run this from its folder")
    return f"{path}:{getattr(function, '__qualname__', '')}"


def _file(function: Callable[..., Any]) -> str:
    """The file that it can be imported from; '' if it is of a notebook's cell, a lambda, a closure …"""
    try:
        file = inspect.getsourcefile(inspect.unwrap(function)) or ""
    except TypeError:
        return ""
    bound = inspect.ismethod(function) and not inspect.isclass(function.__self__)
    name = getattr(function, "__qualname__", "")
    if bound or not os.path.isfile(file) or "<" in name or not name:
        return ""
    return file if _is_imported_as(function, name) and _outlives_main(file, name) else ""


def _is_installed(file: str) -> bool:
    """Whether the file came with Python or with a package, and is not one of the user's own."""
    path = Path(os.path.realpath(file))
    standard = os.path.realpath(sysconfig.get_path("stdlib"))
    return bool({"site-packages", "dist-packages"} & set(path.parts)) or path.is_relative_to(standard)


def _is_imported_as(function: Callable[..., Any], name: str) -> bool:
    """Whether its module has this very function by its name: a wrapper, or one that was defined again since,
    carries the name of another."""
    found: Any = sys.modules.get(function.__module__)
    for part in name.split("."):
        found = getattr(found, part, None)
    return bool(found == function)


def _outlives_main(file: str, name: str) -> bool:
    """Whether an import of the file defines it: what is below `if __name__ == …` is for a script alone."""
    with open(file, "rb") as source:
        body = ast.parse(source.read()).body
    own = name.partition(".")[0]
    return any(_defines(part, own) for part in body if not _asks_for_its_name(part))


def _defines(part: ast.stmt, name: str) -> bool:
    """Whether the name is bound somewhere in it; what an import brings may be any name."""
    for node in ast.walk(part):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name == name:
            return True
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            return True
        if isinstance(node, ast.alias) and name in (node.asname or node.name, "*"):
            return True
    return False


def _asks_for_its_name(part: ast.stmt) -> bool:
    asked = ast.walk(part.test) if isinstance(part, ast.If) else ()
    return any(isinstance(node, ast.Name) and node.id == "__name__" for node in asked)


def start_workers(
    store: Store, workers: Launcher, done: Swept, *, always: bool, own_python: bool = False
) -> None:
    """As `hostler sweep` does: for what is open, and on a machine of one's own only if nobody is at it.
    `own_python`: `python` on this machine is the one that runs this program, whatever PATH says."""
    workers = replace(workers, search_path=_own_path()) if own_python else workers
    job = done.job
    found = summary.of_sweep(store, job.name)
    wanted = found.counts.get(QUEUED, 0) + found.counts.get(RUNNING, 0) + found.unchosen
    if job.chooses:
        wanted = max(wanted, workers.fleet.workers)
    shared = workers.engine.capabilities.shared
    if wanted and (always or shared or not is_served(store, job.name)):
        workers.start_missing([job.name], wanted, new=done.version == 1, jobs=[job])
        here = wanted > 1 and workers.fleet.backend == HERE and workers.fleet.workers == 1
        if here and (line := at_a_time(job, offer(slots=workers.fleet.slots, cpus=None, gpus=None))):
            say(f"{job.name}: {line}")


def _own_path() -> str:
    """PATH on which `python` is this one; '' where it is already. Programs are often started by an
    interpreter's path, and kernels of notebooks always."""
    folder = os.path.dirname(sys.executable)
    if not os.access(os.path.join(folder, "python"), os.X_OK):
        return ""
    if os.path.dirname(shutil.which("python") or "") == folder:
        return ""
    return os.pathsep.join([folder, *filter(None, [os.environ.get("PATH")])])
