"""Keys of fleets on this machine."""

from __future__ import annotations

from typing import Literal

from hostler.spec.files.parse import FleetKeys


class LocalKeys(FleetKeys):
    counted = True

    backend: Literal["local"]


KEYS = LocalKeys
