"""Selects runs of a store, and checks that requested names exist."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from hostler.analysis.damage_report import Say, warn
from hostler.attempt import dead_scripts
from hostler.errors import DamagedError, MissingError, NewerFormatError, UsageError
from hostler.records import layout
from hostler.records.rows import Row, rows
from hostler.records.sweep import sweeps
from hostler.spec.job import Objective
from hostler.spec.nearest import did_you_mean
from hostler.store import Store

if TYPE_CHECKING:
    from hostler.analysis.reading import SweepRead

Names = str | Iterable[str] | None


def present(store: Store, sweep: Names, say: Say) -> Iterator[SweepRead]:
    """The sweeps that are meant, each read whole. One that cannot be read is said and left out, unless it
    was asked for by name."""
    from hostler.analysis.reading import read

    dead_scripts.deliver(store, say)
    for name in named(store, sweep):
        try:
            yield read(store, name, say)
        except MissingError:  # being submitted, or deleted, right now
            continue
        except (DamagedError, NewerFormatError) as error:
            if sweep is not None:
                raise
            say(f"{name} is left out: {error}")


def named(store: Store, sweep: Names) -> list[str]:
    """The sweeps of the store, or those of these names, which must be there."""
    wanted, known = as_set(sweep), sweeps.names(store)
    if not known and not any(store.list(layout.PROJECT)):
        raise MissingError(
            f"{store.url} is not a hostler store",
            hint="give the address of a store with runs; hostler status shows the project's",
        )
    for name in sorted((wanted or set()) - set(known)):
        raise MissingError(
            f"no sweep named {name!r} in {store.url}",
            hint=did_you_mean(name, known, "hostler status lists them"),
        )
    return [name for name in known if wanted is None or name in wanted]


def chosen(store: Store, sweep: Names = None, *, by: Objective | None = None, say: Say = warn) -> list[Row]:
    """Their rows, in order of sweep and index; judged by their sweeps' metrics, or `by` this one."""
    dead_scripts.deliver(store, say)
    return rows(store, named(store, sweep), by=by, say=say)


def checked(names: str | Iterable[str], known: Iterable[str], what: str) -> list[str]:
    """The given names, checked against the known ones; any name passes if none is known yet."""
    there, wanted = dict.fromkeys(known), [names] if isinstance(names, str) else list(names)
    for name in wanted:
        if there and name not in there:
            listed = ", ".join(list(there)[:20]) + (" …" if len(there) > 20 else "")
            raise UsageError(
                f"no {what} named {name!r}", hint=did_you_mean(str(name), there, f"choose from: {listed}")
            )
    return wanted


def as_set(names: Names) -> set[str] | None:
    if names is None:
        return None
    return {names} if isinstance(names, str) else set(names)
