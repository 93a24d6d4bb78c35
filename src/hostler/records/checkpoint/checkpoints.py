"""Checkpoints of a run: files first, COMMIT last, with sizes and hashes.

An attempt goes on from the newest good COMMIT: highest attempt, then highest step, so that a zombie's
never beats a later attempt's. COMMIT goes first when one is deleted. One that vanishes while it is
restored was deleted by retention: choose again. One whose bytes are wrong is damaged: said and skipped.

A person marks one that stays (KEEP, a copy of COMMIT). Nobody can delete on a condition, so whoever deletes
looks for the mark once COMMIT is gone, and puts COMMIT back; whoever marks looks for COMMIT after the mark.
"""

from __future__ import annotations

import hashlib
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from hostler.errors import DamagedError, NewerFormatError
from hostler.records import layout
from hostler.records.body import (
    MOMENT,
    ROWS,
    TABLE,
    TEXT,
    WHOLE,
    Record,
    checked,
    checked_rows,
    decode,
    encode,
)
from hostler.records.checkpoint import bundle, parts, restorer, saved_folder
from hostler.records.checkpoint.bundle import Bundle
from hostler.records.checkpoint.restorer import row_of, rows_of
from hostler.records.checkpoint.tree import hash_file, scan
from hostler.store import NotFound, Store

LOOKS, BETWEEN = 100, 0.1  # looks, and seconds between two, for a checkpoint that somebody is deleting
SLOW = 5.0  # seconds from which on a store is one that the training may overtake


@dataclass(frozen=True, order=True)
class Place:
    """Where a checkpoint lies. The order is the order of choice."""

    attempt: int
    step: int  # the number of the save, not a step of the training

    @property
    def name(self) -> str:
        return f"{self.attempt}-{self.step}"


@dataclass(frozen=True)
class Checkpoint:
    run: str
    place: Place
    record: Record = field(repr=False)

    @property
    def position(self) -> int:
        """How many metric points of its attempt it covers."""
        return int(self.record.get("position", 0))

    @property
    def finished(self) -> bool:
        return bool(self.record.get("finished"))

    @property
    def step(self) -> int:
        """The step of the training: the library's (steps or epochs done) if one process wrote it, else the
        highest that was logged."""
        names = {str(row["name"]) for row in self.record["files"]}
        tops = {mark for name in names if (mark := saved_folder.mark_of(name.partition("/")[0]))}
        saved = max((mark for mark in tops if f"{mark.name}/{saved_folder.COMMIT}" in names), default=None)
        if saved is None or f"{saved.name}/{saved_folder.part_name(1)}" in names:
            return int(self.record.get("metric_step") or 0)
        return saved.step


def committed(store: Store, run: str) -> list[Place]:
    """All places with a COMMIT, newest first, in one listing."""
    return places_of(entry.key for entry in store.list(layout.checkpoints(run)))


def read(store: Store, run: str, place: Place) -> Checkpoint:
    key = _commit_key(run, place)
    return Checkpoint(run, place, commit(store.get(key).data, key))


def restorable(store: Store, run: str, place: Place) -> Checkpoint:
    """The same, if its rows are those of files that can be brought back; DamagedError names its COMMIT."""
    checkpoint = read(store, run, place)
    try:
        rows_of(checkpoint.record["files"])
    except DamagedError as error:
        raise DamagedError(f"{_commit_key(run, place)} is damaged: {error}") from None
    return checkpoint


def commit(data: bytes, key: str) -> Record:
    """The COMMIT these bytes hold: its rows and facts are of the types that readers use."""
    record = checked(decode(data, key, bundle.FORMAT), _FACTS, key, ["files"])
    checked_rows(record["files"], _ROW, key, ["name", "n"])
    return record


_FACTS = {
    "files": ROWS,
    "at": MOMENT,
    "position": WHOLE,
    "positions": TABLE,
    "metric_step": WHOLE,
    "totals": TABLE,
    "result": TABLE,
}
_ROW = {
    "name": TEXT,
    "link": TEXT,
    "size": WHOLE,
    "sha256": TEXT,
    "n": WHOLE,
    "parts": WHOLE,
    "mode": WHOLE,
    "mtime": WHOLE,
    "at": WHOLE,
}


def slowness(took: float, overtaken: bool) -> str | None:
    """Line about a store that took so many seconds, while the training made another checkpoint or did not."""
    if not overtaken or took < SLOW:
        return None
    return (
        f"the store took {took:.0f} s for a checkpoint, and the next was made meanwhile: those between stay "
        "on this machine, and the training goes on"
    )


