"""Resolves the name a person types to runs: an id, a sweep, sweep/index, or the beginning of one; and the
step of a checkpoint after it (`grid/3@150000`, `@best`, `@last`)."""

from __future__ import annotations

from collections.abc import Callable

from hostler.errors import DamagedError, MissingError, NewerFormatError, UsageError
from hostler.records.run.log import RunKey
from hostler.records.sweep import sweeps
from hostler.spec.job import Job
from hostler.spec.names import slug
from hostler.spec.reference import Step, split_step
from hostler.store import Store

MORE = "type more of the name"


def runs(store: Store, word: str) -> list[RunKey]:
    """All runs a word means: one, or all of a sweep."""
    job, index = find(store, word)
    indices = range(job.count) if index is None else [index]
    return [RunKey(job.name, job.run_id(i)) for i in indices]


def run(store: Store, word: str) -> RunKey:
    """The one run a word means."""
    return one(store, word)[1]


def one(store: Store, word: str) -> tuple[Job, RunKey]:
    """The same with its sweep's spec."""
    job, index = find(store, word)
    if index is None and not job.count:
        raise MissingError(f"{word!r} is a sweep that has no runs yet", hint=f"hostler status {word}")
    if index is None and job.count > 1:
        raise UsageError(
            f"{word!r} is a sweep of {job.count} runs",
            hint=f"name one of them: {word}/0 … {word}/{job.count - 1}",
        )
    return job, RunKey(job.name, job.run_id(index or 0))


def with_step(store: Store, word: str) -> tuple[str, Step | None]:
    """The name of a word like `grid/3@150000`, and the step; None if it has none."""
    if "@" not in word or {word, slug(word)} & set(sweeps.names(store)):
        return word, None
    name, step = split_step(word)
    if step is None:
        name, _, text = word.rpartition("@")
        hint = f"{name}@150000, {name}@best or {name}@last"
        raise UsageError(f"{word}: {text!r} is not a step of a run", hint=hint)
    return name, step


def sweep(store: Store, word: str) -> str:
    """The sweep a word means; a run's name means its sweep."""
    return find(store, word)[0].name


def newest(store: Store, *, swept: bool = False, say: Callable[[str], None] | None = None) -> str | None:
    """The sweep that was submitted last, by the store's clock; None if there is none. Sweeps that lie wholly
    in the trash do not count. `swept`: those of a sweep file alone. `say` gets what cannot be read, and that
    sweep is passed over; without it that is an error."""
    times = {name: sweeps.last_submitted(store, name) for name in sweeps.names(store)}
    for name in sorted(filter(times.get, times), key=lambda name: (times[name], name), reverse=True):
        try:
            job = sweeps.load(store, name)
        except (DamagedError, NewerFormatError) as error:
            if say is None:
                raise
            say(f"{name} is left out: {error}")
            continue
        gone = sweeps.trashed(store, name)
        given_up = bool(gone) and not job.chooses and gone.keys() >= set(sweeps.run_ids(job))
        if not given_up and (job.method or not swept):
            return name
    return None


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
    import difflib  # only a mistake needs it

    near = difflib.get_close_matches(word, names, n=1)
    hint = f"did you mean {near[0]}?" if near else "hostler status lists all runs"
    raise MissingError(f"no run or sweep named {word!r} in {store.url}", hint=hint)
