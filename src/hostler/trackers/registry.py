"""Tracking tools by name: their module, imported on use, and the package each needs."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from hostler.spec.tracking import COMET, MLFLOW, TENSORBOARD, TRACKIO, WANDB
from hostler.trackers.base import Tracker

# kind → (module, class, package that it needs, what brings it)
TOOLS: dict[str, tuple[str, str, str, str]] = {
    TENSORBOARD: ("hostler.trackers.tensorboard", "TensorBoard", "", ""),
    WANDB: ("hostler.trackers.wandb", "Wandb", "wandb", "hostler[wandb]"),
    MLFLOW: ("hostler.trackers.mlflow", "Mlflow", "mlflow", "hostler[mlflow]"),
    COMET: ("hostler.trackers.comet", "Comet", "comet_ml", "hostler[comet]"),
    TRACKIO: ("hostler.trackers.trackio", "Trackio", "trackio", "hostler[trackio]"),
}


def load(kind: str) -> Tracker:
    module, name, _, _ = TOOLS[kind]
    made: Tracker = getattr(import_module(module), name)()
    return made


def package(kind: str) -> str:
    """The module that the tool needs; '' if none."""
    return TOOLS[kind][2]


def remedy(kind: str) -> str:
    if not package(kind):
        return "use Python 3.10 or newer"
    return f"pip install {package(kind).replace('_', '-')}, or '{TOOLS[kind][3]}'"


def is_here(kind: str) -> bool:
    """Whether this Python has what it needs."""
    found = find_spec(package(kind)) if package(kind) else None
    return not package(kind) or (
        found is not None and found.origin is not None
    )  # no mere folder of that name
