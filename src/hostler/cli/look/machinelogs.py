"""What machines that came with a fleet printed themselves: `hostler logs FLEET`, or FLEET/MACHINE."""

from __future__ import annotations

from hostler.backends.base import Cloud
from hostler.backends.registry import backend_of
from hostler.cli.terminal.loglines import print_line
from hostler.errors import MissingError
from hostler.fleet.launcher import fleet_of
from hostler.spec.project import Project


def show(project: Project, name: str, tail: int | None, *, raw: bool) -> bool:
    """Whether such a fleet is meant; then it is printed."""
    fleet, _, machine = name.partition("/")
    if fleet not in project.fleets:
        return False
    meant = fleet_of(project, fleet)
    engine = backend_of(meant)
    if not isinstance(engine, Cloud):
        return False
    workers = [worker for worker in engine.list(meant) if machine in ("", worker.host)]
    if not workers:
        there = f"machine {machine}" if machine else "machine"
        raise MissingError(f"{fleet} has no {there} now", hint="what runs printed: hostler logs RUN")
    for worker in workers:
        lines = engine.logs(worker).decode("utf-8", "replace").splitlines()
        for line in lines if tail is None else lines[len(lines) - min(tail, len(lines)) :]:
            print_line(line, f"{worker.host}: " if len(workers) > 1 else "", raw=raw)
    return True
