"""Finds LSF on this machine for `hostler init`."""

from __future__ import annotations

from hostler.backends.fleet_files import Discovery
from hostler.backends.lsf.programs import PROGRAMS


def discover() -> Discovery | None:
    return PROGRAMS.discover()
