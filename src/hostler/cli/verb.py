"""Carries a verb out: its module is imported now, so that `--help` loads none of it."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def perform(module: str, given: dict[str, Any], function: str = "command") -> int:
    """Call the function of a verb's module with the options that were given."""
    code: int = getattr(import_module(module), function)(**given)
    return code
