"""A project: what hostler.yaml says, as frozen data.

Standard library only. `find_project` finds the file, `parse.py` makes a Project of it; `default_project` is
the one of a folder without a file. Nothing here is uploaded or resolved yet: that is the submitter's work.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hostler.frozen import dataclass
from hostler.spec.job import Checkpointing, Limits, MetricSource, Notify, PythonEnv, Resources
from hostler.spec.style import Style

if TYPE_CHECKING:
    from hostler.spec.tracking import Tracking

NAMES = ("hostler.yaml", "hostler.yml", "hostler.json")


@dataclass(frozen=True)
class DataEntry:
    """An entry of `data:` as given. Exactly one of path, url and run is set."""

    name: str
    path: str | None = None  # relative to the project's folder, or absolute (on the machines)
    url: str | None = None
    run: tuple[str, ...] = ()  # a command that prepares it, once per machine
    out: str | None = None  # the folder the command leaves
    at: str | None = None  # where it also lies, from the working folder on


@dataclass(frozen=True)
class GitSource:
    """`git: URL@ref`: the code is fetched by the machines; `ref` None is the default branch."""

    url: str
    ref: str | None = None
    token_secret: str | None = None


@dataclass(frozen=True)
class Fleet:
    """Workers of one backend with one shape. `options` holds the backend's own keys, checked, if given."""

    name: str
    backend: str
    workers: int = 1
    slots: int | None = None
    runs_per_worker: int | None = None
    cache: str | None = None
    price: float | None = None  # of one worker, an hour
    max_cost: float | None = None
    max_hours: float | None = None
    resources: Resources | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    scope: str = ""  # whose fleet it is, where machines serve several projects
    store: str = ""  # the URL of the store that it works for
    known: Mapping[str, Any] = field(default_factory=dict)  # facts that its platform told, for its backend


@dataclass(frozen=True)
class Project:
    """`name` is any text (`names.slug` makes a key of it); `store` is a URL or an absolute path."""

    name: str
    root: Path
    store: str
    command: tuple[str, ...] | None = None
    resume: tuple[str, ...] = ()
    resume_whole: bool = False
    resume_else: tuple[tuple[str, ...], ...] = ()
    style: str = "flags"
    forms: Style = field(default_factory=Style)  # `style:` as a table
    setup: tuple[str, ...] = ()
    python: PythonEnv = field(default_factory=PythonEnv)
    env: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    metric: str | None = None
    goal: str = "max"
    of: str = "kept"  # which value of the metric counts: see ranking.py
    resources: Resources = field(default_factory=Resources)
    distributed: str = "torch"
    limits: Limits = field(default_factory=Limits)
    checkpoint: Checkpointing = field(default_factory=Checkpointing)
    retries: int = 2
    retries_given: bool = False  # in a file, or as a key of hostler.sweep
    data: Mapping[str, DataEntry] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    collect: bool = True  # False: `outputs: none`
    metrics: MetricSource = field(default_factory=MetricSource)
    trackers: tuple[Tracking, ...] = ()
    tags: tuple[str, ...] = ()
    notify: Notify = field(default_factory=Notify)
    fleet: str | None = None
    fleets: Mapping[str, Fleet] = field(default_factory=dict)
    cache: str | None = None
    git: GitSource | None = None
    priority: int = 0
    warm: bool | str = True  # or "strict"
    pack: float | None = None  # seconds after its last end at which a sweep is packed by itself


def default_project(folder: Path) -> Project:
    """The project of a folder without a project file."""
    root = folder.absolute()
    return Project(name=root.name or "root", root=root, store=default_store(root))


def find_project(start: Path) -> Path | None:
    """The project file of a folder or of the nearest one above it, no further than its git checkout."""
    start = start.absolute()
    for folder in (start, *start.parents):
        for name in NAMES:
            if (folder / name).is_file():
                return folder / name
        if (folder / ".git").exists():
            return None
    return None


def default_store(root: Path) -> str:
    return str(root / ".hostler")
