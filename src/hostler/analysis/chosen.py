"""Which runs of a store are meant: by sweep, run and state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from hostler.analysis.said import Say, warn
from hostler.errors import DamagedError, MissingError, NewerFormatError
from hostler.records import layout, sweeps
from hostler.records.rows import Row, rows
from hostler.store import Store

if TYPE_CHECKING:
    from hostler.analysis.reading import SweepRead

Names = str | Iterable[str] | None


def present(store: Store, sweep: Names, say: Say) -> Iterator[SweepRead]:
    """The sweeps that are meant, each read whole. One that cannot be read is said and left out, unless it
    was asked for by name."""
    from hostler.analysis.reading import read

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
            f"there is nothing of hostler in {store.url}",
            hint="give the address of a store that a run was kept in; hostler status shows the project's",
        )
    for name in sorted((wanted or set()) - set(known)):
        raise MissingError(f"there is no sweep {name!r} in {store.url}", hint="hostler status lists them")
    return [name for name in known if wanted is None or name in wanted]


def chosen(
    store: Store, sweep: Names = None, run: Names = None, state: str | None = None, *, say: Say = warn
) -> list[Row]:
    """Their rows, in order of sweep and index. A run is named by its id or its name."""
    found = rows(store, named(store, sweep), say=say)
    runs = as_set(run)
    if runs is not None:
        found = [row for row in found if row.id in runs or row.name in runs]
    return [row for row in found if state is None or row.state == state]


def as_set(names: Names) -> set[str] | None:
    if names is None:
        return None
    return {names} if isinstance(names, str) else set(names)
