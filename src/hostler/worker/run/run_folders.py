"""The local folders of this worker's runs, and the removal of those that dead workers left.

Each session has a folder of its own, and beside it, made before and removed after it, a note of whose it
is. The cache may lie on a disk that several machines share, so a folder is removed only where this very
machine, boot and process namespace can tell that its worker is gone. What is in it is delivered before, by a
worker of the same store.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

from hostler import proctable
from hostler.attempt.dead_scripts import place_of
from hostler.records.run import handoff
from hostler.worker.run import leftovers
from hostler.worker.run.leftovers import ProcessScope

WAITS = 86400.0  # seconds for which what a dead worker left waits for another one of its store


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


def begin(cache: Path, session: str, store: str = "") -> None:
    """Make this session's folder; `store` is the address of what it works for."""
    note = note_of(cache, session)
    note.parent.mkdir(parents=True, exist_ok=True)
    me = {"pid": os.getpid(), "start": proctable.start_of(os.getpid()), "place": asdict(leftovers.here())}
    handoff.write(note, {**me, "store": store})
    of_session(cache, session).mkdir(exist_ok=True, mode=0o700)  # what runs print there may hold secrets


def end(cache: Path, session: str) -> None:
    folder = of_session(cache, session)
    shutil.rmtree(folder, ignore_errors=True)
    if not folder.exists():
        note_of(cache, session).unlink(missing_ok=True)


def remove_abandoned(
    cache: Path,
    store: str = "",
    deliver: Callable[[Path], bool] = lambda folder: True,
    session: str = "",
    now: Callable[[], float] = time.time,
) -> list[str]:
    """Remove the folders whose worker is known to be gone; the sessions. `deliver` is called for each folder
    of a run for this store, whose processes are of this boot; where it returns False the session's stay.
    Those of another store wait for a worker of that one, for a day. `session`: of this one alone."""
    gone: list[str] = []
    for note in sorted((cache / "runs").glob("*.json")):
        owner = (handoff.read(note) or {}) if session in ("", note.stem) else {}
        if not _is_abandoned(owner):
            continue
        folders = sorted(path.parent for path in of_session(cache, note.stem).glob("[!.]*/attempt.json"))
        if folders and not _is_booted_since(owner):
            other = str(owner.get("store", ""))
            if place_of(other) == place_of(store):
                if False in [deliver(folder) for folder in folders]:
                    continue
            elif _may_be_there(other) and now() - max(map(_touched, folders)) < WAITS:
                continue
        end(cache, note.stem)
        gone.append(note.stem)
    return gone


def _may_be_there(url: str) -> bool:
    return os.path.isdir(url) if url.startswith("/") else bool(url)


def _touched(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except OSError:  # gone meanwhile
        return 0.0


def _is_abandoned(owner: dict[str, Any]) -> bool:
    scope = leftovers.here()
    try:
        process_scope, pid, start = _scope(owner), int(owner["pid"]), str(owner["start"])
    except (KeyError, TypeError, ValueError):  # another version's: not ours to judge
        return False
    return not proctable.is_alive(pid, start) if process_scope == scope else _is_booted_since(owner)


def _is_booted_since(owner: dict[str, Any]) -> bool:
    """Whether its machine is this one, before it was booted: files may have lost their last bytes by that."""
    scope, process_scope = _scope(owner), leftovers.here()
    return scope.host == process_scope.host and scope.boot != process_scope.boot


def _scope(owner: dict[str, Any]) -> ProcessScope:
    return ProcessScope(**owner["place"])
