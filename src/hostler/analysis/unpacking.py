"""Long curves from their fragments, without an object for each point: points that all hold the same metrics
lie in the bytes like the rows of a table."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from hostler.records import layout
from hostler.records.series import metrics
from hostler.records.series.curve_columns import Track, tracks
from hostler.store import NotFound, Store

_HEAD = struct.Struct("<IB")

Table = tuple[list[str], Any]  # names, and a structured array: time, step, values


def long_tracks(store: Store, run: str, attempt: int) -> list[Track]:
    """The curves of a run, as `metrics.read` would tell them."""
    found = _plain(store, run)
    return tracks(metrics.read(store, run, attempt)) if found is None else [found]


def totals(found: Sequence[Track]) -> dict[str, dict[str, float]]:
    """`metrics.summary` of their points."""
    return {name: _total(track, values) for track in found for name, values in track.values.items()}


def _total(track: Track, values: Any) -> dict[str, float]:
    numbers = np.asarray(values)
    some = numbers[~np.isnan(numbers)]
    low, high = (float(some.min()), float(some.max())) if len(some) else (math.nan, math.nan)
    return {"min": low, "max": high, "last": float(numbers[-1]), "step": int(track.steps[-1])}


def _plain(store: Store, run: str) -> Track | None:
    """The curve of a run of one writer that logged the same metrics at every step; None for all others."""
    tables: list[Table] = []
    writers = set()
    for entry in store.list(layout.metrics(run)):
        if (place := layout.split_fragment(entry.key)) is None:
            continue
        writers.add(place[:2])
        try:
            data = store.get(entry.key).data
            table = _table(metrics.body(data, entry.key))
        except NotFound:
            return None
        if table is None or len(writers) > 1:
            return None
        if metrics.is_whole(data, entry.key):
            tables = []
        if len(table[1]):
            tables.append(table)
    if not tables or any(names != tables[0][0] for names, _ in tables):
        return None
    whole = np.concatenate([rows for _, rows in tables])
    return Track(
        whole["step"].astype("<i8"),
        whole["time"].astype("<f8"),
        {name: whole[f"v{n}"].astype("<f8") for n, name in enumerate(tables[0][0])},
    )


def _table(data: bytes) -> Table | None:
    at, names = 0, dict[int, str]()
    while at + _HEAD.size <= len(data):
        length, kind = _HEAD.unpack_from(data, at)
        if kind != 1:
            break
        payload = data[at + _HEAD.size : at + _HEAD.size + length]
        if not 2 <= len(payload) == length:
            return None  # damaged: whoever reads it point by point says so
        names[struct.unpack_from("<H", payload)[0]] = payload[2:].decode("utf-8", "replace")
        at += _HEAD.size + length
    if at == len(data):
        return [], np.empty(0)
    if at + _HEAD.size > len(data):
        return None
    size = _HEAD.size + length
    fields = [("length", "<u4"), ("kind", "u1"), ("time", "<f8"), ("step", "<i8")]
    for n in range(len(names)):
        fields += [(f"i{n}", "<u2"), (f"v{n}", "<f8")]
    if kind != 2 or size != np.dtype(fields).itemsize or (len(data) - at) % size:
        return None
    rows = np.frombuffer(data, np.dtype(fields), offset=at)
    ids = [int(rows[f"i{n}"][0]) for n in range(len(names))]
    same = all(bool((rows[f"i{n}"] == one).all()) for n, one in enumerate(ids))
    if (
        not same
        or not names.keys() >= set(ids)
        or not bool((rows["length"] == length).all() and (rows["kind"] == 2).all())
    ):
        return None
    return [names[one] for one in ids], rows
