"""Which runs this worker has share a process: by what was submitted, and by what processes have said since.

A run that has failed goes alone: whatever is wrong with it must not be the others' trouble twice. One that
its process would not have goes alone, or with fewer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hostler import env
from hostler.records.run.state import RunState
from hostler.spec import together
from hostler.spec.job import Job


@dataclass
class Bands:
    wanted: bool = field(default_factory=env.together)
    _alone: set[str] = field(default_factory=set)  # runs
    _limits: dict[str, int] = field(default_factory=dict)  # key → how many went

    def limit(self, job: Job, index: int, run: str, state: RunState) -> int:
        """How many may share its process, itself counted; 1: it has one of its own."""
        if not self.wanted or run in self._alone or state.tally.failures:
            return 1
        most = together.limit_of(job, index)
        return most if most < 2 else min(most, self._limits.get(together.key_of(job, index), most))

    def heed(self, job: Job, index: int, run: str, said: Mapping[str, Any]) -> None:
        """What a process said when it would not have a run."""
        if said.get("alone"):
            self._alone.add(run)
        if said.get("limit"):
            key = together.key_of(job, index)
            self._limits[key] = min(int(said["limit"]), self._limits.get(key, int(said["limit"])))
