"""Other programs, asked by `hostler doctor` for a line: none is waited for long."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

PATIENCE = 1.2  # seconds: none that is well takes a tenth of it


@dataclass(frozen=True)
class Said:
    """What a program printed; `code` is None for one that did not answer."""

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


def ask(words: Sequence[str], patience: float = PATIENCE) -> Said:
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=patience,
        )
    except subprocess.TimeoutExpired:
        return Said(None, err=f"not within {patience:g} s")
    except OSError as error:
        return Said(None, err=error.strerror or type(error).__name__)
    return Said(done.returncode, done.stdout, done.stderr)
