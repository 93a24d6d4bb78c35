"""Runs verbs for tests, each in a process forked off this one: hostler is loaded once, and not once per verb.

A line of JSON asks (`words`, `folder`, `env`, `seconds`, `out`, `err`), a line answers (`code`, `seconds`,
`peak` bytes of memory, `late`). A process that takes too long is killed with all that it started.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from importlib import import_module
from typing import Any

from hostler.cli import main as cli_main

LOADED = (
    "status",
    "show",
    "logs",
    "errors",
    "best",
    "cost",
    "diff",
    "metrics",
    "push",
    "df",
    "pull",
    "archive",
    "rm",
    "gc",
    "pack",
    "ui",
)
HEAVY = (
    "pandas",
    "hostler.analysis.export",
    "hostler.analysis.frame",
    "hostler.analysis.board.app",
    "hostler.worker.session",
)
SPACE = 4 << 30  # bytes of addresses: no test takes this machine's memory
LARGEST = 256 << 20  # bytes of one file: nor its disk


def serve() -> None:
    for verb in LOADED:
        import_module(cli_main.module_of(verb))
    for name in HEAVY:
        import_module(name)
    gc.collect()
    gc.freeze()  # so that forks share what is loaded
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(_answer(json.loads(line))), flush=True)


def _answer(asked: dict[str, Any]) -> dict[str, Any]:
    began = time.monotonic()
    pid = os.fork()
    if not pid:
        os._exit(_child(asked))
    late = not _ends(pid, began + asked["seconds"])
    if late:
        os.killpg(pid, signal.SIGKILL)
    _, status, usage = os.wait4(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    return {"code": code, "seconds": time.monotonic() - began, "peak": usage.ru_maxrss << 10, "late": late}


def _ends(pid: int, until: float) -> bool:
    """Whether a process is over in time; it is not reaped, as its usage is wanted."""
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if time.monotonic() > until:
            return False
        time.sleep(0.002)
    return True


def _child(asked: dict[str, Any]) -> int:
    os.setsid()
    for target, path in ((0, os.devnull), (1, asked["out"]), (2, asked["err"])):
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(handle, target)
        os.close(handle)
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["env"])
    tempfile.tempdir = None
    resource.setrlimit(resource.RLIMIT_AS, (SPACE, SPACE))
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST, LARGEST))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    sys.argv = ["hostler", *asked["words"]]
    try:
        return _act(asked["words"])()
    except SystemExit as left:
        return left.code if isinstance(left.code, int) else 1
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def _act(words: list[str]) -> Callable[[], int]:
    """A verb, or a function `module:name WORD…` that a test names."""
    module, colon, name = words[0].partition(":")
    if not colon:
        return lambda: cli_main.main() or 0  # type: ignore[func-returns-value]
    function: Callable[..., int] = getattr(import_module(module), name)
    return lambda: function(*words[1:])


if __name__ == "__main__":
    serve()
