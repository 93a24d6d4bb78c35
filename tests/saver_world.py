"""A script's checkpoint folder with its saver, on a clock that only the test moves."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hostler.attempt.folder_parts import Declared
from hostler.attempt.folder_watch import FolderWatch
from hostler.attempt.rest import Clocks
from hostler.attempt.saver import Saver, Target
from hostler.records.checkpoint import checkpoints
from hostler.spec.job import Checkpointing
from hostler.store.memory import MemoryStore

SETTLE, EVERY = 2.0, 300.0
RESTED = SETTLE + 0.1  # longer than one write takes


class Scene:
    """A script's checkpoint folder, its saver, and a clock that only the test moves."""

    def __init__(
        self, root: Path, declared: Declared = Declared(), attempt: int = 1, still_max: float = 0.0
    ) -> None:
        self.folder, self.declared, self.steady = root / "checkpoint", declared, True
        self.still_max, self.noted = still_max, dict[str, Any]()
        self.folder.mkdir(exist_ok=True)
        self.now, self.said, self.store = 1_000_000.0, list[str](), MemoryStore()
        self.saver = self.begin(attempt)

    def clock(self) -> float:
        return self.now

    def begin(self, attempt: int, memory: dict[str, Any] | None = None) -> Saver:
        """A saver; `memory`: the notes of one that was killed."""
        self.watch = watch = FolderWatch(
            self.folder,
            Clocks(self.clock, self.clock, lambda seconds: None),
            settle=SETTLE,
            steady=lambda: self.steady,
            say=self.said.append,
            declared=lambda: self.declared,
            still_max=self.still_max,
            memory=memory,
            note=self.noted.update,
        )
        target = Target(self.store, "r", attempt, covered=lambda record: {}, guard=lambda: None)
        return Saver(target, watch, Checkpointing(every=EVERY), say=self.said.append, clock=self.clock)

    def write(self, name: str, text: str) -> None:
        """In place."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (self.now, self.now))

    def replace(self, name: str, text: str) -> None:
        """Beside, then renamed."""
        self.write(f"{name}.tmp", text)
        (self.folder / f"{name}.tmp").replace(self.folder / name)

    def remove(self, name: str) -> None:
        (self.folder / name).unlink()

    def after(self, seconds: float) -> dict[str, str]:
        self.now += seconds
        self.saver.tick()
        return self.saved()

    def killed(self) -> dict[str, str]:
        self.steady = False
        self.saver.final(trusted=False)
        return self.saved()

    def saved(self) -> dict[str, str]:
        """The files that the next attempt would find."""
        target = self.folder.with_name("restored")
        if checkpoints.restore_newest(self.store, "r", target, before=10) is None:
            return {}
        files = (path for path in target.rglob("*") if path.is_file())
        return {str(path.relative_to(target)): path.read_text() for path in files}
