"""`hostler pack` without its pause of two minutes before originals go."""

from __future__ import annotations

import sys

from hostler.cli import main as cli_main
from hostler.records.packs import due, packer


def now(*words: str) -> int:
    packer.PAUSE = due.STALE = 0.0
    sys.argv = ["hostler", "pack", *words]
    return cli_main.main() or 0  # type: ignore[func-returns-value]
