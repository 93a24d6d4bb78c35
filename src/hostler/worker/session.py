"""A worker process, from its checks to its leaving.

What its command line says is all it knows; its parent, if it has one, is at the other end of a pipe.
"""

from __future__ import annotations

import argparse
import math
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from hostler import env, settings
from hostler.attempt import dead_scripts, nvml
from hostler.backends.privatefile import FILE
from hostler.errors import HostlerError, MachineError, MissingError, StoreUnreachable
from hostler.records import layout, project
from hostler.records.packs.packed_store import open_store
from hostler.records.run.log import CAP
from hostler.settings import Timing
from hostler.spec.units import show_duration
from hostler.store import Store
from hostler.store.registry import check, is_folder
from hostler.worker import parent, preflight
from hostler.worker.claim import room
from hostler.worker.launch_membership import Membership
from hostler.worker.loop import Worker, WorkerTerms
from hostler.worker.machine import Machine
from hostler.worker.parent import CRASHED
from hostler.worker.prepare import secrets
from hostler.worker.process import warm
from hostler.worker.run import run_folders
from hostler.worker.run.conclude import LEAVING, ORPHANED, PREEMPTED
from hostler.worker.run.leftovers import remove_leftovers
from hostler.worker.session_name import new_session, place_of
from hostler.worker.shared.gate import Gate, width_of

if TYPE_CHECKING:
    from hostler.backends.base import Host
    from hostler.worker.launch_end import Launched


def work(given: argparse.Namespace, host: Host, say: Callable[[str], None]) -> int:
    """Its exit code."""
    env.ports()  # what names none is said before a run is taken
    gone = _open_file(given.secrets)
    store = open_store(given.store, retry=settings.timing().retry)
    if given.session:  # whose parent would start another at once
        await_store(store, settings.timing(), say)
    if _is_nowhere(given.store, store):
        raise MissingError(f"no store at {store.url}", hint="check the path; hostler run makes a store")
    if not given.checked:  # by what brought hostler here, a moment ago
        check(store)
    dead_scripts.deliver(store, say)
    if gone is not None:
        return _without_secrets(gone, given, store, say)
    timing = project.agreed(store, settings.timing(one_machine=is_folder(given.store)))
    for leftover in remove_leftovers():
        say(f"removed process {leftover.pid}, left over from {leftover.run}")
    _check_disk(given.store, store.url)
    session = given.session or new_session("", *place_of(host, given.fleet))
    launched = _launched(given, host, store, timing, say) if host.comes_with_launch else None
    _open_vault(given.secrets, store, host)
    membership = Membership(
        store, given.fleet, session, timing, time.monotonic, say, host.born(), given.price
    )
    code = CRASHED
    try:
        in_time = membership.begin(given.deadline)
        code = _carry_on(given, host, store, timing, membership, session, launched, say) if in_time else 0
    finally:
        membership.end(final=code != CRASHED)
    if given.secrets.startswith(FILE) and code == 0:
        _put_away(given, store)
    return launched.finish() if launched else code


def _put_away(given: argparse.Namespace, store: Store) -> None:
    """The file with the secrets of its launch goes when nothing is left; else another worker does that."""
    with suppress(HostlerError):  # its own work is done, whatever the store answers now
        if not secrets.is_needed(store, given.sweep):
            secrets.close(given.secrets)


def _open_file(where: str) -> MissingError | None:
    """The file with its secrets; why not, if there is none."""
    try:
        secrets.open_file(where)
    except MissingError as error:
        return error
    return None


def _without_secrets(
    gone: MissingError, given: argparse.Namespace, store: Store, say: Callable[[str], None]
) -> int:
    """Leave without secrets if no run is left; otherwise raise."""
    if secrets.is_needed(store, given.sweep):
        raise gone
    say("no run is left for this worker")
    return 0


def _open_vault(where: str, store: Store, host: Host) -> None:
    try:
        secrets.open_rest(where, store)
    except HostlerError as error:
        host.report(f"failed: {error}")
        raise


