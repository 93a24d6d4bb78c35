"""Which runs of a store are meant: by sweep, run and state."""

from __future__ import annotations

from collections.abc import Iterable

from hostler.errors import MissingError
from hostler.records import layout, sweeps
from hostler.records.rows import Row, rows
from hostler.store import Store

Names = str | Iterable[str] | None


def chosen(store: Store, sweep: Names = None, run: Names = None, state: str | None = None) -> list[Row]:
    """Their rows, in order of sweep and index. A run is named by its id or its name."""
    wanted = _set(sweep)
    known = sweeps.names(store)
    if not known and not any(store.list(layout.PROJECT)):
        raise MissingError(
            f"there is nothing of hostler in {store.url}",
            hint="give the address of a store that a run was kept in; hostler status shows the project's",
        )
    for name in sorted((wanted or set()) - set(known)):
        raise MissingError(f"there is no sweep {name!r} in {store.url}", hint="hostler status lists them")
    found = rows(store, [name for name in known if wanted is None or name in wanted])
    runs = _set(run)
    if runs is not None:
        found = [row for row in found if row.id in runs or row.name in runs]
    return [row for row in found if state is None or row.state == state]


def _set(names: Names) -> set[str] | None:
    if names is None:
        return None
    return {names} if isinstance(names, str) else set(names)
