"""A link that makes `import hostler` work in a run's Python, with nothing installed there.

A folder with one link to this very package goes onto PYTHONPATH: not the folder it is installed in, which
would bring all of its neighbours along.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

import hostler
from hostler import private
from hostler.errors import MachineError


def variables(cache: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """PYTHONPATH with the library last, so that a project's own choice wins."""
    given = environ.get("PYTHONPATH", "")
    return {"PYTHONPATH": os.pathsep.join(filter(None, [given, str(folder(cache))])), "PYTHONUNBUFFERED": "1"}


def folder(cache: Path) -> Path:
    package = Path(hostler.__file__).resolve().parent
    place = cache / "library" / hashlib.sha256(str(package).encode()).hexdigest()[:16]
    link = place / "hostler"
    private.closed_folder(place)
    if not link.is_symlink():
        try:
            link.symlink_to(package)
        except FileExistsError:  # another worker was faster
            pass
    if os.readlink(link) != str(package):
        raise MachineError(f"{link} leads to another hostler", f"rm -r {place}: it is made again")
    return place
