"""Workers as job arrays of a batch scheduler that is spoken to by commands: what its dialects share.

A dialect says the differences: the words that submit an array, the queue as rows, the words that end a task.
Nothing is remembered here: which jobs are a fleet's is written in their names. The script is the same for
all: it sends what it prints to the launch's logs, notes when its time is over, and becomes the worker.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from hostler import env
from hostler.backends.arrays import NAMED, Array, arrays, mark, with_vault, worker
from hostler.backends.base import (
    Capabilities,
    Launch,
    MachineInfo,
    PartlyStarted,
    Plan,
    Question,
    WorkerInfo,
)
from hostler.backends.privatefile import PrivateContent
from hostler.backends.terminal import Here, Ran, Terminal
from hostler.errors import MachineError
from hostler.spec.formats import private
from hostler.spec.job import Resources
from hostler.spec.names import slug
from hostler.spec.project import Fleet

CAPABILITIES = Capabilities(restarts=True, shares_disk=True, shared=True, tells=True)
WAITS, RUNS, LEAVES = "waits", "runs", "is ending"
AGAIN = 99  # exit code of a worker that its scheduler should start again, where it goes by that
PREVIOUS = "PREVIOUS"  # in a plan: the id of the job before
ARGUMENTS = 1000  # tasks that are named in one command

Run = Callable[..., Ran]


@dataclass(frozen=True)
class Task:
    """A row of a queue: a task, or all tasks of an array that still wait."""

    id: str  # as the scheduler's own commands take it
    job: str  # the array's, as `start` returned it
    name: str
    state: str  # WAITS, RUNS or LEAVES
    words: str  # for people
    host: str = ""
    count: int = 1


class Dialect(Protocol):
    name: str  # of the platform, and of its hosts
    submits: str  # the program without which there is nothing
    hint: str  # what shows a person the site
    task: str  # number of a job and its task, in the words of a shell
    refusals: Sequence[tuple[str, str]]  # pattern in a complaint → what to do
    nothing: str  # pattern of a complaint that only says that no such job is there

    def submit(self, fleet: Fleet, launch: Launch, array: Array) -> list[str]:
        """Words that submit an array whose script comes on standard input. Pure."""

    def after(self, job: str) -> list[str]:
        """Words that have an array wait for another one. Pure."""

    def job_id(self, out: str) -> str | None:
        """The id of the job that was submitted; None if it does not say. Pure."""

    def queue(self, run: Run, user: str) -> list[Task]:
        """All tasks of a user that wait or run, in as few questions as possible."""

    def ending(self, task: Task, *, now: bool) -> list[str]:
        """Words that end a task, or all that waits of an array: at once, or so that it saves. Pure."""


@dataclass
class SchedulerBackend:
    dialect: Dialect
    terminal: Terminal = field(default_factory=Here)
    capabilities: Capabilities = CAPABILITIES

    def plan(self, fleet: Fleet, launch: Launch) -> Plan:
        launch = with_keys(launch)
        if launch.secrets or launch.keys:
            launch = with_vault(fleet, launch, str(env.cache_dir()))
        every = arrays(fleet, launch.runs) * int(fleet.options.get("chain") or 1)
        commands = [
            [*self.dialect.submit(fleet, launch, array), *(self.dialect.after(PREVIOUS) if n else [])]
            for n, array in enumerate(every)
        ]
        several = f"{len(every)} arrays, one after the other; {PREVIOUS} is the id of the one before"
        return Plan(
            fleet,
            tuple(tuple(words) for words in commands),
            (several,) if len(every) > 1 else (),
            script=script(self.dialect, fleet, launch, every[0]),
            workers=every[0].at_once,
            launch=launch,
        )

    def start(self, plan: Plan) -> Sequence[WorkerInfo]:
        launch = plan.launch or Launch("")
        if launch.logs:
            self.terminal.make(launch.logs)
        kept = PrivateContent(launch.secrets, launch.keys)
        if kept:
            self._forget_secrets(plan.fleet)
            self.terminal.keep(launch.vault.rpartition("/")[2], kept)
        try:
            return self._submit(plan, launch)
        except PartlyStarted:
            raise
        except MachineError:
            if kept:
                self._forget_secrets(plan.fleet)
            raise

    def list(self, fleet: Fleet) -> Sequence[WorkerInfo]:
        return [_info(fleet, task) for task in self._tasks(fleet)]

    def stop(self, fleet: Fleet, *, now: bool = False) -> Sequence[WorkerInfo]:
        tasks = self._tasks(fleet)
        for words in _together(
            [self.dialect.ending(task, now=now) for task in tasks if task.state != LEAVES]
        ):
            self._run(words)  # a task may have ended meanwhile: what it says then is no news
        if not any(task.state == RUNS for task in tasks):
            self.terminal.forget(mark(fleet))
        return [_info(fleet, task) for task in tasks]

    def logs(self, worker: WorkerInfo) -> bytes:
        if not worker.log:
            return b""
        each = 'for f in "$1"*.log; do [ -f "$f" ] && cat -- "$f"; done'
        return self.terminal.run(["sh", "-c", each, "sh", worker.log]).out.encode()

    def survey(self, fleet: Fleet, question: Question) -> Sequence[MachineInfo]:
        """Nothing, as the scheduler chooses the machines; a machine without one is named with its problem."""
        if self.terminal.has(self.dialect.submits):
            return ()
        return [MachineInfo(self.terminal.place, *self._absent(self.dialect.submits))]

    def _submit(self, plan: Plan, launch: Launch) -> Sequence[WorkerInfo]:
        started = list[WorkerInfo]()
        every = arrays(plan.fleet, launch.runs) * int(plan.fleet.options.get("chain") or 1)
        for command, array in zip(plan.commands, every, strict=True):
            words = [word.replace(PREVIOUS, started[-1].id) if started else word for word in command]
            ran = self._run(words, plan.script, launch)
            job = self.dialect.job_id(ran.out) if ran.code == 0 else None
            if job is None:
                raise self._refused(ran, started)
            log = f"{launch.logs}/{_number(job)}_" if launch.logs else ""
            started.append(WorkerInfo(job, plan.fleet.name, True, "submitted", array.tasks, log))
        return started

    def _refused(self, ran: Ran, started: Sequence[WorkerInfo]) -> MachineError:
        text = "; ".join(line.strip() for line in (ran.err or ran.out).splitlines() if line.strip())[-300:]
        message = f"{self.dialect.submits} refused: {text or f'exit {ran.code}'}"
        known = (todo for pattern, todo in self.dialect.refusals if re.search(pattern, text, re.IGNORECASE))
        hint = next(known, f"its manual has its options, and `options` adds some; {self.dialect.hint}")
        if not started:
            return MachineError(message, hint)
        ids = [worker_info.id for worker_info in started]
        return PartlyStarted(
            f"{message}; queued before that: {', '.join(ids)}", hint, tuple(started), lambda: self._undo(ids)
        )

    def _undo(self, ids: Sequence[str]) -> None:
        whole = [Task(job, job, "", WAITS, "") for job in ids]
        for words in _together([self.dialect.ending(task, now=True) for task in whole]):
            self._run(words)

    def _tasks(self, fleet: Fleet) -> Sequence[Task]:
        tasks = self.dialect.queue(self._asked, self.terminal.run(["id", "-un"]).out.strip())
        return [task for task in tasks if sweeps_of(fleet, task.name) is not None]

    def _forget_secrets(self, fleet: Fleet) -> None:
        if not self._tasks(fleet):
            self.terminal.forget(mark(fleet))

    def _asked(self, words: Sequence[str]) -> Ran:
        """The answer to a question about the queue."""
        ran = self._run(words)
        text = (ran.err or ran.out).strip()[-300:]
        if ran.code and not re.search(self.dialect.nothing, text, re.IGNORECASE):
            raise MachineError(f"{words[0]} failed: {text}", self.dialect.hint)
        return ran

    def _run(self, words: Sequence[str], given: str = "", launch: Launch | None = None) -> Ran:
        """Run a command of the scheduler without any secret, declared or not: it writes the environment down
        with the job, for everybody to read."""
        launch = launch or Launch("")
        hidden = [*launch.secrets, *launch.keys, *undeclared(env.bare())]
        ran = self.terminal.run(words, given, launch.plain, without=hidden)
        if ran.code == 127:
            raise MachineError(*self._absent(words[0]))
        return ran

    def _absent(self, program: str) -> tuple[str, str]:
        return f"{program} was not found {self.terminal.place}", "run this on the cluster's login node"


def name_of(fleet: Fleet, launch: Launch) -> str:
    """A job's name: its sweeps, which people look for, then its fleet. No scheduler takes a `:` or a first
    digit; too many sweeps are not written down."""
    sweeps = ",".join(launch.sweeps)
    return f"h.{sweeps if len(sweeps) <= NAMED // 10 else ''}~{_own(fleet)}"


def with_keys(launch: Launch) -> Launch:
    """The same with the variables that open its bucket, if it has one: they go into the file of secrets."""
    found = env.credentials(launch.store.partition("://")[0])
    return replace(launch, variables={**found, **launch.variables}) if found else launch


def undeclared(environment: Mapping[str, str]) -> list[str]:
    """Variables that by their names, or by the form of their values, are secrets. Pure."""
    return [
        name
        for name, value in environment.items()
        if name != "PWD"  # a folder
        and (private.is_variable(name) or private.is_secret(name, value) or private.has_shape(value))
    ]


def sweeps_of(fleet: Fleet, name: str) -> tuple[str, ...] | None:
    """Sweeps that a job of the fleet serves, () for all; None for a job that is not the fleet's."""
    sweeps, _, own = name.partition("~")
    if own != _own(fleet) or not sweeps.startswith("h."):
        return None
    return tuple(filter(None, sweeps.removeprefix("h.").split(",")))


