"""A file as its parts, so that a difference can be named: arrays of an archive, tensors, keys of JSON."""

from __future__ import annotations

import json
import zipfile
import zlib
from pathlib import Path
from typing import Any

from hostler.records.checkpoint.tree import hash_file

DERIVED = {".data/serialization_id"}  # a torch archive's own mark of the rest
LARGEST_JSON = 50_000_000


def parts(path: Path) -> dict[str, str]:
    """Part → mark of its content. One part named '' where nothing is known of what is inside."""
    try:
        if zipfile.is_zipfile(path):  # .npz, and what torch saves
            with zipfile.ZipFile(path) as archive:
                members = {_inner(info.filename): f"{info.CRC:08x}" for info in archive.infolist()}
                return {name: crc for name, crc in members.items() if name not in DERIVED}
        if path.suffix == ".safetensors":
            return _tensors(path)
        if path.suffix == ".json" and path.stat().st_size < LARGEST_JSON:
            return _keys(json.loads(path.read_text()))
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile):
        pass  # not what its name says: one whole
    return {"": hash_file(path)}


def _inner(name: str) -> str:
    """A torch archive has all its members in a folder named like the file."""
    return name.split("/", 1)[-1]


def _tensors(path: Path) -> dict[str, str]:
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    found = {}
    for name, about in header.items():
        if name != "__metadata__":
            begin, end = about["data_offsets"]
            found[name] = f"{zlib.crc32(data[8 + length + begin : 8 + length + end]):08x}"
    return found


def _keys(value: Any, prefix: str = "") -> dict[str, str]:
    if not isinstance(value, dict) or not value:
        return {prefix: json.dumps(value, sort_keys=True)}
    found: dict[str, str] = {}
    for key, item in value.items():
        found |= _keys(item, f"{prefix}.{key}" if prefix else str(key))
    return found
