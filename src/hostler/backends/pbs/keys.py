"""Keys of fleets on PBS."""

from __future__ import annotations

from typing import Literal

from hostler.backends.scheduler_keys import SchedulerKeys


class PbsKeys(SchedulerKeys):
    backend: Literal["pbs"]


KEYS = PbsKeys
