"""`file.py:name`: a user's own model, dataset, loss, optimiser or transform. What goes wrong in there is the
user's, and is said as that."""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
from pathlib import Path
from typing import Any

from hostler.errors import MissingError, SpecError
from hostler.spec.nearest import did_you_mean

MODULE = "hostler_custom_"  # begins the names of their modules
_PLACE = re.compile(r"(?P<file>.+\.py):(?P<name>[A-Za-z_]\w*)")


def is_place(text: str) -> bool:
    return _PLACE.fullmatch(text) is not None


def load(text: str, **given: Any) -> Any:
    """Calls the named thing with the given values, in this order."""
    return find(text, *given)(*given.values())


def find(text: str, *takes: str) -> Any:
    """The thing named there, which can be called with so many things."""
    match = _PLACE.fullmatch(text)
    if match is None:
        raise SpecError(f"{text!r} is not file.py:name")
    path, name = Path(match["file"]), match["name"]
    module = _module(path)
    if not hasattr(module, name):
        known = [var for var in vars(module) if not var.startswith("_")]
        raise SpecError(f"{path} has no {name}", did_you_mean(name, known))
    found = getattr(module, name)
    if not callable(found):
        raise SpecError(f"{text} is {type(found).__name__}, which cannot be called", "a function, or a class")
    if takes:
        check_call(text, found, *takes)
    return found


def check_call(text: str, found: Any, *takes: str) -> None:
    try:
        inspect.signature(found).bind(*takes)
    except TypeError as error:
        raise SpecError(f"{text}: {error}", f"it is called with {' and '.join(takes)}") from None
    except ValueError:
        return  # not written in Python, and says nothing of itself


def line_of(error: BaseException) -> str | None:
    """`file.py:12`: the innermost line of a user's file on the way to this error."""
    found, at = None, error.__traceback__
    while at is not None:
        if str(at.tb_frame.f_globals.get("__name__", "")).startswith(MODULE):
            found = f"{Path(at.tb_frame.f_code.co_filename).name}:{at.tb_lineno}"
        at = at.tb_next
    return found


def _module(path: Path) -> Any:
    if not path.is_file():
        raise MissingError(f"{path} does not exist", hint="paths are relative to the working folder")
    name = f"{MODULE}{path.stem}"
    known, state = sys.modules.get(name), (str(path.resolve()), path.stat().st_mtime_ns)
    if known is not None and getattr(known, "_hostler_state", None) == state:
        return known
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # so that worker processes of a loader find its classes
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise SpecError(f"{error.filename}:{error.lineno} is not Python: {error.msg}") from None
    vars(module)["_hostler_state"] = state  # a file that is edited, or failed, is read anew
    return module
