"""NVIDIA GPUs, read from the driver's own library through ctypes.

Without a library or driver the list of GPUs is empty, with the reason in `problem`; a value the driver does
not give is left at its default. Nothing else in hostler speaks to the driver.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache

from hostler.frozen import dataclass

LIBRARY = "libnvidia-ml.so.1"
SUCCESS = 0
TEXT = 96  # bytes of the longest name, UUID or version the library returns
UNKNOWN = 2**64 - 1  # memory of a process the driver will not tell


@dataclass(frozen=True)
class GPU:
    """A GPU, or a MIG slice of it; bytes and percent."""

    index: int
    uuid: str
    name: str = ""
    memory_total: int = 0
    memory_used: int = 0
    utilization: int = 0
    processes: tuple[tuple[int, int], ...] = ()  # (pid, bytes); pids are the host's, also inside a container
    mig: tuple[str, ...] = ()  # names of its slices, where it is cut into some


@dataclass(frozen=True)
class GpuSnapshot:
    """All GPUs at one moment, the driver's version, and why there are none."""

    gpus: tuple[GPU, ...] = ()
    driver: str = ""
    problem: str = ""


class _Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class _Memory2(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_uint),
        ("total", ctypes.c_ulonglong),
        ("reserved", ctypes.c_ulonglong),
        ("free", ctypes.c_ulonglong),
        ("used", ctypes.c_ulonglong),
    ]


class _Utilization(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class _NvmlProcess(ctypes.Structure):
    _fields_ = [
        ("pid", ctypes.c_uint),
        ("used", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    ]


def read() -> GpuSnapshot:
    """Ask the driver for all GPUs now."""
    library, problem = _library()
    if library is None:
        return GpuSnapshot(problem=problem)
    count = ctypes.c_uint()
    _call(library, "nvmlDeviceGetCount_v2", ctypes.byref(count))
    gpus = (_gpu(library, index) for index in range(count.value))
    return GpuSnapshot(
        tuple(gpu for gpu in gpus if gpu is not None), _text(library, "nvmlSystemGetDriverVersion")
    )


def gpus() -> list[GPU]:
    return list(read().gpus)


@lru_cache(maxsize=1)
def _library() -> tuple[ctypes.CDLL | None, str]:
    """The library, initialised once per process (that takes long), or why there is none."""
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError:
        return None, f"no NVIDIA driver ({LIBRARY} not found)"
    code = int(library.nvmlInit_v2())
    if code != SUCCESS:
        library.nvmlErrorString.restype = ctypes.c_char_p
        return (
            None,
            f"the NVIDIA driver does not answer: {library.nvmlErrorString(code).decode(errors='replace')}",
        )
    return library, ""


def _gpu(library: ctypes.CDLL, index: int) -> GPU | None:
    device = ctypes.c_void_p()
    if not _call(library, "nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(device)):
        return None
    use = _Utilization()
    _call(library, "nvmlDeviceGetUtilizationRates", device, ctypes.byref(use))
    total, used = _memory(library, device)
    return GPU(
        index=index,
        uuid=_text(library, "nvmlDeviceGetUUID", device),
        name=_text(library, "nvmlDeviceGetName", device),
        memory_total=total,
        memory_used=used,
        utilization=int(use.gpu),
        processes=_processes(library, device),
        mig=_mig(library, device),
    )


def _memory(library: ctypes.CDLL, device: ctypes.c_void_p) -> tuple[int, int]:
    """Total and used; the newer call does not count what the driver keeps for itself as used."""
    newer = _Memory2(version=ctypes.sizeof(_Memory2) | 2 << 24)
    if _call(library, "nvmlDeviceGetMemoryInfo_v2", device, ctypes.byref(newer)):
        return int(newer.total), int(newer.used)
    memory = _Memory()
    _call(library, "nvmlDeviceGetMemoryInfo", device, ctypes.byref(memory))
    return int(memory.total), int(memory.used)


def _processes(library: ctypes.CDLL, device: ctypes.c_void_p) -> tuple[tuple[int, int], ...]:
    for name in ("nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"):
        count = ctypes.c_uint(512)
        rows = (_NvmlProcess * count.value)()
        if _call(library, name, device, ctypes.byref(count), rows):
            return tuple(
                (int(row.pid), 0 if row.used == UNKNOWN else int(row.used)) for row in rows[: count.value]
            )
    return ()


def _mig(library: ctypes.CDLL, device: ctypes.c_void_p) -> tuple[str, ...]:
    current, pending, most = ctypes.c_uint(), ctypes.c_uint(), ctypes.c_uint()
    if not _call(library, "nvmlDeviceGetMigMode", device, ctypes.byref(current), ctypes.byref(pending)):
        return ()
    if not current.value or not _call(library, "nvmlDeviceGetMaxMigDeviceCount", device, ctypes.byref(most)):
        return ()
    names: list[str] = []
    for index in range(most.value):
        part = ctypes.c_void_p()
        if _call(
            library, "nvmlDeviceGetMigDeviceHandleByIndex", device, ctypes.c_uint(index), ctypes.byref(part)
        ):
            names.append(_text(library, "nvmlDeviceGetUUID", part))
    return tuple(name for name in names if name)


def _text(library: ctypes.CDLL, name: str, *device: ctypes.c_void_p) -> str:
    buffer = ctypes.create_string_buffer(TEXT)
    if not _call(library, name, *device, buffer, ctypes.c_uint(TEXT)):
        return ""
    return buffer.value.decode(errors="replace")


def _call(library: ctypes.CDLL, name: str, *arguments: object) -> bool:
    """Whether the library has that function and it succeeded."""
    function = getattr(library, name, None)
    return function is not None and int(function(*arguments)) == SUCCESS
