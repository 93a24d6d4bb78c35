"""Keys of fleets on LSF."""

from __future__ import annotations

from typing import Literal

from hostler.backends.scheduler_keys import SchedulerKeys


class LsfKeys(SchedulerKeys):
    backend: Literal["lsf"]


KEYS = LsfKeys
