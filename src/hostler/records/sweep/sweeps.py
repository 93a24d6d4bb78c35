"""Sweeps in the store: submitted, edited, found, halted, tagged, put in the trash.

What changes gets a new number; the newest number is what holds.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hostler.errors import DamagedError, MissingError, NewerFormatError
from hostler.records import layout
from hostler.records.body import MOMENT, TEXT, Record, checked, decode, encode, taken_apart
from hostler.spec.job import Job, Source, from_json, source_fields, to_json
from hostler.spec.names import is_part
from hostler.store import Entry, NotFound, Store

if TYPE_CHECKING:
    from hostler.records.run.state import RunState


def names(store: Store) -> list[str]:
    rows = store.list(layout.SWEEPS, deep=False)
    found = (row.key.removeprefix(layout.SWEEPS).rstrip("/") for row in rows if row.key.endswith("/"))
    return [name for name in found if is_part(name)]


def submit(store: Store, job: Job, version: int = 1) -> bool:
    """Write version `version` of a sweep; False if another's stands there already."""
    return store.put(layout.spec(job.name, version), encode(to_json(job)), if_absent=True)


def revise(store: Store, job: Job) -> None:
    """Make this the newest version of its sweep, unless it is so already."""
    while True:
        old, version = load_version(store, job.name)
        if same(old, job) or submit(store, job, version + 1):
            return


def give_code(store: Store, name: str, source: Source) -> bool:
    """The code with which runs start that nobody has had yet; False if it was this already."""
    while True:
        job, version = load_version(store, name)
        if job.source.mark == source.mark:
            return False
        if submit(store, replace(job, source=source), version + 1):
            return True


def same(one: Job, other: Job) -> bool:
    return json.dumps(to_json(one), sort_keys=True) == json.dumps(to_json(other), sort_keys=True)


def load(store: Store, name: str) -> Job:
    """The newest version of a sweep's spec."""
    return load_version(store, name)[0]


def load_version(store: Store, name: str) -> tuple[Job, int]:
    """The newest version, and its number. The runs of a search that learns are those of its journal."""
    job, version = load_spec(store, name)
    if job.search:
        from hostler.records.sweep.journal import Journal  # of a search that learns alone

        journal = Journal(store, name, job.journal_from)
        job = replace(job, runs=tuple(entry.params for entry in journal.read_on()))
    return job, version


def load_spec(store: Store, name: str) -> tuple[Job, int]:
    """The newest version as it was written, and its number."""
    found = newest(store, layout.specs(name))
    if found is None:
        raise MissingError(f"no sweep named {name!r} in {store.url}", hint="hostler status lists all sweeps")
    return job_of(found[1], layout.spec(name, found[0])), found[0]


def job_of(record: Record, key: str) -> Job:
    """The job that a record holds; DamagedError if it is not one that can be worked with."""
    with taken_apart(key):
        job = from_json(record)
        if not 0 <= job.count <= MOST:
            raise ValueError(job.count)
        return job


def submitted(store: Store, name: str) -> float:
    """When the sweep was first submitted, by the submitter's clock."""
    key = layout.spec(name, 1)
    return float(checked(decode(store.get(key).data, key), {"at": MOMENT}, key, ["at"])["at"])


def submission(store: Store, name: str) -> str:
    """Names the first submission of a sweep, and no other in the world: runs are known by it elsewhere."""
    key = layout.spec(name, 1)
    return str(decode(store.get(key).data, key).get("token", name))


def since(store: Store, name: str) -> float:
    """The same by the store's clock: another sweep of this name may have been before."""
    return next((entry.modified for entry in store.list(layout.spec(name, 1))), 0.0)


def last_submitted(store: Store, name: str) -> float:
    """When the newest version of the sweep was written, by the store's clock; 0 if there is none."""
    return max((entry.modified for entry in versions(store, name)), default=0.0)


def versions(store: Store, name: str) -> Iterator[Entry]:
    """Versions of a sweep's spec, as they are listed."""
    return (entry for entry in store.list(layout.specs(name)) if _number(entry.key) is not None)


def stamp(store: Store, name: str) -> str:
    """Names the newest version of a sweep's spec without reading it; '' if there is none."""
    return max((f"{entry.key} {entry.etag}" for entry in versions(store, name)), default="")


def is_there(store: Store, name: str) -> bool:
    """Whether the sweep has a spec, be it one that cannot be read."""
    return any(True for _ in versions(store, name))


def newest(store: Store, prefix: str) -> tuple[int, Record] | None:
    """(number, record) of the highest numbered record under a prefix."""
    numbers = {_number(entry.key): entry.key for entry in store.list(prefix)}
    n = max((n for n in numbers if n is not None), default=None)
    if n is None:
        return None
    try:
        return n, decode(store.get(numbers[n]).data, numbers[n])
    except NotFound:
        return None


def _number(key: str) -> int | None:
    """Number of a record; None for a stray file among them, and for what only an older hostler reads."""
    found = layout.numbers(key.rsplit("/", 1)[1].removesuffix(".json"))
    return found[0] if found and found[0] != layout.PACKED_SPEC else None


