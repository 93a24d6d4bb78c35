"""May this worker leave? A pure function of what it sees."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class View:
    busy: int  # runs this worker carries out now
    takeable: int  # queued runs it fits
    becoming: int  # runs that can become queued by themselves: paused by a pruner, an input not ready
    held: int  # running elsewhere, where the engine brings a lost worker back
    unheld: int  # running elsewhere, where nobody would
    idle_for: float  # seconds since it last had something to do
    waits_free: bool  # waiting costs nobody anything: own machine, neither billed nor shared


def leave(view: View, idle: float) -> bool:
    if view.busy or view.takeable:
        return False
    if not view.becoming and not view.unheld:
        return True
    return not view.waits_free and view.idle_for >= idle
