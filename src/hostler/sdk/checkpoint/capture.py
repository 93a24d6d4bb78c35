"""Splits a training's state into a JSON tree and the tensors it refers to, and rebuilds it."""

from __future__ import annotations

import base64
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final

from hostler.errors import DamagedError
from hostler.frozen import dataclass
from hostler.sdk.checkpoint import safetensors
from hostler.sdk.checkpoint.safetensors import StoredTensor, TensorLayout, TensorSlot
from hostler.sdk.checkpoint.torch_state import TorchState, TorchValues
from hostler.sdk.checkpoint.typed import LEFT_OUT, TAG, Encoder, Json, Keys, Unsavable, decode, path_of


@dataclass(frozen=True)
class Captured:
    tree: Mapping[str, Json]
    plan: TensorLayout
    lost: list[Unsavable]
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


def rebuild(made: Json, tensors: Mapping[str, StoredTensor], *, share: bool = False) -> Any:
    """The value again. `share`: its tensors are views of the file, for whoever copies them out at once."""
    readers: list[TorchValues] = []
    memo: dict[str, Any] = {}

    def known(item: Mapping[str, Any]) -> Any:
        tag = str(item[TAG])
        try:
            if tag.startswith("np."):
                return read_numpy(item, tensors, memo)
            if tag.startswith("torch."):
                if not readers:
                    readers.append(TorchValues(tensors, share=share))
                return readers[0].read(item)
        except KeyError as error:
            raise DamagedError(f"a tensor is missing: {error}") from None
        raise DamagedError(f"a value of the unknown type {tag!r}")

    return decode(made, known)


# NumPy's values in a checkpoint: arrays as tensors, scalars and dtypes as typed JSON.
#
# NumPy is never imported here: only if the script has done so can there be a value of its types.


NAMES: Final = {
    "<f8": "F64", "<i8": "I64", "<u8": "U64", "<f4": "F32", "<i4": "I32", "<u4": "U32", "<f2": "F16",
    "<i2": "I16", "<u2": "U16", "|i1": "I8", "|u1": "U8", "|b1": "BOOL", "<c8": "C64",
}  # fmt: skip


class NumpyState:
    """Encodes into slots; an array that occurs twice is written once and is one array again."""

    def __init__(self, name: Callable[[Keys], str]) -> None:
        self._np: Any = sys.modules.get("numpy")
        self._name = name
        self._seen: dict[int, tuple[Any, Json]] = {}
        self.slots: list[TensorSlot] = []

    def encode(self, value: Any, keys: Keys) -> Json:
        np = self._np
        if np is None or not hasattr(np, "ndarray"):
            return LEFT_OUT
        if type(value) is np.ndarray:
            return self._array(value, keys)
        if isinstance(value, np.generic):
            said = _dtype(np, value.dtype)
            raw = base64.b64encode(value.tobytes()).decode()
            return LEFT_OUT if said is LEFT_OUT else {TAG: "np.scalar", "d": said, "v": raw}
        if isinstance(value, np.dtype):
            said = _dtype(np, value)
            return LEFT_OUT if said is LEFT_OUT else {TAG: "np.dtype", "d": said}
        return LEFT_OUT

    def _array(self, value: Any, keys: Keys) -> Json:
        if id(value) in self._seen:
            return self._seen[id(value)][1]
        said = _dtype(self._np, value.dtype)
        if said is LEFT_OUT:
            return LEFT_OUT
        name = self._name(keys)
        made: dict[str, Json] = {TAG: "np.array", "name": name}
        native = NAMES.get(value.dtype.str) if value.dtype.isnative else None
        if native is None or value.dtype.fields:
            native, shape = "U8", (value.size * value.dtype.itemsize,)
            made.update(d=said, shape=list(value.shape))
        else:
            shape = value.shape
        if value.ndim > 1 and value.flags.f_contiguous and not value.flags.c_contiguous:
            made["order"] = "F"
        address = value.ctypes.data if value.flags.c_contiguous else None
        copy = lambda to: _copy(self._np, value, to)  # noqa: E731
        self.slots.append(TensorSlot(name, native, tuple(shape), copy, address))
        self._seen[id(value)] = (value, made)
        return made


def read_numpy(made: Mapping[str, Any], tensors: Mapping[str, StoredTensor], memo: dict[str, Any]) -> Any:
    """The value of a tag that begins with `np.`."""
    np: Any = import_module("numpy")  # whoever saved such a value had it
    if made[TAG] == "np.dtype":
        return _known_dtype(np, made["d"])
    if made[TAG] == "np.scalar":
        dtype = _known_dtype(np, made["d"])
        raw = base64.b64decode(made["v"])
        return np.frombuffer(raw, dtype)[0] if dtype.itemsize else np.zeros((), dtype)[()]
    if made[TAG] != "np.array":
        raise DamagedError(f"a value of the unknown type {made[TAG]!r}")
    name = made["name"]
    if name not in memo:
        memo[name] = _read_array(np, made, tensors[name])
    return memo[name]


def _read_array(np: Any, made: Mapping[str, Any], found: StoredTensor) -> Any:
    native = {value: key for key, value in NAMES.items()}
    dtype = _known_dtype(np, made["d"]) if "d" in made else np.dtype(native[found.dtype])
    shape = tuple(made.get("shape", found.shape))
    flat = np.frombuffer(found.data, dtype) if dtype.itemsize and found.data.nbytes else np.empty(0, dtype)
    array = flat.reshape(shape) if flat.size else np.empty(shape, dtype)
    return array.copy(order=made.get("order", "C"))


def _copy(np: Any, value: Any, to: memoryview) -> None:
    if value.size and value.dtype.itemsize:
        np.frombuffer(to, value.dtype).reshape(value.shape)[...] = value


def _dtype(np: Any, dtype: Any) -> Json:
    """The text of a dtype, if it can be read again."""
    if dtype.hasobject:
        return LEFT_OUT
    for said in (dtype.descr if dtype.fields else dtype.str, dtype.name):
        made = Encoder().encode(said)
        try:
            if _known_dtype(np, made) == dtype:
                return made
        except (TypeError, ValueError):
            continue
    return LEFT_OUT


def _known_dtype(np: Any, said: Json) -> Any:
    return np.dtype(decode(said))
