"""hostler: takes a training script and runs it, once or ten thousand times, and never loses a run.

`import hostler` loads nothing else; each name below is imported when it is first used.
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
    from hostler.manager import Manager as Manager

__version__ = "0.1.0"

_PLACES = {
    **dict.fromkeys(("Run", "curves", "frame", "start", "sweep"), "hostler.api"),
    "Diverged": "hostler.errors",
    "EarlyStopping": "hostler.earlystop",
    "isnt": "hostler.analysis.filters",
    "Manager": "hostler.manager",
}

__all__ = [
    "Diverged",
    "EarlyStopping",
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
