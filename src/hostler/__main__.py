"""`python -m hostler`: the command line."""

from __future__ import annotations

import sys

if __name__ == "__main__":
    if not getattr(sys.flags, "safe_path", False):  # -P, since Python 3.11
        del sys.path[0]  # the current folder: a project may have a random.py
    from hostler.cli.entry import main

    main()
