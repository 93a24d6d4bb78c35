"""The project's record: labels, format, and the beat and lease that all its workers must share."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from hostler import settings
from hostler.records import layout
from hostler.records.body import NUMBER, checked, encode
from hostler.records.sweep.sweeps import newest
from hostler.settings import Timing
from hostler.store import Store
from hostler.store.registry import check, is_folder, is_network

BEATS = 6  # heartbeats in a lease, at least


def ensure(store: Store, name: str, timing: Timing) -> Timing:
    """Make the project's record if there is none, in a store that keeps what was created; the times that
    hold."""
    record = {"name": name, "beat": timing.beat, "lease": timing.lease}
    if newest(store, layout.PROJECT) is None:
        check(store)
        store.put(layout.project(1), encode(record), if_absent=True)
        hide_from_git(store.url, new=True)
    else:
        hide_from_git(store.url)
    return agreed(store, timing)


def hide_from_git(url: str, *, new: bool = False) -> None:
    """Give a store that is a folder a .gitignore of its own: a `new` one, or one in a git checkout. One that
    is there is left as it is."""
    file = Path(url, ".gitignore")
    if not is_folder(url) or os.path.lexists(file):
        return
    if new or any((folder / ".git").exists() for folder in file.parents[1:]):
        with suppress(OSError), open(file, "x") as fresh:
            fresh.write("*\n")


def name(store: Store) -> str:
    """Name of the project; '' if it has none."""
    found = newest(store, layout.PROJECT)
    return str(found[1].get("name") or "") if found else ""


def agreed(store: Store, timing: Timing) -> Timing:
    """This process's times with the project's beat and lease, in proportion to each other."""
    found = newest(store, layout.PROJECT)
    if found is None:
        return _in_proportion(timing)
    record = checked(found[1], {"beat": NUMBER, "lease": NUMBER}, layout.project(found[0]), ["beat", "lease"])
    return _in_proportion(replace(timing, beat=float(record["beat"]), lease=float(record["lease"])))


def _in_proportion(timing: Timing) -> Timing:
    """A beat short enough for its lease. Workers watch each other as often as they beat, and a watch with
    gaps of over a quarter of the lease starts anew each time: nobody would ever be lost."""
    return replace(timing, beat=min(timing.beat, timing.lease / BEATS))


def timing_of(url: str) -> settings.Timing:
    """Beat and lease by what kind of store it is: one machine, a network file system, a bucket."""
    if not is_folder(url):
        return settings.timing()
    if is_network(Path(url)):
        return replace(settings.timing(), **settings.network_folder())
    return settings.timing(one_machine=True)
