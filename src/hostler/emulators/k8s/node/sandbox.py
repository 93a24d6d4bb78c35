"""A pod on its node, beyond its object: folders, address, runs of its containers."""

from __future__ import annotations

import shutil
import threading
from dataclasses import dataclass, field
from pathlib import Path

from hostler.emulators.k8s.node.container import Container, Log


@dataclass(frozen=True)
class Waiting:
    """Why a container does not run yet."""

    reason: str
    message: str = ""


@dataclass(frozen=True)
class Verdict:
    """The kubelet's reason for ending a pod."""

    reason: str
    message: str


@dataclass
class Sandbox:
    folder: Path
    address: str
    begins: float  # not before
    logs: threading.Condition
    runs: dict[str, list[Container]] = field(default_factory=dict)
    waiting: dict[str, Waiting] = field(default_factory=dict)
    retry: dict[str, float] = field(default_factory=dict)  # when to try a container again
    pulls: dict[str, int] = field(default_factory=dict)  # how often that failed
    deadline: float | None = None  # of the grace period, once it is asked to end
    verdict: Verdict | None = None

    @property
    def hosts(self) -> Path:
        return self.folder / "hosts"

    def last(self, name: str) -> Container | None:
        runs = self.runs.get(name)
        return runs[-1] if runs else None

    def living(self) -> list[Container]:
        return [run for runs in self.runs.values() for run in runs if run.running]

    def new_log(self) -> Log:
        return Log(self.logs)

    def send(self, number: int) -> None:
        for run in self.living():
            run.send(number)

    def kill(self, reason: str = "") -> None:
        for run in self.living():
            run.kill(reason)

    def discard(self) -> None:
        """No process and no file is left when this returns."""
        for runs in self.runs.values():
            for run in runs:
                run.close()
        shutil.rmtree(self.folder, ignore_errors=True)
