"""`hostler errors`: what failed, grouped: the same error in a hundred runs is one paragraph."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

import click

from hostler.cli import here
from hostler.cli.terminal import missing_file, named_rows, output
from hostler.cli.terminal.screen import hanging, paint, size, title, width
from hostler.cli.terminal.table import WIDEST, is_terminal
from hostler.records.rows import Row, rows
from hostler.records.sweep.error_groups import ErrorGroup, Failed, failed, groups
from hostler.spec.units import counted
from hostler.store import Store

__all__ = ["ErrorGroup", "Failed", "command", "groups"]

SHORT = 6  # lines of a traceback without -v
RUNS = 8  # names of runs without -v


def command(
    names: tuple[str, ...], everything: bool, verbose: bool, store_url: str | None, as_json: bool
) -> int:
    """Show failures, grouped by kind and place, with a traceback of each."""
    store = here.open_here(store_url)
    error_groups = groups(list(failed(store, _rows(store, names), everything=everything)))
    if as_json:
        output.print_json([asdict(group) for group in error_groups])
    elif not error_groups:
        click.echo(
            "no errors" + ("" if everything else "; --all also shows errors of attempts that were repeated")
        )
    else:
        click.echo("\n\n".join("\n".join(_lines(group, verbose=verbose)) for group in error_groups))
    return 0


def _rows(store: Store, names: tuple[str, ...]) -> list[Row]:
    if not names:
        return rows(store, say=output.saying())
    return named_rows.rows_named(store, names, say=output.saying())


def _lines(group: ErrorGroup, *, verbose: bool) -> Iterator[str]:
    count = f"{group.count} × " if group.count > 1 else ""
    room = size().columns if is_terminal() else WIDEST
    message = hanging(group.message, room, first=width(count + group.kind) + 2)
    yield f"{title(count + paint(group.kind, 'red'))}  {message}"
    shown = group.runs if verbose else group.runs[:RUNS]
    more = len(group.runs) - len(shown)
    yield f"  runs   {', '.join(shown)}" + (f" and {more} more (-v shows all)" if more else "")
    if group.hosts:
        yield f"  hosts  {', '.join(f'{h} ({n})' if n > 1 else h for h, n in group.hosts.items())}"
    lines = group.traceback.splitlines()
    if len(lines) > SHORT and not verbose:
        yield f"  | … {counted(len(lines) - SHORT, 'more line')} with -v"
        lines = lines[-SHORT:]
    yield from (f"  | {line}" for line in lines)
    if group.advice:
        yield f"  → {group.advice}"
    yield from (f"  → {line}" for line in missing_file.lines({"message": group.message}, str))
    if group.retry and "hostler retry" not in group.advice:
        yield f"  → after a repair: {group.retry}"