def save(
    store: Store,
    run: str,
    place: Place,
    folder: Path,
    facts: Callable[[], Record],
    guard: Callable[[], None],
    sent: parts.Sent | None = None,
    others: Callable[[], tuple[list[Record], Record]] = lambda: ([], {}),
    *,
    bundled: bool = False,
) -> Checkpoint:
    """Upload a folder that nobody writes to, then COMMIT. `facts` is asked once the files are there (the
    metrics are brought into the store first); `guard` raises if the run is another's by now. `sent`: what an
    upload to this place that broke off had sent. `others`: files that others have brought to this place, and
    what is to be said of them; asked, and waited for, once ours are there. `bundled`: small files in one
    object."""
    rows = send(store, run, place, folder, sent, bundled=bundled)
    theirs, more = others()
    record = {"run": run, "attempt": place.attempt, "step": place.step, "files": rows + theirs}
    record |= bundle.format_of(rows)
    record |= {**facts(), **more}
    guard()
    key = _commit_key(run, place)
    data = encode(record)
    store.put(key, data)
    return Checkpoint(run, place, decode(data, key, bundle.FORMAT))


def send(
    store: Store,
    run: str,
    place: Place,
    folder: Path,
    sent: parts.Sent | None = None,
    *,
    first: int = 0,
    bundled: bool = False,
) -> list[Record]:
    """Upload a folder's files to a place, numbered from `first` on; returns the rows of a COMMIT. `bundled`:
    the first object holds all small ones."""
    sent = set() if sent is None else sent
    rows: list[Record] = []
    small = Bundle()
    n = first + bundled
    for row in scan(folder).rows:
        data = small.read(folder / row.name) if bundled and not row.link else None
        if data is not None:
            sha256, at = hashlib.sha256(data).hexdigest(), small.add(data)
            rows.append({**row.record(), "n": first, "sha256": sha256, "parts": 1, "at": at})
            continue
        sha256 = "" if row.link else hash_file(folder / row.name)
        rows.append({**row.record(), "n": n, "sha256": sha256, "parts": parts.count(row.size)})
        if not row.link:
            parts.send(store, folder / row.name, keys(run, place, rows[-1]), sha256, sent)
        n += rows[-1]["parts"]
    if small.has_files:
        key = layout.checkpoint_file(run, place.attempt, place.step, first)
        if (mark := (key, hashlib.sha256(small.data).hexdigest())) not in sent:
            store.put(key, small.data)
            sent.add(mark)
    return rows


def restore(store: Store, checkpoint: Checkpoint, target: Path, below: str = "") -> None:
    """Bring the files back, checked, into `target`, which is replaced; of one folder of it, those `below`
    that. NotFound if it vanished meanwhile."""
    run, place = checkpoint.run, checkpoint.place
    rows = rows_of(checkpoint.record.get("files"))
    if below:
        top = f"{below}/"
        rows = [replace(row, name=row.name.removeprefix(top)) for row in rows if row.name.startswith(top)]
    staging = target.with_name(target.name + ".restoring")
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(parents=True)
    restorer.restore(
        store, rows, lambda n: layout.checkpoint_file(run, place.attempt, place.step, n), staging
    )
    shutil.rmtree(target, ignore_errors=True)
    staging.rename(target)


def restore_newest(
    store: Store,
    run: str,
    target: Path,
    *,
    skip: Iterable[str] = (),
    after: int = 0,
    before: int,
    say: Callable[[str], None] = lambda line: None,
    fits: Callable[[], bool] = lambda: True,
) -> Checkpoint | None:
    """Restore the newest good checkpoint of attempts between `after` and `before` (a zombie must not go on
    from its successor's). Those in `skip` are used only as a last resort: an attempt failed on them
    before it saved anything new. `fits`: whether `target`, as it is now, has the files that the script is
    told to resume from; if that is true of no checkpoint, `target` is empty."""
    bad, unfit = set[Place](), set[Place]()
    while True:
        here = (p for p in committed(store, run) if after < p.attempt < before)
        places = [p for p in here if p not in bad and p not in unfit]
        wanted = [p for p in places if p.name not in set(skip)] or places
        if not wanted:
            if bad:
                raise DamagedError(
                    f"no checkpoint of {run} can be used ({len(bad)} damaged)",
                    hint=f"hostler retry --fresh {run} starts it from the beginning",
                )
            if unfit:
                say("starts from the beginning: no checkpoint has the files that `resume:` names")
                shutil.rmtree(target)
                target.mkdir()
            return None
        place = wanted[0]
        if places[0] != place:
            say(f"checkpoint {places[0].name} is passed over: an attempt failed on it; using {place.name}")
        try:
            checkpoint = read(store, run, place)
            restore(store, checkpoint, target)
        except NotFound:
            if place in committed(store, run):
                bad.add(place)
                say(f"checkpoint {place.name} is passed over (a file is missing): the one before it is used")
            continue
        except (DamagedError, NewerFormatError) as error:
            bad.add(place)
            say(f"checkpoint {place.name} is passed over ({error.message}): the one before it is used")
            continue
        if checkpoint.finished or fits():
            return checkpoint
        unfit.add(place)
        say(f"checkpoint {place.name} is passed over: it has no file that `resume:` names")


