"""PyTorch's values in a checkpoint: tensors by storage, so that tied ones are one tensor and stay it.

torch is used only if the script has imported it. Tensors that overlap in memory are written as one block
and come back as views of it. Types that other readers of safetensors do not know are written as bytes.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any, Final

from hostler.errors import DamagedError
from hostler.sdk.checkpoint.safetensors import StoredTensor, TensorSlot
from hostler.sdk.checkpoint.typed import LEFT_OUT, TAG, Json, Keys

NAMES: Final = {
    "float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "int64": "I64", "int32": "I32",
    "int16": "I16", "int8": "I8", "uint8": "U8", "uint16": "U16", "uint32": "U32", "uint64": "U64",
    "bool": "BOOL", "complex64": "C64", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2",
    "float8_e8m0fnu": "F8_E8M0",
}  # fmt: skip


def module() -> Any:
    """torch, if the script has imported it; else None."""
    found = sys.modules.get("torch")
    return found if found is not None and hasattr(found, "Tensor") else None


@dataclass
class _TensorUse:
    """A tensor somewhere in the state, and the JSON that will say where it is."""

    tensor: Any
    storage: tuple[str, int]
    name: str
    made: dict[str, Json]

    @property
    def span(self) -> tuple[int, int]:
        """Its bytes in its storage."""
        t, width = self.tensor, self.tensor.element_size()
        if t.numel() == 0:
            return (0, 0)
        last = sum((n - 1) * abs(s) for n, s in zip(t.shape, t.stride(), strict=True))
        return (t.storage_offset() * width, (t.storage_offset() + last + 1) * width)


class TorchState:
    """Encodes tensors into slots; `close` decides, once all are known, which of them share memory."""

    def __init__(self, name: Callable[[Keys], str]) -> None:
        self._torch = module()
        self._name = name
        self._uses: dict[tuple[Any, ...], _TensorUse] = {}
        self.slots: list[TensorSlot] = []
        self.cuda = False

    def encode(self, value: Any, keys: Keys) -> Json:
        torch = self._torch
        if torch is None:
            return LEFT_OUT
        if isinstance(value, torch.Tensor):
            return self._tensor(value, keys)
        if type(value) is torch.Size:
            return {TAG: "torch.Size", "v": list(value)}
        if isinstance(value, (torch.dtype, torch.memory_format, torch.layout)):
            return {TAG: "torch.name", "v": str(value).removeprefix("torch.")}
        if isinstance(value, torch.device):
            return {TAG: "torch.device", "v": str(value)}
        return LEFT_OUT

    def close(self) -> None:
        by_storage: dict[Any, list[_TensorUse]] = {}
        for use in self._uses.values():
            by_storage.setdefault(use.storage, []).append(use)
        for uses in by_storage.values():
            for group in _overlapping(uses) if len(uses) > 1 else [uses]:
                if len(group) == 1:
                    self._alone(group[0])
                else:
                    self._together(group)

    def _tensor(self, value: Any, keys: Keys) -> Json:
        torch = self._torch
        plain = type(value) in (torch.Tensor, torch.nn.Parameter) and not value.is_quantized
        if not plain or value.layout is not torch.strided or value.device.type == "meta":
            return LEFT_OUT
        kind = type(value).__name__
        tensor = value.detach().resolve_conj().resolve_neg()
        whose = id(value) if tensor.numel() == 0 else 0
        device = _device_name(tensor.device)
        storage = (device, tensor.untyped_storage().data_ptr())
        place = (storage, tensor.storage_offset(), whose)
        key = (*place, tensor.shape, tensor.stride(), tensor.dtype, kind)
        if key not in self._uses:
            made: dict[str, Json] = {TAG: "torch.tensor", "device": device}
            if kind == "Parameter":
                made["parameter"] = True
            if value.requires_grad:
                made["grad"] = True
            self.cuda = self.cuda or tensor.device.type == "cuda"
            self._uses[key] = _TensorUse(tensor, storage, self._name(keys), made)
        return self._uses[key].made

    def _alone(self, use: _TensorUse) -> None:
        use.made["name"] = use.name
        self._add(use.tensor, use)

    def _together(self, group: list[_TensorUse]) -> None:
        """Lay all out in one block of bytes, each at its own place."""
        torch, first = self._torch, group[0]
        begin, end = min(u.span[0] for u in group) // 16 * 16, max(u.span[1] for u in group)
        block = torch.empty(0, dtype=torch.uint8, device=first.tensor.device)
        block.set_(first.tensor.untyped_storage(), begin, (end - begin,))
        for use in group:
            t = use.tensor
            use.made["name"] = first.name
            use.made["view"] = {
                "dtype": _dtype_name(t.dtype),
                "offset": t.storage_offset() * t.element_size() - begin,
                "shape": list(t.shape),
                "stride": list(t.stride()),
            }
        copy = lambda to: _copy(torch, block, to)  # noqa: E731
        self.slots.append(
            TensorSlot(first.name, "U8", (end - begin,), copy, _address(block), _on_device(block))
        )

    def _add(self, tensor: Any, use: _TensorUse) -> None:
        torch, name = self._torch, _dtype_name(tensor.dtype)
        shape = tuple(tensor.shape)
        if name not in NAMES:
            use.made.update(dtype=name, shape=list(shape))
            shape = (tensor.numel() * tensor.element_size(),)
        copy = lambda to: _copy(torch, tensor, to)  # noqa: E731
        kind = NAMES.get(name, "U8")
        self.slots.append(TensorSlot(use.name, kind, shape, copy, _address(tensor), _on_device(tensor)))


class TorchValues:
    """Reads tensors back. `share`: as views of the file, for whoever copies them out at once."""

    def __init__(self, tensors: Mapping[str, StoredTensor], *, share: bool) -> None:
        self._torch: Any = import_module("torch")  # whoever saved such a value had it
        self._tensors, self._share = tensors, share
        self._memo: dict[str, Any] = {}

    def read(self, made: Mapping[str, Any]) -> Any:
        torch = self._torch
        if made[TAG] == "torch.Size":
            return torch.Size(made["v"])
        if made[TAG] == "torch.device":
            return torch.device(made["v"])
        if made[TAG] == "torch.name" and made["v"].isidentifier():
            return getattr(torch, made["v"])
        if made[TAG] != "torch.tensor":
            raise DamagedError(f"a value of the unknown type {made[TAG]!r}")
        return self._tensor(made)

    def _tensor(self, made: Mapping[str, Any]) -> Any:
        key = f"{made['name']} {made.get('view')} {made.get('parameter')}"
        if key not in self._memo:
            tensor = self._view(made) if "view" in made else self._whole(made)
            if made.get("parameter"):
                tensor = self._torch.nn.Parameter(tensor, requires_grad=False)
            self._memo[key] = tensor.requires_grad_() if made.get("grad") else tensor
        return self._memo[key]

    def _whole(self, made: Mapping[str, Any]) -> Any:
        tensor = self._tensors[made["name"]]
        native = {value: key for key, value in NAMES.items()}
        dtype = getattr(self._torch, made.get("dtype") or native[tensor.dtype])
        return self._placed(self._bytes(tensor), made).view(dtype).reshape(made.get("shape", tensor.shape))

    def _view(self, made: Mapping[str, Any]) -> Any:
        torch, view = self._torch, made["view"]
        block_key = f"{made['name']} block"
        if block_key not in self._memo:
            self._memo[block_key] = self._placed(self._bytes(self._tensors[made["name"]]), made)
        block, dtype = self._memo[block_key], getattr(torch, view["dtype"])
        tensor = torch.empty(0, dtype=dtype, device=block.device)
        offset = (block.storage_offset() + view["offset"]) // tensor.element_size()
        return tensor.set_(block.untyped_storage(), offset, view["shape"], view["stride"])

    def _bytes(self, found: StoredTensor) -> Any:
        torch = self._torch
        if not found.data.nbytes:
            return torch.empty(0, dtype=torch.uint8)
        flat = torch.frombuffer(found.data, dtype=torch.uint8)
        return flat if self._share and flat.data_ptr() % 16 == 0 else flat.clone()

    def _placed(self, tensor: Any, made: Mapping[str, Any]) -> Any:
        """On the device it was on, where there is such a one; whoever copies it out takes it from here."""
        device = self._torch.device(made["device"])
        if self._share or device.type == "cpu" or not _available(self._torch, device):
            return tensor
        return tensor.to(device)


def pinned(size: int) -> memoryview:
    """Host memory that a GPU copies to without a detour."""
    torch = module()
    block = torch.empty(max(size, 1), dtype=torch.uint8, pin_memory=True)
    array = (ctypes.c_char * block.numel()).from_address(block.data_ptr())
    array._owner = block  # the view lives as long as its memory
    return memoryview(array).cast("B")[:size]


# Tensors of a GPU on their way to host memory.
#
# They are copied on the device first, where there is room: the next step waits for that alone, which takes a
# hundredth of the time. The way to the host goes on a stream of its own.

SPARE: Final = 1 << 30  # bytes of a state that are copied on its device first
ROOM: Final = 16  # and at most one part in as many of the device's free memory
WIDEST: Final = 16  # bytes of a number

Placed = tuple[Any, int]  # a tensor, and its place in the data
_sides: dict[Any, Any] = {}  # device → stream to the host


def begin(placed: Sequence[Placed], data: memoryview) -> Callable[[], None]:
    """Begins to copy tensors of GPUs into pinned memory; steps that follow may change them at once. The
    function returned waits for the copies, in whatever thread it is called."""
    torch = module()
    by_device: dict[Any, list[Placed]] = {}
    for tensor, at in placed:
        by_device.setdefault(tensor.device, []).append((tensor, at))
    events = []
    for device, some in by_device.items():
        with torch.cuda.device(device):
            stream = _begin_on(torch, device, some, data)
            event = torch.cuda.Event(blocking=True)
            event.record(stream)
            events.append(event)

    def wait() -> None:
        for event in events:
            event.synchronize()

    return wait


def _begin_on(torch: Any, device: Any, placed: Sequence[Placed], data: memoryview) -> Any:
    """The stream on which the copies end."""
    spare = _spare(torch, device, sum(_bytes(tensor) + WIDEST for tensor, _ in placed))
    current = torch.cuda.current_stream()
    if spare is None:
        for tensor, at in placed:
            _copy(torch, tensor, data[at : at + _bytes(tensor)])
        return current
    runs = copied_aside(spare, placed)
    if device not in _sides:
        _sides[device] = torch.cuda.Stream(device)
    side = _sides[device]
    side.wait_stream(current)
    with torch.cuda.stream(side):
        for begin, at, size in runs:
            _copy(torch, spare[begin : begin + size], data[at : at + size])
    spare.record_stream(side)  # given back once it has gone out
    return side


def copied_aside(spare: Any, placed: Sequence[Placed]) -> list[tuple[int, int, int]]:
    """Every tensor into the spare block, in the order of the data. Returns the pieces that go out at once:
    place in the block, place in the data, bytes."""
    torch = module()
    runs: list[tuple[int, int, int]] = []
    copies: dict[Any, tuple[list[Any], list[Any]]] = {}
    used = 0
    for tensor, at in sorted(placed, key=lambda one: one[1]):
        size = _bytes(tensor)
        if not size:
            continue
        hole = -used % tensor.element_size()  # a type may lie at multiples of its width alone
        used += hole
        targets, sources = copies.setdefault(tensor.dtype, ([], []))
        targets.append(spare[used : used + size].view(tensor.dtype).view(tensor.shape))
        sources.append(tensor)
        if runs and sum(runs[-1][1:]) == at and not hole:
            runs[-1] = (runs[-1][0], runs[-1][1], runs[-1][2] + size)
        else:
            runs.append((used, at, size))
        used += size
    for targets, sources in copies.values():
        torch._foreach_copy_(targets, sources)
    return runs


def _spare(torch: Any, device: Any, size: int) -> Any:
    """Memory on the device for a copy of everything; None if there is little."""
    if not 0 < size <= min(SPARE, torch.cuda.mem_get_info(device)[0] // ROOM):
        return None
    try:
        return torch.empty(size, dtype=torch.uint8, device=device)
    except torch.cuda.OutOfMemoryError:  # a process may have less than the device
        return None


def _bytes(tensor: Any) -> int:
    return int(tensor.numel() * tensor.element_size())


def _copy(torch: Any, tensor: Any, to: memoryview) -> None:
    if tensor.numel() == 0:
        return
    target = torch.frombuffer(to, dtype=torch.uint8).view(tensor.dtype).view(tensor.shape)
    target.copy_(tensor, non_blocking=True)


def _address(tensor: Any) -> int | None:
    if tensor.device.type != "cpu" or not tensor.is_contiguous():
        return None
    return int(tensor.data_ptr())


def _on_device(tensor: Any) -> Any:
    return tensor if tensor.device.type == "cuda" else None


@lru_cache(maxsize=64)
def _device_name(device: Any) -> str:
    """There are thousands of tensors, and few devices."""
    return str(device)


@lru_cache(maxsize=64)
def _dtype_name(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def _overlapping(uses: list[_TensorUse]) -> list[list[_TensorUse]]:
    """Group tensors whose bytes overlap; empty ones stay alone."""
    groups: list[list[_TensorUse]] = []
    reach = -1
    for use in sorted(uses, key=lambda u: u.span):
        begin, end = use.span
        if begin < end and groups and begin < reach:
            groups[-1].append(use)
        else:
            groups.append([use])
        reach = max(reach, end)
    return groups


def _available(torch: Any, device: Any) -> bool:
    if device.type != "cuda":
        return False
    return bool(torch.cuda.is_available() and (device.index or 0) < torch.cuda.device_count())
