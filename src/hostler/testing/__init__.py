"""Contract suites that a store or a backend of your own can import.

store_contract.py    every clause of the Store protocol as tests
backend_contract.py  every clause of the Backend protocol as tests
cloud_contract.py    every clause of the Cloud protocol as tests
racer.py             a process that races for keys
drill.py             old name of `hostler.drill`
gce.py               old name of `hostler.emulators.gce`
gcs.py               old name of `hostler.emulators.gcs`
k8s.py               old name of `hostler.emulators.k8s`
"""

from __future__ import annotations

import runpy
import sys
import warnings
from importlib import import_module


def moved(old: str, new: str) -> None:
    """Let a module's old name stand for the new one, and warn, once a process, as an import is run once."""
    if old == "__main__":  # python -m OLD
        runpy.run_module(new, run_name="__main__", alter_sys=True)
        return
    warnings.warn(f"{old} is now {new}; the old name goes in 0.3", DeprecationWarning, stacklevel=3)
    sys.modules[old] = import_module(new)
