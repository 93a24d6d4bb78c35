"""The kinds of end of an attempt, and what each allows. Pure.

`POLICY` has a row for every kind: which budget another try is taken from, and what a person can do. `TRIES`
has the exceptions of a script that come again for certain, if they came before any progress.
"""

from __future__ import annotations

import re

from hostler.frozen import dataclass

DONE = "done"
NOT_FINISHED = "not-finished"
TEMPFAIL = "tempfail"
ERROR = "error"
EXIT_CODE = "exit-code"
IMPORT_ERROR = "import-error"
SYNTAX = "syntax"
USAGE = "usage"
NOT_FOUND = "not-found"
CRASH = "crash"
KILLED = "killed"
MEMORY = "memory"
CUDA_MEMORY = "cuda-memory"
CUDA_ERROR = "cuda-error"
DISK_FULL = "disk-full"
HANG = "hang"
SLOW_START = "slow-start"
TIME_LIMIT = "time-limit"
SUPERVISOR_LOST = "supervisor-lost"
PREPARE = "prepare"
WORKER = "worker"
MACHINE = "machine"
DAMAGED = "damaged"
DIVERGED = "diverged"
GANG = "gang"
UNREACHED = "unreached"
RANK_LOST = "rank-lost"
PORT = "port"


REPAIR = "fix the script, then hostler retry RUN"


@dataclass(frozen=True)
class RetryPolicy:
    """Which budget another try is taken from: failures, lost, exit75; never: none helps; none: no failure."""

    retry: str
    advice: str


POLICY: dict[str, RetryPolicy] = {
    DONE: RetryPolicy("none", ""),
    NOT_FINISHED: RetryPolicy("none", ""),
    TEMPFAIL: RetryPolicy("exit75", "the script asked to be tried again (exit code 75)"),
    ERROR: RetryPolicy("failures", "read the traceback: hostler logs RUN"),
    EXIT_CODE: RetryPolicy("failures", "read the end of the log: hostler logs RUN"),
    IMPORT_ERROR: RetryPolicy(
        "never",
        "install the package into the Python that runs it, or add it to what `python:` requires; then"
        " hostler retry RUN",
    ),
    SYNTAX: RetryPolicy("never", REPAIR),
    USAGE: RetryPolicy("never", "the script refused its arguments: compare `parameters:` with its options"),
    NOT_FOUND: RetryPolicy("never", "fix `command:` (is it on PATH in the environment `python:` names?)"),
    CRASH: RetryPolicy("failures", "native code crashed: PYTHONFAULTHANDLER=1 under `env:` shows where"),
    KILLED: RetryPolicy("lost", "someone or something outside hostler ended it"),
    MEMORY: RetryPolicy("failures", "raise `resources.memory`, or load less at once"),
    CUDA_MEMORY: RetryPolicy("failures", "a smaller batch, or a larger share of a GPU (`resources.gpus`)"),
    CUDA_ERROR: RetryPolicy("failures", "CUDA_LAUNCH_BLOCKING=1 under `env:` shows where"),
    DISK_FULL: RetryPolicy(
        "failures", "free space on the machine, raise its limit, or name another `cache:`"
    ),
    HANG: RetryPolicy("failures", "raise `limits.hang` if so long without progress is normal"),
    SLOW_START: RetryPolicy("failures", "raise `limits.start` if it needs so long before its first step"),
    TIME_LIMIT: RetryPolicy("never", "raise `limits.time`, then hostler retry"),
    SUPERVISOR_LOST: RetryPolicy("lost", "the process that watched it was killed"),
    WORKER: RetryPolicy("failures", "the worker itself met an error: its own log has more"),
    PREPARE: RetryPolicy(
        "failures", "code, packages, setup or data could not be made ready: hostler logs RUN"
    ),
    MACHINE: RetryPolicy("never", "fix this machine, or let another one do it; then hostler retry"),
    DIVERGED: RetryPolicy("never", "try other parameters, such as a smaller learning rate"),
    GANG: RetryPolicy(
        "failures", "start as many workers as `resources.nodes`, lower it, or give `min_nodes`"
    ),
    UNREACHED: RetryPolicy(
        "failures", "let the machines reach each other (a firewall?), or name open ports by HOSTLER_PORTS"
    ),
    RANK_LOST: RetryPolicy("lost", "a worker that trained with it went away: its machine's log may say why"),
    PORT: RetryPolicy(
        "lost", "another program took the port; HOSTLER_PORTS on the machines names those to use"
    ),
    DAMAGED: RetryPolicy("never", "hostler retry --fresh RUN starts it from the beginning"),
}

# Exception of a script that began anew and had neither saved nor logged anything → tries until it is certain
# to come again. 1: about the code, whatever it reads. 2: may be about what it read; certain once the same
# error has come twice at the same place. Others may be bad luck: `retries` counts.
TRIES: dict[str, int] = {
    "AttributeError": 1,
    "NameError": 1,
    "NotImplementedError": 1,
    "RecursionError": 1,
    "TypeError": 1,
    "UnboundLocalError": 1,
    "AssertionError": 2,
    "IndexError": 2,
    "JSONDecodeError": 2,
    "KeyError": 2,
    "RuntimeError": 2,
    "UnicodeDecodeError": 2,
    "ValidationError": 2,
    "ValueError": 2,
    "ZeroDivisionError": 2,
}
_LUCK = re.compile(
    r"connect|network|socket|\bpeer\b|time[d ]*out|deadline|temporar|unavailable|unreachable|nccl|gloo"
    r"|try again|too many|rate limit|busy|\bworker\b|shared memory|input/output|stale file|permission",
    re.IGNORECASE,
)
_CAUSE = re.compile(  # an exception that the last one came of
    r"^(?:[\w.]*\.)?(?:OSError|IOError|PermissionError|\w*(?:Connection|Timeout|HTTP|URL|SSL|Socket|Proxy|Network)"
    r"\w*)(?::|$)|^[\w.]+: .*(?:CUDA|NCCL|[Oo]ut of memory|\[Errno )",
    re.MULTILINE,
)


def tries(kind: str, error: str = "", message: str = "", traceback: str = "") -> int | None:
    """Tries after which an error before any progress is certain to come again; None: it may be bad luck."""
    if POLICY[kind].retry == "never":
        return 1
    known = TRIES.get(error) if kind == ERROR else None
    if known is None or _CAUSE.search(traceback) or (known > 1 and _LUCK.search(message)):
        return None
    return 2 if "NoneType" in message else known  # an answer that never came looks like that, too
