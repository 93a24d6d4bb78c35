"""The local folders of this worker's runs, and the removal of those that dead workers left.

Each session has a folder of its own, with a note of whose it is. The cache may lie on a disk that several
machines share, so a folder is removed only where this very machine, boot and process namespace can tell
that its worker is gone.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hostler import proctable
from hostler.records import handoff
from hostler.worker import leftovers
from hostler.worker.leftovers import Place

OWNER = "owner.json"


def of_session(cache: Path, session: str) -> Path:
    return cache / "runs" / session


def of_run(cache: Path, session: str, run: str, attempt: int) -> Path:
    return of_session(cache, session) / f"{run}-{attempt}"


def begin(cache: Path, session: str) -> None:
    """Make this session's folder, and remove those of dead ones."""
    remove_abandoned(cache)
    folder = of_session(cache, session)
    folder.mkdir(parents=True, exist_ok=True)
    me = {"pid": os.getpid(), "start": proctable.start_of(os.getpid()), "place": asdict(leftovers.here())}
    handoff.write(folder / OWNER, me)


def end(cache: Path, session: str) -> None:
    shutil.rmtree(of_session(cache, session), ignore_errors=True)


def remove_abandoned(cache: Path) -> list[Path]:
    """Remove the folders whose worker is known to be gone; which."""
    notes = sorted((cache / "runs").glob(f"*/{OWNER}"))
    gone = [note.parent for note in notes if _is_abandoned(handoff.read(note))]
    for folder in gone:
        shutil.rmtree(folder, ignore_errors=True)
    return gone


def _is_abandoned(owner: dict[str, Any] | None) -> bool:
    here = leftovers.here()
    try:
        owner = owner or {}
        there, pid, start = Place(**owner["place"]), int(owner["pid"]), str(owner["start"])
    except (KeyError, TypeError, ValueError):  # another version's: not ours to judge
        return False
    if there == here:
        return not proctable.is_alive(pid, start)
    return there.host == here.host and there.boot != here.boot
