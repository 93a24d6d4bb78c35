"""A tracked object: takes its state for a checkpoint, and gives it back.

Anything with `state_dict` and `load_state_dict`; random generators; a plain DataLoader (`loader.py`), or
one that Accelerate has prepared (`loader_ahead.py`). A state
that does not fit says which keys are missing, which are too many, and which have another shape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from hostler.errors import UsageError
from hostler.sdk import loader, loader_ahead
from hostler.sdk.checkpoint import rng, torch_state
from hostler.sdk.loader import Boundaries, LoaderPosition

SHOWN = 8  # keys of each kind in a message


class TrackedObject(Protocol):
    copies: bool  # whether `load` copies tensors out of what it is given

    def state(self) -> Any: ...

    def load(self, state: Any) -> None: ...

    def close(self) -> None:
        """The object is nobody's any more."""


def tracked(name: str, value: Any, boundaries: Boundaries, resumed: Callable[[], bool]) -> TrackedObject:
    """The way to save this object; UsageError if it cannot be saved."""
    if isinstance(value, type):
        raise UsageError(
            f"{name} cannot be tracked: it is the class {value.__qualname__}", hint="track an instance of it"
        )
    if rng.is_generator(value):
        return _Generator(value)
    if loader_ahead.is_ahead(value):
        known = loader.position_of(value)
        return _Borrowed(known) if known else loader_ahead.AheadPosition(name, value, boundaries, resumed)
    if callable(getattr(value, "state_dict", None)) and callable(getattr(value, "load_state_dict", None)):
        return _Stateful(name, value)
    if loader.is_loader(value):
        known = loader.position_of(value)
        return _Borrowed(known) if known else LoaderPosition(name, value, boundaries, resumed)
    raise UsageError(
        f"{name} cannot be tracked: {type(value).__qualname__} has no state_dict and load_state_dict",
        hint="give its class both, or leave it out",
    )


class _Borrowed:
    """A loader whose place somebody else counts: that of a run, for its best checkpoint."""

    copies = False

    def __init__(self, position: LoaderPosition) -> None:
        self._position = position

    def state(self) -> Any:
        return self._position.state()

    def load(self, state: Any) -> None:
        self._position.load(state)

    def close(self) -> None:
        pass


class _Generator:
    copies = False

    def __init__(self, generator: Any) -> None:
        self._generator = generator

    def state(self) -> Any:
        return rng.state_of(self._generator)

    def load(self, state: Any) -> None:
        rng.set_state(self._generator, state)

    def close(self) -> None:
        pass


class _Stateful:
    def __init__(self, name: str, value: Any) -> None:
        self._name, self._value = name, value
        torch = torch_state.module()
        self.copies = torch is not None and isinstance(value, torch.nn.Module)

    def state(self) -> Any:
        return self._value.state_dict()

    def load(self, state: Any) -> None:
        if self.copies:
            text = differences(self._value.state_dict(), state)
            if text:
                raise self._other(text)
        try:
            self._value.load_state_dict(state)
        except (ValueError, KeyError, RuntimeError, TypeError, AttributeError) as error:
            raise self._other(f"{type(error).__name__}: {error}") from error

    def close(self) -> None:
        pass

    def _other(self, said: str) -> UsageError:
        return UsageError(
            f"the checkpoint does not fit {self._name}: {said}",
            hint='resume="never" starts anew and keeps the checkpoint',
        )


def differences(wanted: Mapping[str, Any], given: Mapping[str, Any]) -> str:
    """In one line, how two states of a model differ in keys and shapes; '' if they do not."""
    missing = [key for key in wanted if key not in given]
    extra = [key for key in given if key not in wanted]
    shapes = [
        f"{key} is {_shape(given[key])} in the checkpoint and {_shape(wanted[key])} here"
        for key in wanted
        if key in given and _shape(wanted[key]) != _shape(given[key])
    ]
    rows = (("missing", missing), ("unexpected", extra), ("shapes differ:", shapes))
    return "; ".join(f"{head} {_few(names)}" for head, names in rows if names)


def _shape(value: Any) -> tuple[int, ...] | None:
    shape = getattr(value, "shape", None)
    return tuple(shape) if shape is not None else None


def _few(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
