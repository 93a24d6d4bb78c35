"""Collects the evidence of a drilled run from its store and the witness's files."""

from __future__ import annotations

import json
import tempfile
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hostler.drill.evidence import Curve, DrillAttempt, Evidence, sights
from hostler.records import layout
from hostler.records.checkpoint import checkpoints, outputs
from hostler.records.checkpoint.checkpoints import Place
from hostler.records.checkpoint.saved_folder import COMMIT, mark_of
from hostler.records.checkpoint.tree import hash_file
from hostler.records.run import control
from hostler.records.run.log import RunKey
from hostler.records.series import metrics
from hostler.records.series.logs import LogReader
from hostler.records.series.metrics import FragmentCache
from hostler.records.series.points import Point
from hostler.store import NotFound, Store

OWN_LINE = "[hostler] "


def collect(
    store: Store, key: RunKey, seen: Path, tries: Sequence[DrillAttempt], *, joined: bool
) -> Evidence:
    """`tries` is what the rig itself knows of each attempt: number, seconds, whether it was killed."""
    state = control.state_of(store, key)
    fragments = FragmentCache().update(store, key.run)
    whole = []
    for attempt in tries:
        own = [f for f in fragments if f.attempt == attempt.number]
        origin = own[0].origin if own else None
        steps = [p.step for f in own for p in f.points if not all(n.startswith("system/") for n in p.values)]
        restored = Place(origin.attempt, origin.step).name if origin else ""
        whole.append(
            replace(attempt, restored=restored, steps=tuple(steps), sights=sights(seen, attempt.number))
        )
    failure = (state.end or {}).get("failure") or {}
    return Evidence(
        state=state.state,
        failure=failure.get("message", ""),
        joined=joined,
        curves=_curves(metrics.chain(fragments, state.attempt)),
        lines=tuple(_lines(store, key.run)),
        files=tidied({**_checkpoint(store, key.run), **_outputs(store, key.run, state.attempt)}),
        tries=tuple(whole),
    )


def tidied(files: Mapping[str, Mapping[str, str]]) -> dict[str, Mapping[str, str]]:
    """The part of the library's checkpoint that the script tracks: its time differs anyway."""
    found: dict[str, Mapping[str, str]] = {}
    for name, content in files.items():
        *above, last = name.split("/")
        if not any(mark_of(part) for part in above):
            found[name] = content
        elif last != COMMIT:
            own = {k: v for k, v in content.items() if not k.startswith(("rng.", "run.", "state."))}
            found["/".join([*("last" if mark_of(part) else part for part in above), last])] = own
    return found


def _curves(points: Sequence[Point]) -> dict[str, Curve]:
    found: dict[str, dict[int, float]] = {}
    for point in points:
        for name, value in point.values.items():
            found.setdefault(name, {})[point.step] = value
    return dict(found)


def _lines(store: Store, run: str) -> list[str]:
    text = b"".join(piece.data for piece in LogReader(store, run).read()).decode("utf-8", "replace")
    return [line.strip() for line in text.splitlines() if line.strip() and not line.startswith(OWN_LINE)]


def _checkpoint(store: Store, run: str) -> dict[str, dict[str, str]]:
    """The files of the newest checkpoint."""
    places = checkpoints.committed(store, run)
    if not places:
        return {}
    with tempfile.TemporaryDirectory(prefix="hostler-drill-") as scratch:
        target = Path(scratch) / "checkpoint"
        checkpoints.restore(store, checkpoints.read(store, run, places[0]), target)
        files = sorted(path for path in target.rglob("*") if path.is_file())
        return {f"checkpoint/{path.relative_to(target)}": parts(path) for path in files}


def _outputs(store: Store, run: str, attempt: int) -> dict[str, dict[str, str]]:
    key = layout.output_commit(run, attempt)
    try:
        rows = outputs.read(store, key)
    except NotFound:
        return {}
    named = [row for row in rows if not row.get("unnamed")]  # others are logs and the like, which differ
    with tempfile.TemporaryDirectory(prefix="hostler-drill-") as scratch:
        outputs.fetch(store, run, named, Path(scratch))
        return {f"output/{row['name']}": parts(Path(scratch) / row["name"]) for row in named}


# A file as its parts, so that a difference can be named: arrays of an archive, tensors, keys of JSON.


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
    tensors = {}
    for name, about in header.items():
        if name != "__metadata__":
            begin, end = about["data_offsets"]
            tensors[name] = f"{zlib.crc32(data[8 + length + begin : 8 + length + end]):08x}"
    return tensors


def _keys(value: Any, prefix: str = "") -> dict[str, str]:
    if not isinstance(value, dict) or not value:
        return {prefix: json.dumps(value, sort_keys=True)}
    keys: dict[str, str] = {}
    for key, item in value.items():
        keys |= _keys(item, f"{prefix}.{key}" if prefix else str(key))
    return keys
