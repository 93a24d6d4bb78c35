"""The local folders of this worker's runs, and the removal of those that dead workers left.

Each session has a folder of its own, and beside it, made before and removed after it, a note of whose it
is. The cache may lie on a disk that several machines share, so a folder is removed only where this very
machine, boot and process namespace can tell that its worker is gone.
"""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

from hostler import proctable
from hostler.records.run import handoff
from hostler.worker.run import leftovers
from hostler.worker.run.leftovers import ProcessScope


def of_session(cache: Path, session: str) -> Path:
    return cache / "runs" / session


def note_of(cache: Path, session: str) -> Path:
    return cache / "runs" / f"{session}.json"


def of_run(cache: Path, session: str, run: str, attempt: int) -> Path:
    return of_session(cache, session) / f"{run}-{attempt}"


def in_project(cache: Path, text: str) -> str:
    """The text with files of runs' copies of the code, and of their setup, named as in the project."""
    return _copies(str(cache)).sub("", text)


@lru_cache(maxsize=4)
def _copies(cache: str) -> re.Pattern[str]:
    home = str(Path.home())
    names = {cache, os.path.realpath(cache)}
    names |= {
        f"~{name.removeprefix(home)}" for name in names if name.startswith(f"{home}/")
    }  # as IPython does
    either = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    return re.compile(rf"(?:{either})/(?:runs/[^/\n]+/(?:[^/\n]+/){{1,2}}?work|prepared/[^/\n]+)/")


def begin(cache: Path, session: str) -> None:
    """Make this session's folder, and remove those of dead ones."""
    remove_abandoned(cache)
    note = note_of(cache, session)
    note.parent.mkdir(parents=True, exist_ok=True)
    me = {"pid": os.getpid(), "start": proctable.start_of(os.getpid()), "place": asdict(leftovers.here())}
    handoff.write(note, me)
    of_session(cache, session).mkdir(exist_ok=True, mode=0o700)  # what runs print there may hold secrets


def end(cache: Path, session: str) -> None:
    folder = of_session(cache, session)
    shutil.rmtree(folder, ignore_errors=True)
    if not folder.exists():
        note_of(cache, session).unlink(missing_ok=True)


def remove_abandoned(cache: Path) -> list[str]:
    """Remove the folders whose worker is known to be gone; the sessions."""
    notes = sorted((cache / "runs").glob("*.json"))
    gone = [note.stem for note in notes if _is_abandoned(handoff.read(note))]
    for session in gone:
        end(cache, session)
    return gone


def _is_abandoned(owner: dict[str, Any] | None) -> bool:
    here = leftovers.here()
    try:
        owner = owner or {}
        there, pid, start = ProcessScope(**owner["place"]), int(owner["pid"]), str(owner["start"])
    except (KeyError, TypeError, ValueError):  # another version's: not ours to judge
        return False
    if there == here:
        return not proctable.is_alive(pid, start)
    return there.host == here.host and there.boot != here.boot
