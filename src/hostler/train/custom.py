"""`file.py:name`: a user's own model or dataset, called with the config."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

from hostler.errors import MissingError, SpecError
from hostler.spec.nearest import did_you_mean

_PLACE = re.compile(r"(?P<file>.+\.py):(?P<name>[A-Za-z_]\w*)")


def is_place(text: str) -> bool:
    return _PLACE.fullmatch(text) is not None


def load(text: str, *given: Any) -> Any:
    """What the thing named there makes of what it is given."""
    return find(text)(*given)


def find(text: str) -> Any:
    match = _PLACE.fullmatch(text)
    if match is None:
        raise SpecError(f"{text!r} is not file.py:name")
    path, name = Path(match["file"]), match["name"]
    module = _module(path)
    if not hasattr(module, name):
        known = [one for one in vars(module) if not one.startswith("_")]
        raise SpecError(f"{path} has no {name}", did_you_mean(name, known))
    return getattr(module, name)


def _module(path: Path) -> Any:
    if not path.is_file():
        raise MissingError(f"there is no {path}", hint="paths are relative to the working folder")
    name = f"hostler_custom_{path.stem}"
    known, state = sys.modules.get(name), (str(path.resolve()), path.stat().st_mtime_ns)
    if known is not None and getattr(known, "_hostler_state", None) == state:
        return known
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    vars(module)["_hostler_state"] = state  # a file that is edited is read anew
    sys.modules[name] = module  # so that worker processes of a loader find its classes
    spec.loader.exec_module(module)
    return module
