"""The archive: the best N models over all sweeps, each with parameters, curves, weights and provenance.

Nobody keeps a ranking. Whoever enters a run copies its files and writes COMMIT last; the rank of each is
computed by readers from all there are. One that is beyond N is beyond N for everybody who sees as much or
more, so any number of workers may enter and remove at once, and the true best N are never removed. What was
ever in it is noted for the trend, which outlives the models.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, field, replace
from math import isfinite, nan
from pathlib import Path
from typing import Any

from hostler.errors import DamagedError, NewerFormatError
from hostler.frozen import dataclass
from hostler.records import layout
from hostler.records.body import (
    MOMENT,
    NUMBER,
    PART,
    ROWS,
    TABLE,
    TEXT,
    WHOLE,
    Record,
    check_numbers,
    checked,
    checked_rows,
    decode,
    encode,
)
from hostler.records.checkpoint import checkpoints, outputs, selection
from hostler.records.checkpoint.restorer import row_of
from hostler.records.checkpoint.selection import KeptCheckpoint
from hostler.records.run import log, surroundings
from hostler.records.run.log import RunKey, RunLog
from hostler.records.run.state import fold
from hostler.records.series import packing, segments
from hostler.records.series.curve_columns import tracks
from hostler.records.series.segments import Segment
from hostler.records.sweep import sweeps
from hostler.spec.job import source_facts
from hostler.spec.ranking import BEST, KEPT, Judged, judge
from hostler.spec.states import COUNTED
from hostler.store import NotFound, Store

Say = Callable[[str], None]


@dataclass(frozen=True)
class ArchiveTerms:
    """How many are kept, and by what they are ranked. size: bytes that all of them may take; only: the state
    in which all of them ended, if one was asked for."""

    top: int
    metric: str
    goal: str = "max"
    size: int | None = None
    of: str = KEPT  # which value of the metric a run is ranked by
    only: str | None = None

    @property
    def name(self) -> str:
        """The metric, as an objective calls it."""
        return self.metric

    def counts(self, state: str | None) -> bool:
        """Whether a run that ended so may be in it; models of older archives do not say how they ended."""
        return state is None or state in ((self.only,) if self.only else COUNTED)


@dataclass(frozen=True)
class ArchivedRun:
    """A run in the archive, or one that may come in. value: the one that it is ranked by, `judged` tells of
    which step."""

    run: str
    sweep: str
    value: float
    k: int  # number of its end
    size: int = 0
    state: str | None = None  # how it ended
    record: Record = field(default_factory=dict, repr=False, compare=False)
    judged: Judged | None = None  # value, step and kind


def terms(store: Store) -> ArchiveTerms | None:
    """Terms of the archive that hold now; None: the project has no archive."""
    found = sweeps.newest(store, layout.archive_terms())
    if found is None:
        return None
    record = checked(found[1], _FIELDS, layout.archive_term(found[0]), ["top", "metric", "goal"])
    return ArchiveTerms(
        int(record["top"]),
        str(record["metric"]),
        str(record["goal"]),
        record.get("size"),
        str(record.get("of") or KEPT),
        record.get("only"),
    )


def agree(store: Store, wanted: ArchiveTerms) -> None:
    """From now on these hold."""
    while True:
        found = sweeps.newest(store, layout.archive_terms())
        if terms(store) == wanted:
            return
        number = found[0] if found else 0
        if store.put(layout.archive_term(number + 1), encode(asdict(wanted)), if_absent=True):
            return


def ranked(found: Iterable[ArchivedRun], terms: ArchiveTerms) -> list[ArchivedRun]:
    """The best first; of equal ones the first by name. NaN and infinities count for nothing. Pure."""
    sign = -1 if terms.goal == "max" else 1
    valued = [one for one in found if isfinite(one.value) and terms.counts(one.state)]
    return sorted(valued, key=lambda one: (sign * one.value, one.run))


def kept(found: Iterable[ArchivedRun], terms: ArchiveTerms) -> list[ArchivedRun]:
    """Entries that stay: the best N, as far as they fit; the best one always. Pure."""
    stay: list[ArchivedRun] = []
    taken = 0
    for run in ranked(found, terms)[: max(terms.top, 0)]:
        taken += run.size
        if terms.size is not None and taken > terms.size and stay:
            break
        stay.append(run)
    return stay


def entries(store: Store, terms: ArchiveTerms, say: Say = lambda line: None) -> list[ArchivedRun]:
    """All that have a COMMIT, unranked. The value is of the metric that is asked for. What cannot be read is
    said, and left out."""
    runs = []
    for row in store.list(layout.ARCHIVE, deep=False):
        name = row.key.removeprefix(layout.ARCHIVE).rstrip("/")
        record = _commit(store, name, say) if layout.is_run(name) else None
        if record:
            runs.append(_entry(record, terms))
    return runs


def candidate(key: RunKey, k: int, end: Record, terms: ArchiveTerms) -> ArchivedRun | None:
    """The run as one that may come in; None if it did not end well, or has not logged the metric."""
    judged, state = judge(end, terms), str(end.get("state"))
    if not terms.counts(state) or not judged or not judged.counts or end.get("copy_of"):
        return None
    return ArchivedRun(key.run, key.sweep, judged.value, k, state=state, record={"end": end}, judged=judged)


def candidates(store: Store, terms: ArchiveTerms, say: Say = lambda line: None) -> list[ArchivedRun]:
    """Every run of every sweep that ended well with this metric: none is passed over. What cannot be read is
    said, and hides no other."""
    runs = []
    for name in sweeps.names(store):
        try:
            newest = log.heads(store, name)
        except (DamagedError, NewerFormatError) as error:
            say(f"{name} is left out: {error}")
            continue
        trashed = sweeps.trashed(store, name)
        ends = packing.ends(store, name, newest, ranked_by=terms.metric)
        for run, k in newest.items():
            if run in trashed:
                continue
            try:
                end = ends.get(run) or packing.end_of(store, RunKey(name, run), k)
            except (DamagedError, NewerFormatError) as error:
                say(str(error))
                continue
            archived_run = candidate(RunKey(name, run), k, end, terms) if end else None
            if archived_run:
                runs.append(archived_run)
    return runs


def would_stay(one: ArchivedRun, there: Sequence[ArchivedRun], terms: ArchiveTerms) -> bool:
    """Whether it would be among those that stay, by what is in the archive now. Pure."""
    others = [run for run in there if run.run != one.run]
    return one in kept([*others, one], terms) and not any(
        run.run == one.run and run.k == one.k for run in there
    )


def enter(store: Store, one: ArchivedRun, terms: ArchiveTerms, say: Say = lambda line: None) -> ArchivedRun:
    """Copy the run into the archive: files, curves, then COMMIT. Two that enter one run write the same; what
    the run was before it was tried again goes first."""
    key = RunKey(one.sweep, one.run)
    before = _commit(store, one.run)
    if before and before["k"] != one.k:
        remove(store, one.run)
    job = sweeps.load(store, one.sweep)
    entries = RunLog(store, key).read_to(one.k).entries
    end = entries[-1]
    judged = one.judged or Judged(one.value)
    weights = selection.ranked(store, key, terms.metric, judged)
    rows = list(_copied(store, key, weights if judged.of == BEST else None, say))
    points = packing.points(store, one.run, end)
    packed = segments.packed(one.run, one.k, end, job.params(key.index), points)
    curves = segments.encode(one.sweep, [replace(packed, tracks=tracks(points))])  # long ones too
    store.put(layout.archived_curves(one.run), curves)
    size = len(curves) + sum(row["size"] for row in rows)
    state = fold(entries)
    record = {
        "run": one.run,
        "sweep": one.sweep,
        "index": key.index,
        "round": job.round(key.index),
        "k": one.k,
        "state": end.get("state"),
        "params": dict(job.params(key.index)),
        "metric": terms.metric,
        "goal": terms.goal,
        **_told(judged),
        "weights": f"checkpoint/{weights.folder}".rstrip("/") if weights else None,
        "values": {name: total["last"] for name, total in packed.totals.items()},
        "totals": {n: dict(total) for n, total in packed.totals.items() if not n.startswith("system/")},
        "kept": end.get("kept"),
        "means": end.get("means"),
        "files": rows,
        "size": size,
        "host": end.get("host"),
        "ended": end.get("at"),
        "command": list(job.command_of(key.index)),
        "source": source_facts(sweeps.with_source(job, state).source),
        "data": [asdict(item) for item in job.data],
        "environment": surroundings.of_attempt(store, one.run, state.attempt, entries),
    }
    note = {name: value for name, value in record.items() if name not in _NOT_NOTED}
    store.put(layout.entered_run(one.run, one.k), encode(note), if_absent=True)
    store.put(layout.archived_commit(one.run), encode(record))
    return replace(one, size=size, record=record)


def remove(store: Store, run: str) -> None:
    """COMMIT goes first: a folder without it is nothing."""
    store.delete(layout.archived_commit(run))
    store.delete(*[entry.key for entry in store.list(layout.archived(run))])


def beyond(there: Sequence[ArchivedRun], terms: ArchiveTerms) -> list[ArchivedRun]:
    """Entries that do not stay. Pure."""
    stay = {run.run for run in kept(there, terms)}
    return [run for run in there if run.run not in stay]


def curves(store: Store, run: str) -> Segment:
    key = layout.archived_curves(run)
    segment = segments.decode(store.get(key).data, key)
    segment.check_facts(key)
    return segment


def trend(store: Store, terms: ArchiveTerms, say: Say = lambda line: None) -> list[Record]:
    """Every run that was ever in the archive, by its end; each with `best`: the best value until then."""
    rows = [one for entry in store.list(layout.entered()) if (one := _read(store, entry.key, say))]
    best: float | None = None
    lines = []
    better = max if terms.goal == "max" else min
    for record in sorted(rows, key=lambda one: (one.get("ended") or 0.0, one["run"])):
        judged = _judged(record, terms)
        if judged and judged.counts:
            best = judged.value if best is None else better(best, judged.value)
            lines.append({**record, **_told(judged), "best": best})
    return lines


def _told(judged: Judged) -> Record:
    return {"value": judged.value, "of": judged.of, "step": judged.step}


def _commit(store: Store, run: str, say: Say = lambda line: None) -> Record | None:
    """None while it is entered or removed, and where it is of no use."""
    key = layout.archived_commit(run)
    record = _read(store, key, say)
    if record is None or any(record.get(name) is None for name in ("sweep", "k", "files", "size")):
        return None
    try:
        checked_rows(record["files"], _FILE, key, _FILE)
    except DamagedError as error:
        say(str(error))
        return None
    return record


def _read(store: Store, key: str, say: Say) -> Record | None:
    try:
        record = checked(decode(store.get(key).data, key), _FIELDS, key, ["run"])
        check_numbers(record.get("values") or {}, key)
        for total in checked_rows(list((record.get("totals") or {}).values()), {}, key):
            check_numbers(total, key)
        log.check_tables({name: record.get(name) for name in ("kept", "means")}, key)
        return record
    except NotFound:
        return None
    except (DamagedError, NewerFormatError) as error:
        say(str(error))
        return None


_FIELDS = {
    "run": PART,
    "sweep": PART,
    "index": WHOLE,
    "k": WHOLE,
    "state": TEXT,
    "only": TEXT,
    "params": TABLE,
    "metric": TEXT,
    "goal": TEXT,
    "value": NUMBER,
    "values": TABLE,
    "totals": TABLE,
    "kept": TABLE,
    "means": TABLE,
    "of": TEXT,
    "step": WHOLE,
    "weights": TEXT,
    "files": ROWS,
    "size": WHOLE,
    "host": TEXT,
    "ended": MOMENT,
    "command": ROWS,
    "source": TABLE,
    "data": ROWS,
    "environment": TABLE,
    "top": WHOLE,
}
_NOT_NOTED = frozenset(
    ("index", "k", "params", "weights", "files", "size", "host", "command", "source", "data", "environment")
)  # of a model that was ever in it
_FILE = {"name": TEXT, "size": WHOLE, "sha256": TEXT, "n": WHOLE, "parts": WHOLE}


def _entry(record: Record, terms: ArchiveTerms) -> ArchivedRun:
    judged = _judged(record, terms)
    return ArchivedRun(
        record["run"],
        record["sweep"],
        judged.value if judged else nan,
        record["k"],
        record["size"],
        record.get("state"),
        record,
        judged,
    )


def _judged(record: Record, terms: ArchiveTerms) -> Judged | None:
    """The value by these terms of a run that was entered, maybe by others. An older hostler noted last values
    alone."""
    last = {name: {"last": value} for name, value in (record.get("values") or {}).items()}
    return judge({**record, "metrics": {**last, **(record.get("totals") or {})}}, terms)


def _copied(store: Store, key: RunKey, weights: KeptCheckpoint | None, say: Say) -> Iterable[dict[str, Any]]:
    """Rows of the files that were copied: of the checkpoint with the weights that it is ranked by, or of the
    newest one, and of what it left."""
    n = 0
    for row, sources in [*_of_checkpoint(store, key.run, weights, say), *_of_outputs(store, key.run)]:
        for at, source in enumerate(sources):
            _copy(store, source, layout.archived_file(key.run, n + at), row)
        yield {
            "name": row["name"],
            "size": row["size"],
            "sha256": row["sha256"],
            "n": n,
            "parts": len(sources),
        }
        n += len(sources)


def _of_checkpoint(
    store: Store, run: str, weights: KeptCheckpoint | None, say: Say
) -> list[tuple[Record, list[str]]]:
    first = [weights.place] if weights else []
    for place in dict.fromkeys([*first, *checkpoints.committed(store, run)]):
        try:
            record = checkpoints.restorable(store, run, place).record
        except (NotFound, DamagedError, NewerFormatError) as error:
            say(f"checkpoint {place.name} of {run} is passed over: {error}")
            continue
        rows = [row for row in record["files"] if not row.get("link")]
        named = [{**row, "name": f"checkpoint/{row['name']}"} for row in rows]
        return [(row, checkpoints.keys(run, place, row)) for row in named]
    return []


def _of_outputs(store: Store, run: str) -> list[tuple[Record, list[str]]]:
    found = outputs.newest(store, run)
    if found is None:
        return []
    named = [{**row, "name": f"outputs/{row['name']}"} for row in found[1]]
    return [(row, [layout.output_file(run, row["attempt"], int(row["n"]))]) for row in named]


def _copy(store: Store, source: str, target: str, row: Record) -> None:
    """Through a file: an object may be larger than memory, but for one that holds several."""
    if (begin := row_of(row).at) is not None:
        store.put(target, store.get(source, start=begin, end=begin + row["size"]).data)
        return
    with tempfile.TemporaryDirectory(prefix="hostler-") as folder:
        path = Path(folder) / "object"
        store.download(source, path)
        store.upload(path, target)
