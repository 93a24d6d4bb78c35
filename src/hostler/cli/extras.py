"""Names the missing package of an extra, and how to install it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from hostler.errors import MachineError


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Around imports of an extra's packages."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("hostler"):
            raise
        raise MachineError(
            f"this needs the package {error.name}", hint=f"pip install 'hostler[{extra}]'"
        ) from None


@contextmanager
def telling() -> Iterator[None]:
    """Around reading: what could not be read is a line for people, each once."""
    said = set[str]()
    with warnings.catch_warnings():
        others = warnings.showwarning

        def show(message: Warning | str, *rest: Any, **more: Any) -> None:
            line = str(message)
            if not line.startswith("hostler: "):
                others(message, *rest, **more)
            elif line not in said:
                said.add(line)
                click.echo(line, err=True)

        warnings.filterwarnings("always", message="hostler: ")
        warnings.showwarning = show
        yield
