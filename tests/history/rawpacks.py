"""Packs taken apart by docs/storage.md alone: objects of packed runs, where they were before.

Shares no code with hostler. What a seal covers is what its pack holds, whatever still lies in its place.
"""

from __future__ import annotations

import json
import re
import struct
import zlib
from collections.abc import Mapping
from typing import Any

PREFIX, LENGTH = struct.Struct("<4sHH"), struct.Struct("<I")
SEAL = re.compile(r"sweeps/([^/]+)/sealed/(\d+)")
LOG = re.compile(r"sweeps/([^/]+)/(?:log|ends)/(\d{7}-.+)-(\d+)\.json")
LEFT = re.compile(r"runs/([^/]+)/(?:metrics|logs|env)/(\d+)(?:-(\d+))?\b.*")
ADDED_LATER = 999_999  # the rank of points that stay objects of their own


def unpacked(objects: Mapping[str, bytes]) -> dict[str, bytes]:
    """The objects of a store as if nothing of it were packed."""
    seals: dict[str, tuple[int, dict[str, Any]]] = {}
    for key, data in objects.items():
        if match := SEAL.fullmatch(key):
            seal, sweep = json.loads(zlib.decompress(_body(data, b"HSTL"))), match[1]
            first = json.loads(objects.get(f"sweeps/{sweep}/spec/000001.json", b"{}"))
            if seal["submission"] == first.get("token"):
                seals[sweep] = max(seals.get(sweep, (0, {})), (int(match[2]), seal), key=lambda one: one[0])
    found = dict(objects)
    for sweep, (_, seal) in seals.items():
        heads = dict(zip(seal["runs"], seal["heads"], strict=True))
        whole = {run for run, all_of_it in zip(seal["runs"], seal["whole"], strict=True) if all_of_it}
        for key in [key for key in found if _is_covered(key, sweep, heads, whole)]:
            del found[key]
        for pack, start, size in zip(seal["pack"], seal["start"], seal["size"], strict=True):
            data = objects[f"sweeps/{sweep}/packs/{seal['packs'][pack]}"]
            _body(data, b"HSTP")
            held = _chunk(data[start : start + size])
            found |= {key: held[key] for key in held if _is_covered(key, sweep, heads, whole)}
    return found


def _is_covered(key: str, sweep: str, heads: Mapping[str, int], whole: set[str]) -> bool:
    if match := LOG.fullmatch(key):
        return match[1] == sweep and int(match[3]) <= heads.get(match[2], 0)
    match = LEFT.fullmatch(key)
    if match is None or match[1] not in whole or int(match[3] or 0) == ADDED_LATER:
        return False
    return int(match[2]) <= heads[match[1]]


def _body(data: bytes, name: bytes) -> bytes:
    magic, version, zero = PREFIX.unpack_from(data)
    if (magic, version, zero) != (name, 1, 0):
        raise ValueError(f"not {name!r} of format 1: {data[:8]!r}")
    return data[PREFIX.size :]


def _chunk(packed: bytes) -> dict[str, bytes]:
    data = zlib.decompress(packed)
    [length] = LENGTH.unpack_from(data)
    at, found = LENGTH.size + length, {}
    for key, size, *_ in json.loads(data[LENGTH.size : at]):
        found[key] = data[at : at + size]
        at += size
    return found
