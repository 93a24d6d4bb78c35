"""`hostler worker STORE`, and `python -m hostler.worker STORE` where nothing is installed.

The parent keeps one worker alive; the worker does the work. Both are this program.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from hostler import env, settings
from hostler.errors import HostlerError, MissingError
from hostler.records import layout, project
from hostler.records.log import CAP
from hostler.store import Store, open_store
from hostler.store.registry import check, is_folder
from hostler.worker import (
    gce_vm,
    nvml,
    parent,
    pod,
    preflight,
    room,
    run_folders,
    slurm_step,
    slurm_task,
    warm,
)
from hostler.worker.conclude import LEAVING, ORPHANED, PREEMPTED
from hostler.worker.gce_end import Launched
from hostler.worker.leftovers import remove_leftovers
from hostler.worker.loop import Terms, Worker
from hostler.worker.machine import Machine
from hostler.worker.presence import Presence
from hostler.worker.waiting import await_store

NOTICE = 75.0  # seconds before a time limit, if nobody said so before: to save, and to be queued again
CRASHED = 70  # not among the codes after which the parent gives up


def main(argv: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    given = _parser().parse_args(words)
    try:
        if given.session or given.no_parent:
            return work(given)
        command = [sys.executable, "-m", "hostler.worker", *words]
        if given.nodes > 1 and not given.step:
            return _keep_nodes([*command, "--step"], given.nodes)
        return _keep(command, given)
    except HostlerError as error:
        print(f"hostler worker: {error}", file=sys.stderr)
        return pod.exit_code(error) if given.kubernetes else error.exit_code
    except Exception:  # a bug must not pass for a refusal: the parent starts another worker
        traceback.print_exc()
        return CRASHED


def _keep(command: Sequence[str], given: argparse.Namespace) -> int:
    task = slurm_task.this_task(env.inherited()) if given.slurm and not given.step else None
    left = task.seconds_left() if task else None
    return parent.keep(
        command,
        timing=settings.timing(),
        say=_say,
        notice_in=None if left is None else left - min(NOTICE, left / 4),
        requeue=task.requeue if task else None,
        watch=gce_vm.watch_preemption if given.gce else lambda notice: None,
    )


def _keep_nodes(command: Sequence[str], nodes: int) -> int:
    """A worker on each node of this allocation."""
    task = slurm_task.this_task(env.inherited())
    left = task.seconds_left() if task else None
    return slurm_step.keep(
        slurm_step.srun(command, nodes, env.inherited()),
        notice_in=None if left is None else left - min(NOTICE, left / 4),
        requeue=task.requeue if task else None,
        say=_say,
    )


def work(given: argparse.Namespace) -> int:
    """One worker process, from its checks to its leaving."""
    store = open_store(given.store, retry=settings.timing().retry)
    if given.session:  # whose parent would start another at once
        await_store(store, settings.timing(), _say)
    if _is_nowhere(given.store, store):
        raise MissingError(
            f"there is no store at {store.url}", hint="hostler run makes one; is the path right?"
        )
    check(store)
    timing = project.agreed(store, settings.timing(one_machine=is_folder(given.store)))
    for left in remove_leftovers():
        _say(f"removed process {left.pid}, left over from {left.run}")
    _check_disk(given.store, store.url)
    session = given.session or parent.new_session()
    launched = _launched(given, store, timing) if given.gce or given.kubernetes else None
    machine = launched.vm.born() if launched else ("", 0.0)
    presence = Presence(store, given.fleet, session, timing, time.monotonic, _say, machine)
    code = CRASHED
    try:
        in_time = presence.begin(given.deadline)
        code = _carry_on(given, store, timing, presence, session, launched) if in_time else 0
    finally:
        presence.end(final=code != CRASHED)
    return launched.finish() if launched else code


def _carry_on(
    given: argparse.Namespace,
    store: Store,
    timing: settings.Timing,
    presence: Presence,
    session: str,
    launched: Launched | None,
) -> int:
    offer = room.offer(slots=given.slots, cpus=given.cpus, gpus=given.gpus)
    parents = warm.Warmth(run_folders.of_session(env.cache_dir(), session) / "warm")
    task = slurm_task.this_task(env.inherited()) if given.slurm else None
    kept = parents if warm.wanted() else None
    here = Machine(store, env.cache_dir(), session, timing, say=_say, price=presence.price, warm=kept)
    terms = Terms(
        only=tuple(given.sweep),
        section=given.section,
        dead=tuple(filter(None, given.dead.split(","))),
        runs=given.runs,
        restarts=bool(given.session),
        waits_free=not given.billed,
        fleet=given.fleet,
        took=task.name if task else lambda run: None,
        serves=launched.serves if launched and launched.known else None,
        close=launched.close if launched else lambda: None,
    )
    worker = Worker(here, room.Room(offer, problem=nvml.read().problem), terms)
    signal.signal(signal.SIGTERM, lambda *_: worker.tell(PREEMPTED))
    signal.signal(signal.SIGUSR1, lambda *_: worker.tell(presence.noticed(PREEMPTED)))
    signal.signal(signal.SIGINT, lambda *_: worker.tell(LEAVING))
    if given.parent_fd is not None:
        parent.watch_parent(given.parent_fd, lambda: worker.tell(ORPHANED))
    presence.keep(lambda: worker.tell(CAP), worker.used)
    if launched:
        launched.begin(worker)
    return worker.run()


def _launched(given: argparse.Namespace, store: Store, timing: settings.Timing) -> Launched:
    fleet, _, number = given.fleet.rpartition("/")
    place = pod.Pod() if given.kubernetes else gce_vm.this_vm()
    return Launched(place, store, fleet, int(number), timing, _say)


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


def _say(line: str) -> None:
    print(line, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hostler worker", description="Take runs from STORE until nothing is left."
    )
    parser.add_argument("store", help="a folder, s3://bucket/prefix, …")
    parser.add_argument("--sweep", action="append", default=[], help="only this sweep (may be repeated)")
    parser.add_argument(
        "--section", type=int, default=0, help="only this section of sweeps that have some; 1 is the first"
    )
    parser.add_argument("--slots", type=int, help="runs at once (default: one per GPU, or what CPUs allow)")
    parser.add_argument("--cpus", type=float, help="CPUs to offer (default: all)")
    parser.add_argument(
        "--gpus", help="GPUs to offer, as CUDA_VISIBLE_DEVICES would name them (default: all visible)"
    )
    parser.add_argument("--runs", type=int, help="leave after so many runs have ended")
    parser.add_argument("--fleet", default="", metavar="NAME/N", help="the launch it is a part of")
    parser.add_argument(
        "--deadline", type=float, help="save all and leave by then: seconds since 1970, by the store's clock"
    )
    parser.add_argument("--billed", action="store_true", help="idle time here costs money: leave when idle")
    parser.add_argument(
        "--gce", action="store_true", help="this is a VM of Compute Engine: it removes itself at the end"
    )
    parser.add_argument(
        "--kubernetes", action="store_true", help="this is a pod of a Job: its exit code says what comes next"
    )
    parser.add_argument("--slurm", action="store_true", help="this is a Slurm task: name it, requeue it")
    parser.add_argument(
        "--nodes", type=int, default=1, help="of this Slurm allocation: a worker on each, by srun"
    )
    parser.add_argument("--step", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--no-parent", action="store_true", help="do not restart the worker if it is killed")
    parser.add_argument("--session", help=argparse.SUPPRESS)
    parser.add_argument("--parent-fd", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--dead", default="", help=argparse.SUPPRESS)
    return parser
