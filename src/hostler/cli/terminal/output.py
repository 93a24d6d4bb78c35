"""Prints rows: JSON for programs, a table for people, plain lines without a terminal."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from hostler.errors import DamagedError
from hostler.spec.params import flatten
from hostler.spec.scalars import text
from hostler.spec.states import DOUBTFUL
from hostler.spec.units import show_number

if TYPE_CHECKING:
    from pathlib import Path

    from hostler.records.rows import Row  # with all that reads a store

FEW = 5  # names in one line


def print_json(value: Any) -> None:
    """A list as one element per line, so that ten thousand are quick to make and easy to grep."""
    if isinstance(value, list):
        click.echo("[" + ",\n ".join(_json(one) for one in value) + "]")
    else:
        click.echo(_json(value, indent=2))


Say = Callable[[str], None]


def saying() -> Say:
    """For readers: what they cannot read is a line for people, each once."""
    said = set[str]()

    def say(line: str) -> None:
        if line not in said:
            said.add(line)
            click.echo(f"hostler: {line}", err=True)

    return say


@contextmanager
def refusing_damage(command: str) -> Iterator[None]:
    """Around a decision about what is to be deleted: the line about a record that cannot be read says that
    nothing was, and the command that goes on without it, if there is one."""
    try:
        yield
    except DamagedError as error:
        hint = f"it may need what would go; {command} leaves it out" if command else error.hint
        raise DamagedError(f"nothing was deleted: {error.message}", hint) from None


def say_spared(names: Sequence[str]) -> None:
    """Print a line on what was to be deleted and is needed by now."""
    if names:
        more = f" and {len(names) - FEW} more" if len(names) > FEW else ""
        click.echo(f"hostler: kept, because they are needed by now: {', '.join(names[:FEW])}{more}", err=True)


def row_json(row: Row) -> dict[str, Any]:
    hidden = ("session", "claim", "judged", "ended", "earlier", "began")
    facts = {name: value for name, value in vars(row).items() if name not in hidden}
    return {**facts, "ranked": row.judged and row.judged._asdict()}


def _json(value: Any, indent: int | None = None) -> str:
    try:
        return json.dumps(value, indent=indent, default=str, allow_nan=False)
    except ValueError:
        return json.dumps(_plain(value), indent=indent, default=str)


def _plain(value: Any) -> Any:
    """The value with NaN and infinities as text: JSON has none."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return value


def metrics_text(row: Row, limit: int = 3) -> str:
    """The metric that matters first, then the newest others."""
    names = [n for n in row.metrics if not n.startswith("system/")]
    if row.metric in names:
        names = [row.metric, *(n for n in names if n != row.metric)]
    return " ".join(f"{name}={show_number(row.metrics[name])}" for name in names[:limit])


def nan_line(found: Sequence[Row], metric: str | None = None) -> str:
    """The runs whose metric is NaN; empty if none is."""
    names = [row.name for row in found if math.isnan(row.metrics.get(metric or row.metric or "", 0.0))]
    what = metric or next((row.metric for row in found if row.name in names[:1]), None)
    more = f" and {len(names) - FEW} more" if len(names) > FEW else ""
    return f"{what} is NaN in {', '.join(names[:FEW])}{more}" if names else ""


def params_text(row: Row, limit: int = 60) -> str:
    line = " ".join(f"{k}={value_text(v)}" for k, v in row.params.items())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def params_line(params: Mapping[str, Any], limit: int = 100, *, exact: bool = False) -> str:
    """Parameters on one line; exact: as the script gets them."""
    shown = text if exact else value_text
    line = " ".join(f"{key}={shown(value)}" for key, value in flatten(params).items())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def value_text(value: Any) -> str:
    """A parameter as one writes it into a file: {best-of: pretrain}, [64, 128], true."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {value_text(one)}" for key, one in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(value_text, value)) + "]"
    return show_number(value) if isinstance(value, float) else text(value)


def counts(found: Sequence[Row]) -> str:
    totals: dict[str, int] = {}
    for row in found:
        word = DOUBTFUL if row.silent else row.counted
        totals[word] = totals.get(word, 0) + 1
    return ", ".join(f"{n} {state}" for state, n in totals.items()) or "no runs"


def show_in_browser(path: Path) -> None:
    """Open a file that was made; without a browser, say where it lies."""
    import webbrowser  # for --show alone

    if not webbrowser.open(path.absolute().as_uri()):
        click.echo(f"hostler: no browser could be opened here; look at {path}", err=True)
