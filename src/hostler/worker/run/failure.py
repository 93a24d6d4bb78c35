"""Classifies the end of a process: its kind, a line for people, and what may be tried next.

Pure. `classify` decides the kind (see `kinds.py`) in the order its rules stand. The signature is the same
for the same error in another run, on another machine, with other numbers in its message.
"""

from __future__ import annotations

import hashlib
import re
import signal
from collections.abc import Callable, Mapping
from typing import Any

from hostler.errors import DamagedError, HostlerError, MachineError
from hostler.frozen import dataclass
from hostler.spec.states import stop_reason
from hostler.worker.run import tracebacks
from hostler.worker.run.exit import Exit
from hostler.worker.run.kinds import (
    CRASH,
    CUDA_ERROR,
    CUDA_MEMORY,
    DAMAGED,
    DISK_FULL,
    DIVERGED,
    DONE,
    ERROR,
    EXIT_CODE,
    HANG,
    IMPORT_ERROR,
    KILLED,
    MACHINE,
    MEMORY,
    NOT_FINISHED,
    NOT_FOUND,
    PREPARE,
    SLOW_START,
    SUPERVISOR_LOST,
    SYNTAX,
    TEMPFAIL,
    TIME_LIMIT,
    USAGE,
)
from hostler.worker.run.tracebacks import Traceback

KILLED_FOR = {"hang": HANG, "start": SLOW_START, "time": TIME_LIMIT, "memory": MEMORY}
CRASHES = {
    signal.SIGSEGV,
    signal.SIGBUS,
    signal.SIGILL,
    signal.SIGFPE,
    signal.SIGABRT,
    signal.SIGSYS,
    signal.SIGTRAP,
}
STOPS = {signal.SIGTERM, signal.SIGINT, signal.SIGKILL, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2}
TEMPFAIL_CODE = 75

