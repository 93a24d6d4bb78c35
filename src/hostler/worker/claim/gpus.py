"""GPUs that a worker may use: those the site shows it, less those that other programs use.

Pure over what the driver said. CUDA_VISIBLE_DEVICES is read as CUDA reads it: in its order, up to the first
entry that means nothing. Devices are named by UUID, which means the same in whatever order they are
counted.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from hostler.attempt.nvml import GPU

FLOOR = 500_000_000  # bytes in use by others below which a GPU counts as free


def visible(gpus: Sequence[GPU], value: str | None) -> list[GPU]:
    """The devices CUDA would show for this value of CUDA_VISIBLE_DEVICES; None: unset."""
    if value is None:
        return [device for gpu in gpus for device in _devices(gpu)]
    found: list[GPU] = []
    for entry in value.split(","):
        device = _named(gpus, entry.strip())
        if device is None or device.uuid in {one.uuid for one in found}:
            break
        found.append(device)
    return found


def strangers(gpu: GPU, own_pids: Collection[int], floor: int = FLOOR) -> str:
    """Why the GPU is left alone: someone else's processes are on it; empty if none are."""
    others = [(pid, used) for pid, used in gpu.processes if pid not in own_pids]
    used = sum(amount for _, amount in others)
    if used > floor:
        names = ", ".join(str(pid) for pid, amount in others if amount)
        return f"GPU {gpu.index} ({gpu.uuid}) is left alone: {used / 1e9:.1f} GB in use by process {names}"
    if not gpu.processes and not own_pids and gpu.memory_used > floor:
        return f"GPU {gpu.index} ({gpu.uuid}) is left alone: {gpu.memory_used / 1e9:.1f} GB in use by someone"
    return ""


def _named(gpus: Sequence[GPU], entry: str) -> GPU | None:
    if entry.startswith("MIG-"):
        return _slice(gpus, entry)
    if entry.isdigit():
        return gpus[int(entry)] if int(entry) < len(gpus) else None
    matching = [gpu for gpu in gpus if gpu.uuid.startswith(entry)] if entry.startswith("GPU-") else []
    return matching[0] if len(matching) == 1 else None


def _devices(gpu: GPU) -> list[GPU]:
    return [_slice([gpu], name) for name in gpu.mig] or [gpu]


def _slice(gpus: Sequence[GPU], name: str) -> GPU:
    """A MIG slice as a device of its own; its memory is not known, its parent may not be either."""
    parent = next((gpu for gpu in gpus if name in gpu.mig), None)
    return GPU(
        index=parent.index if parent else -1, uuid=name, name=f"{parent.name} MIG" if parent else "MIG"
    )