def retain(store: Store, run: str, own: int, keep: int) -> list[Place]:
    """Delete what attempt `own` may delete: its own beyond `keep`, those of earlier attempts once it has
    `keep` good ones itself, those of later attempts never; and never one marked kept, by its maker or by a
    person. Files of a save that was cut off, or only half deleted, go like those of a checkpoint, and as soon
    as a later save of the same attempt is whole. Returns the deleted."""
    keys = [entry.key for entry in store.list(layout.checkpoints(run))]
    good, by_hand = places_of(keys), marked(keys)
    mine = [p for p in good if p.attempt == own]
    older = {p for p in _places(keys) if p < mine[keep - 1]} if 0 < keep <= len(mine) else set[Place]()
    newest = {p.attempt: p for p in reversed(good) if p.attempt <= own}
    older |= {p for p in _places(keys) if p not in good and p < newest.get(p.attempt, p)}
    rest = [p for p in sorted(older, reverse=True) if p not in by_hand or p not in good]
    doomed = [p for p in rest if p not in good or not _kept(store, run, p)]
    return [place for place in doomed if delete(store, run, place)]


def delete(store: Store, run: str, place: Place) -> bool:
    """Delete a checkpoint; False if a person has marked it meanwhile, and all of it is there still."""
    store.delete(_commit_key(run, place))
    remaining = [entry.key for entry in store.list(layout.checkpoint(run, place.attempt, place.step))]
    if put_back(store, run, remaining):
        return False
    store.delete(*remaining)
    return True


def mark(store: Store, run: str, place: Place, rest: Callable[[float], None] = time.sleep) -> bool:
    """Mark a checkpoint as one that stays; False if it was deleted meanwhile."""
    key, sign = _commit_key(run, place), layout.checkpoint_mark(run, place.attempt, place.step)
    try:
        store.put(sign, store.get(key).data)
    except NotFound:
        return False
    for _ in range(LOOKS):
        there = {entry.key for entry in store.list(layout.checkpoint(run, place.attempt, place.step))}
        if key in there:
            return True
        if there <= {sign}:
            break
        rest(BETWEEN)  # who is deleting it puts it back, or its files go now
    store.delete(sign)
    return False


def unmark(store: Store, run: str, place: Place) -> None:
    store.delete(layout.checkpoint_mark(run, place.attempt, place.step))


def marked(keys: Iterable[str]) -> set[Place]:
    """Places that a person has marked, of these keys."""
    return set(_places(key for key in keys if key.endswith("/KEEP")))


def is_at(key: str, places: Collection[Place]) -> bool:
    """Whether a key under checkpoints/ is of one of these places."""
    found = layout.split_checkpoint(key) if places else None
    return found is not None and Place(*found) in places


def put_back(store: Store, run: str, keys: Iterable[str]) -> set[Place]:
    """Write COMMIT again where it was deleted while a person marked the checkpoint; `keys`: all that are
    left. Returns the places that are marked and whole."""
    there = set(keys)
    return {place for place in marked(there) if _put_back(store, run, place, there)}


def _put_back(store: Store, run: str, place: Place, there: set[str]) -> bool:
    sign, key = layout.checkpoint_mark(run, place.attempt, place.step), _commit_key(run, place)
    try:
        data = store.get(sign).data
        rows = commit(data, sign)["files"]
        if not all(part in there for row in rows if not row.get("link") for part in keys(run, place, row)):
            return False
    except (NotFound, DamagedError, NewerFormatError):
        return False
    if key not in there:
        store.put(key, data)
    return True


def _commit_key(run: str, place: Place) -> str:
    return layout.commit(run, place.attempt, place.step)


def places_of(keys: Iterable[str]) -> list[Place]:
    """Places with a COMMIT, of these keys, newest first."""
    return sorted(_places(key for key in keys if key.endswith("/COMMIT")), reverse=True)


def _places(keys: Iterable[str]) -> Iterator[Place]:
    """Where keys lie; those that are not a checkpoint's are passed over."""
    for key in keys:
        if found := layout.split_checkpoint(key):
            yield Place(*found)


def keys(run: str, place: Place, row: Record) -> list[str]:
    """Where the parts of a file of a checkpoint are."""
    file = row_of(row)
    numbers = range(file.n, file.n + file.parts)
    return [layout.checkpoint_file(run, place.attempt, place.step, n) for n in numbers]


def _kept(store: Store, run: str, place: Place) -> bool:
    try:
        return bool(read(store, run, place).record.get("kept"))
    except (NotFound, DamagedError, NewerFormatError):
        return False
