"""Packs a function that workers cannot import: of a notebook's cell, a lambda, a closure.

cloudpickle turns it into bytes. These lie in one zip with the cells they come from, and with cloudpickle
itself, so that machines need not have it. The zip is part of the code snapshot; its hash is in the spec, and
the run's own process (`sdk/call.py`) checks it before it loads anything of it.
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
import linecache
import os
import pickle
import re
import secrets
import sys
import types
import zipfile
from collections import ChainMap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hostler import env
from hostler.errors import UsageError
from hostler.fleet.snapshot import secrecy
from hostler.frozen import dataclass

FILE = ".hostler-function.zip"
EQUAL = ".equal"  # ending of a note: by which hash this function was packed first
TIME = (1980, 1, 1, 0, 0, 0)  # of everything in the zip: equal functions have equal bytes
REFUSALS = (pickle.PicklingError, TypeError, AttributeError, ValueError, RuntimeError, OSError)
_INPUT = re.compile(r"<ipython-input-(\d+)-\w+>")


@dataclass(frozen=True)
class Packed:
    """A function as one file in this machine's cache."""

    name: str
    sha: str
    path: Path
    file: str = FILE  # in the code snapshot

    @property
    def place(self) -> str:
        """The words by which `sdk/call.py` finds it in the code."""
        return f"{self.file}:{self.name}"


def pack(function: Callable[..., Any], root: Path, names: tuple[str, ...] = ()) -> Packed:
    """Pack the function of a project at `root`; refused if it holds one of the secrets of these names."""
    name = name_of(function)
    data, cells = _pickled(function, name)
    secrecy.check_bytes(names, f"{name}, or what it uses,", data + "".join(cells.values()).encode())
    known: dict[str, Any] = {"name": name, "python": sys.version_info[:2], "path": _paths(root)}
    mark = hashlib.sha256(json.dumps(known).encode() + (_dumps(function, {}, _unlabelled) if cells else data))
    if (earlier := _earlier(name, mark.hexdigest())) is not None:
        return earlier
    about = json.dumps({**known, "cells": cells}).encode()
    body = _zipped({"about.json": about, "function.pickle": data, **_loader()})
    sha = hashlib.sha256(body).hexdigest()
    kept(sha.encode(), mark.hexdigest(), EQUAL)
    return Packed(name, sha, kept(body, sha))


def _earlier(name: str, mark: str) -> Packed | None:
    """The same function as it was packed before: a cell that is run again has another number, and that alone
    makes no other code."""
    folder = env.cache_dir() / "functions"
    try:
        sha = (folder / f"{mark}{EQUAL}").read_text()
        body = (folder / f"{sha}.zip").read_bytes()
    except (OSError, ValueError):
        return None
    return Packed(name, sha, folder / f"{sha}.zip") if hashlib.sha256(body).hexdigest() == sha else None


def name_of(function: Callable[..., Any]) -> str:
    """`lambda` for one without a name."""
    while isinstance(function, functools.partial):
        function = function.func
    found = getattr(function, "__qualname__", type(function).__qualname__)
    return str(found).rpartition("<locals>.")[2].strip("<>")


def _pickled(function: Callable[..., Any], name: str) -> tuple[bytes, dict[str, str]]:
    """The function as bytes, and the source of the cells it comes from, by what Jupyter calls them."""
    cells: dict[str, str] = {}
    try:
        return _dumps(function, cells), cells
    except REFUSALS as error:
        user, used, value = _culprit(function, name) or (name, "", function)
        known = f"'{_type(value)}'" in str(error) or not used
        why = "cannot be pickled" + ("" if known else f" ({error})")
        text = f"`{used}`, {_article(_type(value))}, which {why}" if used else f"what {why} ({error})"
        raise UsageError(f"{user} uses {text}", hint="make it inside the function") from None


def _dumps(
    value: Any, cells: dict[str, str], named: Callable[[str, dict[str, str]], str] | None = None
) -> bytes:
    """`named`: the name of code's file in tracebacks; by default Jupyter's for a cell, with its source."""
    named = named or _labelled
    try:
        import cloudpickle
    except ModuleNotFoundError:
        raise UsageError(
            "a function that is not in a file is sent by the package cloudpickle, which is not installed",
            hint="pip install 'hostler[notebooks]', or put the function in a .py file",
        ) from None
    plain = cloudpickle.Pickler.dispatch_table[types.CodeType]

    def reduce_code(code: types.CodeType) -> Any:
        label = named(code.co_filename, cells)
        return plain(code.replace(co_filename=label) if label != code.co_filename else code)

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc, name-defined, unused-ignore]
        dispatch_table = ChainMap({types.CodeType: reduce_code}, cloudpickle.Pickler.dispatch_table)

    with io.BytesIO() as out:
        Pickler(out).dump(value)
        return out.getvalue()


