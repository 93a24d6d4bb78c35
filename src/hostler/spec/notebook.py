"""A notebook as a script: its parameters, and the cell that takes them. Pure: text in, text out.

The cell tagged `parameters` gives each its default; a cell with the values of the run follows it, tagged
`injected-parameters`, as papermill's users know it.
"""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Mapping, Sequence
from keyword import iskeyword
from typing import Any

from hostler.errors import UsageError
from hostler.spec.nearest import did_you_mean

TAG, INJECTED = "parameters", "injected-parameters"
HOW = "in Jupyter: property inspector, Add Tag"


def parameters(words: Sequence[str]) -> dict[str, Any]:
    """Parameters of a command line: `--lr 0.1`, `--lr=0.1`, `lr=0.1`; an option without a value is True."""
    record: dict[str, Any] = {}
    remaining = list(words)
    while remaining:
        word = remaining.pop(0)
        name, equals, text = word.removeprefix("--").partition("=")
        if not word.startswith("--") and not equals:
            raise UsageError(f"{word!r} is not a parameter of a notebook", hint="--lr 0.1, or lr=0.1")
        name = name.replace("-", "_")
        if not name.isidentifier() or iskeyword(name):
            raise UsageError(f"{name!r} cannot be a variable of a notebook")
        if equals:
            record[name] = value(text)
        elif remaining and not remaining[0].startswith("--"):
            record[name] = value(remaining.pop(0))
        else:
            record[name] = True
    return record


def value(text: str) -> Any:
    """A word as a value of Python: a number, true or false, a list, else text."""
    for read in (json.loads, ast.literal_eval):
        try:
            return read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            continue
    return {"True": True, "False": False, "None": None}.get(text, text)


def read(text: str, name: str) -> dict[str, Any]:
    """The notebook of a file's text."""
    try:
        book = json.loads(text)
    except ValueError as error:
        raise UsageError(f"{name} is not a notebook: {error}") from None
    if not isinstance(book, dict) or not isinstance(book.get("cells"), list) or book.get("nbformat") != 4:
        raise UsageError(f"{name} is not a notebook of format 4", hint="open and save it in Jupyter")
    return book


def injected(book: Mapping[str, Any], params: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The notebook with a cell of these values behind its cell of parameters. UsageError if it has none, or
    if that cell does not give one of them."""
    cells = [cell for cell in book["cells"] if INJECTED not in _tags(cell)]
    if not params:
        return {**book, "cells": cells}
    at = next((n for n, cell in enumerate(cells) if TAG in _tags(cell)), None)
    if at is None:
        raise UsageError(f"{name} has no cell tagged `{TAG}`, which would take {', '.join(params)}", hint=HOW)
    given = _assigned(_source(cells[at]))
    for one in params if given is not None else ():
        if one not in given:  # type: ignore[operator]
            hint = did_you_mean(one, given or (), f"it has: {', '.join(given or ()) or 'none'}")
            raise UsageError(f"the cell of parameters of {name} has no {one!r}", hint=hint)
    source = "\n".join(f"{one} = {_written(part)}" for one, part in params.items())
    cell: dict[str, Any] = {
        "cell_type": "code",
        "id": "hostler-parameters",
        "metadata": {"tags": [INJECTED]},
        "execution_count": None,
        "outputs": [],
        "source": source,
    }
    return {**book, "cells": [*cells[: at + 1], cell, *cells[at + 1 :]]}


def _written(value: Any) -> str:
    """A value as Python reads it: `nan` and `inf` alone would be names."""
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if type(value) is dict:
        return "{" + ", ".join(f"{_written(k)}: {_written(v)}" for k, v in value.items()) + "}"
    if type(value) is list:
        return "[" + ", ".join(map(_written, value)) + "]"
    if type(value) is tuple:
        return "(" + "".join(f"{_written(part)}, " for part in value).strip() + ")"
    if type(value) is set and value:
        return "{" + ", ".join(map(_written, value)) + "}"
    if type(value) is complex:
        return f"complex({_written(value.real)}, {_written(value.imag)})"
    return repr(value)


def _tags(cell: Any) -> Sequence[str]:
    about = cell.get("metadata") if isinstance(cell, dict) else None
    tags = about.get("tags") if isinstance(about, dict) else None
    return tags if isinstance(tags, list) else []


def _source(cell: Mapping[str, Any]) -> str:
    source = cell.get("source", "")
    return source if isinstance(source, str) else "".join(source)


def _assigned(source: str) -> list[str] | None:
    """Names that a cell gives values to; None if it is not plain Python."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return None
    stored = (
        node for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    )
    return list(dict.fromkeys(node.id for node in stored))
