"""`python -m hostler.sdk.call FILE:FUNCTION [METRIC]`: one run of a function, with the run's parameters.

The function gets them as keywords, or as one dict if it takes a single argument that is not a parameter. Its
result is logged: a dict of numbers as it is, a number as METRIC.
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any

from hostler import env
from hostler.errors import UsageError
from hostler.records.run.handoff import Handoff


def main(words: Sequence[str]) -> int:
    place, *rest = words
    folder = env.run_dir()
    if folder is None:
        raise UsageError("hostler.sdk.call was not started by a worker", hint="call the function directly")
    params = json.loads(Handoff(folder).params.read_text())
    function = _function(place)
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
