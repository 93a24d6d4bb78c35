"""A sweep whose runs have all ended, written as its workers leave it, or as `hostler pack` does afterwards.

One run is carried out by the real writers; every other is a copy of its objects with another id. Nothing is
made durable or read back, so that a million packed runs take a minute where workers and the packer would take
hours. The sweep is the file `sweep.yaml` of a project: `hostler plan` finds it. `RUN` alone has left a file,
for `hostler pull`, and unless the sweep is packed, metrics, output and an environment.
"""

from __future__ import annotations

import math
import os
import tempfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

from hostler import settings
from hostler.backends.project_file import load_sweep
from hostler.fleet.sweep import draft_sweep, edited
from hostler.records import layout, project
from hostler.records.body import encode
from hostler.records.checkpoint import outputs
from hostler.records.checkpoint.outputs import Output
from hostler.records.packs import covered_keys, pack_format, seals
from hostler.records.packs.pack_format import PackedObject, Where
from hostler.records.packs.packer import BYTES, REFUSED
from hostler.records.run import surroundings
from hostler.records.run.attempt import Attempt, claim
from hostler.records.run.entries import Claim
from hostler.records.run.log import RunKey, RunLog
from hostler.records.series import packing, segments
from hostler.records.series.logs import LogWriter
from hostler.records.series.metrics import MetricWriter, summary
from hostler.records.series.points import Point
from hostler.records.series.segments import PackedRun
from hostler.records.sweep import sweeps
from hostler.spec.job import Job
from hostler.spec.project import default_project
from hostler.store import Store
from hostler.store.memory import MemoryStore
from hostler.store.registry import is_folder

NAME, RUN = "all", 77
SWEEP = f"""name: {NAME}
command: python train.py
metric: loss
parameters:
  lr: {{start: 0, step: 0.001, count: ROWS}}
  seed: {{start: 0, step: 1, count: COLUMNS}}
"""
POINTS = [Point(step, 1.7e9 + step, {"loss": 1 / (step + 1), "accuracy": step / 10}) for step in range(10)]
QUICK = 1  # zlib's level; the packer's is 6, which takes a million runs half a minute longer
PACK = "0123456789abcdef"  # a packer's own name


