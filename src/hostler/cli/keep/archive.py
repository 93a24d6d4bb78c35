"""`hostler archive`: the best N models over all sweeps, kept with all that belongs to them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from hostler.cli import here
from hostler.cli.options import ANY
from hostler.cli.terminal import output
from hostler.cli.terminal.ask import ask
from hostler.errors import DamagedError, MissingError, NewerFormatError, UsageError
from hostler.records.checkpoint import archive, archive_files
from hostler.records.checkpoint.archive import ArchivedRun, ArchiveTerms
from hostler.records.run.log import index_of
from hostler.records.sweep import sweeps
from hostler.spec.job import Objective
from hostler.spec.nearest import did_you_mean
from hostler.spec.states import STOPPED
from hostler.spec.units import counted, show_number, show_size, size
from hostler.store import Store


def command(
    top: int | None,
    metric: str | None,
    goal: str | None,
    of: str | None,
    budget: str | None,
    only: str | None,
    trend: bool,
    pulled: str | None,
    target: str | None,
    yes: bool,
    store_url: str | None,
    as_json: bool,
) -> int:
    """List the best models of all sweeps. --top N keeps that many; runs that end then enter by themselves."""
    store = here.open_here(store_url)
    old = archive.terms(store)
    if top is None and not (metric or goal or of or budget or only):
        terms = _held(old)
    else:
        terms = _wanted(store, old, top, metric, goal, of, budget, only)
        if not _change(store, terms, yes=yes):
            return 1
    if pulled:
        return _pull(store, terms, pulled, target)
    if trend:
        _print_trend(store, terms, as_json)
    else:
        _print(archive.kept(archive.entries(store, terms, _say), terms), terms, as_json)
    return 0


def _held(old: ArchiveTerms | None) -> ArchiveTerms:
    if old is None:
        raise MissingError(
            "the archive does not exist yet", hint="hostler archive --top 5 keeps the best five"
        )
    return old


def _wanted(
    store: Store,
    old: ArchiveTerms | None,
    top: int | None,
    metric: str | None,
    goal: str | None,
    of: str | None,
    budget: str | None,
    only: str | None,
) -> ArchiveTerms:
    if top is None and old is None:
        raise UsageError("the number of models to keep is not given", hint="--top N")
    room = _room(budget) if budget else old.size if old else None
    name = metric or (old.metric if old else None)
    known = _objectives(store)
    if name is None:
        if len(known) != 1:
            there = f"known: {', '.join(sorted(known))}" if known else "no sweep has one"
            raise UsageError("the metric to rank by is not given", hint=f"--metric NAME ({there})")
        name = next(iter(known))
    held = Objective(name, old.goal, old.of) if old and old.metric == name else Objective(name)
    by = known.get(name, held)
    number = top if top is not None else old.top if old else 0
    only = only or (old.only if old else None)
    only = None if only == ANY else only
    return ArchiveTerms(number, name, goal or by.goal, room, of or by.of, only)


def _room(words: str) -> int:
    try:
        return size(words)
    except ValueError as error:
        raise UsageError(f"--budget: {error}") from None


def _objectives(store: Store) -> dict[str, Objective]:
    """metric → its goal and rule, of all sweeps."""
    objectives: dict[str, Objective] = {}
    for name in sweeps.names(store):
        try:
            objectives |= {
                objective.name: objective for objective in sweeps.load_spec(store, name)[0].looked_at
            }
        except MissingError:  # being submitted, or deleted, right now
            continue
        except (DamagedError, NewerFormatError) as error:
            _say(f"{name} is left out: {error}")
    return objectives


def _change(store: Store, terms: ArchiveTerms, *, yes: bool) -> bool:
    """Bring in what belongs, and remove what no longer does, after showing it."""
    runs = archive.entries(store, terms)
    known = {(run.run, run.k): run for run in runs}
    every = {run.run: run for run in runs}
    candidates = archive.candidates(store, terms, _say)
    every |= {candidate.run: known.get((candidate.run, candidate.k), candidate) for candidate in candidates}
    stay = {run.run for run in archive.kept(every.values(), terms)}
    if runs and terms.top and not stay:
        names = sorted({name for run in runs for name in run.record.get("values", {})})
        raise MissingError(
            f"no run has ended with {terms.metric!r}: ranked by it, the archive would lose all its models",
            hint=did_you_mean(terms.metric, names, f"known: {', '.join(names)}"),
        )
    leaving = [run for run in runs if run.run not in stay]
    if leaving and not ask(f"{_shown(leaving, terms)}\nRemove them from the archive?", yes=yes):
        click.echo("hostler: nothing was changed", err=True)
        return False
    archive.agree(store, terms)
    for archived_run in archive.ranked(every.values(), terms)[: terms.top]:
        runs = archive.entries(store, terms)
        if archive.would_stay(archived_run, runs, terms):
            archive.enter(store, archived_run, terms, _say)
    for archived_run in archive.beyond(archive.entries(store, terms), terms):
        archive.remove(store, archived_run.run)
    return True


def _say(line: str) -> None:
    click.echo(f"hostler: {line}", err=True)


def _shown(leaving: Sequence[ArchivedRun], terms: ArchiveTerms) -> str:
    lines = [f"  {run.run}  {_value(run, terms)}  {show_size(run.size)}" for run in leaving]
    total = show_size(sum(run.size for run in leaving))
    return "\n".join([*lines, f"{counted(len(leaving), 'model')}, {total}"])


def _print(stay: Sequence[ArchivedRun], terms: ArchiveTerms, as_json: bool) -> None:
    if as_json:
        output.print_json([_json(rank, run, terms) for rank, run in enumerate(stay, start=1)])
        return
    for rank, archived_run in enumerate(stay, start=1):
        params = " ".join(f"{name}={value}" for name, value in archived_run.record.get("params", {}).items())
        mark = f"  {STOPPED}" * (archived_run.state == STOPPED)
        value = _value(archived_run, terms)
        click.echo(f"{rank}  {archived_run.run}  {value}{mark}  {show_size(archived_run.size)}  {params}")
    if not stay:
        why = f"no run has ended with {terms.metric}" if terms.top else "it keeps none (--top 5 keeps five)"
        click.echo(f"the archive is empty: {why}", err=True)


def _value(one: ArchivedRun, terms: ArchiveTerms) -> str:
    which = f" ({one.judged.shown})" if one.judged else ""
    return f"{terms.metric}={show_number(one.value)}{which}"


def _json(rank: int, one: ArchivedRun, terms: ArchiveTerms) -> dict[str, Any]:
    hidden = ("format", "token", "at", "environment", "totals", "kept", "means")
    record = {name: value for name, value in one.record.items() if name not in hidden}
    by = {"metric": terms.metric, "goal": terms.goal, **(one.judged._asdict() if one.judged else {})}
    return {"rank": rank, **record, **by}


def _print_trend(store: Store, terms: ArchiveTerms, as_json: bool) -> None:
    lines = archive.trend(store, terms, _say)
    names = ("run", "sweep", "round", "ended", "value", "of", "step", "best")
    if as_json:
        output.print_json([{name: line.get(name) for name in names} for line in lines])
        return
    for line in lines:
        value, best = show_number(line["value"]), show_number(line["best"])
        click.echo(f"{line['run']}  {terms.metric}={value}  best {best}")
    if not lines:
        click.echo(f"no model with {terms.metric} was ever in the archive", err=True)


def _is_meant(one: ArchivedRun, words: str) -> bool:
    """By the beginning of its id, by its name as in `grid/3`, or by its sweep."""
    return one.run.startswith(words) or words in (one.sweep, f"{one.sweep}/{index_of(one.run)}")


def _pull(store: Store, terms: ArchiveTerms, run: str, target: str | None) -> int:
    runs = [entry for entry in archive.entries(store, terms, _say) if _is_meant(entry, run)]
    if not runs:
        raise MissingError(f"{run} is not in the archive", hint="hostler archive lists what is")
    archived_runs = archive.ranked(runs, terms)[:1] or runs[:1]
    folder = Path(target or archived_runs[0].run)
    try:
        known = archive_files.deliver(store, archived_runs[0].record, folder)
    except KeyboardInterrupt:
        click.echo("hostler: interrupted; run the same command again to continue", err=True)
        raise
    before = f" ({counted(known, 'file')} had arrived before)" if known else ""
    click.echo(f"{archived_runs[0].run} in {folder}{before}", err=True)
    return 0
