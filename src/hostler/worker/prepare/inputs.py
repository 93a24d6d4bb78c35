"""Files that runs take from other runs, fetched once per machine."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from hostler.errors import MissingError
from hostler.frozen import dataclass
from hostler.records import layout
from hostler.records.body import Record
from hostler.records.checkpoint import checkpoints, outputs
from hostler.records.checkpoint.checkpoints import Place
from hostler.records.checkpoint.tree import inside
from hostler.records.run import upstream
from hostler.spec.inputs import INIT, inputs_of, with_paths
from hostler.store import NotFound, Store
from hostler.worker.prepare.once import Note, once


@dataclass(frozen=True)
class Inputs:
    """`params` with paths in them; `init`: what the run begins from; `taken`: key → the run it is of."""

    params: Mapping[str, Any]
    init: Path | None = None
    taken: Mapping[str, str] = field(default_factory=dict)


def bring(
    params: Mapping[str, Any], init: Mapping[str, str], run: str, store: Store, cache: Path, note: Note
) -> Inputs:
    """The inputs of a run, here. MissingError if what they name has nothing to give."""
    first = [replace(one, key=f"{INIT} (--init-from)") for one in inputs_of({"": init})]
    inputs = [*inputs_of(params), *first]
    if not inputs:
        return Inputs(params)
    found = upstream.pinned(store, run, inputs)
    paths = {key: _here(record, store, cache, note) for key, record in found.items()}
    taken = {key: str(one["run"]) for key, one in found.items()}
    texts = {key: str(path) for key, path in paths.items()}
    return Inputs(with_paths(params, texts), paths[first[0].key] if first else None, taken)


def _here(one: Record, store: Store, cache: Path, note: Note) -> Path:
    what = f"{one['file'] or 'the result'} of {one['run']}"

    def make(folder: Path) -> None:
        note(f"fetching {what}")
        if "outputs" in one:
            _outputs(one, store, folder / "files")
        else:
            _checkpoint(one, store, folder / "files")

    mark = hashlib.sha256(repr(sorted(one.items(), key=str)).encode()).hexdigest()[:40]
    folder = once(cache / "inputs" / mark, make, what=f"fetching {what}", note=note) / "files"
    return folder / inside(str(one["file"]).strip("/")) if one["file"] else folder


def _checkpoint(one: Record, store: Store, folder: Path) -> None:
    place = Place(one["attempt"], one["step"])
    try:
        checkpoints.restore(store, checkpoints.read(store, one["run"], place), folder)
    except NotFound:
        raise MissingError(
            f"checkpoint {place.name} of {one['run']}, which an earlier attempt took, was deleted since",
            hint="submit the run under another name: it takes what is kept now",
        ) from None


def _outputs(one: Record, store: Store, folder: Path) -> None:
    wanted = str(one["file"] or "").strip("/")
    rows = outputs.read(store, layout.output_commit(one["run"], one["outputs"]))
    chosen = [r for r in rows if not wanted or r["name"] == wanted or r["name"].startswith(f"{wanted}/")]
    outputs.fetch(store, one["run"], chosen, folder)