def script(dialect: Dialect, fleet: Fleet, launch: Launch, array: Array) -> str:
    """The script of a task."""
    lines = ["#!/bin/bash"]
    if launch.logs:  # by the shell, as schedulers read patterns, lists and hosts into a path
        lines += [f'exec >>{shlex.quote(launch.logs)}/"{dialect.task}.log" 2>&1']
    lines += fleet.options.get("header", ())
    if fleet.options.get("time"):
        lines += [f"export {env.JOB_ENDS}=$(($(date +%s) + {int(fleet.options['time'])}))"]
    cache = fleet.cache or launch.cache
    lines += [f"export {env.CACHE}={shlex.quote(cache)}"] if cache else []
    return "\n".join([*lines, f"exec {shlex.join(worker(fleet, launch, array, dialect.name))}", ""])


def asked(fleet: Fleet, launch: Launch) -> Resources:
    """Resources of one task: the fleet's own, or those of the runs."""
    return fleet.resources or launch.resources


def gpus(asked: Resources) -> int:
    """Whole GPUs of one task."""
    return (math.ceil(asked.gpus) or 1) if asked.gpus or asked.gpu_memory else 0


def requeues(fleet: Fleet) -> bool:
    return bool(fleet.options.get("requeue", True)) and not fleet.options.get("chain")


def _own(fleet: Fleet) -> str:
    return f"{slug(fleet.scope or 'project', 60)}~{slug(fleet.name, 40)}"


def _number(job: str) -> str:
    return (re.match(r"\d+", job) or [job])[0]


def _together(commands: Sequence[list[str]]) -> list[list[str]]:
    """The same commands, those that differ in their last word alone as one."""
    groups = dict[tuple[str, ...], list[str]]()
    for words in commands:
        groups.setdefault(tuple(words[:-1]), []).append(words[-1])
    return [
        [*first, *last[n : n + ARGUMENTS]]
        for first, last in groups.items()
        for n in range(0, len(last), ARGUMENTS)
    ]


def _info(fleet: Fleet, task: Task) -> WorkerInfo:
    sweeps = sweeps_of(fleet, task.name) or ()
    detail = f"waits: {task.words}" if task.state == WAITS else task.words
    return WorkerInfo(task.id, task.host, True, detail, task.count, launch=task.job, sweeps=sweeps)
