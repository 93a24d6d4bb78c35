"""What `import hostler` offers to scripts and notebooks: `start`, `sweep`, `frame`, `curves`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hostler import env
from hostler.errors import MachineError
from hostler.sdk.home import Home
from hostler.sdk.params import Params, kept
from hostler.sdk.run import Run
from hostler.sdk.said import say
from hostler.sdk.start import Wish
from hostler.sdk.start import begin as _begin
from hostler.spec.project import Project, default_project, find_project

if TYPE_CHECKING:
    import pandas

    from hostler.sweeping import Sweep, Work

__all__ = ["Run", "curves", "frame", "start", "sweep"]


def start(
    params: Any = None,
    *,
    name: str | None = None,
    tags: Sequence[str] = (),
    notes: str = "",
    resume: str = "auto",
    allow_changed: bool | Iterable[str] = False,
    save_every: float | str | None = None,
) -> Run:
    """Begin the run of this process, or go on with it.

    Under a worker it is the run that was handed over. By hand it is the last run of this script with these
    parameters (or of this `name`) unless that is done; a killed one goes on from its last checkpoint.

    params         a dict, a dataclass, parsed arguments: at `run.params`
    resume         "auto"; "never" begins anew; "must" fails where there is nothing to go on from
    allow_changed  go on although parameters are others than the run began with: True, or their names
    save_every     seconds, "10m", "500 steps" or "epoch"; by default as often as pays
    """
    allowed = allow_changed if isinstance(allow_changed, bool) else tuple(allow_changed)
    words = (tags,) if isinstance(tags, str) else tuple(tags)
    wish = Wish(name, words, notes, resume, allowed, save_every)
    return _begin(params, wish, _alone)


def _alone(params: Params, wish: Wish) -> Home:
    from hostler.sdk.alone.begin import begin
    from hostler.sdk.alone.draft import Ground

    project = _project()
    ground = Ground(
        project.root,
        env.store_url() or project.store,
        project.name,
        project.metric,
        project.goal,
        project.checkpoint,
        project.tags,
    )
    return begin(
        ground,
        kept(params),
        name=wish.name,
        tags=wish.tags,
        notes=wish.notes,
        resume=wish.resume,
        allow_changed=wish.allow_changed,
        say=say,
    )


def _project() -> Project:
    """The project of the current folder: that of its file, or the default one."""
    path = find_project(Path.cwd())
    if path is None:
        return default_project(Path.cwd())
    try:
        from hostler.spec.parse import load_project
    except ModuleNotFoundError as error:
        if env.store_url():
            return default_project(path.parent)
        raise MachineError(
            f"{path} cannot be read without the package {error.name}",
            hint=f"pip install hostler, or set {env.STORE} to the store's address",
        ) from None
    return load_project(path)


def sweep(
    work: Work,
    parameters: Mapping[str, Any],
    *,
    name: str | None = None,
    store: str | None = None,
    on: str | None = None,
    start: bool = True,
    **keys: Any,
) -> Sweep:
    """Run a command, or a function of a file, once for each configuration of a search space.

    Returns at once; `.wait()` waits, `.frame()` is a data frame of its runs, `.best()` the best of them. The
    same call again goes on with the sweep that is there.

    work        a command (text or words), which gets `--key value`; or a function, which gets keywords and
                returns a metric or a dict of metrics
    parameters  as in a sweep file: lists, ranges, LIST, ZIP …
    on          a fleet of hostler.yaml; by default this machine
    start       False: only submit
    keys        others of a sweep file: metric, goal, method, repeat, budget, prune, parallel, resources …
    """
    from hostler.sweeping import sweep as made

    return made(work, parameters, project=_project(), name=name, store=store, on=on, start=start, **keys)


def frame(
    store: str | None = None, sweep: str | Iterable[str] | None = None, *, state: str | None = None
) -> pandas.DataFrame:
    """All runs of a store, one row each: parameters, state, and of each metric the last and the best."""
    from hostler.analysis.frame import frame as made

    return made(_store(store), sweep, state=state)


def curves(
    store: str | None = None,
    sweep: str | Iterable[str] | None = None,
    *,
    run: str | Iterable[str] | None = None,
    metric: str | Iterable[str] | None = None,
) -> pandas.DataFrame:
    """Every point of every run, in long form: run, metric, step, value, time."""
    from hostler.analysis.curves import curves as made

    return made(_store(store), sweep, run=run, metric=metric)


def _store(given: str | None) -> str:
    return given or env.store_url() or _project().store