def _labelled(file: str, cells: dict[str, str]) -> str:
    """The name of some code in tracebacks; the source of what is in no file is kept under it."""
    if os.path.isfile(file):
        return file
    label = _cell(file)
    if label not in cells and (lines := linecache.getlines(file)):
        cells[label] = "".join(lines)
    return label


def _unlabelled(file: str, cells: dict[str, str]) -> str:
    """One name for all cells."""
    return file if os.path.isfile(file) else "cell"


def _cell(file: str) -> str:
    """`Cell In[3]`, as Jupyter calls it; else as it is."""
    ask = getattr(sys.modules.get("IPython"), "get_ipython", None)
    compiler: Any = getattr(ask() if ask else None, "compile", None)
    found = compiler.format_code_name(file) if hasattr(compiler, "format_code_name") else None
    if found:
        return " ".join(found)
    match = _INPUT.fullmatch(file)
    return f"Cell In[{match[1]}]" if match else file


def _culprit(function: Any, name: str, seen: frozenset[int] = frozenset()) -> tuple[str, str, Any] | None:
    """(user, name, value) of what keeps the function from being pickled, as deep as functions lead."""
    for used, value in _used(function):
        if id(value) in seen:
            continue
        try:
            _dumps(value, {})
        except REFUSALS:
            inner = isinstance(value, types.FunctionType)
            deeper = _culprit(value, f"{name} uses `{used}`, which", seen | {id(function)}) if inner else None
            return deeper or (name, used, value)
    return None


def _used(function: Any) -> Iterator[tuple[str, Any]]:
    """Names and values that go along with a function."""
    if isinstance(function, functools.partial):
        yield from _used(function.func)
        yield from ((f"argument {n}", value) for n, value in enumerate(function.args, 1))
        yield from function.keywords.items()
        return
    if isinstance(function, types.MethodType):
        yield "self", function.__self__
        function = function.__func__
    code = getattr(function, "__code__", None)
    if code is None:
        yield from getattr(function, "__dict__", {}).items()
        return
    for variable, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
        try:
            yield variable, cell.cell_contents
        except ValueError:  # not set yet
            continue
    defaults = function.__defaults__ or ()
    yield from zip(code.co_varnames[: code.co_argcount][-len(defaults) :], defaults, strict=False)
    yield from (function.__kwdefaults__ or {}).items()
    known = function.__globals__
    yield from ((one, known[one]) for one in dict.fromkeys(_names(code)) if one in known)


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _names(inner)


def _type(value: Any) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _article(word: str) -> str:
    return f"{'an' if word.lstrip('_')[:1].lower() in 'aeiou' else 'a'} {word}"


def _paths(root: Path) -> list[str]:
    """Folders of the project that modules are imported from here, from its root on."""
    real = os.path.realpath(root)
    inside = (os.path.relpath(os.path.realpath(path or "."), real) for path in sys.path)
    return [path for path in dict.fromkeys(inside) if not path.startswith("..")]


def _loader() -> dict[str, bytes]:
    """cloudpickle's own files, as they are installed here."""
    import cloudpickle

    folder = Path(cloudpickle.__file__).parent
    return {f"cloudpickle/{path.name}": path.read_bytes() for path in sorted(folder.glob("*.py"))}


def _zipped(files: dict[str, bytes]) -> bytes:
    with io.BytesIO() as out:
        with zipfile.ZipFile(out, "w") as made:
            for name, data in files.items():
                made.writestr(zipfile.ZipInfo(name, TIME), data)
        return out.getvalue()


def kept(body: bytes, sha: str, ending: str = ".zip") -> Path:
    """A file of this content in this machine's cache."""
    folder = env.cache_dir() / "functions"
    folder.mkdir(parents=True, exist_ok=True)
    fresh, path = folder / f"{secrets.token_hex(8)}.tmp", folder / f"{sha}{ending}"
    fresh.write_bytes(body)
    os.replace(fresh, path)
    return path
