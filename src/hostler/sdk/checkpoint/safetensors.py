"""The safetensors format, written and read by hand: a length, a JSON header, then the bytes of all tensors.

Its data has no holes. Widest types go first, so that every tensor lies where its type may lie.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from math import prod
from typing import Any, Final

from hostler.errors import DamagedError
from hostler.frozen import dataclass

WIDTHS: Final = {
    "F64": 8, "I64": 8, "U64": 8, "C64": 8, "F32": 4, "I32": 4, "U32": 4, "F16": 2, "BF16": 2, "I16": 2,
    "U16": 2, "I8": 1, "U8": 1, "BOOL": 1, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1,
}  # fmt: skip
ALIGN: Final = 4096  # of the first tensor's byte in the file: a page
HEADER_MAX: Final = 100_000_000


@dataclass(frozen=True)
class TensorSlot:
    """A tensor to write: its size, and the function that copies its bytes into place."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    copy: Callable[[memoryview], None] = field(repr=False)
    address: int | None = None  # where its bytes lie in host memory, in order and without holes
    on_device: Any = field(default=None, repr=False)  # the tensor, if it lies on a GPU

    @cached_property
    def size(self) -> int:
        return prod(self.shape) * WIDTHS[self.dtype]


@dataclass(frozen=True)
class TensorLayout:
    """The place of each tensor in the file."""

    slots: Sequence[tuple[TensorSlot, int]]  # with its place in the data
    size: int  # of the data

    @property
    def header(self) -> bytes:
        """The file's first bytes. Whoever writes the file makes them: the training does not wait for it."""
        rows: dict[str, Any] = {"__metadata__": {"format": "pt"}}  # what other readers look for
        for slot, at in self.slots:
            offsets = [at, at + slot.size]
            rows[slot.name] = {"dtype": slot.dtype, "shape": list(slot.shape), "data_offsets": offsets}
        text = json.dumps(rows, separators=(",", ":")).encode()
        text += b" " * (-(len(text) + 8) % ALIGN)
        return len(text).to_bytes(8, "little") + text


@dataclass(frozen=True)
class StoredTensor:
    """A tensor found in a file."""

    dtype: str
    shape: tuple[int, ...]
    data: memoryview = field(repr=False)


def plan(slots: Sequence[TensorSlot]) -> TensorLayout:
    placed, at = [], 0
    for slot in sorted(slots, key=lambda slot: -WIDTHS[slot.dtype]):
        placed.append((slot, at))
        at += slot.size
    return TensorLayout(placed, at)


def parse(file: memoryview) -> Mapping[str, StoredTensor]:
    """Every tensor of a whole file, as views of it."""
    length = int.from_bytes(file[:8], "little")
    if len(file) < 8 or length > min(HEADER_MAX, len(file) - 8):
        raise DamagedError("the tensor file has no header")
    try:
        rows = json.loads(bytes(file[8 : 8 + length]))
        data = file[8 + length :]
        return {name: _found(row, data) for name, row in rows.items() if name != "__metadata__"}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedError(f"the header of the tensor file cannot be read: {error}") from None


def _found(row: Mapping[str, Any], data: memoryview) -> StoredTensor:
    begin, end = row["data_offsets"]
    shape = tuple(row["shape"])
    if not 0 <= begin <= end <= len(data) or prod(shape) * WIDTHS[row["dtype"]] != end - begin:
        raise ValueError("a tensor lies outside the file")
    return StoredTensor(row["dtype"], shape, data[begin:end])
