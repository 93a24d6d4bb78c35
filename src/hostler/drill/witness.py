"""Runs inside a drilled script: records its state at each line it prints and each step it takes.

One JSON line per sight, written at once, so that SIGKILL loses none. Only the process that Python started
is watched, none that it forks. It knows a script's own generators, optimisers and schedulers by where the
script made them.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.abc
import importlib.util
import io
import json
import os
import random
import re
import sys
import weakref
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from hostler import env
from hostler.drill import fingerprint
from hostler.drill.fingerprint import Marks

MOST = 200_000  # sights of one process
_FLOAT = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?%?|\bnan\b|\binf\b", re.IGNORECASE)
_STEP = re.compile(r'"(step|global_step|iteration|iter|epoch)"\s*:\s*(\d+)')


def begin() -> None:
    """Watch this process from here on."""
    place = env.drill_record()
    if place is None:
        return
    file = os.open(place, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    witness = Witness(file)
    sys.stdout, sys.stderr = witness.watched(sys.stdout), witness.watched(sys.stderr)
    sys.__stdout__, sys.__stderr__ = sys.stdout, sys.stderr  # type: ignore[misc]
    sys.addaudithook(witness.audit)
    watch_random(witness)
    after = {
        "numpy.random": watch_numpy,
        "torch": watch_torch,
        "hostler.sdk.run": watch_run,
        "hostler.sdk.checkpoint.policy": hurry,
    }
    finder = AfterImport({name: functools.partial(act, witness) for name, act in after.items()})
    sys.meta_path.insert(0, finder)


def position(line: str) -> str:
    """The part of a printed line that tells the script's position: all but the measured numbers."""
    match = _STEP.search(line)
    if match and line.lstrip().startswith("{"):
        return f"{match[1]} {match[2]}"
    return _FLOAT.sub(lambda n: n[0] if n[0].lstrip("+-").isdigit() else "#", line.strip())[:200]


class Witness:
    """Objects made by the script, and the file to which sights are written."""

    def __init__(self, file: int) -> None:
        self._file, self._pid, self._count = file, os.getpid(), 0
        self._folder = env.checkpoint_dir() or ""
        self._opened: set[str] = set()
        self._busy = False
        self.generators: dict[str, Callable[[], Any]] = {}
        self.stateful: dict[str, Callable[[], Any]] = {}
        self.optimizers: dict[str, Callable[[], Any]] = {}

    def see(self, kind: str, key: str, *, weights: bool = False) -> None:
        """Write down what the process carries now. Never raises: the script is not the witness's."""
        if self._busy or os.getpid() != self._pid or self._count >= MOST:
            return
        self._busy = True
        try:
            self._count += 1
            self._write({"kind": kind, "key": key, "marks": self._marks(weights)})
        except Exception as error:  # a library of another version: one sight less
            self._write({"kind": "problem", "key": repr(error)[:200], "marks": {}})
        finally:
            self._busy = False

    def watched(self, stream: Any) -> Any:
        """The same stream, each of whose lines is a sight."""
        if not isinstance(stream, io.TextIOWrapper):
            return stream
        form = {
            "encoding": stream.encoding,
            "errors": stream.errors,
            "line_buffering": stream.line_buffering,
            "write_through": stream.write_through,
        }
        return _WitnessedOutput(stream.detach(), form, lambda line: self.see("line", position(line)))

    def audit(self, event: str, values: tuple[Any, ...]) -> None:
        """Record files of the checkpoint folder that are read."""
        if event != "open" or self._busy or not self._folder or os.getpid() != self._pid:
            return
        path, flags = values[0], values[2] if len(values) > 2 else 0
        if not isinstance(path, (str, bytes)) or not isinstance(flags, int) or flags & os.O_ACCMODE:
            return
        name = os.path.abspath(os.fsdecode(path))
        if name.startswith(self._folder + os.sep) and name not in self._opened:
            self._opened.add(name)
            self._write({"kind": "open", "key": name[len(self._folder) + 1 :], "marks": {}})

    def _marks(self, weights: bool) -> Marks:
        marks = fingerprint.global_random()
        for label, get in list(self.generators.items()):
            if (made := get()) is not None:
                marks[f"generator|{label}"] = fingerprint.generator(made)
        if weights:
            for label, get in list(self.optimizers.items()):
                if (made := get()) is not None:
                    marks |= fingerprint.optimizer(label, made)
            for label, get in list(self.stateful.items()):
                if (made := get()) is not None:
                    marks[f"state|{label}"] = fingerprint.stateful(made)
        return marks

    def _write(self, sight: dict[str, Any]) -> None:
        try:
            os.write(self._file, (json.dumps(sight) + "\n").encode())
        except OSError:  # a script may close what it did not open
            pass


