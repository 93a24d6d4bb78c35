"""Processes that all their runs have left, kept for the next group that would start the same.

The same: one sweep, one config but for what may differ in a group, the same code, packages and variables,
and so the same devices. A process is kept only if each of its runs has left it by itself. It says when it
waits (`waits.json` in a folder of its own) and is then given the next group (`next.json`); one that says
nothing has ended, or is ended. A kept process has the devices that it had: they are nobody else's until it
goes (`devices`), and it goes as soon as another run begins, or none is there for it (`end`).
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from hostler import env as environment
from hostler.attempt.nvml import GPU
from hostler.attempt.usage import Usage
from hostler.errors import HostlerError
from hostler.frozen import dataclass as frozen
from hostler.records.run import handoff
from hostler.records.run.handoff import NEXT, WAITS
from hostler.spec import together
from hostler.spec.job import Job, source_facts
from hostler.worker.claim.slots import Placement
from hostler.worker.process.process import Exit, Process

PATIENCE = 10.0  # seconds in which a process that all have left has to say that it waits
LOOK = 0.02
Start = Callable[..., Process]


@frozen(frozen=True)
class Kind:
    """Groups of one kind may follow each other in a process. `devices`: those of its place."""

    facts: Hashable
    devices: frozenset[str]


def kind_of(job: Job, index: int, placement: Placement) -> Kind | None:
    """None where each group has a new process: somebody asked for that, or memory is limited or measured, and
    what a process has taken is not given back."""
    if job.warm is not True or job.auto or job.resources.memory is not None:
        return None
    source = tuple(sorted(source_facts(job.source).items()))
    facts = job.name, together.key_of(job, index), repr(source), repr((job.setup, job.data)), job.cwd
    return Kind(facts, frozenset(placement.devices))


class GroupProcess(Process):
    """A process as one of its groups sees it: its times begin with the group."""

    def __init__(self, process: Process, home: Path, kind: Kind, same: Hashable, *, begins: bool) -> None:
        """`same`: equal for groups that would start the same. `begins`: this group is its first."""
        self.process, self.home, self.kind, self.same = process, home, kind, same
        self.pid, self.group = process.pid, process.group
        self.supervisor, self.supervisor_start = process.supervisor, process.supervisor_start
        self._begins, self._begun = begins, time.monotonic()
        self._spent = 0.0 if begins else process.use(tuple, None).cpu_seconds
        self._left: Exit | None = None

    def let_go(self) -> None:
        """All runs of this group have left it: to them it has ended."""
        self._left = Exit(code=0)

    def poll(self) -> Exit | None:
        return self._left or self._of_group(self.process.poll())

    def steady(self) -> bool:
        return self.process.steady()

    def use(self, gpus: Callable[[], Sequence[GPU]], limit: int | None) -> Usage:
        use = self.process.use(gpus, limit)
        return replace(use, cpu_seconds=max(0.0, use.cpu_seconds - self._spent))

    def wait(self, timeout: float | None = None) -> Exit | None:
        return self._left or self._of_group(self.process.wait(timeout))

    def signal(self, number: int) -> bool:
        return self._left is None and self.process.signal(number)

    def kill(self) -> Exit | None:
        return self._left or self._of_group(self.process.kill())

    def close(self) -> None:
        if self._left is None:
            self.process.close()
            shutil.rmtree(self.home, ignore_errors=True)

    def _of_group(self, ended: Exit | None) -> Exit | None:
        if ended is None or self._begins:
            return ended
        spent = max(0.0, ended.cpu_seconds - self._spent)
        return replace(ended, cpu_seconds=spent, seconds=time.monotonic() - self._begun)


@dataclass
class KeptProcesses:
    """All methods may be called from several threads. `folder`: of the folders of these processes."""

    folder: Path
    start: Start
    stamps: Callable[[str], Hashable] = lambda exe: None  # changes as something is installed for a Python
    wanted: bool = field(default_factory=environment.warm)
    patience: float = PATIENCE
    _waiting: list[GroupProcess] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _count: int = 0
    _closed: bool = False

    @property
    def devices(self) -> frozenset[str]:
        """Devices on which a process waits."""
        with self._lock:
            return frozenset().union(*(one.kind.devices for one in self._waiting))

    def begin(
        self,
        kind: Kind | None,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        folder: Path,
        log: Path,
        exe: str = "",
    ) -> Process:
        """Like Process.start, for a group of this kind, from what its first run is given; None: no other
        follows it. `exe`: its Python."""
        same = self._same(kind, env, exe)
        if kind is None or same is None:
            return self.start(argv, cwd=cwd, env=env, folder=folder, log=log)
        found = self._taken(same)
        if found is not None and self._waits(found):
            given = {"seats": env[environment.SEATS], "log": str(log)}
            handoff.write(found.home / NEXT, given)
            return GroupProcess(found.process, found.home, kind, same, begins=False)
        home = self._home()
        process = self.start(argv, cwd=cwd, env={**env, environment.KEPT: str(home)}, folder=home, log=log)
        return GroupProcess(process, home, kind, same, begins=True)

    def keep(self, process: Process) -> None:
        """All of its runs have left it by themselves."""
        if not isinstance(process, GroupProcess):
            process.close()
            return
        kept = GroupProcess(process.process, process.home, process.kind, process.same, begins=True)
        process.let_go()
        with self._lock:
            if not self._closed:
                self._waiting.append(kept)
                return
        kept.close()

    def end(self, but: Kind | None = None) -> None:
        """End those that wait, but those of this kind, wherever they are."""
        with self._lock:
            gone = [one for one in self._waiting if but is None or one.kind.facts != but.facts]
            self._waiting = [one for one in self._waiting if one not in gone]
        for process in gone:
            process.close()

    def close(self) -> None:
        self._closed = True
        self.end()

    def _same(self, kind: Kind | None, env: Mapping[str, str], exe: str) -> Hashable | None:
        """Equal for groups that would start the same; None: nobody can tell, or nobody wants to know."""
        if kind is None or not self.wanted:
            return None
        try:
            return kind, self.stamps(exe), frozenset(environment.apart(env).items())
        except (HostlerError, OSError):  # a Python that does not answer may not be the one that is used
            return None

    def _taken(self, same: Hashable) -> GroupProcess | None:
        with self._lock:
            found = next((one for one in self._waiting if one.same == same), None)
            if found is not None:
                self._waiting.remove(found)
            return found

    def _waits(self, kept: GroupProcess) -> bool:
        """Whether it is there for more, and is the very process that was started: what others are around it
        ends with them. One that does not is gone."""
        until = time.monotonic() + self.patience
        while kept.wait(0.0) is None and time.monotonic() < until:
            said = handoff.read(kept.home / WAITS)
            if said is not None and said.get("pid") == kept.pid:
                return True
            kept.wait(LOOK)
        kept.close()
        return False

    def _home(self) -> Path:
        with self._lock:
            self._count += 1
            home = self.folder / f"kept-{self._count}"
        home.mkdir(parents=True, exist_ok=True)
        return home
