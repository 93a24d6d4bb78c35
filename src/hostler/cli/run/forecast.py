"""Describes what submitting a sweep file would do, in words and as JSON: shared by `plan` and `sweep`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from hostler.backends.registry import HERE
from hostler.cli.terminal import output
from hostler.fleet import option_forms
from hostler.spec.project import Fleet
from hostler.spec.units import counted, show_duration
from hostler.worker.claim.room import at_a_time, offer

if TYPE_CHECKING:
    from hostler.fleet.preview import Outlook  # with all that submits; `status` shows only lines

FIRST, LAST = 3, 2  # runs shown
NAMED = 5  # names listed before the rest is counted


def lines(found: Outlook, fleet: Fleet, price: float | None = None, together: str = "") -> Iterator[str]:
    """`price` is what one worker costs an hour, if that is not the fleet's own. `together`: which runs share
    a process."""
    fleet = fleet if price is None else replace(fleet, price=price)
    job, edit = found.job, found.edit
    yield f"{job.name}: {_number(found.runs)} ({job.method})"
    indices = _indices(found)
    width = len(str(indices[-1])) if indices else 0
    for n, index in enumerate(indices):
        if n == FIRST and len(indices) < len(edit.kept) + len(edit.new):
            yield "  …"
        params = output.params_line(job.params(index), exact=True)
        yield f"  {index:<{width}}  {params}{_repeat(found, index)}"
    yield f"  {_counts(found)}"
    if found.replaced:
        yield f"  {nothing_succeeded(found)}: this file replaces them, they go to the trash"
    for note in (*option_forms.lines(job), *found.notes, *filter(None, [together])):
        yield f"  {note}"
    if found.other_code:
        yield f"  done by other code: {_names(found.other_code)}; --rerun changed repeats them"
    if found.again:
        yield f"  neither done nor running: {_names(found.again)}; -r submits them again"
    if edit.dropped:
        yield f"  no longer in the file and not started: {_number(len(edit.dropped))} will not be run"
    if edit.left:
        states = ", ".join(f"{n} {state}" for state, n in found.left.items())
        yield f"  no longer in the file but started: {_number(len(edit.left))}, left alone ({states})"
    if found.twins:
        names = [twin.row.name for twin in found.twins]
        yield f"  already finished in another sweep: {_names(names)}; --reuse takes their results"
    yield from _takes(found, fleet)


def nothing_succeeded(found: Outlook) -> str:
    """The state of the sweep that this file replaces."""
    failed, whole = found.failed or 0, found.replaced
    if not failed:
        return f"none of its {_number(whole)} has begun"
    if failed == whole:
        return f"all {failed} runs failed" if failed > 1 else "the only run failed"
    return f"{failed} of {_number(whole)} failed and the others never began"


def say_notes(notes: Sequence[str]) -> None:
    for note in notes:
        click.echo(f"  → {note}", err=True)


def as_json(found: Outlook, fleet: Fleet, price: float | None = None) -> dict[str, Any]:
    fleet = fleet if price is None else replace(fleet, price=price)
    job, edit = found.job, found.edit
    shown = [{"index": i, "run": job.run_id(i), "params": dict(job.params(i))} for i in _indices(found)]
    return {
        "name": job.name,
        "method": job.method,
        "runs": found.runs,
        "new": len(edit.new),
        "states": found.states,
        "other_code": list(found.other_code),
        "again": list(found.again),
        "dropped": len(edit.dropped),
        "left": found.left,
        "elsewhere": [{"index": twin.index, "run": twin.row.id} for twin in found.twins],
        "first": shown[:FIRST],
        "last": shown[-LAST:],
        "open": found.open,
        "seconds_per_run": found.seconds,
        "price_per_hour": hourly(fleet),
        "cost": cost(found, fleet),
        "options": list(option_forms.lines(job)),
    }


def hourly(fleet: Fleet) -> float | None:
    """Price of the whole fleet for an hour."""
    return fleet.price * fleet.workers if fleet.price is not None else None


def cost(found: Outlook, fleet: Fleet) -> float | None:
    """Cost of the rest of the sweep, where price and usual time are known."""
    if fleet.price is None or found.seconds is None:
        return None
    return round(fleet.price * found.open * found.seconds / 3600 / (fleet.slots or 1), 4)


def _takes(found: Outlook, fleet: Fleet) -> Iterator[str]:
    if found.open > 1 and fleet.backend == HERE and fleet.workers == 1:
        line = at_a_time(found.job, offer(slots=fleet.slots, cpus=None, gpus=None))
        yield from [f"  {line}"] if line else []
    at_once = fleet.workers * (fleet.slots or 1)
    at_once = min(found.job.parallel or at_once, at_once)
    if found.seconds is not None and found.open:
        whole = show_duration(round(found.seconds * found.open / max(1, at_once)))
        yield f"  a run takes {show_duration(found.seconds)}: about {whole} for the rest on {fleet.name}"
    price, rest = hourly(fleet), cost(found, fleet)
    if price and rest is not None:
        yield f"  price: {price:g} an hour, about {rest:g} for the rest"


def _counts(found: Outlook) -> str:
    new = len(found.edit.new)
    parts = [f"{new} new"] if new else []
    parts += [f"{n} {state}" for state, n in found.states.items()]
    if not parts:
        return "nothing yet: the search chooses as it goes"
    more = found.runs - len(found.edit.kept) if found.job.search else 0
    parts += [f"{more} to be chosen"] if more > 0 else []
    return ", ".join(parts) + ("" if new or more > 0 or not found.there else "; nothing is new")


def _indices(found: Outlook) -> list[int]:
    """The first and last few runs of the file, by index."""
    kept, new = found.edit.kept, found.edit.new  # what is new comes after what was there

    def nth(n: int) -> int:
        return kept.nth(n) if n < len(kept) else new.nth(n - len(kept))

    count = len(kept) + len(new)
    if count <= FIRST + LAST + 1:  # a gap of one run takes as many lines as the run
        return [nth(n) for n in range(count)]
    return [nth(n) for n in (*range(FIRST), *range(count - LAST, count))]


def _repeat(found: Outlook, index: int) -> str:
    n = found.job.repeat(index)
    return f"  (repeat {n + 1})" if n else ""


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def _number(n: int) -> str:
    return counted(n, "run")
