"""`python -m hostler.sdk.call [--result] FILE:FUNCTION [METRIC]`: one run of a function, by its parameters.

The function gets them by name or by place, as it takes them, or as one dict if it takes a single argument
that is not a parameter. Its result is logged: a dict of numbers as it is, a number as METRIC. FILE is a file
of Python, an installed module, or the zip of a packed function (`fleet/function.py`), which is loaded only if
it has the hash that is in the run's spec. With `--result` whatever it returned is kept for
`hostler.Executor`: plain data in the run's end, or in a file if it is large.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import inspect
import json
import linecache
import re
import sys
import traceback
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from pathlib import Path
from types import TracebackType
from typing import Any

from hostler import env, settings
from hostler.errors import DamagedError, MachineError, UsageError
from hostler.records.run import handoff
from hostler.records.run.handoff import Handoff
from hostler.spec.plain_data import least_size, plain

PACKED = ".zip"
KEEP = "--result"
RETURNED = "returned"  # in the summary of a run's end: its value, its file, or why there is none
RESULT_FILE = "hostler-result.json"  # among the run's outputs
_CELL = re.compile(r'File "(Cell In\[\d+\])", line')


def main(words: Sequence[str]) -> int:
    keep = words[:1] == [KEEP]
    place, *rest = words[1:] if keep else words
    folder = env.run_dir()
    if folder is None:
        raise UsageError("hostler.sdk.call was not started by a worker", hint="call the function directly")
    params = json.loads(Handoff(folder).params.read_text())
    if keep:
        sys.excepthook = _show  # the traceback is for whoever called the function
    try:
        function = _function(place)
    except (DamagedError, MachineError) as error:  # of a packed function: one line says it
        print(f"hostler: {error.message}\n  → {error.hint}", file=sys.stderr)
        return error.exit_code
    if why := _refusal(function, params):
        print(f"hostler: {_line(place, function)}: {_name(function)}() {why}", file=sys.stderr)
        return 2
    result = _called(function, params)
    values = _metrics(result, rest[0] if rest else "result")
    if values:
        print(json.dumps(values), flush=True)
    if keep:
        _keep(Handoff(folder), _name(function), result)
    return 0


def _keep(folder: Handoff, name: str, result: Any) -> None:
    """Leave the result for the executor, beside what the function gave to `finish`."""
    record = handoff.read(folder.finished) or {}
    handoff.write(folder.finished, {**record, RETURNED: _returned(folder, name, result)})


def _returned(folder: Handoff, name: str, result: Any) -> dict[str, Any]:
    sizes = settings.sizes()
    size, text, value = least_size(result, sizes.result_max), "", None
    if size <= sizes.result_max:
        try:
            value = plain(result, "the result")
        except ValueError as error:
            return {"why": f"{name}(): {error}"}
        text = json.dumps(value)
        size = len(text)
    if size > sizes.result_max:
        return {
            "why": f"{name}() returned at least {size:,} bytes, and {sizes.result_max:,.0f} are kept at most"
        }
    if size <= sizes.result_end:
        return {"value": value}
    (folder.output / RESULT_FILE).write_text(text)
    return {"file": RESULT_FILE}


def _function(place: str) -> Callable[..., Any]:
    path, _, name = place.rpartition(":")
    file = Path(path).resolve()
    if file.suffix == PACKED:
        return _unpacked(file, name)
    found: Any = _module(file) if file.suffix == ".py" else importlib.import_module(path)
    for part in name.split("."):
        found = getattr(found, part)
    function: Callable[..., Any] = found
    return function


def _module(file: Path) -> Any:
    """The module of a file; as part of its package, if it is in one, so that its relative imports work."""
    sys.path.insert(0, str(file.parent))
    root = file.parent
    while (root / "__init__.py").is_file():
        root = root.parent
    if root != file.parent:
        sys.path.insert(0, str(root))
        return importlib.import_module(".".join(file.relative_to(root).with_suffix("").parts))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise UsageError(f"{file} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    return module


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
    if _takes_a_dict(function, params):
        return function(dict(params))
    bound = _bound(function, params)
    return function(*bound.args, **bound.kwargs)


def _bound(function: Callable[..., Any], params: Mapping[str, Any]) -> inspect.BoundArguments:
    """Parameters as the function takes them: by name, by place, or a list for `*values`. TypeError if it
    does not take them."""
    signature, rest = inspect.signature(function), dict(params)
    given: dict[str, Any] = {}
    others = values = ""
    for name, taken in signature.parameters.items():
        if taken.kind is taken.VAR_KEYWORD:
            others = name
        elif name in rest and (taken.kind is not taken.VAR_POSITIONAL or isinstance(rest[name], list)):
            values = name if taken.kind is taken.VAR_POSITIONAL else values
            given[name] = tuple(rest.pop(name)) if values == name else rest.pop(name)
    bound = inspect.BoundArguments(signature, OrderedDict(given | ({others: rest} if others else {})))
    if values:  # what stands before them has to be given, too
        bound.apply_defaults()
    signature.bind(*bound.args, **bound.kwargs, **({} if others else rest))
    return bound


def _takes_a_dict(function: Callable[..., Any], params: Mapping[str, Any]) -> bool:
    taken = list(inspect.signature(function).parameters.values())
    needed = [one for one in taken if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD]
    return len(needed) == 1 and needed[0].name not in params


def _refusal(function: Callable[..., Any], params: Mapping[str, Any]) -> str:
    """Why the function cannot be called with these parameters; '' if it can."""
    try:
        if not _takes_a_dict(function, params):
            _bound(function, params)
    except TypeError as error:
        return str(error)
    return ""


def _line(place: str, function: Callable[..., Any]) -> str:
    """The user's file and the line that the function begins at."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    path = place.rpartition(":")[0]
    return f"{path}:{code.co_firstlineno}" if code else path


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", "") or type(function).__name__)  # a partial has none


def _metrics(result: Any, name: str) -> dict[str, float]:
    given = result if isinstance(result, Mapping) else {name: result}
    metrics = {}
    for key, value in given.items():
        with contextlib.suppress(TypeError, ValueError, RuntimeError, OverflowError):  # not one number
            one = value.item() if hasattr(value, "item") else value
            if isinstance(one, Real) and not isinstance(one, bool):
                metrics[str(key)] = float(one)
    return metrics


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
