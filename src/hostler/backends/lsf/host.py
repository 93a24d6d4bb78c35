"""An element of an LSF array as its worker sees it: exit code 99 puts it back into the queue."""

from __future__ import annotations

from hostler import env
from hostler.backends import job_host
from hostler.backends.job_host import JobHost
from hostler.frozen import dataclass


@dataclass(frozen=True)
class LsfHost(JobHost):
    name = "lsf"
    again = 99

    def give_back(self) -> bool | None:
        return True if self.job_id else None


def this_host() -> LsfHost:
    return LsfHost(env.inherited().get("LSB_JOBID", ""), job_host.ends())
