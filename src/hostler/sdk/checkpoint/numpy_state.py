"""NumPy's values in a checkpoint: arrays as tensors, scalars and dtypes as typed JSON.

NumPy is never imported here: only if the script has done so can there be a value of its types.
"""

from __future__ import annotations

import base64
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final

from hostler.errors import DamagedError
from hostler.sdk.checkpoint.safetensors import Found, Slot
from hostler.sdk.checkpoint.typed import LEFT_OUT, TAG, Encoder, Json, Keys, decode

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
        self.slots: list[Slot] = []

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
        self.slots.append(Slot(name, native, tuple(shape), copy, address))
        self._seen[id(value)] = (value, made)
        return made


def read(made: Mapping[str, Any], tensors: Mapping[str, Found], memo: dict[str, Any]) -> Any:
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


def _read_array(np: Any, made: Mapping[str, Any], found: Found) -> Any:
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
