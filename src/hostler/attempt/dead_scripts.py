"""Finds scripts by hand that died on this machine, and has what they left delivered to the store.

Every reader of a store and every worker calls `deliver` first. It reads a note in each folder of a script;
a folder whose process is alive, or that nobody here can tell about, is left alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from hostler import env, settings
from hostler.errors import Fenced, HostlerError
from hostler.records.run import handoff, holder
from hostler.records.run.handoff import Handoff
from hostler.records.run.log import RunKey
from hostler.store import Store


def deliver(store: Store, say: Callable[[str], None], folders: Sequence[Path] | None = None) -> None:
    """Deliver what dead scripts left for this store. Trouble is said: whoever wants to read goes on."""
    for folder in env.script_folders() if folders is None else folders:
        try:
            _deliver(store, folder, say)
        except Fenced:
            continue  # another has claimed its run just now
        except (HostlerError, OSError) as error:
            say(f"what a dead script left in {folder} could not be delivered: {error}")


def _deliver(store: Store, folder: Path, say: Callable[[str], None]) -> None:
    if folder.name.startswith("."):  # delivered, and not wholly removed
        import shutil

        shutil.rmtree(folder, ignore_errors=True)
        return
    try:
        note = handoff.read(Handoff(folder).script)
    except OSError:  # a stray file
        return
    if not note or place_of(str(note["store"])) != place_of(store.url) or holder.is_gone(note) is not True:
        return
    from hostler.attempt import dead_script  # with all that an attempt needs: only where one died

    key, number = RunKey(str(note["sweep"]), str(note["run"])), int(note["attempt"])
    dead_script.settle(store, key, number, folder, settings.timing(), say)


def place_of(url: str) -> str:
    """A store's address, the same for a folder and for a link to it."""
    return os.path.realpath(url) if url.startswith("/") else url.rstrip("/")
