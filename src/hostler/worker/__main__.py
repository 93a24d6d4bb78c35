"""`python -m hostler.worker STORE`, where nothing is installed."""

from __future__ import annotations

import signal
import sys
from importlib import import_module

if __name__ == "__main__":
    # Process 1 of a container hears no signal that it has not asked for, and what follows takes a moment.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(import_module("hostler.worker.main").main())
