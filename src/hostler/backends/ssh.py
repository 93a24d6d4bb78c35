"""Workers on machines that have an sshd and Python: no root, nothing installed, nothing left when done.

Each machine is asked over one channel, all machines at a time. One that is down, or won't do, is left out
with the reason, and is asked again at the next launch. `workers` counts for each host.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from hostler import env, settings
from hostler.backends.base import Capabilities, Launch, MachineInfo, Plan, Question, WorkerInfo
from hostler.errors import HostError, HostUnreachable, UsageError
from hostler.remote.channel import Channel, Cut
from hostler.remote.connection import Connection
from hostler.remote.frames import Frame
from hostler.remote.opening import open_channel
from hostler.remote.target import Target, parse
from hostler.remote.wheels import sha_of
from hostler.spec.project import Fleet

Workers = Sequence[WorkerInfo]

PYTHON = "python3"
AGENT = "hostler.worker.agent"
ANSWER = 90.0  # seconds for one answer; the slowest is that of a machine that looks for its store
AT_ONCE = 32
DOWN_FOR = 20.0  # seconds that a machine which did not answer is not asked again


class SshBackend:
    capabilities = Capabilities(restarts=True)

    def __init__(self) -> None:
        self._channels: dict[tuple[Target, str | None], Channel] = {}
        self._down: dict[Target, tuple[float, HostError]] = {}

    def plan(self, fleet: Fleet, launch: Launch) -> Plan:
        hosts = [host for host in targets(fleet) if str(host) not in launch.skip]
        fleet = replace(fleet, cache=fleet.cache or launch.cache)
        notes = [f"with {env.CACHE}={fleet.cache}"] if fleet.cache else []
        if launch.variables:
            notes.append(f"variables that go along: {', '.join(sorted(launch.variables))}")
        commands = tuple(_words(fleet, launch, host) for host in hosts for _ in range(fleet.workers))
        return Plan(fleet, commands, tuple(notes), launch.variables, launch.wheels, workers=len(commands))

    def start(self, plan: Plan) -> Sequence[WorkerInfo]:
        def start(host: Target) -> Workers:
            words = _own(host, plan.commands)
            if not words:
                return []
            wheels = self._bring(plan.fleet, host, plan.wheels.get(str(host), ()))
            told = json.dumps({"commands": words, "variables": dict(plan.variables)}).encode()
            return _workers(host, self._ask(plan.fleet, host, "start", told, wheels=wheels))

        return self._of_all(plan.fleet, start)

    def list(self, fleet: Fleet) -> Sequence[WorkerInfo]:
        return self._of_all(fleet, lambda host: _workers(host, self._ask(fleet, host, "list")))

    def stop(self, fleet: Fleet, *, now: bool = False) -> Sequence[WorkerInfo]:
        return self._of_all(fleet, lambda host: _workers(host, self._ask(fleet, host, "stop", now=now)))

    def logs(self, worker: WorkerInfo) -> bytes:
        """Asked over the channel by which the worker was started or listed."""
        for (target, _), channel in self._channels.items():
            if str(target) == worker.host:
                try:
                    return channel.ask("logs", timeout=ANSWER, path=worker.detail).body
                except (Cut, HostError):
                    return b""
        return b""

    def survey(self, fleet: Fleet, question: Question) -> Sequence[MachineInfo]:
        hosts = targets(fleet)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return list(pool.map(lambda host: self._survey_one(fleet, host, question), hosts))

    def _survey_one(self, fleet: Fleet, host: Target, question: Question) -> MachineInfo:
        try:
            facts = self._ask(fleet, host, "facts", path=question.path).header
            unreached = ""
            if question.store:
                wheels = self._bring(fleet, host, question.wheels.get(str(host), ()))
                body = json.dumps(dict(question.variables)).encode()
                reached = self._ask(fleet, host, "reach", body, store=question.store, wheels=wheels)
                unreached = reached.header["unreached"]
        except HostError as error:
            return MachineInfo(str(host), error.message, error.hint)
        return MachineInfo(
            host=str(host),
            python=facts["python"],
            platform=tuple(facts["platform"]),
            cpus=facts["cpus"],
            gpus=tuple(facts["gpus"]),
            sees=facts["sees"],
            unreached=unreached,
        )

    def _bring(self, fleet: Fleet, host: Target, files: Sequence[str]) -> Sequence[str]:
        """Send what the machine has not got; the names by which it knows them."""
        names = []
        for file in files:
            data = Path(file).read_bytes()
            name = sha_of(data)
            if not self._ask(fleet, host, "has-wheel", sha=name).header["has"]:
                self._ask(fleet, host, "wheel", data, sha=name)
            names.append(name)
        return names

    def _of_all(self, fleet: Fleet, act: Callable[[Target], Workers]) -> Workers:
        """What all machines answered, those that did not as workers that are not alive."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            found = list(pool.map(lambda host: _or_why(host, act), targets(fleet)))
        return [worker for workers in found for worker in workers]

    def _ask(self, fleet: Fleet, host: Target, op: str, body: bytes = b"", **fields: Any) -> Frame:
        """Over the machine's channel; once more over a new one if it was cut before."""
        name = f"{fleet.scope}/{fleet.name}" if fleet.scope else fleet.name
        for fresh in (False, True):
            channel = self._channel(host, fleet.cache)
            try:
                return channel.ask(op, body, timeout=ANSWER, fleet=name, **fields)
            except Cut as error:
                if fresh or op == "start":  # what was started may run: it is not started twice
                    raise HostUnreachable(f"{host} cannot be reached: {error}", "is it up?") from error
        raise AssertionError("unreachable")

    def _channel(self, host: Target, cache: str | None) -> Channel:
        found = self._channels.get((host, cache))
        if found is None or not found.is_open:
            found = self._channels[host, cache] = self._open(host, cache)
        return found

    def _open(self, host: Target, cache: str | None) -> Channel:
        """One that was down a moment ago is not waited for again: commands ask several times."""
        since, error = self._down.get(host, (0.0, None))
        if error is not None and time.monotonic() - since < DOWN_FOR:
            raise error
        try:
            return open_channel(Connection(host, connect=settings.timing().connect), AGENT, {}, cache=cache)
        except HostError as met:
            self._down[host] = (time.monotonic(), met)
            raise


