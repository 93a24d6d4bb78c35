"""hostler: takes a training script and runs it, once or ten thousand times, and never loses a run.

`import hostler` loads nothing else; each name below is imported when it is first used.

api.py        functions that `import hostler` offers: start, sweep, frame, curves
sweeping.py   `hostler.sweep`: a sweep from Python, and the handle to it
executor.py   `hostler.Executor`: calls of functions as runs, with futures
manager.py    clouDL's Manager, and its test double
earlystop.py  clouDL's EarlyStopping
trainer.py    the trainer as a generator: `experiment_generator`, `together`
errors.py     error classes, by what a person can do about them
env.py        environment variables that hostler sets or reads
settings.py   every time and size that is a choice
private.py    folders that only this user can write to
confined.py   files below a folder, opened without following links
frozen.py     frozen dataclasses that are quick to make
terminal.py   text of others, made safe for a terminal
proctable.py  the processes of this machine
made_files.py reports, plots and tables that hostler made: not code
spec/         jobs, projects and search spaces as frozen data
store/        bytes under keys: folder, memory, ssh, bucket
records/      meaning over bytes: logs, sweeps, series, checkpoints, launches
attempt/      one attempt delivered to the store
worker/       the machine's side: claims runs and carries them out
backends/     platforms: start and stop workers
remote/       other machines by ssh
fleet/        the submitter's side: snapshot, submit, launch
money/        prices, reservations, deadlines
sdk/          inside the user's process: run, loops, checkpoints
search/       which configuration next, which run goes on
trackers/     runs in TensorBoard, W&B, MLflow, Comet and trackio
callbacks/    runs in the loops of other libraries
analysis/     results read back: frames, plots, report, dashboard
train/        the PyTorch trainer
simulate/     a sweep and a fleet on a virtual clock
drill/        kills a script at random moments, says what it does not save
cli/          the command line
testing/      contract suites for stores and backends
emulators/    Google's storage and VMs, and Kubernetes, on this machine
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing itself would take longer to import than all of this
if TYPE_CHECKING:
    from hostler.analysis.filters import isnt as isnt
    from hostler.api import Run as Run
    from hostler.api import curves as curves
    from hostler.api import frame as frame
    from hostler.api import start as start
    from hostler.api import sweep as sweep
    from hostler.earlystop import EarlyStopping as EarlyStopping
    from hostler.errors import Diverged as Diverged
    from hostler.executor import Executor as Executor
    from hostler.manager import Manager as Manager

__version__ = "0.2.0"

_PLACES = {
    **dict.fromkeys(("Run", "curves", "frame", "start", "sweep"), "hostler.api"),
    "Diverged": "hostler.errors",
    "EarlyStopping": "hostler.earlystop",
    "Executor": "hostler.executor",
    "isnt": "hostler.analysis.filters",
    "Manager": "hostler.manager",
}

__all__ = [
    "Diverged",
    "EarlyStopping",
    "Executor",
    "Manager",
    "Run",
    "__version__",
    "curves",
    "frame",
    "isnt",
    "start",
    "sweep",
]


def __getattr__(name: str) -> object:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module 'hostler' has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(place), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