# The first that matches the exception (or, without a traceback, the end of the log) names the kind.
TEXTS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        CUDA_MEMORY,
        re.compile(
            r"(?:CUDA|HIP|MPS backend) out of memory|\bOutOfMemoryError|CUDA error: out of memory"
            r"|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|cudaMalloc failed: out of memory"
            r"|(?:CUBLAS|CUDNN|CUSOLVER)_STATUS_ALLOC_FAILED|ResourceExhaustedError"
            r"|OOM when allocating tensor"
            r"|RESOURCE_EXHAUSTED: (?:Out of memory|Failed to allocate)|XlaRuntimeError: RESOURCE_EXHAUSTED"
        ),
    ),
    (
        CUDA_ERROR,
        re.compile(
            r"CUDA error|device-side assert|CUDA_ERROR_|\bcudaError|(?:CUBLAS|CUDNN|CUSOLVER)_STATUS_"
            r"|uncorrectable ECC|\bXid\b|NCCL error|\bnccl\w*Error|No CUDA GPUs are available"
            r"|CUDA driver|illegal memory access was encountered"
        ),
    ),
    (
        MEMORY,
        re.compile(
            r"\b(?:_Array)?MemoryError\b|std::bad_alloc|Cannot allocate memory|not enough memory: you tried"
            r"|can't allocate memory|killed by signal: (?:Killed|Bus error)"
        ),
    ),
    (DISK_FULL, re.compile(r"\[Errno 28\]|No space left on device|\[Errno 122\]|Disk quota exceeded")),
)
IMPORTS = {"ModuleNotFoundError", "ImportError", "PackageNotFoundError"}
SYNTAXES = {"SyntaxError", "IndentationError", "TabError"}
# Words of a file system that answers badly: what it keeps from being imported may be there the next time.
_MOUNT = re.compile(
    r"\[Errno (?:5|11|23|24|103|107|110|116)\]|Input/output error|Stale (?:NFS )?file handle"
    r"|Transport endpoint is not connected|Too many open files|Connection timed out|Remote I/O error"
)
# A line that may tell why something else ended the process; `error 0.31` is a metric.
_REASON = re.compile(
    r"\b(?:error|fatal|panic|exception)\b(?!\s*[:=]?\s*[-+.\d])|terminate called|what\(\):"
    r"|out of memory|\bOOM\b|\b(?:killed|cancelled|evicted|preempted|aborted)\b"
    r"|(?:segmentation|bus) fault|assertion|time limit",
    re.IGNORECASE,
)
_BAR = re.compile(r".*\d%\|")  # a progress bar
REASON_LINES = 15  # how far from its end a log without a traceback is searched
_USAGE = re.compile(r"^\s*usage: ", re.IGNORECASE)
_USAGE_ERROR = re.compile(r"(?:.*: )?error: ", re.IGNORECASE)
_OWN, _HINT = "hostler: ", "→ "  # how our own errors are printed, and what to do about them
_NEEDS = re.compile(r" needs the package [\w.-]+$")  # an import that failed, in our own words
_NOISE = (
    (re.compile(r"0x[0-9a-fA-F]+|\b[0-9a-f]{8,}\b"), "H"),
    (re.compile(r"(?<![\w.~-])(?:[\w.~-]*/)+[\w.-]*"), "P"),
    (re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?"), "N"),
)


@dataclass(frozen=True)
class Verdict:
    """The kind, one line for a person, the traceback if any (of a failed preparation: what it printed last),
    and what makes two errors the same. Of an exception also its type, and its place in the user's files."""

    kind: str
    message: str
    traceback: str = ""
    signature: str = ""
    error: str = ""
    where: str = ""


def classify(
    exit: Exit,
    tail: str,
    *,
    stop: str | None = None,
    killed_for: str | None = None,
    finished: bool = False,
    left: Mapping[str, Any] | None = None,
    in_project: Callable[[str], str] = str,
) -> Verdict:
    """Judge an ended process by how it ended, the end of its log, and what was asked of it before. `left`:
    what it said itself when it gave up. `in_project` names files of the run's folder as the project does."""
    if left and left.get("how") == DIVERGED and not finished:
        message = _one_line(str(left.get("message") or "diverged"))
        return Verdict(DIVERGED, message, signature=_hash([DIVERGED, _normal(message)]))
    tail = in_project("\n".join(tracebacks.lines_of(tail)))  # drawn in a box, a path may be folded
    traceback = tracebacks.last(tail) if exit.code != 0 and not exit.spawn_error else None
    kind = _kind(exit, tail, traceback, stop, killed_for, finished)
    used = traceback if kind not in (DONE, NOT_FINISHED, HANG, SLOW_START, TIME_LIMIT) else None
    message = _message(kind, exit, tail, used, stop, killed_for)
    return Verdict(
        kind=kind,
        message=message,
        traceback=used.text if used else "",
        signature="" if kind in (DONE, NOT_FINISHED) else _signature(kind, exit, used, message),
        error=used.name if used else "",
        where=_one_line(used.cell if used.cell.startswith(used.own) else used.own, 120) if used else "",
    )


def unready(error: HostlerError | OSError, hide: Callable[[str], str]) -> Verdict:
    """Judge a run that never came to start; `hide` covers secrets that a failed command has printed."""
    if isinstance(error, DamagedError):
        kind = DAMAGED
    else:
        kind = MACHINE if isinstance(error, (MachineError, OSError)) else PREPARE
    text = hide(str(error))
    first, *printed = text.splitlines() or [""]
    message = _one_line(f"{first.rstrip(':')}: {printed[-1]}") if printed else text
    return Verdict(kind, message, "\n".join(printed), signature=_hash([kind, _normal(text)]))


def _kind(
    exit: Exit, tail: str, found: Traceback | None, stop: str | None, killed_for: str | None, finished: bool
) -> str:
    if finished:
        return DONE
    if exit.spawn_error:
        return NOT_FOUND
    if killed_for is not None:
        return KILLED_FOR[killed_for]
    if exit.supervisor_lost:
        return SUPERVISOR_LOST
    if stop is not None and _stopped(exit, found):
        return NOT_FINISHED
    if exit.code == 0:
        return DONE
    if exit.code == TEMPFAIL_CODE:
        return TEMPFAIL
    if exit.oom:
        return MEMORY
    return _failed(exit, tail, found)


def _stopped(exit: Exit, found: Traceback | None) -> bool:
    """Whether this is how a process ends that was asked to."""
    return (
        exit.code in (0, TEMPFAIL_CODE)
        or _signal(exit) in STOPS
        or (found is not None and found.name == "KeyboardInterrupt")
    )


def _failed(exit: Exit, tail: str, found: Traceback | None) -> str:
    number = _signal(exit)
    if number in STOPS or (found is not None and found.name == "KeyboardInterrupt"):
        return KILLED
    text = found.headline if found else "\n".join(_last_lines(tail, REASON_LINES))
    kind = next((kind for kind, pattern in TEXTS if pattern.search(text)), None)
    if kind is not None:
        return kind
    if number is not None:
        return CRASH if number in CRASHES else KILLED
    if found is not None and found.name in IMPORTS:
        return ERROR if _MOUNT.search(found.text) else IMPORT_ERROR
    if found is not None:
        return SYNTAX if found.name in SYNTAXES else ERROR
    if any(line.startswith(_OWN) and _NEEDS.search(line) for line in _complaint(tail)):
        return IMPORT_ERROR
    return USAGE if exit.code == 2 and usage_complaint(tail) else EXIT_CODE


def _signal(exit: Exit) -> int | None:
    """The signal that ended it, also where a shell in between made 128 + n of it."""
    if exit.signal is not None:
        return exit.signal
    number = (exit.code or 0) - 128
    return number if number in CRASHES | STOPS else None


def _message(
    kind: str, exit: Exit, tail: str, found: Traceback | None, stop: str | None, killed_for: str | None
) -> str:
    if kind == DONE:
        return "done" if exit.code == 0 else f"done ({_how(exit)} after finish)"
    if kind == NOT_FINISHED:
        return f"stopped: {stop_reason(stop or '')}"
    if kind == NOT_FOUND:
        return exit.spawn_error
    if killed_for is not None:
        return _LIMITS[killed_for]
    if kind == SUPERVISOR_LOST:
        return "the process that watched the run was killed"
    if exit.oom:
        return "killed by the kernel: the machine was out of memory"
    if found is not None:
        return _one_line(found.headline)
    if kind == USAGE:
        return _one_line(usage_complaint(tail))
    return _one_line(": ".join([_how(exit), *_last_words(exit, tail)]))


_LIMITS = {
    "hang": "killed: no progress for longer than limits.hang",
    "start": "killed: no first step within limits.start",
    "time": "killed: over limits.time",
    "memory": "killed: over resources.memory",
}


def _how(exit: Exit) -> str:
    number = _signal(exit)
    if number is None:
        return f"exit code {exit.code}"
    name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
    return f"killed by {name}" if number not in CRASHES else f"crashed ({name})"


def _last_words(exit: Exit, tail: str) -> list[str]:
    """The last line that says something. An ordinary line does not explain a signal, nor does the library."""
    last = _complaint(tail)
    if _signal(exit) is None:
        return last
    return [line for line in last if _REASON.search(line) and not line.startswith(_OWN)]


def usage_complaint(tail: str) -> str:
    """The complaint of a parser that printed its usage, or of our own; empty if none did."""
    lines = _last_lines(tail, 40)
    if any(line.startswith(_OWN) for line in _complaint(tail)):
        return _complaint(tail)[-1].removeprefix(_OWN)
    if not any(_USAGE.match(line) for line in lines):
        return ""
    return next((line for line in reversed(lines) if _USAGE_ERROR.match(line)), "")


def _complaint(tail: str) -> list[str]:
    """The last line, if there is one; not the hint that our own errors have below them."""
    lines = _last_lines(tail, REASON_LINES)
    return [line for line in lines if not line.lstrip().startswith(_HINT)][-1:] or lines[-1:]


def _last_lines(tail: str, count: int) -> list[str]:
    """The last lines that say something: borders, underlines and progress bars do not."""
    lines = (line.strip("│┃| ") if line[:1] in "│┃|" else line for line in tracebacks.lines_of(tail))
    return [line for line in lines if any(map(str.isalnum, line)) and not _BAR.match(line)][-count:]


def _one_line(text: str, most: int = 300) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 3] + "..."


def _signature(kind: str, exit: Exit, found: Traceback | None, message: str) -> str:
    if found is None:
        parts = [kind, str(exit.code), str(exit.signal), message if kind in (NOT_FOUND, USAGE) else ""]
    else:
        file, _, line = found.where.rpartition(":")
        parts = [kind, found.error, f"{file.rpartition('/')[2]}:{line}", _normal(found.message)]
    return _hash(parts)


def _hash(parts: list[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:12]


def _normal(message: str) -> str:
    """A message without what differs from run to run: addresses, paths, numbers."""
    for pattern, mark in _NOISE:
        message = pattern.sub(mark, message)
    return message
