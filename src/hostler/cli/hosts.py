"""Which machine a person means: one of a fleet, with what its fleet says of it, or any that ssh knows."""

from __future__ import annotations

from hostler.backends.ssh import targets
from hostler.errors import UsageError
from hostler.remote.target import Target, parse
from hostler.spec.project import Project


def host_of(project: Project, name: str | None) -> Target:
    """By name; without one the only machine there is."""
    known = [target for f in project.fleets.values() if f.backend == "ssh" for target in targets(f)]
    if name is None:
        if len(known) != 1:
            names = ", ".join(map(str, known)) or "none in hostler.yaml"
            raise UsageError("which host is meant?", hint=f"there are: {names}")
        return known[0]
    return next((one for one in known if name in (str(one), one.host)), None) or parse(name)
