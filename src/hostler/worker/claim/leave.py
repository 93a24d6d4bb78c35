"""The decision whether this worker may leave: a pure function of what it sees."""

from __future__ import annotations

from hostler.frozen import dataclass


@dataclass(frozen=True)
class LeaveView:
    busy: int  # runs this worker carries out now
    takeable: int  # queued runs it fits
    becoming: int  # runs that can become queued by themselves: paused by a pruner, an input not ready
    held: int  # running elsewhere, where the engine brings a lost worker back
    unheld: int  # running elsewhere, where nobody would
    idle_for: float  # seconds since it last had something to do
    waits_free: bool  # waiting costs nobody anything: own machine, neither billed nor shared
    silent: int = 0  # of those that run elsewhere, such as could run here and whose holder misses beats
    stayed: float = 0.0  # seconds it has stayed for those
    gangs: int = 0  # of those that run elsewhere, such as take several workers and could take this one


def leave(view: LeaveView, idle: float, lease: float, missed: float = 0.0) -> bool:
    """A holder that misses beats is lost within a lease, or beats again: its run is waited for so long, as
    nobody else may be left. `missed`: seconds within which a gang has noticed that one of it is gone, and
    given its run back. Its replacement sees it run still, and would leave the others waiting."""
    if view.busy or view.takeable:
        return False
    if view.silent and view.stayed < lease:
        return False
    if view.gangs and view.idle_for < missed:
        return False
    if not view.becoming and not view.unheld:
        return True
    return not view.waits_free and view.idle_for >= idle