class _WitnessedOutput(io.TextIOWrapper):
    def __init__(self, buffer: Any, form: dict[str, Any], saw: Callable[[str], None]) -> None:
        super().__init__(buffer, **form)
        self._saw, self._rest = saw, ""

    def write(self, text: str) -> int:
        count = super().write(text)
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            if any(letter.isdigit() for letter in line):
                self._saw(line)
        self._rest = self._rest[-10_000:]
        return count


class AfterImport(importlib.abc.MetaPathFinder):
    """Calls a function once a module of some name has been imported."""

    def __init__(self, wanted: dict[str, Callable[[ModuleType], None]]) -> None:
        self._wanted, self._asking = wanted, set[str]()

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if fullname not in self._wanted or fullname in self._asking:
            return None
        self._asking.add(fullname)
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._asking.discard(fullname)
        if spec is not None and spec.loader is not None:
            self._follow(spec.loader, self._wanted[fullname])
        return spec

    def _follow(self, loader: Any, act: Callable[[ModuleType], None]) -> None:
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            act(module)

        loader.exec_module = exec_module


def watch_random(witness: Witness) -> None:
    init = random.Random.__init__

    @functools.wraps(init)
    def watched(self: random.Random, *given: Any) -> None:
        init(self, *given)
        if not isinstance(self, random.SystemRandom) and (site := made_at()):
            witness.generators[f"random.Random made at {site}"] = weakref.ref(self)

    random.Random.__init__ = watched  # type: ignore[method-assign, assignment]


def watch_numpy(witness: Witness, numpy_random: ModuleType) -> None:
    """Its generators can't be referred to weakly: the newest of each place is held."""
    make = numpy_random.default_rng

    @functools.wraps(make)
    def watched(*given: Any, **named: Any) -> Any:
        made = make(*given, **named)
        if site := made_at():
            witness.generators[f"NumPy generator made at {site}"] = lambda: made
        return made

    numpy_random.default_rng = watched  # type: ignore[attr-defined]


def watch_torch(witness: Witness, torch: ModuleType) -> None:
    _watch_torch_generators(witness, torch)
    _on_init(torch.optim.Optimizer, "optimizer", witness.optimizers)
    for kind, name in (
        (torch.optim.lr_scheduler.LRScheduler, "scheduler"),
        (torch.optim.lr_scheduler.ReduceLROnPlateau, "scheduler"),
        (torch.amp.GradScaler, "scaler"),
    ):
        _on_init(kind, name, witness.stateful)
    init = torch.optim.Optimizer.__init__

    @functools.wraps(init)
    def hooked(self: Any, *given: Any, **named: Any) -> None:
        init(self, *given, **named)
        self.register_step_pre_hook(lambda *_: witness.see("step", "", weights=True))

    torch.optim.Optimizer.__init__ = hooked


def _watch_torch_generators(witness: Witness, torch: Any) -> None:
    class Generator(torch.Generator):  # type: ignore[misc]
        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__()
            if site := made_at():
                witness.generators[f"torch.Generator made at {site}"] = weakref.ref(self)

    torch.Generator = Generator


def _on_init(kind: Any, name: str, into: dict[str, Callable[[], Any]]) -> None:
    init = kind.__init__

    @functools.wraps(init)
    def watched(self: Any, *given: Any, **named: Any) -> None:
        init(self, *given, **named)
        site = made_at()
        into[f"{name} made at {site}" if site else name] = weakref.ref(self)

    kind.__init__ = watched


def watch_run(witness: Witness, module: ModuleType) -> None:
    """A script that uses the library: each log is a sight."""
    log = module.Run.log

    @functools.wraps(log)
    def watched(self: Any, *given: Any, **named: Any) -> Any:
        result = log(self, *given, **named)
        witness.see("line", f"step {named.get('step', self.step)}")
        return result

    module.Run.log = watched


def hurry(witness: Witness, module: ModuleType) -> None:
    """Make the library save often enough for a training of seconds, where it chooses the interval."""
    init = module.Schedule.__init__

    @functools.wraps(init)
    def hurried(self: Any, policy: Any, *given: Any, **named: Any) -> None:
        every = min(policy.least, env.drill_every())
        init(self, dataclasses.replace(policy, least=every, most=every), *given, **named)

    module.Schedule.__init__ = hurried


def made_at() -> str:
    """File and line of the script's own code that led here; empty if only libraries did, or an import."""
    here = str(Path.cwd())
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith("<frozen importlib"):
            return ""
        if name.startswith(here) and os.sep + "site-packages" + os.sep not in name:
            return f"{os.path.relpath(name, here)}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return ""
