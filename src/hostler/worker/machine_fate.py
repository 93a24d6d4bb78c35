"""The fate of a machine that came with its fleet, once its worker has ended. Pure."""

from __future__ import annotations

from hostler.frozen import dataclass
from hostler.records.run.log import CAP
from hostler.worker.run.conclude import GOING, STORELESS

STAY, AGAIN, LEAVE, CLOSE = "stay", "again", "leave", "close"


@dataclass(frozen=True)
class Ended:
    """How a worker ended."""

    told: str | None = None  # the reason it was told to go
    refused: bool = False  # its machine won't do
    looked: bool = False  # it saw that nothing is left for it
    alone: bool = False  # and, with its launch closed, that no other worker of it has anything either
    late: bool = False  # the launch's deadline is over


def fate(ended: Ended) -> str:
    """The last worker takes the launch down once no run needs it; a worker that is only sure of itself leaves
    alone; a machine that is being taken away is left to its platform."""
    if ended.late or ended.told == CAP:
        return CLOSE
    if ended.told == STORELESS:
        return LEAVE
    if ended.told in GOING:
        return STAY
    if ended.refused:
        return LEAVE
    if not ended.looked:
        return AGAIN
    return CLOSE if ended.alone else LEAVE
