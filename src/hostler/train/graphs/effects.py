"""Effects of a step in Python: what a model or a loss counts, prints, draws or keeps beside its tensors.

A recorded step does all of that once, when it is recorded. So steps of a user's model are watched first.
"""

from __future__ import annotations

import logging
import random
import sys
import threading
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch

from hostler.train.custom import MODULE
from hostler.train.models.normal import Centred

DEEP, LONG = 4, 1000  # how deep values are looked into, and how many of one
_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_INTERNAL = frozenset(vars(torch.nn.Module()))
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def hooks(model: torch.nn.Module) -> str:
    """The first hook that is not the trainer's own, in words; '' if there is none."""
    for name, module in model.named_modules():
        own = [one for kind in _HOOKS for one in getattr(module, kind).values()]
        if any(not isinstance(one, Centred) for one in own):
            return f"{f'layer {name}' if name else 'the model'} has a hook"
    for name, parameter in model.named_parameters():
        if parameter._backward_hooks or getattr(parameter, "_post_accumulate_grad_hooks", None):
            return f"{name} has a hook"
    return ""


class EffectWatch:
    """A context around steps in their usual course; `found` says afterwards what they did in Python."""

    def __init__(self, model: torch.nn.Module, loss: object = None) -> None:
        self._model, self._loss = model, loss
        self.found = ""

    def __enter__(self) -> EffectWatch:
        self._written = False
        self._thread = threading.get_ident()
        self._streams = sys.stdout, sys.stderr
        self._factory = logging.getLogRecordFactory()
        sys.stdout, sys.stderr = (_Tee(stream, self) for stream in self._streams)
        logging.setLogRecordFactory(self._record)
        self._values, self._chance = self._look(), _chance()
        return self

    def __exit__(self, *_: object) -> None:
        sys.stdout, sys.stderr = self._streams
        logging.setLogRecordFactory(self._factory)
        values = self._look()
        changed = [name for name in {**self._values, **values} if not _alike(self._values, values, name)]
        if self._written:
            self.found = "it prints or logs"
        elif _chance() != self._chance:
            self.found = "it draws random numbers on the host"
        elif changed:
            self.found = f"it changes {changed[0]} in Python"

    def _look(self) -> dict[str, Any]:
        """Name → value of everything that a step could change in Python."""
        known = {id(tensor) for tensor in [*self._model.parameters(), *self._model.buffers()]}
        record: dict[str, Any] = {}
        for name, module in self._model.named_modules():
            own = {key: value for key, value in vars(module).items() if key not in _INTERNAL}
            for key, value in own.items():
                record[f"{name}.{key}".lstrip(".")] = _seen(value, known, DEEP)
        record["the loss"] = _seen(self._loss, known, DEEP)
        for name, module in [*sys.modules.items()]:
            if name.startswith(MODULE):
                record.update(_of_module(name, module, known))
        return record

    def _record(self, *given: Any, **named: Any) -> logging.LogRecord:
        made = self._factory(*given, **named)
        if threading.get_ident() == self._thread and not made.name.startswith("torch"):
            self._written = True
        return made

    def wrote(self) -> None:
        if threading.get_ident() == self._thread and sys._getframe(2).f_globals["__name__"] != "warnings":
            self._written = True


class _Tee:
    """A stream that tells when it is written to."""

    def __init__(self, stream: Any, watch: EffectWatch) -> None:
        self._stream, self._watch = stream, watch

    def write(self, text: str) -> Any:
        self._watch.wrote()
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _of_module(name: str, module: types.ModuleType, known: set[int]) -> Iterator[tuple[str, Any]]:
    """Global values of a user's file, and those of its classes."""
    for key, value in [*vars(module).items()]:
        if key.startswith("__"):
            continue
        shown = f"{name.removeprefix(MODULE)}.py:{key}"
        if isinstance(value, type) and value.__module__ == name:
            for inner, one in [*vars(value).items()]:
                if not inner.startswith("__") and not callable(one):
                    yield f"{shown}.{inner}", _seen(one, known, DEEP)
        elif not isinstance(value, (type, types.ModuleType, torch.nn.Module)):
            yield shown, _seen(value, known, DEEP)


class _Tensor:
    """A tensor that is neither a weight nor a buffer: which, and how often it was written to."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor = tensor  # held, so that no other takes its place in memory
        self._version = 0 if tensor.is_inference() else tensor._version

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Tensor) and (self._tensor is other._tensor, self._version) == (
            True,
            other._version,
        )

    __hash__ = None  # type: ignore[assignment]


def _seen(value: Any, known: set[int], deep: int) -> Any:
    """A picture of a value that can be compared with a later one."""
    if isinstance(value, _PLAIN):
        return repr(value)  # a NaN is like itself
    if isinstance(value, torch.Tensor):
        return "a weight" if id(value) in known else _Tensor(value)
    if deep == 0 or isinstance(value, (torch.nn.Module, types.ModuleType, type)):
        return id(value)
    if isinstance(value, Mapping):
        return {repr(key): _seen(one, known, deep - 1) for key, one in _some(value.items())}
    if isinstance(value, (list, tuple, set, frozenset)) or type(value).__name__ == "deque":
        return len(value), [_seen(one, known, deep - 1) for one in _some(value)]
    if isinstance(value, types.FunctionType):
        cells = [one.cell_contents for one in value.__closure__ or () if _is_filled(one)]
        return id(value), [_seen(cell, known, deep - 1) for cell in cells]
    if isinstance(value, types.MethodType):
        return _seen(value.__self__, known, deep - 1)
    if isinstance(value, random.Random):
        return hash(value.getstate())
    if type(value).__module__ == "numpy" and hasattr(value, "tobytes"):
        return hash(value.tobytes())
    return id(value), {key: _seen(one, known, deep - 1) for key, one in _some(_parts(value).items())}


def _parts(value: Any) -> dict[str, Any]:
    return getattr(value, "__dict__", {})


def _is_filled(cell: types.CellType) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True


def _some(values: Iterable[Any]) -> list[Any]:
    return [one for one, _ in zip(list(values), range(LONG), strict=False)]


def _alike(before: Mapping[str, Any], after: Mapping[str, Any], name: str) -> bool:
    return name in before and name in after and bool(before[name] == after[name])


def _chance() -> tuple[Any, ...]:
    """Generators of the host."""
    found: list[Any] = [hash(random.getstate()), torch.get_rng_state().numpy().tobytes()]
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None:
        kind, keys, *rest = numpy.random.get_state()
        found += [kind, keys.tobytes(), *rest]
    return tuple(found)
