"""Opens the store with the worker's own client before a worker starts, where hostler was brought along.

Standard library alone: it travels with the boot programs of VMs and pods (`remote/standalone.py`).
"""

from __future__ import annotations

import os
import platform
import sys
import traceback
from collections.abc import Callable
from importlib import import_module, invalidate_caches

from hostler.errors import MachineError

UNREACHABLE = 75  # code of `hostler.worker.reach` for a store that does not answer
CERTIFICATES = "CA certificates may be missing here: install ca-certificates"
DRIVER = "install obstore here, or take another image"


def check_store(store: str, places: list[str], reread: Callable[[], object]) -> None:
    """Raise MachineError if no worker can use the store here. `places`: folders with hostler and its driver.

    A store that is silent for the client is read again without it: OSError says that it is silent for both.
    """
    code, text = _tried(store, places)
    if not code:
        return
    said = (text.strip().splitlines() or [f"ended with {code}"])[-1]
    here = f"Python {platform.python_version()} on {platform.machine()}"
    if code == UNREACHABLE:
        reread()
        raise MachineError(f"{store} answers, but not the worker's client ({here}): {said}", CERTIFICATES)
    raise MachineError(f"no worker can use {store} here ({here}): {said}", DRIVER if "Import" in said else "")


def _tried(store: str, places: list[str]) -> tuple[int, str]:
    """Exit code and words of the check, in a fork: this Python has loaded much of what it needs, and the
    store's client is gone with it."""
    heard, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        _try(store, places, told)
    os.close(told)
    with os.fdopen(heard, errors="replace") as words:
        text = words.read()
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return code if code >= 0 else 128 - code, text


def _try(store: str, places: list[str], told: int) -> None:
    """Never returns. What breaks off is told by the last line, as a program would."""
    code = 1
    try:
        os.dup2(told, 2)
        sys.stderr = os.fdopen(told, "w")
        sys.path[:0] = places
        invalidate_caches()  # PYTHONPATH may have named them before they were there
        code = import_module("hostler.worker.reach").main(store)
    except Exception:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)
