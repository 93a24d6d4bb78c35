"""The trainer behind `hostler train` and `hostler.trainer.experiment_generator`.

The only part that imports torch. What it imports of the rest is the library and the reading of files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hostler.train.config import Config as Config

_HOMES = {"Config": "hostler.train.config"}
__all__ = ["Config"]


def __getattr__(name: str) -> Any:
    """Loaded on use: a config is read where there is no torch."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
