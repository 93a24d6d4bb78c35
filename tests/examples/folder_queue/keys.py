"""Keys of fleets whose workers are jobs in a folder."""

from __future__ import annotations

from typing import Literal

from hostler.spec.files.parse import FleetKeys, Seconds, Text


class FolderKeys(FleetKeys):
    backend: Literal["folder"]
    folder: Text
    time: Seconds | None = None


KEYS = FolderKeys
