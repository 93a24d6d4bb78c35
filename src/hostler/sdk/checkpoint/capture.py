"""Splits a training's state into a JSON tree and the tensors it refers to, and rebuilds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hostler.errors import DamagedError
from hostler.sdk.checkpoint import numpy_state, safetensors
from hostler.sdk.checkpoint.numpy_state import NumpyState
from hostler.sdk.checkpoint.safetensors import Found, Plan
from hostler.sdk.checkpoint.torch_state import TorchState, TorchValues
from hostler.sdk.checkpoint.typed import LEFT_OUT, TAG, Encoder, Json, Keys, Lost, decode, path_of


@dataclass(frozen=True)
class Captured:
    tree: Mapping[str, Json]
    plan: Plan
    lost: list[Lost]
    cuda: bool  # whether some tensors are on a GPU


class Capture:
    """Takes in one section after another; tensors are copied later, all at once."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._torch, self._numpy = TorchState(self._name), NumpyState(self._name)
        self._encoder = Encoder(self._foreign)
        self._tree: dict[str, Json] = {}

    def add(self, section: str, values: Mapping[str, Any], *, under: Keys = ()) -> None:
        """The values of a section; `under` is what their paths begin with."""
        made = {name: self._encoder.encode(value, (*under, name)) for name, value in values.items()}
        self._tree[section] = {name: item for name, item in made.items() if item is not LEFT_OUT}

    @staticmethod
    def plain(value: Any) -> Json:
        """A value without tensors; what cannot be kept of it is left out."""
        made = Encoder(lambda item, keys: str(item)).encode(value)
        return None if made is LEFT_OUT else made

    def close(self) -> Captured:
        self._torch.close()
        plan = safetensors.plan([*self._torch.slots, *self._numpy.slots])
        return Captured(self._tree, plan, self._encoder.lost, self._torch.cuda)

    def _foreign(self, value: Any, keys: Keys) -> Json:
        made = self._torch.encode(value, keys)
        return self._numpy.encode(value, keys) if made is LEFT_OUT else made

    def _name(self, keys: Keys) -> str:
        """A tensor's name in the file: its path, and no other's."""
        base = path_of(keys)
        name, n = base, 1
        while name in self._names or name == "__metadata__":
            n += 1
            name = f"{base}~{n}"
        self._names.add(name)
        return name


def rebuild(made: Json, tensors: Mapping[str, Found], *, share: bool = False) -> Any:
    """The value again. `share`: its tensors are views of the file, for whoever copies them out at once."""
    readers: list[TorchValues] = []
    memo: dict[str, Any] = {}

    def known(item: Mapping[str, Any]) -> Any:
        tag = str(item[TAG])
        try:
            if tag.startswith("np."):
                return numpy_state.read(item, tensors, memo)
            if tag.startswith("torch."):
                if not readers:
                    readers.append(TorchValues(tensors, share=share))
                return readers[0].read(item)
        except KeyError as error:
            raise DamagedError(f"a tensor is missing: {error}") from None
        raise DamagedError(f"a value of the unknown type {tag!r}")

    return decode(made, known)
