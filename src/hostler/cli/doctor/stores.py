"""Checks a store: whether it can be used, its clock is ours, and anything in it is stuck."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from hostler.backends import registry
from hostler.backends.doctor import BAD, OK, WARN, Check
from hostler.cli import here
from hostler.cli.doctor import clock
from hostler.cli.doctor.this_machine import disk, existing
from hostler.cli.terminal.hints import worker_command
from hostler.cli.terminal.output import counts
from hostler.errors import HostlerError
from hostler.records.launch import serving
from hostler.records.packs.packed_store import open_store
from hostler.records.rows import Row, rows
from hostler.records.sweep import sweeps
from hostler.spec.states import QUEUED
from hostler.spec.units import counted
from hostler.store import Store
from hostler.store.registry import check, is_folder

SLOW = 2.0  # seconds for a create, a read and a delete
BY_HAND = "start the script again: it goes on"


def store(url: str, retry: float) -> Iterator[Check]:
    try:
        packed_store = open_store(url, retry=retry)
        if is_folder(url) and not Path(packed_store.url).exists():
            yield _not_yet(Path(packed_store.url))
            yield disk("store", Path(packed_store.url))
            return
        yield from _use(packed_store)
        here.deliver_left(packed_store)
        yield clock.of_store(packed_store)
        if is_folder(url):
            yield disk("store", Path(packed_store.url))
        yield from _content(packed_store)
    except HostlerError as error:
        yield Check(BAD, "store", error.message, error.hint or "fix its address, rights or network")


def _not_yet(folder: Path) -> Check:
    parent = existing(folder)
    if not os.access(parent, os.W_OK):
        return Check(BAD, "store", f"{folder} cannot be created: {parent} is read-only", "use another folder")
    return Check(OK, "store", f"{folder} does not exist yet; the first run makes it")


def _use(found: Store) -> Iterator[Check]:
    begun = time.monotonic()
    check(found)
    took = time.monotonic() - begun
    detail = f"{found.url} can be written, read and deleted ({took * 1000:.0f} ms)"
    yield (
        Check(WARN, "store", detail, "slow: use a store nearer to this machine")
        if took > SLOW
        else Check(OK, "store", detail)
    )


def _content(found: Store) -> Iterator[Check]:
    every = rows(found, trash=True)
    kept = [row for row in every if not row.trashed]
    yield Check(OK, "runs", counts(kept))
    yield from _stuck(found, kept)
    for name in dict.fromkeys(row.sweep for row in kept if row.state == QUEUED):
        halted = sweeps.halted(found, name)
        if halted:
            yield Check(
                WARN, "halted", f"{name}: {halted['why']}", f"hostler errors {name}, hostler retry {name}"
            )
    thrown = len(every) - len(kept)
    if thrown:
        yield Check(OK, "trash", counted(thrown, "run"))


def _stuck(found: Store, kept: list[Row]) -> Iterator[Check]:
    now = serving.look(found)
    gone = f", {len(now.stale)} without a sign of life" if now.stale else ""
    yield Check(OK, "serving", f"{counted(len(now.fresh), 'worker')} alive{gone}")
    for row in kept:
        if row.stale or row.lost:
            who, then = ("worker", worker_command(found)) if not row.by_hand else ("script", BY_HAND)
            yield Check(
                WARN,
                "lost",
                f"{row.name}: its {who} on {row.host} is {'dead' if row.lost else 'silent'}",
                then,
            )
    queued = [row for row in kept if row.state == QUEUED and not row.by_hand]
    machine, names = registry.this_machine(), {row.sweep for row in queued}
    served = {name for name in names if now.serves(name) or machine.starting(found.url, name)}
    count = sum(row.sweep not in served for row in queued)
    if count:
        text = f"nobody works on {counted(count, 'queued run')}"
        yield Check(WARN, "queue", text, worker_command(found))
