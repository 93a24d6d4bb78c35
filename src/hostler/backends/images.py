"""Images for machines of a cloud: recipes, existing images, and leftovers of builds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import Protocol, runtime_checkable

from hostler.frozen import dataclass
from hostler.spec.project import Fleet

SPARE = 1800.0  # seconds that a machine has besides what is done on it


@dataclass(frozen=True)
class Recipe:
    """Content of an image, and the time its build may take. Everybody who sees the project may read it."""

    family: str
    script: str = ""  # the text that is run
    script_name: str = ""
    packages: str = ""  # the name of a requirements file
    files: Mapping[str, str] = field(default_factory=dict)  # it, and those that it includes
    wishes: str = ""  # by which workers know the environment of those packages
    vm: str = ""  # the machine with whose disk it begins; '': with the image of the fleet
    seconds: float = 3600.0

    @property
    def longest(self) -> float:
        """Seconds that the machine may be there: it has to start, and to be switched off."""
        return self.seconds + SPARE


@dataclass(frozen=True)
class Image:
    name: str
    family: str
    created: str  # RFC 3339
    size: int  # bytes, as it is paid for
    disk: int  # GB that a machine needs for it
    ready: bool = True
    ours: bool = True  # hostler made it
    newest: bool = False  # it is what its family means

    @property
    def made(self) -> float:
        return moment(self.created)


@dataclass(frozen=True)
class BuildLeftover:
    """Something that the build of an image made and that does not last."""

    kind: str
    name: str
    path: str
    family: str
    until: float  # seconds since 1970; whoever builds it has given up by then
    where: str = ""
    over: bool = False

    def __str__(self) -> str:
        return f"{self.kind} {self.name}" + (f" in {self.where}" if self.where else "")


@runtime_checkable
class Imager(Protocol):
    """A cloud that makes images of its machines."""

    def check(self, fleet: Fleet, recipe: Recipe) -> None:
        """An error for what cannot be built, before anything is spent."""

    def build(self, fleet: Fleet, recipe: Recipe) -> Image:
        """A new image in the family, or an error; nothing else is left of it either way."""

    def images(self, fleet: Fleet, family: str = "") -> Sequence[Image]:
        """Images that hostler made, or all of a family; the newest first."""

    def drop(self, fleet: Fleet, found: Sequence[Image]) -> None:
        """Delete these."""

    def gpu_family(self) -> str:
        """Family that machines with GPUs begin with, in the words of a fleet."""

    def leavings(self, fleet: Fleet) -> Sequence[BuildLeftover]:
        """Things that builds made and did not remove; some may be under way."""

    def sweep_up(self, fleet: Fleet, found: Sequence[BuildLeftover]) -> None:
        """Remove these."""


def moment(created: str) -> float:
    """Seconds since 1970 of a time in RFC 3339, whatever its offset; 0 where there is none. Pure."""
    return datetime.fromisoformat(created.replace("Z", "+00:00")).timestamp() if created else 0.0


def older(images: Sequence[Image], keep: int) -> list[Image]:
    """Images of a family beyond the newest `keep`; images that hostler did not make stay. Pure."""
    ready = sorted((one for one in images if one.ready), key=lambda one: (one.made, one.name))
    spared = {one.name for one in ready[max(0, len(ready) - keep) :]} if keep else set()
    return [one for one in images if one.ours and one.ready and one.name not in spared]
