"""Startup and shutdown scripts of a VM, as text for its metadata."""

from __future__ import annotations

from hostler.remote.standalone import standalone

# Newest first; a conda of the image, if there is one, is what its user means by Python.
PYTHONS = "/opt/conda/bin/python3 python3.14 python3.13 python3.12 python3.11 python3.10 python3"
_MARK = "END-OF-HOSTLER"

_STARTUP = """#!/bin/bash
# Written by hostler: runs {module}, which stands below.
for python in {pythons}; do
  if "$python" -I -S -c 'import sys; sys.exit(sys.version_info < {oldest})' 2>/dev/null; then break; fi
done
if ! command -v "$python" >/dev/null; then
  echo "hostler: failed: this image has no Python; it takes 3.10 or newer"
  exit 1
fi
exec "$python" -u - <<'{mark}'
{program}{mark}
"""

_SHUTDOWN = """#!/bin/bash
# Written by hostler: the worker saves what runs before anything else is told to end.
file="${XDG_RUNTIME_DIR:-/run}/hostler-worker.pid"
pid=$(cat "$file" 2>/dev/null) || exit 0
kill -TERM "$pid" 2>/dev/null || exit 0
while kill -0 "$pid" 2>/dev/null; do sleep 0.2; done
"""


def startup_script(module: str, oldest: tuple[int, int] = (3, 10)) -> str:
    """Runs a program of hostler by the first Python that is not older than `oldest`, or else by the last."""
    program = standalone(module)
    return _STARTUP.format(pythons=PYTHONS, mark=_MARK, module=module, program=program, oldest=oldest)


def shutdown_script() -> str:
    return _SHUTDOWN
