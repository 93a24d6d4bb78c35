"""Findings of `hostler doctor`, as a platform's `doctor.py` makes them, and programs asked for one line."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence

from hostler.frozen import dataclass

OK, WARN, BAD = "ok", "warn", "bad"
NONE = "none"  # not here, which is fine: the finding says what it is needed for
PATIENCE = 1.2  # seconds: none that is well takes a tenth of it


@dataclass(frozen=True)
class Check:
    level: str
    what: str
    detail: str
    todo: str = ""


@dataclass(frozen=True)
class ProgramOutput:
    """Output of a program; `code` is None for one that did not answer."""

    code: int | None
    out: str = ""
    err: str = ""

    @property
    def first(self) -> str:
        """Its first line, wherever it printed it."""
        lines = (self.out.strip() or self.err.strip()).splitlines()
        if self.code is None:
            return f"does not answer ({self.err})"
        return lines[0] if lines else f"exit {self.code}"


def ask(words: Sequence[str], patience: float = PATIENCE) -> ProgramOutput:
    """In a group of its own, all of which is ended with it: what a script has started may hold the pipes."""
    try:
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        return ProgramOutput(None, err=error.strerror or type(error).__name__)
    try:
        out, err = process.communicate(timeout=patience)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return ProgramOutput(None, err=f"not within {patience:g} s")
    return ProgramOutput(process.returncode, out, err)


def absent(use: str) -> str:
    """Detail of a finding that something is not on this machine."""
    return f"not here; {only_for(use)}"


def only_for(use: str) -> str:
    return f"needed only for {use}"
