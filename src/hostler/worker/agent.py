"""A machine of a fleet, asked over a channel: starts, lists and ends its workers, and says what it has.

Its workers are those of the local backend, so they outlive the connection; it ends with its input and leaves
nothing. `run` is for the commands of an engine that is there already.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import hostler
from hostler import env, private
from hostler.attempt import nvml
from hostler.backends import privatefile, registry
from hostler.backends.base import Plan, WorkerInfo
from hostler.backends.privatefile import PrivateContent
from hostler.errors import HostError, MachineError
from hostler.remote import service
from hostler.remote.frames import ByteSource, Frame, Sink
from hostler.remote.install import install_in_cache
from hostler.remote.service import Handler
from hostler.spec.project import Fleet

MOST_LOG = 1 << 20  # bytes of a worker's log that are sent
REACH = 60.0  # seconds to write to the store and read it back


def serve(args: Mapping[str, Any], source: ByteSource, sink: Sink) -> None:
    env.forget_login()
    service.serve(HANDLERS, source, sink)


def _start(asked: dict[str, Any], body: bytes) -> Frame:
    """Commands as planned, with this machine's Python; variables came in the body, seen by nobody."""
    told = json.loads(body)
    library = _library(asked["wheels"])
    kept, places = PrivateContent(**told["kept"]), list[Path]()
    words = []
    try:
        for command in told["commands"]:
            places += [privatefile.keep_new(asked["fleet"], kept)] if kept else []
            own = ["--secrets", f"{privatefile.OWN}{places[-1]}"] if kept else []
            words.append((sys.executable, *command[1:], *own))
        plan = Plan(_fleet(asked), tuple(words), variables={**told["variables"], "PYTHONPATH": library})
        return _infos(registry.this_machine().start(plan))
    except MachineError as error:
        _remove(places)
        raise HostError(error.message, error.hint) from error
    except OSError as error:
        _remove(places)
        raise HostError(
            f"no worker could be started: {error.strerror}: {error.filename or env.machine_dir()}",
            "free space there, or fix its rights",
        ) from error


def _remove(places: list[Path]) -> None:
    for place in places:
        privatefile.remove(place)


def _list(asked: dict[str, Any], body: bytes) -> Frame:
    return _infos(registry.this_machine().list(_fleet(asked)))


def _stop(asked: dict[str, Any], body: bytes) -> Frame:
    return _infos(registry.this_machine().stop(_fleet(asked), now=asked["now"]))


def _logs(asked: dict[str, Any], body: bytes) -> Frame:
    try:
        with open(asked["path"], "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - MOST_LOG))
            return Frame({}, file.read())
    except OSError:
        return Frame()


def _facts(asked: dict[str, Any], body: bytes) -> Frame:
    return Frame(
        {
            "python": platform.python_version(),
            "platform": [sys.platform, platform.machine(), *platform.libc_ver()],
            "cpus": os.cpu_count() or 1,
            "gpus": [gpu.name for gpu in nvml.gpus()],
            "sees": bool(asked["path"]) and Path(asked["path"]).expanduser().exists(),
            "home": str(Path.home()),
            "exe": sys.executable,
            "library": _library([]),
            "cache": str(env.cache_dir()),
        }
    )


def _reach(asked: dict[str, Any], body: bytes) -> Frame:
    """In a process of its own: with the variables a worker would have, and no longer than it may take."""
    words = [sys.executable, "-m", "hostler.worker.reach", asked["store"]]
    variables = {**env.inherited(), **json.loads(body), "PYTHONPATH": _library(asked["wheels"])}
    try:
        done = subprocess.run(words, env=variables, capture_output=True, text=True, timeout=REACH)
    except subprocess.TimeoutExpired:
        return Frame({"unreached": f"no answer from it within {REACH:g} s"})
    lines = done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"]
    return Frame({"unreached": lines[-1] if done.returncode else ""})


def _has_wheel(asked: dict[str, Any], body: bytes) -> Frame:
    place = _wheels() / asked["sha"]
    if place.is_dir():
        private.check_closed(place)
        return Frame({"has": True})
    return Frame({"has": False})


def _wheel(asked: dict[str, Any], body: bytes) -> Frame:
    try:
        install_in_cache("wheels", asked["sha"], lambda: body)
    except OSError as error:
        raise HostError(
            f"{error.filename}: {error.strerror}", "free space there, or fix its rights"
        ) from error
    return Frame()


def _run(asked: dict[str, Any], body: bytes) -> Frame:
    """A command of this machine: input and variables in the body, code and both outputs come back.

    Codes are a shell's: 127 for a program that is not there, 124 for one that took too long.
    """
    size = asked["given"]
    variables = {**env.without_prefixes(*asked["without"]), **json.loads(body[size:])}
    found = shutil.which(asked["argv"][0], path=variables.get("PATH"))
    if found is None:
        return _ran(127, b"", f"{asked['argv'][0]}: command not found".encode())
    try:
        done = subprocess.run(
            [found, *asked["argv"][1:]],
            input=body[:size],
            capture_output=True,
            timeout=asked["patience"],
            env=variables,
        )
    except subprocess.TimeoutExpired:
        return _ran(124, b"", f"{asked['argv'][0]} did not answer in {asked['patience']:g} s".encode())
    return _ran(done.returncode, done.stdout, done.stderr)


def _keep_secrets(asked: dict[str, Any], body: bytes) -> Frame:
    try:
        privatefile.keep(asked["name"], PrivateContent(**json.loads(body)))
    except MachineError as error:
        raise HostError(error.message, error.hint) from error
    return Frame()


def _forget_secrets(asked: dict[str, Any], body: bytes) -> Frame:
    privatefile.remove_all(asked["fleet"], asked["but"])
    return Frame()


def _ran(code: int, out: bytes, err: bytes) -> Frame:
    return Frame({"code": code, "out": len(out)}, out + err)


HANDLERS: dict[str, Handler] = {
    "start": _start,
    "list": _list,
    "stop": _stop,
    "logs": _logs,
    "facts": _facts,
    "reach": _reach,
    "has-wheel": _has_wheel,
    "wheel": _wheel,
    "run": _run,
    "keep-secrets": _keep_secrets,
    "forget-secrets": _forget_secrets,
}


def _fleet(asked: dict[str, Any]) -> Fleet:
    return Fleet(name=asked["fleet"], backend=registry.HERE, cache=str(env.cache_dir()))


def _infos(workers: Any) -> Frame:
    worker_infos: list[WorkerInfo] = list(workers)
    return Frame({"workers": [asdict(worker) for worker in worker_infos]})


def _wheels() -> Path:
    return env.cache_dir() / "wheels"


def _library(wheels: list[str]) -> str:
    """Where a Python of this machine finds hostler and what was brought along."""
    own = Path(hostler.__file__).resolve().parent.parent
    return os.pathsep.join([str(own), *(str(_wheels() / sha) for sha in wheels)])
