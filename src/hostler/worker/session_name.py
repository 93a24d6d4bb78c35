"""Names of worker processes: the host's, for people; the place, where its platform names it; and chance.

`gpu7-5f0c9a12b6d4.3-0123456789ab` is tenant 3 of a place: a task of a queue, a pod's index, the name of a VM.
Its platform starts a tenant only when the one before is gone, so every tenant with a lower number is dead.
Should a platform err, the earlier one is fenced, like any worker whose run is taken over.
"""

from __future__ import annotations

import hashlib
import os
import re
from typing import TYPE_CHECKING

from hostler import env
from hostler.spec.names import slug

if TYPE_CHECKING:
    from hostler.backends.base import Host

_PLACE = re.compile(r".+-([0-9a-f]{12})\.([0-9]{1,12})-[0-9a-f]{12}")


def new_session(host: str = "", place: str = "", tenant: int = 0) -> str:
    """A name no other worker process has. `tenant` grows with each that the place has had."""
    host = slug(host or env.host() or "host", 20 if place else 32)
    mark = hashlib.sha256(place.encode()).hexdigest()[:12]
    return f"{host}-{mark}.{tenant}-{_chance()}" if place else f"{host}-{_chance()}"


def place_of(host: Host, launch: str) -> tuple[str, int]:
    """Place of a worker on its platform, and which tenant of it this is; a launch's name is in no other."""
    place, tenant = host.place()
    return (f"{launch} {place}", tenant) if place else ("", 0)


def succeeds(session: str, other: str) -> bool:
    """Whether a session has the place that the other one had before. Pure."""
    here, there = _tenancy(session), _tenancy(other)
    return here is not None and there is not None and here[0] == there[0] and here[1] > there[1]


def _tenancy(session: str) -> tuple[str, int] | None:
    match = _PLACE.fullmatch(session)
    return (match[1], int(match[2])) if match else None


def _chance() -> str:
    return os.urandom(6).hex()
