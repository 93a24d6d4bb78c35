"""Groups of a sweep's runs that may share one process, as their trainer said at submission. Pure.

Runs of one key may: they differ only in parameters that are free. A worker needs no more to choose who goes
with whom; what the parameters mean is the trainer's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hostler.spec.job import Job

USUAL = 128  # runs in one process, if nobody says how many


def key(command: Sequence[str], params: Mapping[str, Any], free: Sequence[str]) -> str:
    """Equal for runs that may share a process."""
    import hashlib  # with OpenSSL; most looks at a store hash nothing

    fixed = {name: value for name, value in params.items() if name not in free}
    text = json.dumps([list(command), fixed], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def key_of(job: Job, index: int) -> str:
    return key(job.command_of(index), job.params(index), job.together.free)


def limit_of(job: Job, index: int) -> int:
    """How many may go with this run, itself counted."""
    asked = job.together
    alone = asked.limit < 2 or job.resources.nodes * job.resources.procs_per_node > 1
    return 1 if alone or key_of(job, index) in asked.apart else asked.limit
