"""Starts the run of a script started by hand: opens its store, finds or makes the run, claims it."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hostler import env
from hostler.errors import StoreError
from hostler.frozen import dataclass
from hostler.records import project as projects
from hostler.records.packs.packed_store import open_store
from hostler.records.sweep import sweeps
from hostler.sdk.alone.choose import Chooser
from hostler.sdk.alone.draft import Ground, draft
from hostler.sdk.alone.home import AloneHome, settle_in
from hostler.sdk.params import refuse_changed
from hostler.spec.job import Checkpointing, Job
from hostler.spec.tracking import Tracking
from hostler.store import Store
from hostler.store.registry import check


def begin(
    ground: Ground,
    params: Mapping[str, Any],
    *,
    name: str | None,
    tags: Sequence[str],
    notes: str,
    resume: str,
    allow_changed: bool | Sequence[str],
    trackers: Sequence[Tracking] = (),
    say: Callable[[str], None],
) -> AloneHome:
    job = draft(ground, params, name=name, tags=tags, notes=notes, trackers=trackers)
    wish = _Beginning(job, resume, allow_changed, ground.checkpoint, ground.project)
    try:
        return _enter(open_store(ground.store), wish, say)
    except StoreError as error:
        if resume == "must":
            raise
        return _enter(_instead(ground.store, error, say), wish, say)


@dataclass(frozen=True)
class _Beginning:
    job: Job
    resume: str
    allow_changed: bool | Sequence[str]
    checkpoint: Checkpointing
    project: str


def _enter(store: Store, wish: _Beginning, say: Callable[[str], None]) -> AloneHome:
    timing = projects.ensure(store, wish.project, projects.timing_of(store.url))
    wanted = wish.job.params(0)

    def accept(job: Job) -> None:
        refuse_changed(job.params(0), wanted, wish.allow_changed, job.name)

    chooser = Chooser(store, timing, clock=time.monotonic, pause=time.sleep, say=say, accept=accept)
    while True:
        chosen = chooser.choose(wish.job, wish.resume)
        home = settle_in(store, chosen, timing, wish.checkpoint, say=say)
        if home is not None:
            _add_tags(store, chosen.job, home.run, wish.job.tags)
            if wish.job.trackers:
                home.show(replace(chosen.job, trackers=wish.job.trackers))
            return home


def _instead(url: str, error: StoreError, say: Callable[[str], None]) -> Store:
    """Folder for a run whose store cannot be used: the training starts all the same."""
    name = hashlib.sha256(url.encode()).hexdigest()[:16]
    folder = env.cache_dir() / "instead" / name
    try:
        store = open_store(str(folder))
        check(store)
    except StoreError:
        raise error from None
    say(f"the store cannot be used ({error}): the run is written to {folder} instead")
    return store


def _add_tags(store: Store, job: Job, run: str, tags: Sequence[str]) -> None:
    new = [tag for tag in tags if tag not in job.tags]
    if new:
        sweeps.tag(store, job.name, run, new, [])
