"""Checks of Grid Engine for `hostler doctor`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hostler.backends.doctor import Check
from hostler.backends.sge.programs import PROGRAMS
from hostler.spec.project import Fleet


def checks(fleets: Sequence[Fleet], store: str) -> Iterator[Check]:
    yield from PROGRAMS.checks(fleets)
