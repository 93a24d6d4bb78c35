"""Python imports this before a drilled script: it starts the witness, then the site's own sitecustomize.

A failure in here must not fail the script: the drill knows less then, and says so.
"""

import importlib.util
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _next() -> None:
    """The module that would have been imported had this one not stood before it."""
    places = [p for p in sys.path if os.path.abspath(p or ".") != _HERE]
    for finder in sys.meta_path:
        spec = getattr(finder, "find_spec", lambda *_: None)("sitecustomize", places)
        if spec is not None and spec.loader is not None:
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return


if os.environ.get("HOSTLER_DRILL") and os.environ.get("HOSTLER_DIR"):
    try:
        from hostler.drill import witness

        witness.begin()
    except Exception as error:  # whatever this Python is: the script comes first
        print(f"hostler drill: this process can't be watched: {error!r}", file=sys.stderr)
_next()
