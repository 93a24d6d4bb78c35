"""`hostler df`: all runs as one table, to a file or to another program."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import click

from hostler import made_files, terminal
from hostler.cli import here
from hostler.cli.extras import needs
from hostler.errors import HostlerError, UsageError
from hostler.records.run import resolve
from hostler.records.series import packing
from hostler.records.sweep import sweeps
from hostler.spec.units import counted
from hostler.store import Store

MANY = 100  # runs in no segment are packed then, for whoever reads next


def command(
    names: tuple[str, ...],
    csv_path: str | None,
    parquet_path: str | None,
    conditions: tuple[str, ...],
    states: tuple[str, ...],
    curves: bool,
    system: bool,
    store_url: str | None,
) -> int:
    """Write a table of all runs: state, host, times, every parameter, last and best of every metric."""
    with needs("analysis"):
        from hostler.analysis import export, filters, foreign
        from hostler.analysis.frame import columns_of
    place = here.store_url(store_url)
    store = None if foreign.source(place) else here.open_here(store_url)
    chosen = [resolve.sweep(store, name) if store else name for name in names] or None
    columns = columns_of(
        place,
        chosen,
        state=states or None,
        where=filters.parse_all(conditions),
        curves=curves or parquet_path is not None,
        system=system,
        say=lambda line: click.echo(f"hostler: {line}", err=True),
    )
    if parquet_path:
        _write(Path(parquet_path), lambda path: export.parquet(columns, path))
    if csv_path and csv_path != "-":
        _write(Path(csv_path), lambda path: export.csv(_shown(columns, curves), path))
    elif not parquet_path or csv_path == "-":
        file = sys.stdout if sys.stdout.isatty() else terminal.unguarded(sys.stdout)
        text = export.csv(_shown(columns, curves), None)
        click.echo(text, nl=False, file=file)
        made_files.mark_printed(str(text), file)
    for path in filter(None, (parquet_path, csv_path if csv_path != "-" else None)):
        click.echo(f"{counted(len(columns['run']), 'run')} in {path}", err=True)
    if store:
        _pack(store, chosen)
    return 0


def _write(path: Path, write: Callable[[Path], object]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path)
        made_files.mark(path)
    except OSError as error:
        raise UsageError(
            f"{path} cannot be written: {error.strerror or error}", hint="name another file"
        ) from None


def _shown(found: dict[str, object], curves: bool) -> dict[str, object]:
    ends = (".steps", ".curve")
    return {name: column for name, column in found.items() if curves or not name.endswith(ends)}


def _pack(store: Store, chosen: Sequence[str] | None) -> None:
    """Pack what workers left in no segment, so that the next reader is quick. A reader without the right to
    write has read all the same."""
    for name in chosen or sweeps.names(store):
        try:
            packing.compact(store, sweeps.load(store, name), least=MANY)
        except HostlerError:
            return