def _carry_on(
    given: argparse.Namespace,
    host: Host,
    store: Store,
    timing: settings.Timing,
    membership: Membership,
    session: str,
    launched: Launched | None,
    say: Callable[[str], None],
) -> int:
    offer = room.offer(slots=given.slots, cpus=given.cpus, gpus=given.gpus)
    parents = warm.Warmth(run_folders.of_session(env.cache_dir(), session) / "warm")
    kept = parents if warm.wanted() else None
    machine = Machine(
        store,
        env.cache_dir(),
        session,
        timing,
        say=say,
        price=membership.price,
        warm=kept,
        gate=Gate(width_of(store.url)),
    )
    terms = WorkerTerms(
        only=tuple(given.sweep),
        section=given.section,
        dead=tuple(filter(None, given.dead.split(","))),
        runs=given.runs,
        restarts=bool(given.session),
        waits_free=not given.billed,
        time_left=lambda: min(_or_endless(host.seconds_left()), membership.left),
        fleet=given.fleet,
        took=_took(host, store),
        job=host.job(),
        fate=host.fate,
        grow=host.grow,
        enlarge=host.enlarge,
        serves=launched.serves if launched and launched.known else None,
        close=launched.close if launched else lambda: None,
    )
    worker = Worker(machine, room.Room(offer, problem=nvml.read().problem), terms)
    signal.signal(signal.SIGTERM, lambda *_: worker.tell(PREEMPTED))
    signal.signal(signal.SIGUSR1, lambda *_: worker.tell(membership.noticed(PREEMPTED)))
    signal.signal(signal.SIGINT, lambda *_: worker.tell(LEAVING))
    if given.parent_fd is not None:
        parent.watch_parent(given.parent_fd, lambda: worker.tell(ORPHANED))
    membership.keep(lambda: worker.tell(CAP), worker.used)
    if launched:
        launched.ends = membership.ends
        launched.begin(worker)
    return worker.run()


def _took(host: Host, store: Store) -> Callable[[str], None]:
    """Told of each run that is taken."""
    if not host.comes_with_launch:
        return host.show
    from hostler.worker.left_bytecode import leave_once  # other machines keep what they have compiled

    leave = leave_once(store)

    def took(run: str) -> None:
        host.show(run)
        leave()

    return took


def _or_endless(seconds: float | None) -> float:
    return math.inf if seconds is None else seconds


def _launched(
    given: argparse.Namespace, host: Host, store: Store, timing: settings.Timing, say: Callable[[str], None]
) -> Launched:
    from hostler.worker.launch_end import Launched  # which workers of other machines do not load

    fleet, _, number = given.fleet.rpartition("/")
    return Launched(host, store, fleet, int(number), timing, given.secrets, say)


def _is_nowhere(given: str, store: Store) -> bool:
    """A mistyped path: a folder that nobody has made a store of, here or on another machine."""
    if is_folder(given):
        return not os.path.isdir(store.url)
    return given.startswith("ssh:") and not any(store.list(layout.PROJECT))


def _check_disk(given: str, url: str) -> None:
    """A full disk is refused now, not by a run's failure in an hour."""
    preflight.check_disk("cache", env.cache_dir())
    if is_folder(given):
        preflight.check_disk("store", Path(url))


def await_store(
    store: Store,
    timing: Timing,
    say: Callable[[str], None],
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Wait until the store answers at all. MachineError if it does not in time: others may reach it."""
    begun, wait = clock(), timing.wait_min
    while True:
        try:
            any(store.list(layout.PROJECT))
            return
        except StoreUnreachable as error:
            silent = clock() - begun
            if silent >= timing.storeless:
                text = f"the store has not answered for {show_duration(round(silent))}: this worker leaves"
                raise MachineError(f"{text}: {error.message}", error.hint) from None
            say(f"{error}; trying again")
        pause(wait)
        wait = min(wait * 2, timing.wait_max)
