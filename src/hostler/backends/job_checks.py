"""Checks of `hostler doctor` and findings of `hostler init` for schedulers known by their programs."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence

from hostler.backends.doctor import BAD, NONE, OK, WARN, Check, absent, ask
from hostler.backends.fleet_files import Discovery
from hostler.frozen import dataclass
from hostler.spec.project import Fleet

PATIENCE = 2.5  # seconds: a scheduler that is well may be busy
MOST_NAMES = 6


@dataclass(frozen=True)
class Programs:
    name: str  # the platform's
    submits: str
    own: str  # a program that no other scheduler has: two of them have a qsub
    queues: tuple[str, ...]  # prints the names of queues
    pattern: str = r"^(\S+)"  # a queue's name in what it prints

    def checks(self, fleets: Sequence[Fleet]) -> Iterator[Check]:
        wanted = any(fleet.backend == self.name for fleet in fleets)
        if not self.here():
            detail = absent(f"fleets of `backend: {self.name}`, on a login node")
            todo = "go to a login node of the cluster" if wanted else ""
            yield Check(BAD if wanted else NONE, self.name, detail, todo)
            return
        names, problem = self._names()
        if problem:
            detail = f"its programs are here, but it does not answer: {problem}"
            todo = f"try {' '.join(self.queues)}, or ask the site"
            yield Check(
                BAD if wanted else WARN if self._configured(problem) else NONE, self.name, detail, todo
            )
            return
        shown = ", ".join(names[:MOST_NAMES]) + (", …" if len(names) > MOST_NAMES else "")
        yield Check(OK, self.name, f"{self.submits} is here, and answers; queues: {shown or 'none'}")

    def discover(self) -> Discovery | None:
        if not self.here():
            return None
        names, problem = self._names()
        if problem:
            return None  # its programs alone are no cluster
        if not names:
            return Discovery(self.submits, {})
        return Discovery(f"{self.submits}, queue {names[0]}", {"queue": names[0]})

    def here(self) -> bool:
        return shutil.which(self.submits) is not None and shutil.which(self.own) is not None

    def _names(self) -> tuple[list[str], str]:
        answer = ask(self.queues, PATIENCE)
        if answer.code != 0:
            lines = (answer.err.strip() or answer.out.strip()).splitlines()
            return [], lines[-1] if lines else f"exit {answer.code}"
        return re.findall(self.pattern, answer.out, re.MULTILINE), ""

    def _configured(self, problem: str) -> bool:
        """Whether there seems to be a cluster, and not only the programs of one."""
        return "please set the environment variable" not in problem and "act_qmaster" not in problem
