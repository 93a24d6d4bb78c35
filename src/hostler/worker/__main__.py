"""`python -m hostler.worker STORE`, where nothing is installed."""

from __future__ import annotations

import sys

if __name__ == "__main__":
    if not getattr(sys.flags, "safe_path", False):  # -P, since Python 3.11
        del sys.path[0]  # the current folder: a project may have a signal.py
    import signal
    from importlib import import_module

    # Process 1 of a container hears no signal that it has not asked for, and what follows takes a moment.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(import_module("hostler.worker.main").main())
