"""Workers on this machine: background processes that outlive the terminal.

The machine's own folder keeps a note of each: pid, start time and command. A process is taken for a
worker, and killed as one, only if all three are those of the note.
"""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from hostler import env, proctable
from hostler.backends.base import Capabilities, Launch, MachineInfo, Plan, Question, WorkerInfo
from hostler.spec.names import slug
from hostler.spec.project import Fleet

OPTION = "--secrets"  # of a worker: where its runs' secrets are
STARTING = 60.0  # seconds in which a worker gives its first sign of life, on a machine that has much to do


class LocalBackend:
    capabilities = Capabilities(restarts=True, shares_disk=True)

    def plan(self, fleet: Fleet, launch: Launch) -> Plan:
        words = [launch.python, "-m", "hostler.worker", launch.store]
        words += [w for sweep in launch.sweeps for w in ("--sweep", sweep)]
        if fleet.slots is not None:
            words += ["--slots", str(fleet.slots)]
        if fleet.runs_per_worker is not None:
            words += ["--runs", str(fleet.runs_per_worker)]
        words += launch.terms
        fleet = replace(fleet, cache=fleet.cache or launch.cache)
        notes = (f"with {env.CACHE}={fleet.cache}",) if fleet.cache else ()
        count = 0 if env.host() in launch.skip else fleet.workers
        return Plan(fleet, (tuple(words),) * count, notes, launch.variables, workers=count)

    def start(self, plan: Plan) -> Sequence[WorkerInfo]:
        return [_start(plan.fleet, command, plan.variables) for command in plan.commands]

    def list(self, fleet: Fleet) -> Sequence[WorkerInfo]:
        worker_infos = []
        for path in sorted(_folder(fleet).glob("*.json")):
            info = _info(path)
            if info.alive or info.detail:
                worker_infos.append(info)
            else:
                from hostler.backends import privatefile  # only once a worker of this machine has left

                privatefile.remove_own(_secrets_of(path))
                path.unlink(missing_ok=True)
        return worker_infos

    def stop(self, fleet: Fleet, *, now: bool = False) -> Sequence[WorkerInfo]:
        workers = self.list(fleet)
        for worker in workers:
            if worker.alive:
                _signal(int(worker.id), signal.SIGKILL if now else signal.SIGTERM)
        return workers

    def logs(self, worker: WorkerInfo) -> bytes:
        path = Path(worker.detail)
        return path.read_bytes() if path.is_file() else b""

    def survey(self, fleet: Fleet, question: Question) -> Sequence[MachineInfo]:
        return [MachineInfo(env.host(), python=platform.python_version(), sees=True)]

    def starting(self, store: str, sweep: str) -> bool:
        youngest = time.time() - STARTING
        for path in (env.machine_dir() / "fleets").glob("*/*.json"):
            try:
                record = json.loads(path.read_text()) if path.stat().st_mtime > youngest else {}
            except (OSError, ValueError):  # gone, or cut short
                continue
            if _takes(record.get("words", ()), store, sweep) and _info(path).alive:
                return True
        return False


def open_backend(fleet: Fleet | None = None) -> LocalBackend:
    return LocalBackend()


def _start(fleet: Fleet, command: tuple[str, ...], more: Mapping[str, str]) -> WorkerInfo:
    folder = _folder(fleet)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    log = folder / f"{time.time_ns()}-{os.getpid()}.log"
    variables = {**env.inherited(), **more}
    if fleet.cache:
        variables[env.CACHE] = fleet.cache
    with open(log, "ab") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            env=variables,
        )
    start = proctable.start_of(process.pid)
    record = {"pid": process.pid, "start": start, "log": str(log), "words": command}
    if OPTION in command:
        record["secrets"] = command[command.index(OPTION) + 1]
    (folder / f"{process.pid}.json").write_text(json.dumps(record))
    return WorkerInfo(str(process.pid), env.host(), True, str(log))


def _takes(words: Sequence[str], store: str, sweep: str) -> bool:
    only = [name for option, name in pairwise(words) if option == "--sweep"]
    return store in words and (sweep in only or not only)


def _secrets_of(path: Path) -> str:
    """Where a worker's own were, which nobody has removed if it was killed."""
    try:
        return str(json.loads(path.read_text()).get("secrets", ""))
    except ValueError:
        return ""


def _info(path: Path) -> WorkerInfo:
    """The worker of a note. One that is not alive and has a `detail` is a process that may be another's."""
    try:
        record = json.loads(path.read_text())
        pid, start, words = int(record["pid"]), record.get("start"), record.get("words")
    except (OSError, ValueError, KeyError, TypeError):  # gone, or cut short
        return WorkerInfo(path.stem, env.host(), False)
    if start is None or words is None:  # of an earlier version
        doubt = "says neither when it started nor what it runs" if proctable.start_of(pid) else ""
    elif not proctable.is_alive(pid, start):
        doubt = ""
    elif proctable.runs(pid, words[1:]):
        return WorkerInfo(str(pid), env.host(), True, str(record.get("log", "")))
    elif proctable.is_leaving(pid, start):
        doubt = ""
    else:
        doubt = "names another command than it runs"
    why = f"left alone, as its note {doubt}: kill {pid} if it is a worker, then rm {path}" if doubt else ""
    return WorkerInfo(str(pid), env.host(), False, why)


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def _folder(fleet: Fleet) -> Path:
    return env.machine_dir() / "fleets" / slug(fleet.name)
