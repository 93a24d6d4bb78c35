"""A subjob of PBS as its worker sees it; qrerun queues it again, where the site lets users do that."""

from __future__ import annotations

from hostler import env
from hostler.backends import job_host
from hostler.backends.job_host import JobHost
from hostler.frozen import dataclass


@dataclass(frozen=True)
class PbsHost(JobHost):
    name = "pbs"

    def give_back(self) -> bool | None:
        """PBS ends this job by it, so it comes last."""
        return job_host.succeeds(["qrerun", self.job_id]) if self.job_id else None


def this_host() -> PbsHost:
    return PbsHost(env.inherited().get("PBS_JOBID", ""), job_host.ends())
