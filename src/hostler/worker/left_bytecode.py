"""Bytecode that a worker leaves in the store once it has a run: machines that come later compile nothing.

The first worker whose Python compiled hostler does it, on a thread beside its run. Nothing depends on it.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import hostler
from hostler.errors import HostlerError
from hostler.records import layout
from hostler.remote import bytecode
from hostler.store import Store

BEFORE = ("hostler.worker.__main__", "hostler.worker.reach")  # what runs before it, and is not loaded in it
_SHA = re.compile(r"[0-9a-f]{64}")


def leave_once(store: Store, library: Path = Path(hostler.__file__).parent.parent) -> Callable[[], None]:
    """A function that has it left when it is first called, and returns at once."""
    begun = threading.Event()

    def begin() -> None:
        if not begun.is_set():
            begun.set()
            threading.Thread(target=leave, args=(store, library), name="bytecode", daemon=True).start()

    return begin


def leave(store: Store, library: Path) -> None:
    """Put it beside the library in the store, if hostler was brought from there and came without."""
    if not _SHA.fullmatch(library.name) or bytecode.came_along(str(library / "hostler" / "__init__.py")):
        return
    key = layout.bytecode(library.name, bytecode.tag())
    with suppress(HostlerError, OSError):
        if not any(store.list(key)):
            names = [*(name for name in list(sys.modules) if name.partition(".")[0] == "hostler"), *BEFORE]
            store.put(key, bytecode.code_of_modules(names, library), if_absent=True)
