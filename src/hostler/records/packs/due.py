"""When a sweep is old enough to be packed, and the process that packs these by itself.

A command in a project with `pack: 7d` starts it, for a store at most once a day on its machine; it has no
terminal, nobody waits for it, and it leaves when it is through.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from hostler import env
from hostler.records import layout
from hostler.records.packs.packed_store import PackedStore
from hostler.records.run.heartbeats import store_time
from hostler.store.registry import is_folder, is_network

STALE = 60.0  # seconds for which a listing of a network's folder may be old
EVERY = 86400.0  # seconds between two looks of one machine at a store


def is_due(store: PackedStore, sweep: str, age: float) -> bool:
    """Whether a sweep has ends that are in no pack, the newest of them so many seconds old."""
    since = _since_newest(store, layout.ends(sweep))
    return since is not None and since >= age


def unsettled(store: PackedStore, sweep: str) -> float:
    """Seconds until every listing shows what the runs of a sweep left: over NFS it may be a minute old, and
    lack the last points of a run whose end is there. 0 where that cannot be."""
    if is_folder(store.url) and not is_network(Path(store.url)):
        return 0.0
    if not is_folder(store.url) and not store.url.startswith("ssh:"):
        return 0.0
    since = _since_newest(store, layout.logs_of(sweep))
    return 0.0 if since is None else min(max(STALE - since, 0.0), STALE)


def _since_newest(store: PackedStore, prefix: str) -> float | None:
    """Seconds since the newest object came, by the store's clock; None if there is none."""
    newest = max((entry.modified for entry in store.inner.list(prefix)), default=None)
    return None if newest is None else store_time(store.inner) - newest


def begin(url: str, age: float, start: Callable[[list[str]], object] | None = None) -> bool:
    """Start the packing of what is due, unless this machine has done so today; whether it was started."""
    if not _is_first_today(_mark(url)):
        return False
    words = [sys.executable, "-m", "hostler", "pack", "--all", "--older", f"{age:g}s", "--store", url]
    (start or _detached)(words)
    return True


def _detached(words: list[str]) -> None:
    none = subprocess.DEVNULL
    subprocess.Popen(words, stdin=none, stdout=none, stderr=none, start_new_session=True)


def _mark(url: str) -> Path:
    place = str(Path(url).absolute()) if is_folder(url) else url
    return env.cache_dir() / "packs" / hashlib.sha256(place.encode()).hexdigest()[:16]


def _is_first_today(mark: Path, now: Callable[[], float] = time.time) -> bool:
    """Whether nobody has marked this day yet; it is marked now. False without a cache."""
    try:
        if now() - mark.stat().st_mtime < EVERY:
            return False
    except OSError:
        pass
    try:
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()
    except OSError:
        return False
    return True
