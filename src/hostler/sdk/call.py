"""`python -m hostler.sdk.call FILE:FUNCTION [METRIC]`: one run of a function, with the run's parameters.

The function gets them as keywords, or as one dict if it takes a single argument that is not a parameter. Its
result is logged: a dict of numbers as it is, a number as METRIC. FILE is a Python file, or the zip of a
packed function (`fleet/function.py`), which is loaded only if it has the hash that is in the run's spec.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import json
import linecache
import re
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from pathlib import Path
from types import TracebackType
from typing import Any

from hostler import env
from hostler.errors import DamagedError, MachineError, UsageError
from hostler.records.run.handoff import Handoff

PACKED = ".zip"
_CELL = re.compile(r'File "(Cell In\[\d+\])", line')


def main(words: Sequence[str]) -> int:
    place, *rest = words
    folder = env.run_dir()
    if folder is None:
        raise UsageError("hostler.sdk.call was not started by a worker", hint="call the function directly")
    params = json.loads(Handoff(folder).params.read_text())
    try:
        function = _function(place)
    except (DamagedError, MachineError) as error:  # of a packed function: one line says it
        print(f"hostler: {error.message}\n  → {error.hint}", file=sys.stderr)
        return error.exit_code
    if why := _refusal(function, params):
        print(f"hostler: {_line(place, function)}: {function.__name__}() {why}", file=sys.stderr)
        return 2
    result = _called(function, params)
    values = _metrics(result, rest[0] if rest else "result")
    if values:
        print(json.dumps(values), flush=True)
    return 0


def _function(place: str) -> Callable[..., Any]:
    path, _, name = place.rpartition(":")
    file = Path(path).resolve()
    if file.suffix == PACKED:
        return _unpacked(file, name)
    sys.path.insert(0, str(file.parent))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part)
    function: Callable[..., Any] = found
    return function


def _unpacked(file: Path, name: str) -> Callable[..., Any]:
    """The function of a zip. Its hash is checked first, and then the version of Python."""
    import io
    import pickle
    import zipfile

    data = file.read_bytes() if file.is_file() else b""
    if hashlib.sha256(data).hexdigest() != env.function_sha():
        raise DamagedError(
            f"the packed function {name} is not the one that was submitted: nothing of it was loaded",
            hint="does something in the run's folder write to it? else submit it again",
        )
    with zipfile.ZipFile(io.BytesIO(data)) as opened:
        about = json.loads(opened.read("about.json"))
        body = opened.read("function.pickle")
    made, here = (".".join(map(str, one)) for one in (about["python"], sys.version_info[:2]))
    if made != here:
        raise MachineError(
            f"{name} was packed by Python {made}, and this is Python {here}",
            hint=f"let `python:` name a Python {made} for these machines, or put {name} in a .py file",
        )
    _know_cells(about["cells"])
    sys.path[:0] = [str(file), *(str((file.parent / path).resolve()) for path in about["path"])]
    function: Callable[..., Any] = pickle.loads(body)  # noqa: S301 - its hash is that of the run's spec
    return function


def _know_cells(cells: Mapping[str, str]) -> None:
    """Show lines of a notebook's cells in tracebacks, as Jupyter does."""
    for name, text in cells.items():
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    sys.excepthook = _show


def _show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print a traceback without the frames up to this file, and with cells as Jupyter names them."""
    frame, shown = trace, trace
    while frame:
        shown = (frame.tb_next or shown) if frame.tb_frame.f_code.co_filename == __file__ else shown
        frame = frame.tb_next
    text = "".join(traceback.format_exception(kind, error, shown))
    print(_CELL.sub(r"\1, line", text), end="", file=sys.stderr, flush=True)


def _called(function: Callable[..., Any], params: Mapping[str, Any]) -> Any:
    return function(dict(params)) if _takes_a_dict(function, params) else function(**params)


def _takes_a_dict(function: Callable[..., Any], params: Mapping[str, Any]) -> bool:
    taken = list(inspect.signature(function).parameters.values())
    needed = [one for one in taken if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD]
    return len(needed) == 1 and needed[0].name not in params


def _refusal(function: Callable[..., Any], params: Mapping[str, Any]) -> str:
    """Why the function cannot be called with these parameters; '' if it can."""
    try:
        if not _takes_a_dict(function, params):
            inspect.signature(function).bind(**params)
    except TypeError as error:
        return str(error)
    return ""


def _line(place: str, function: Callable[..., Any]) -> str:
    """The user's file and the line that the function begins at."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    path = place.rpartition(":")[0]
    return f"{path}:{code.co_firstlineno}" if code else path


def _metrics(result: Any, name: str) -> dict[str, float]:
    given = result if isinstance(result, Mapping) else {name: result}
    plain = {str(k): v.item() if hasattr(v, "item") else v for k, v in given.items()}
    return {k: float(v) for k, v in plain.items() if isinstance(v, Real) and not isinstance(v, bool)}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
