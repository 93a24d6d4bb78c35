"""Keys of fleets of machines reached by ssh."""

from __future__ import annotations

from typing import Literal

from hostler.spec.files.parse import AtLeastOne, FleetKeys, Port, Text


class SshKeys(FleetKeys):
    backend: Literal["ssh"]
    hosts: AtLeastOne
    user: Text | None = None
    port: Port | None = None
    key: Text | None = None
    jump: Text | None = None


KEYS = SshKeys