def submit(store: Store, folder: Path, count: int) -> Job:
    """The sweep of a project in `folder`."""
    (folder / "train.py").write_text("import sys; print(sys.argv)\n")
    rows = next(
        n for n in range(math.isqrt(count), 0, -1) if count % n == 0
    )  # an axis is held by whoever reads
    text = SWEEP.replace("ROWS", str(rows)).replace("COLUMNS", str(count // rows))
    (folder / "sweep.yaml").write_text(text)
    job = draft_sweep(load_sweep(folder / "sweep.yaml", default_project(folder), commanded=False))
    job = edited(store, None, job).job
    project.ensure(store, "bench", settings.timing(one_machine=True))
    if not sweeps.submit(store, job):
        raise RuntimeError(f"{NAME} is there already")
    return job


def end_all(store: Store, job: Job, *, packed: bool) -> None:
    """Leave what is left of the sweep once all its runs have ended."""
    pattern = _Pattern(job)
    put = _putter(store)
    for key, data in pattern.objects.items():
        if not (packed and covered_keys.place(key)):
            put(key, data)
    (_pack if packed else _log_all)(put, job, pattern)
    rows = _segment_rows(job, pattern.row)
    for n, batch in enumerate(iter(lambda: list(islice(rows, packing.RUNS)), []), start=1):
        put(layout.segment(NAME, n), segments.encode(NAME, batch))


def seal_one(store: Store, job: Job) -> None:
    """Leave `RUN` packed, and a seal that names all others too, whose packs nobody reads."""
    pattern, start = _Pattern(job), len(pack_format.HEAD)
    for key, data in pattern.objects.items():
        if not covered_keys.place(key):
            store.put(key, data)
    chunk = pattern.chunk(job.run_id(RUN))
    rows = [
        Where(
            run, 2, (2,), True, f"{PACK}-{layout.number(int(n != RUN))}", start + n * len(chunk), len(chunk)
        )
        for n, run in enumerate(sweeps.run_ids(job))
    ]
    store.put(layout.pack(NAME, rows[RUN].pack), pack_format.HEAD + bytes(RUN * len(chunk)) + chunk)
    store.put(layout.packed_spec(NAME), encode({"format": REFUSED, "kind": "packed"}))
    store.put(layout.seal(NAME, 1), seals.encode_seal(NAME, rows))


class _Pattern:
    """The objects that a run has left, and its row in a segment; another has the same but for its id."""

    def __init__(self, job: Job) -> None:
        self.objects = _carried_out(job)
        self._id = job.run_id(RUN).encode()
        run = job.run_id(RUN)
        self._entries = {
            key: data for key, data in self.objects.items() if key.startswith(layout.sweep(NAME))
        }
        records = [PackedObject(key, data, "0" * 16, 1.7e9) for key, data in self._covered()]
        self._chunk = zlib.decompress(pack_format.encode_chunk(records))
        end = packing.end_of(_holding(self.objects), RunKey(NAME, run), 2)
        assert end is not None
        self.row = segments.packed(run, 2, end, job.params(RUN), POINTS)

    def entries(self, run: str) -> Iterator[tuple[str, bytes]]:
        """Log and copy of the end of a run."""
        mine = run.encode()
        for key, data in self._entries.items():
            yield key.replace(self._id.decode(), run), data.replace(self._id, mine)

    def chunk(self, run: str) -> bytes:
        return zlib.compress(self._chunk.replace(self._id, run.encode()), QUICK)

    def _covered(self) -> list[tuple[str, bytes]]:
        """What a pack holds of it: its log, the copy of its end, then the rest."""
        covered = [item for item in self.objects.items() if covered_keys.place(item[0])]
        return sorted(covered, key=lambda item: (not item[0].startswith(layout.logs_of(NAME)), item[0]))


def _carried_out(job: Job) -> dict[str, bytes]:
    """Objects that the real writers leave of a run."""
    store, key = MemoryStore(), RunKey(NAME, job.run_id(RUN))
    run_log = RunLog(store, key).read_on()
    held = claim(store, run_log, 60.0, lambda: 0.0, Claim("w-1", facts={"host": "here"}))
    assert held is not None
    surroundings.write(store, key.run, held.number, {"host": "here", "python": "3.11"})
    MetricWriter(store, key.run, held.number).write(POINTS)
    LogWriter(store, key.run, held.number).write(b"epoch 1 of 10\n" * 20)
    _leave_file(store, held)
    facts = {"host": "here", "attempts": 1, "started": 1.7e9, "seconds": 1.5, "total": 1.5, "exit": 0}
    held.end("done", **facts, step=9, metrics=summary(POINTS))
    return {entry.key: store.get(entry.key).data for entry in store.list("")}


def _leave_file(store: Store, held: Attempt) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "result.txt"
        path.write_text("0.5\n")
        outputs.keep(store, held, [Output(path.name, path)], [], lambda: None, {})


def _holding(objects: dict[str, bytes]) -> Store:
    store = MemoryStore()
    for key, data in objects.items():
        store.put(key, data)
    return store


def _putter(store: Store) -> Callable[[str, bytes], object]:
    """What puts an object; into a folder without making it durable."""
    return _into_folder(Path(store.url)) if is_folder(store.url) else store.put


def _into_folder(root: Path) -> Callable[[str, bytes], object]:
    made: set[str] = set()

    def put(key: str, data: bytes) -> None:
        folder = key.rpartition("/")[0]
        if folder not in made:
            os.makedirs(root / folder, exist_ok=True)
            made.add(folder)
        with open(f"{root}/{key}", "wb", buffering=0) as file:
            file.write(data)

    return put


def _log_all(put: Callable[[str, bytes], object], job: Job, pattern: _Pattern) -> None:
    for run in sweeps.run_ids(job):
        for key, data in pattern.entries(run):
            put(key, data)


def _pack(put: Callable[[str, bytes], object], job: Job, pattern: _Pattern) -> None:
    rows, parts, size, names = list[Where](), [pack_format.HEAD], len(pack_format.HEAD), list[str]()

    def flush() -> None:
        nonlocal parts, size
        names.append(f"{PACK}-{layout.number(len(names) + 1)}")
        put(layout.pack(NAME, names[-1]), b"".join(parts))
        parts, size = [pack_format.HEAD], len(pack_format.HEAD)

    for run in sweeps.run_ids(job):
        chunk, name = pattern.chunk(run), f"{PACK}-{layout.number(len(names) + 1)}"
        rows.append(Where(run, 2, (2,), True, name, size, len(chunk)))
        parts.append(chunk)
        size += len(chunk)
        if size >= BYTES:
            flush()
    if len(parts) > 1:
        flush()
    put(layout.packed_spec(NAME), encode({"format": REFUSED, "kind": "packed"}))
    put(layout.seal(NAME, 1), seals.encode_seal(NAME, rows))


def _segment_rows(job: Job, row: PackedRun) -> Iterator[PackedRun]:
    for index, run in enumerate(sweeps.run_ids(job)):
        yield replace(row, run=run, params=job.params(index))
