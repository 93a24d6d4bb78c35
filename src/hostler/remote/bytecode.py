"""Bytecode of hostler as a zip beside the library in the store, by which machines start without compiling.

A machine that has just unpacked hostler compiles for longer than all else takes until its worker's first
claim. So the first worker of a launch leaves what its Python made, for those that come after it with the
same one. Another Python asks for another key, and what does not suit it is compiled as ever.
"""

from __future__ import annotations

import io
import marshal
import sys
import zipfile
from collections.abc import Iterable
from importlib.machinery import SourceFileLoader
from importlib.util import MAGIC_NUMBER, cache_from_source, find_spec, source_hash
from pathlib import Path

from hostler.remote.library_zip import TIME

UNCHECKED = (1).to_bytes(4, "little")  # it belongs to its source by a hash, which no import compares


def code_of_modules(names: Iterable[str], place: Path) -> bytes:
    """A zip with the code of these modules, of those whose source is below the folder."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as packed:
        for name in sorted(names):
            loader = getattr(find_spec(name), "loader", None)
            if isinstance(loader, SourceFileLoader) and Path(loader.path).is_relative_to(place):
                file = Path(cache_from_source(loader.path, optimization="")).relative_to(place)
                entry = zipfile.ZipInfo(file.as_posix(), TIME)
                packed.writestr(entry, _code(loader, name), zipfile.ZIP_DEFLATED)
    return target.getvalue()


def _code(loader: SourceFileLoader, name: str) -> bytes:
    source = loader.get_data(loader.path)
    return MAGIC_NUMBER + UNCHECKED + source_hash(source) + marshal.dumps(loader.get_code(name))


def came_along(module_file: str) -> bool:
    """Whether the code of this module is such, and not made here."""
    try:
        with open(cache_from_source(module_file, optimization=""), "rb") as file:
            return file.read(8)[4:] == UNCHECKED
    except OSError:
        return False


def tag() -> str:
    """Name of this Python's bytecode, as `cpython-312`."""
    return str(sys.implementation.cache_tag)
