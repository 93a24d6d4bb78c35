"""Resolves the name a person types to runs: an id, a sweep, sweep/index, or the beginning of one."""

from __future__ import annotations

import difflib

from hostler.errors import MissingError, UsageError
from hostler.records.run.log import RunKey
from hostler.records.sweep import sweeps
from hostler.spec.job import Job
from hostler.spec.names import slug
from hostler.store import Store

MORE = "type more of the name"


def runs(store: Store, word: str) -> list[RunKey]:
    """All runs a word means: one, or all of a sweep."""
    job, index = find(store, word)
    indices = range(job.count) if index is None else [index]
    return [RunKey(job.name, job.run_id(i)) for i in indices]


def run(store: Store, word: str) -> RunKey:
    """The one run a word means."""
    found = runs(store, word)
    if not found:
        raise MissingError(f"{word!r} is a sweep that has no runs yet", hint=f"hostler status {word}")
    if len(found) > 1:
        raise UsageError(
            f"{word!r} is a sweep of {len(found)} runs",
            hint=f"name one of them: {word}/0 … {word}/{len(found) - 1}",
        )
    return found[0]


def sweep(store: Store, word: str) -> str:
    """The sweep a word means; a run's name means its sweep."""
    return find(store, word)[0].name


def find(store: Store, word: str) -> tuple[Job, int | None]:
    """The sweep a word means, and the index if it means one run of it."""
    names = sweeps.names(store)
    sweep, slash, number = word.rpartition("/")
    if slash and number.isdecimal() and slug(word) not in names:
        job = sweeps.load(store, _one(sweep, names, store))
        if int(number) >= job.count:
            raise MissingError(f"{job.name} has runs 0 to {job.count - 1}, not {number}")
        return job, int(number)
    if word not in names and word[:7].isdecimal() and word[7:8] == "-":
        return _by_id(store, word, names)
    return sweeps.load(store, _one(word, names, store)), None


def _by_id(store: Store, word: str, names: list[str]) -> tuple[Job, int]:
    rest, index = word[8:], int(word[:7])
    near = [name for name in names if f"{name}-".startswith(rest) or rest.startswith(f"{name}-")]
    jobs = [sweeps.load(store, name) for name in ([rest] if rest in near else near)]
    found = [job for job in jobs if index < job.count and job.run_id(index).startswith(word)]
    if len(found) > 1:
        raise UsageError(
            f"{word!r} matches {len(found)} runs: {', '.join(j.run_id(index) for j in found[:5])}", MORE
        )
    if not found:
        raise MissingError(f"no run named {word!r} in {store.url}", hint="hostler status lists all runs")
    return found[0], index


def _one(word: str, names: list[str], store: Store) -> str:
    if word in names:
        return word
    if slug(word) in names:  # as its file calls it
        return slug(word)
    starting = [name for name in names if name.startswith(word)]
    if len(starting) == 1:
        return starting[0]
    if starting:
        raise UsageError(f"{word!r} matches {len(starting)} names: {', '.join(sorted(starting)[:5])}", MORE)
    near = difflib.get_close_matches(word, names, n=1)
    hint = f"did you mean {near[0]}?" if near else "hostler status lists all runs"
    raise MissingError(f"no run or sweep named {word!r} in {store.url}", hint=hint)
