"""What needs a package that is not always installed says which, and how to get it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

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