def targets(fleet: Fleet) -> list[Target]:
    """The machines of a fleet; each once."""
    given = fleet.options
    more = {name: given.get(name) for name in ("user", "port", "key", "jump")}
    hosts = [parse(text, **more) for text in given["hosts"]]
    twice = next((host for host in hosts if hosts.count(host) > 1), None)
    if twice is not None:
        raise UsageError(
            f"fleet {fleet.name}: {twice} is named twice", hint="`workers: 2` starts two on each"
        )
    return hosts


def _prefix(host: Target) -> tuple[str, ...]:
    return ("ssh", *host.options, host.host)


def _own(host: Target, commands: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The words that are for this machine, as it is to run them."""
    begin = (*_prefix(host), PYTHON)
    return [words[len(begin) - 1 :] for words in commands if words[: len(begin)] == begin]


def _words(fleet: Fleet, launch: Launch, host: Target) -> tuple[str, ...]:
    words = [PYTHON, "-m", "hostler.worker", launch.folders.get(str(host), launch.store)]
    words += [word for sweep in launch.sweeps for word in ("--sweep", sweep)]
    if fleet.slots is not None:
        words += ["--slots", str(fleet.slots)]
    if fleet.runs_per_worker is not None:
        words += ["--runs", str(fleet.runs_per_worker)]
    return (*_prefix(host), *words)


def _workers(host: Target, answer: Frame) -> Workers:
    found = [WorkerInfo(**worker) for worker in answer.header["workers"]]
    return [replace(worker, id=f"{host}/{worker.id}", host=str(host)) for worker in found]


def _or_why(host: Target, act: Callable[[Target], Workers]) -> Workers:
    try:
        return act(host)
    except HostError as error:
        return [WorkerInfo(str(host), str(host), False, str(error))]
