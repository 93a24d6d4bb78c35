"""A task of Grid Engine as its worker sees it: told of its end by SIGUSR2, queued again by exit code 99."""

from __future__ import annotations

import signal
from collections.abc import Callable

from hostler import env
from hostler.backends import job_host
from hostler.backends.job_host import JobHost
from hostler.frozen import dataclass


@dataclass(frozen=True)
class SgeHost(JobHost):
    name = "sge"
    again = 99

    def watch(self, on_notice: Callable[[], None]) -> None:
        """qdel announces itself so, and gives time to save."""
        if self.job_id:
            job_host.stop_at(signal.SIGUSR2)

    def give_back(self) -> bool | None:
        return True if self.job_id else None


def this_host() -> SgeHost:
    return SgeHost(env.inherited().get("JOB_ID", ""), job_host.ends())
