"""Durations on the platform, in emulated seconds."""

from __future__ import annotations

from enum import Enum

from hostler.frozen import dataclass


class AtDeadline(Enum):
    """Answer of a group to a machine that was deleted at its time limit; Google does not say."""

    LOWERS = "its target size goes down"
    KEEPS = "its target size stays; a new machine is refused, its time being over"
    RECREATES = "its target size stays; a new machine starts and is ended again"


@dataclass(frozen=True)
class Pace:
    operation: float = 2.0  # a change that needs no machine
    provision: float = 3.0  # from the request to a place on a host, or to learning that there is none
    boot: float = 5.0  # from there to the startup script
    notice: float = 1.0  # from the word of a preemption to the soft-off
    soft_off: float = 30.0  # of a preempted machine, or one at its time limit
    shutdown: float = 90.0  # of one that is stopped or deleted
    late: float = 0.0  # a time limit is acted upon this much later
    ended_again: float = 5.0  # life of a machine that was started after its time limit
    look: float = 2.0  # between two looks of a group at its machines
    retry: float = 10.0  # of a group, after a machine that could not be had
