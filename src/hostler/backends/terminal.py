"""Terminals where a backend's commands run: on this machine, or on another over a connection."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from hostler import env
from hostler.backends import privatefile
from hostler.backends.privatefile import PrivateContent
from hostler.errors import MachineError
from hostler.frozen import dataclass

PATIENCE = 120.0  # seconds: a busy controller may take a while
NOT_PASSED = ("SBATCH_", "SQUEUE_", "SCANCEL_")  # variables that would change what a command does
NO_MORE: Mapping[str, str] = {}


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


class Terminal(Protocol):
    place: str  # for messages: 'here', or the host

    def run(
        self,
        words: Sequence[str],
        given: str = "",
        variables: Mapping[str, str] = NO_MORE,
        without: Collection[str] = (),
    ) -> Ran:
        """Run a command with `given` on its standard input and these variables besides its own, of which it
        does not get those that are named in `without`.

        A program that is not there is code 127.
        """

    def make(self, folder: str) -> None:
        """Make a folder and those above it; it may exist already."""

    def has(self, program: str) -> bool:
        """Whether a command of this name is there."""

    def me(self) -> str:
        """The number of the user who types."""

    def keep(self, name: str, kept: PrivateContent) -> None:
        """Put this into a file of that name which only the user may read (privatefile.py)."""

    def forget(self, fleet: str, but: str = "") -> None:
        """Remove such files of a fleet, but for the one of this name."""


class Here:
    """This machine."""

    place = "here"

    def run(
        self,
        words: Sequence[str],
        given: str = "",
        variables: Mapping[str, str] = NO_MORE,
        without: Collection[str] = (),
    ) -> Ran:
        inherited = env.without_prefixes(*NOT_PASSED)
        try:
            done = subprocess.run(
                words,
                input=given.encode(),
                capture_output=True,
                timeout=PATIENCE,
                env={**{n: v for n, v in inherited.items() if n not in without}, **variables},
                check=False,
            )
        except FileNotFoundError:
            return Ran(127, "", f"{words[0]}: command not found")
        except subprocess.TimeoutExpired:
            return Ran(124, "", f"{words[0]} did not answer in {PATIENCE:g} s")
        return Ran(
            done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
        )

    def has(self, program: str) -> bool:
        return shutil.which(program) is not None

    def me(self) -> str:
        return str(os.geteuid())

    def keep(self, name: str, kept: PrivateContent) -> None:
        privatefile.keep(name, kept)

    def forget(self, fleet: str, but: str = "") -> None:
        privatefile.remove_all(fleet, but)

    def make(self, folder: str) -> None:
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError as error:
            raise no_folder(folder, error.strerror or str(error)) from None


def no_folder(folder: str, why: str, place: str = "") -> MachineError:
    where = f"{place}: " if place else ""
    return MachineError(f"{where}{folder} cannot be made: {why}", "free some space, or fix the rights there")
