"""Advice on a file that a failed run missed, and that the rules of this folder's project leave out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hostler.cli import here
from hostler.errors import HostlerError


def lines(failure: Mapping[str, Any], cwd: Callable[[], str]) -> list[str]:
    """The rule, and the ways out; nothing if no file of the project is missed. `cwd`: the job's."""
    if not failure:
        return []
    from hostler.fleet.snapshot import left_out  # with all that packs code: most runs do not fail

    try:
        return left_out.advice(here.project().root, cwd, failure)
    except (HostlerError, OSError):
        return []
