"""Workers on machines that have an sshd and Python: no root, nothing installed, nothing left when done.

Each machine is asked over one channel, all machines at a time. One that is down, or won't do, is left out
with the reason, and is asked again at the next launch. `workers` counts for each host.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from hostler import env
from hostler.backends.agents import Agents
from hostler.backends.base import Capabilities, Launch, MachineInfo, Plan, Question, WorkerInfo
from hostler.errors import HostError, UsageError
from hostler.remote.frames import Frame
from hostler.remote.target import SshTarget, parse
from hostler.spec.project import Fleet

Workers = Sequence[WorkerInfo]

PYTHON = "python3"
AT_ONCE = 32


class SshBackend:
    capabilities = Capabilities(restarts=True)

    def __init__(self) -> None:
        self._agents = Agents()

    def plan(self, fleet: Fleet, launch: Launch) -> Plan:
        hosts = [host for host in self.targets(fleet) if str(host) not in launch.skip]
        fleet = replace(fleet, cache=fleet.cache or launch.cache)
        notes = [f"with {env.CACHE}={fleet.cache}"] if fleet.cache else []
        if launch.plain:
            notes.append(f"variables that go along: {', '.join(sorted(launch.plain))}")
        if hidden := sorted({**launch.keys, **launch.secrets}):
            notes.append(f"and in a file that only you can read there: {', '.join(hidden)}")
        commands = tuple(_words(fleet, launch, host) for host in hosts for _ in range(fleet.workers))
        return Plan(
            fleet, commands, tuple(notes), launch.plain, launch.wheels, workers=len(commands), launch=launch
        )

    def start(self, plan: Plan) -> Sequence[WorkerInfo]:
        def start(host: SshTarget) -> Workers:
            words = _own(host, plan.commands)
            if not words:
                return []
            wheels = self._agents.bring(host, plan.wheels.get(str(host), ()), plan.fleet.cache)
            launch = plan.launch or Launch("")
            self._check_store(plan, launch, host)
            kept = {"secrets": dict(launch.secrets), "variables": launch.keys}
            told = json.dumps({"commands": words, "variables": dict(plan.variables), "kept": kept}).encode()
            return _workers(host, self._ask(plan.fleet, host, "start", told, wheels=wheels))

        return self._of_all(plan.fleet, start)

    def list(self, fleet: Fleet) -> Sequence[WorkerInfo]:
        return self._of_all(fleet, lambda host: _workers(host, self._ask(fleet, host, "list")))

    def stop(self, fleet: Fleet, *, now: bool = False) -> Sequence[WorkerInfo]:
        return self._of_all(fleet, lambda host: _workers(host, self._ask(fleet, host, "stop", now=now)))

    def logs(self, worker: WorkerInfo) -> bytes:
        """Asked over the channel by which the worker was started or listed."""
        return self._agents.log(worker.host, worker.detail)

    def survey(self, fleet: Fleet, question: Question) -> Sequence[MachineInfo]:
        hosts = self.targets(fleet)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return list(pool.map(lambda host: self._agents.survey(host, question, fleet.cache), hosts))

    def targets(self, fleet: Fleet) -> Sequence[SshTarget]:
        values = fleet.options
        more = {name: values.get(name) for name in ("user", "port", "key", "jump")}
        hosts = [parse(text, **more) for text in values["hosts"]]
        twice = next((host for host in hosts if hosts.count(host) > 1), None)
        if twice is not None:
            raise UsageError(
                f"fleet {fleet.name}: {twice} is named twice", hint="`workers: 2` starts two on each"
            )
        return hosts

    def _check_store(self, plan: Plan, launch: Launch, host: SshTarget) -> None:
        """A host whose workers could not use the store gets none; of a folder it was asked before."""
        if "://" not in launch.folders.get(str(host), launch.store):
            return
        question = Question(store=launch.store, variables=launch.variables, wheels=plan.wheels)
        if why := self._agents.unreached(host, question, plan.fleet.cache):
            raise HostError(f"{host} cannot use the store: {why}", hint=f"hostler doctor asks {host} again")

    def _of_all(self, fleet: Fleet, act: Callable[[SshTarget], Workers]) -> Workers:
        """Answers of all machines, those that did not answer as workers that are not alive."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            infoses = list(pool.map(lambda host: _or_why(host, act), self.targets(fleet)))
        return [worker for workers in infoses for worker in workers]

    def _ask(self, fleet: Fleet, host: SshTarget, op: str, body: bytes = b"", **fields: Any) -> Frame:
        """Ask a machine; a start is not asked for twice, as the first may have worked."""
        name = f"{fleet.scope}/{fleet.name}" if fleet.scope else fleet.name
        once = op == "start"
        return self._agents.ask(host, op, body, cache=fleet.cache, once=once, fleet=name, **fields)


def open_backend(fleet: Fleet | None = None) -> SshBackend:
    return SshBackend()


def _prefix(host: SshTarget) -> tuple[str, ...]:
    return ("ssh", *host.options, host.host)


def _own(host: SshTarget, commands: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The words that are for this machine, as it is to run them."""
    begin = (*_prefix(host), PYTHON)
    return [words[len(begin) - 1 :] for words in commands if words[: len(begin)] == begin]


def _words(fleet: Fleet, launch: Launch, host: SshTarget) -> tuple[str, ...]:
    words = [PYTHON, "-m", "hostler.worker", launch.folders.get(str(host), launch.store)]
    words += [word for sweep in launch.sweeps for word in ("--sweep", sweep)]
    if fleet.slots is not None:
        words += ["--slots", str(fleet.slots)]
    if fleet.runs_per_worker is not None:
        words += ["--runs", str(fleet.runs_per_worker)]
    words += launch.terms
    return (*_prefix(host), *words)


def _workers(host: SshTarget, answer: Frame) -> Workers:
    worker_infos = [WorkerInfo(**worker) for worker in answer.header["workers"]]
    return [replace(worker, id=f"{host}/{worker.id}", host=str(host)) for worker in worker_infos]


def _or_why(host: SshTarget, act: Callable[[SshTarget], Workers]) -> Workers:
    try:
        return act(host)
    except HostError as error:
        return [WorkerInfo(str(host), str(host), False, str(error))]
