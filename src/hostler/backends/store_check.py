"""Opens the store with the worker's own client before a worker starts, where hostler was brought along.

Standard library alone: it travels with the boot programs of VMs and pods (`remote/standalone.py`).
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Callable

from hostler.errors import MachineError

UNREACHABLE = 75  # code of `hostler.worker.reach` for a store that does not answer
CERTIFICATES = "CA certificates may be missing here: install ca-certificates"
DRIVER = "install obstore here, or take another image"


def check_store(store: str, places: list[str], reread: Callable[[], object]) -> None:
    """Raise MachineError if no worker can use the store here. `places`: folders with hostler and its driver.

    A store that is silent for the client is read again without it: OSError says that it is silent for both.
    """
    words = [sys.executable, "-m", "hostler.worker.reach", store]
    theirs = dict(os.environ, PYTHONPATH=os.pathsep.join(places))
    done = subprocess.run(words, env=theirs, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if not done.returncode:
        return
    said = (done.stdout.decode("utf-8", "replace").strip().splitlines() or [f"ended with {done.returncode}"])[
        -1
    ]
    here = f"Python {platform.python_version()} on {platform.machine()}"
    if done.returncode == UNREACHABLE:
        reread()
        raise MachineError(f"{store} answers, but not the worker's client ({here}): {said}", CERTIFICATES)
    raise MachineError(f"no worker can use {store} here ({here}): {said}", DRIVER if "Import" in said else "")