MOST = 10**7  # runs of a sweep: the index of a run's id has seven digits

UNLOGGED = "metric"  # the kind of a halt: nothing can be learned, since no run has logged what is looked at


def halted(store: Store, name: str) -> Record | None:
    """Halt of this sweep that holds at present; None if its runs may be taken. An unreadable halt holds."""
    try:
        return _halt(store, name)
    except (DamagedError, NewerFormatError):
        return {"why": "its record cannot be read"} if _halts(store, name) % 2 else None


def _halts(store: Store, name: str) -> int:
    """The number of the newest halt or lift, from names alone."""
    return max((_number(entry.key) or 0 for entry in store.list(layout.halts(name))), default=0)


def _halt(store: Store, name: str) -> Record | None:
    found = newest(store, layout.halts(name))
    key = layout.halt(name, found[0] if found else 0)
    return (
        {"why": "", **checked(found[1], {"why": TEXT, "kind": TEXT}, key)} if found and found[0] % 2 else None
    )


def why_halted(store: Store, name: str, say: Callable[[str], None] | None = None) -> str:
    """The same in words; '' if it may be taken. `say`: as of `tags`."""
    try:
        record = _halt(store, name)
    except (DamagedError, NewerFormatError) as error:
        if say is None:
            raise
        say(str(error))
        record = halted(store, name)
    return str(record.get("why") or "for no known reason") if record else ""


def halt(store: Store, name: str, why: str, **facts: Any) -> bool:
    n = _halts(store, name)
    return n % 2 == 1 or store.put(layout.halt(name, n + 1), encode({"why": why, **facts}), if_absent=True)


def lift(store: Store, name: str) -> None:
    n = _halts(store, name)
    if n % 2:
        store.put(layout.halt(name, n + 1), encode({"why": "lifted"}), if_absent=True)


def tag(store: Store, name: str, run: str, add: list[str], remove: list[str]) -> None:
    n = 1 + max((_number(e.key) or 0 for e in store.list(layout.tags(name))), default=0)
    while not store.put(
        layout.tag(name, n), encode({"run": run, "add": add, "remove": remove}), if_absent=True
    ):
        n += 1


def tags(store: Store, job: Job, say: Callable[[str], None] | None = None) -> dict[str, list[str]]:
    """run → its tags beyond the sweep's own; '' holds those of all runs. `say` gets what cannot be read, and
    that change is passed over; without it that is an error."""
    found: dict[str, list[str]] = {"": list(job.tags)}
    for entry in store.list(layout.tags(job.name)):
        if _number(entry.key) is None:
            if say is not None:
                say(f"{entry.key!r} is not a change of tags: it is passed over")
            continue
        try:
            _retag(found, decode(store.get(entry.key).data, entry.key), entry.key)
        except (DamagedError, NewerFormatError) as error:
            if say is None:
                raise
            say(str(error))
    return found


def _retag(found: dict[str, list[str]], change: Record, key: str) -> None:
    with taken_apart(key):
        run, added, removed = str(change["run"]), _texts(change["add"]), set(_texts(change["remove"]))
        held = found.setdefault(run, [])
        held[:] = [t for t in held if t not in removed]
        held += [t for t in dict.fromkeys(added) if t not in held]


def _texts(found: Any) -> list[str]:
    if type(found) is not list or not all(type(one) is str for one in found):
        raise TypeError(found)
    return found


def trashed(store: Store, name: str) -> dict[str, int]:
    """run → number of its newest trash entry, for runs that are in the trash."""
    newest_of: dict[str, int] = {}
    for entry in store.list(layout.trash(name)):
        if not layout.is_log_entry(entry.key):
            continue
        run, n = layout.split_log_entry(entry.key)
        newest_of[run] = max(n, newest_of.get(run, 0))
    return {run: n for run, n in newest_of.items() if n % 2}


def put_in_trash(store: Store, name: str, run: str) -> None:
    _turn(store, name, run, odd=True)


def take_out_of_trash(store: Store, name: str, run: str) -> None:
    _turn(store, name, run, odd=False)


def _turn(store: Store, name: str, run: str, *, odd: bool) -> None:
    keys = (entry.key for entry in store.list(layout.trash(name)))
    known = (layout.split_log_entry(key) for key in keys if layout.is_log_entry(key))
    numbers = [n for r, n in known if r == run]
    n = max(numbers, default=0)
    if bool(n % 2) != odd:
        store.put(layout.trash_entry(name, run, n + 1), encode({"run": run}), if_absent=True)


def with_source(job: Job, state: RunState) -> Job:
    """The job with the code of one run: what its newest reopen brought, else what it was first taken with
    (the sweep may have been submitted again since, with other code), else the sweep's."""
    source = (state.reopened or {}).get("source") or (state.claim or {}).get("source")
    found = replace(job.source, **{"function": None, **source_fields(source)}) if source else job.source
    return job if found == job.source else replace(job, source=found)


def run_ids(job: Job) -> Iterator[str]:
    """Ids of the sweep's runs, without those dropped before they started."""
    return (job.run_id(index) for index in job.indices())
