"""The methods of search and of pruning by name, and which of them learn from results."""

from __future__ import annotations

from importlib.util import find_spec

from hostler.errors import MachineError

LEARNING = ("tpe", "gp", "cmaes", "nsga2", "qmc")
METHODS = ("grid", "random", *LEARNING)
PRUNERS = ("asha", "hyperband", "median", "patience")
_NEEDS = {"tpe": ("optuna",), "gp": ("optuna", "torch", "scipy"), "cmaes": ("optuna", "cmaes")}


def check_installed(method: str) -> None:
    """Before anything starts: what this method needs is there."""
    if method not in LEARNING:
        return
    absent = [name for name in _NEEDS.get(method, ("optuna",)) if find_spec(name) is None]
    if absent:
        raise MachineError(
            f"method {method} needs {' and '.join(absent)}, which is not installed here",
            hint="pip install 'hostler[search]', or method: random",
        )
