"""The functions `import hostler` offers to scripts and notebooks: `start`, `sweep`, `frame`, `curves`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hostler import env
from hostler.errors import MachineError, UsageError
from hostler.sdk.home import Home
from hostler.sdk.messages import say
from hostler.sdk.params import Params, kept
from hostler.sdk.run import Run
from hostler.sdk.start import Wish
from hostler.sdk.start import begin as _begin
from hostler.spec.project import default_store, find_project

if TYPE_CHECKING:
    import pandas

    from hostler.sdk.alone.draft import Ground
    from hostler.spec.tracking import Tracking
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
    trackers: Any = None,
) -> Run:
    """Begin the run of this process, or go on with it.

    Under a worker it is the run that was handed over. By hand it is the last run of this script with these
    parameters (or of this `name`) unless that is done; a killed one goes on from its last checkpoint.

    params         a dict, a dataclass, parsed arguments: at `run.params`
    resume         "auto"; "never" begins anew; "must" fails where there is nothing to go on from
    allow_changed  go on although parameters are others than the run began with: True, or their names
    save_every     seconds, "10m", "500 steps" or "epoch"; by default as often as pays
    trackers       tools that it is shown in, as in hostler.yaml: "tensorboard", {"wandb": {"project": "p"}}
    """
    allowed = allow_changed if isinstance(allow_changed, bool) else tuple(allow_changed)
    words = (tags,) if isinstance(tags, str) else tuple(tags)
    wish = Wish(name, words, notes, resume, allowed, save_every, _trackers(trackers))
    return _begin(params, wish, _alone)


def _trackers(given: Any) -> tuple[Tracking, ...]:
    if not given:
        return ()
    from hostler.spec.files import tracking_words  # most scripts name none

    try:
        return tracking_words.at(tracking_words.parse(given), Path.cwd())
    except ValueError as error:
        raise UsageError(f"trackers: {error}") from None


def _alone(params: Params, wish: Wish) -> Home:
    from hostler.sdk.alone.begin import begin  # a run that was handed over needs nothing of it

    return begin(
        _ground(),
        kept(params),
        name=wish.name,
        tags=wish.tags,
        notes=wish.notes,
        resume=wish.resume,
        allow_changed=wish.allow_changed,
        trackers=wish.trackers,
        say=say,
    )


def _ground() -> Ground:
    """The project of the current folder: its file's, or the default without one."""
    from hostler.sdk.alone.draft import Ground

    path, url = find_project(Path.cwd()), env.store_url()
    root = path.parent if path else Path.cwd().absolute()
    plain = Ground(root, url or default_store(root), root.name or "root")
    if path is None:
        return plain
    try:
        from hostler.backends.project_file import load_project  # pydantic: only where there is a file
    except ModuleNotFoundError as error:
        if url:
            return plain
        raise MachineError(
            f"{path} cannot be read without the package {error.name}",
            hint=f"pip install hostler, or set {env.STORE} to the store's address",
        ) from None
    p = load_project(path)
    return Ground(p.root, url or p.store, p.name, p.metric, p.goal, p.of, p.checkpoint, p.tags, p.trackers)


def sweep(
    work: Work,
    parameters: Mapping[str, Any],
    *,
    name: str | None = None,
    store: str | Path | None = None,
    on: str | None = None,
    start: bool = True,
    **keys: Any,
) -> Sweep:
    """Run a command, or a function, once for each configuration of a search space.

    Returns at once; `.wait()` waits, `.frame()` is a data frame of its runs, `.best()` the best of them. The
    same call again goes on with the sweep that is there.

    work        a command (text or words), which gets `--key value`; or a function, which gets keywords and
                returns a metric or a dict of metrics. One that is in no file (of a notebook's cell, a lambda,
                a closure) is sent by cloudpickle
    parameters  as in a sweep file: lists, ranges, LIST, ZIP …
    on          a fleet of hostler.yaml; by default this machine
    start       False: only submit
    keys        others of a sweep file: metric, goal, method, repeat, budget, prune, parallel, resources …
    """
    from hostler.sweeping import project_here
    from hostler.sweeping import sweep as made

    return made(work, parameters, project=project_here(), name=name, store=store, on=on, start=start, **keys)


def frame(
    store: str | Path | Sequence[str | Path] | None = None,
    sweep: str | Iterable[str] | None = None,
    *,
    state: str | Iterable[str] | None = None,
    where: Mapping[str, Any] | None = None,
    curves: bool | Iterable[str] = True,
    system: bool = False,
    polars: bool = False,
) -> pandas.DataFrame:
    """All runs of a store, one row each: facts, parameters, of each metric the last, the best and the curve.

    store   an address; or runs of a tracking tool: "wandb:FOLDER", "wandb:ENTITY/PROJECT", "mlflow:URI",
            "tensorboard:FOLDER", "comet:ARCHIVE", "trackio:FOLDER"; a list of them is one frame
    where   a condition for each of some columns: a value, a list of values, slice(low, high), a compiled
            regular expression, a function; hostler.isnt(…) of any of them
    curves  False: without the arrays; names: of these metrics alone
    system  True: also metrics of the machine, `system/cpu` and others
    polars  a frame of polars'
    """
    _check_packages("numpy", *(() if polars else ("pandas",)))
    from hostler.analysis.frame import frame as made

    places = [str(one) for one in store] if isinstance(store, (list, tuple)) else _store(store)
    return made(places, sweep, state=state, where=where, curves=curves, system=system, polars=polars)


def curves(
    store: str | Path | None = None,
    sweep: str | Iterable[str] | None = None,
    *,
    run: str | Iterable[str] | None = None,
    metric: str | Iterable[str] | None = None,
) -> pandas.DataFrame:
    """Every point of every run, in long form, curve by curve: run, metric, step, value, time."""
    _check_packages("numpy", "pandas")
    from hostler.analysis.curves import curves as made

    return made(_store(store), sweep, run=run, metric=metric)


def _check_packages(*names: str) -> None:
    for name in names:
        if find_spec(name) is None:
            raise MachineError(f"frames need the package {name}", hint="pip install 'hostler[analysis]'")


def _store(given: Any) -> str:
    return str(given or _ground().store)
