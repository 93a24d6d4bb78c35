"""Keys of fleets on Grid Engine."""

from __future__ import annotations

from typing import Literal

from hostler.backends.scheduler_keys import SchedulerKeys
from hostler.spec.files.parse import Text


class SgeKeys(SchedulerKeys):
    backend: Literal["sge"]
    pe: Text | None = None
    memory: Text | None = None
    gpu: Text | None = None


KEYS = SgeKeys
