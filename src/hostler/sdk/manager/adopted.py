"""Objects a script never tells its Manager: optimisers, schedulers, scalers, early stopping.

They are found when they are needed: an optimiser with its schedulers just before its first step, which is the
first moment that all of them are sure to be made; a scaler where a loop begins, because its scale must not
change between a loss and its step; an EarlyStopping when it is made. After a resume each is given at that
moment what the checkpoint has for it. They are known again by what they are, and by order among equals.
"""

from __future__ import annotations

import gc
import json
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from hostler.sdk.checkpoint import torch_state
from hostler.sdk.early_stopping import EarlyStopping

State = dict[str, Any]


class Adopted:
    """State of all that was found, as one object that a run can track."""

    def __init__(self, worked: Callable[[], None]) -> None:
        self._worked = worked
        self._models: list[Any] = []
        self._found: dict[str, weakref.ReferenceType[Any]] = {}
        self._pending: State = {}
        self._hook: Any = None
        self._looked = False  # for what came late, since the last one was found

    def watch(self) -> None:
        """From here on, until `close`."""
        EarlyStopping.made = self.take_stopping
        self._watch_steps()

    def close(self) -> None:
        EarlyStopping.made = None
        if self._hook is not None:
            self._hook.remove()
            self._hook = None

    def add_model(self, model: Any) -> None:
        self._models.append(model)
        self._watch_steps()

    def at_loop(self) -> None:
        """A loop begins: the scalers that are there go on."""
        self._watch_steps()
        torch = torch_state.module()
        if torch is not None:
            for scaler in _living(torch.amp.GradScaler):
                self._take(type(scaler).__name__, scaler)

    def _take_late(self) -> None:
        """Track objects made later than usual."""
        self.at_loop()
        for key, ref in list(self._found.items()):
            if key.startswith("optimizer ") and (one := ref()) is not None:
                self._take_schedulers(key, one)

    def take_stopping(self, made: EarlyStopping) -> None:
        self._take(f"EarlyStopping {made.mode}", made)

    def state_dict(self) -> State:
        if not self._looked:
            self._looked = True
            self._take_late()
        living = {key: ref() for key, ref in self._found.items()}
        return {**self._pending, **{key: o.state_dict() for key, o in living.items() if o is not None}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._pending = dict(state)

    def _watch_steps(self) -> None:
        """Needs torch, which a script may import later."""
        module: Any = sys.modules.get("torch.optim.optimizer")
        if self._hook is None and module is not None:
            register = module.register_optimizer_step_pre_hook
            self._hook = register(lambda optimizer, *_: self._before_step(optimizer))

    def _before_step(self, optimizer: Any) -> None:
        self._worked()
        if any(ref() is optimizer for ref in self._found.values()) or not self._is_ours(optimizer):
            return
        key = self._take(f"optimizer {_shape(optimizer)}", optimizer)
        self._take_schedulers(key, optimizer)
        self._looked = False

    def _is_ours(self, optimizer: Any) -> bool:
        """It trains a tracked model, or there is none to tell by."""
        mine = {id(p) for model in self._models for p in _parameters(model)}
        return not mine or any(id(p) in mine for group in optimizer.param_groups for p in group["params"])

    def _take_schedulers(self, key: str, optimizer: Any) -> None:
        torch = torch_state.module()
        kind = torch.optim.lr_scheduler.LRScheduler if torch is not None else ()
        for scheduler in _living(kind):
            if getattr(scheduler, "optimizer", None) is optimizer:
                self._take(f"{type(scheduler).__name__} of {key}", scheduler)

    def _take(self, base: str, one: Any) -> str:
        """Know it from now on, and give it what is there for it; its key."""
        known = next((key for key, ref in self._found.items() if ref() is one), None)
        if known is not None:
            return known
        n, key = 1, base
        while key in self._found:
            n += 1
            key = f"{base} {n}"
        self._found[key] = weakref.ref(one)
        if key in self._pending:
            one.load_state_dict(self._pending.pop(key))
        return key


def _parameters(model: Any) -> Iterable[Any]:
    return model.parameters() if hasattr(model, "parameters") else ()


def _shape(optimizer: Any) -> str:
    """An object's identity, the same in every process: its class and what it trains."""
    groups = [[tuple(p.shape) for p in group["params"]] for group in optimizer.param_groups]
    return f"{type(optimizer).__name__} {groups}"


def _living(kind: Any) -> Iterator[Any]:
    """All objects of a kind, by type alone: asking the objects themselves may run code of theirs."""
    return iter([held for held in gc.get_objects() if issubclass(type(held), kind)])


# Weights as one file that the tools of their library read: torch's own, or an archive of arrays, or JSON.


def write(folder: Path, stem: str, weights: Mapping[str, Any]) -> Path:
    """Whole or not at all; the path it got, whose ending says what it is."""
    folder.mkdir(parents=True, exist_ok=True)
    torch, numpy = torch_state.module(), sys.modules.get("numpy")
    values = list(weights.values())
    if torch is not None and any(isinstance(value, torch.Tensor) for value in values):
        path, save = folder / f"{stem}.pt", torch.save
    elif numpy is not None and values and all(isinstance(value, numpy.ndarray) for value in values):
        path, save = folder / f"{stem}.npz", _arrays
    else:
        path, save = folder / f"{stem}.json", _json
    beside = path.with_name(f".{path.name}")
    with open(beside, "wb") as file:
        save(dict(weights), file)
    beside.replace(path)
    return path


def _arrays(weights: Mapping[str, Any], file: Any) -> None:
    numpy: Any = sys.modules["numpy"]
    numpy.savez(file, **weights)


def _json(weights: Mapping[str, Any], file: Any) -> None:
    file.write(json.dumps(dict(weights), default=_plain).encode())


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)
