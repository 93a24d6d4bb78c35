"""The local folder between a worker and the process of a run: the only way the two speak.

params.json      the parameters                              worker → process
stop.json        a stop request with its reason              worker → process
joined.json      the process uses the library                process → worker
chosen.json      parameters that the process chose itself    process → worker
best.json        values whose state it keeps as the best     process → worker
early.json       why it ended before it was through          process → worker
finished.json    finish() was called, with the summary       process → worker
left.json        it ended itself without finish: diverged      process → worker
seat.json        it has left a process that it shared          process → worker
metrics.bin      packed points, appended                     process → worker
output.log       what it printed                             process → worker
script.json      whose folder it is: store, run, process     script by hand → readers
attempt.json     whose folder it is: run, attempt, session   worker → the next worker on this machine
files.json       files of work/ before the process began     worker → the next worker on this machine
rested.json      its checkpoint files that are complete      saver → whoever delivers what a killed one left
process.json     who runs, exit.json how it ended, if it lasts  supervisor → worker
checkpoint/ output/ data/ work/                              the run's own folders
root/work/                                                   in place of work/, where data lies beside it

A process that several runs share has a folder of its own for the time between two groups of them:

waits.json       it waits for other runs                     process → worker
next.json        the file that names them, and their log     worker → process
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from hostler.frozen import dataclass
from hostler.spec import scalars
from hostler.spec.names import WORK

WAITS, NEXT = "waits.json", "next.json"


@dataclass(frozen=True)
class Handoff:
    folder: Path
    neighbours: bool = False  # data lies beside the working folder

    @cached_property
    def params(self) -> Path:
        return self.folder / "params.json"

    @cached_property
    def stop(self) -> Path:
        return self.folder / "stop.json"

    @cached_property
    def joined(self) -> Path:
        return self.folder / "joined.json"

    @cached_property
    def chosen(self) -> Path:
        return self.folder / "chosen.json"

    @cached_property
    def best(self) -> Path:
        return self.folder / "best.json"

    @cached_property
    def early(self) -> Path:
        return self.folder / "early.json"

    @cached_property
    def atomic(self) -> Path:
        return self.folder / "atomic.json"

    @cached_property
    def finished(self) -> Path:
        return self.folder / "finished.json"

    @cached_property
    def left(self) -> Path:
        return self.folder / "left.json"

    @cached_property
    def seat(self) -> Path:
        return self.folder / "seat.json"

    @cached_property
    def metrics(self) -> Path:
        return self.folder / "metrics.bin"

    @cached_property
    def script(self) -> Path:
        return self.folder / "script.json"

    @cached_property
    def attempt(self) -> Path:
        return self.folder / "attempt.json"

    @cached_property
    def files(self) -> Path:
        return self.folder / "files.json"

    @cached_property
    def rested(self) -> Path:
        return self.folder / "rested.json"

    @cached_property
    def log(self) -> Path:
        return self.folder / "output.log"

    @cached_property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    @cached_property
    def output(self) -> Path:
        return self.folder / "output"

    @cached_property
    def data(self) -> Path:
        return self.folder / "data"

    @cached_property
    def work(self) -> Path:
        return self.folder / "root" / WORK if self.neighbours else self.folder / WORK

    def make(self, params: Mapping[str, Any], *, again: bool = False) -> None:
        """`again`: it has its folders, and nobody reads the parameters that are in it."""
        text = scalars.for_yaml(json.dumps(dict(params), default=str))
        if again:
            with open(self.params, "wb", buffering=0) as file:
                file.write(text.encode())
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        for folder in (self.checkpoint, self.output):
            folder.mkdir(exist_ok=True)
        _put(self.params, text)

    def request_stop(self, reason: str) -> None:
        write(self.stop, {"reason": reason})


def write(path: Path | str, value: Any) -> None:
    """Whole or not at all: a reader never sees half of it."""
    _put(path, json.dumps(value, default=str))


def _put(path: Path | str, text: str) -> None:
    folder, name = os.path.split(path)
    temporary = f"{folder}/.{name}.{os.getpid()}"
    try:
        with open(temporary, "wb", buffering=0) as file:
            file.write(text.encode())
        os.replace(temporary, path)
    except OSError:  # a full or broken disk: nobody else would remove it
        with suppress(OSError):
            os.unlink(temporary)
        raise


def read(path: Path) -> dict[str, Any] | None:
    """The content of a file; None if it is not there. Most are not, of most runs: that costs one call."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        with open(file, "rb") as content:
            found = json.loads(content.read())
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
