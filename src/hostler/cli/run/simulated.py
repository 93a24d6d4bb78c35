"""Results of simulations, as a table for people and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from hostler.simulate.outcome import Span, Summary
from hostler.simulate.study import Study
from hostler.spec.units import show_duration, show_money

HEAD = ("fleet", "checkpoint", "time", "(5-95 %)", "cost", "(5-95 %)", "preempted", "repeated", "done")


def lines(
    found: Study, results: Sequence[Summary], chosen: Summary | None, then: str, by: str
) -> Iterator[str]:
    count = f"{found.runs:,} run{'s' * (found.runs != 1)}"
    yield f"{found.job.name}: {count}; each simulated with {found.seeds} chance{'s' * (found.seeds != 1)}"
    rows = [HEAD, *(_cells(one) for one in results)]
    widths = [max(len(row[n]) for row in rows) for n in range(len(HEAD))]
    for row in rows:
        yield "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    yield from (f"  {one}" for one in found.notes)
    yield from (f"  {one}" for one in troubles(results))
    yield from _best(results, chosen, then, by)


def troubles(results: Sequence[Summary]) -> Iterator[str]:
    """Reasons why not all runs finish, one line each."""
    for one in results:
        name = f"{one.fleet}, checkpoint {show_duration(one.every)}"
        if one.endless:
            yield f"{name}: the sweep never ends: machines are taken before a run reaches its next checkpoint"
        elif not one.begins:
            yield f"{name}: the launch never starts: {one.given_up}"
        elif one.given_up:
            yield f"{name}: in {one.abandoned} of {one.seeds} the launch is given up: {one.given_up}"
        elif one.failed >= 0.5:
            yield f"{name}: {one.failed:.0f} runs fail: lost too often before a checkpoint; save more often"
        elif one.capped:
            often = f"in {one.capped} of {one.seeds}"
            yield f"{name}: time or money is over before the work {often}: {_left(one)}"
        elif one.left >= 0.5:
            yield f"{name}: {_left(one)}: no machine is left for them"


def _left(one: Summary) -> str:
    count = f"{one.left:.0f}"
    return "1 run is left" if count == "1" else f"{count} runs are left"


def _best(results: Sequence[Summary], chosen: Summary | None, then: str, by: str) -> Iterator[str]:
    if chosen is None:
        yield "none of them finishes all runs"
        return
    cheap = by == "cost" and chosen.cost is not None
    word = "" if len(results) == 1 else "cheapest: " if cheap else "fastest: "
    cost = f" for {_money(chosen.cost)}" if chosen.cost else ""
    name = f"{chosen.fleet}, a checkpoint every {show_duration(chosen.every)}"
    yield f"{word}{name}: {_time(chosen.seconds)}{cost}"
    yield f"  → {then}"


def _cells(one: Summary) -> tuple[str, ...]:
    never = "never ends" if one.endless else "" if one.begins else "never begins"
    cost = ("-", "") if one.cost is None or never else (show_money(one.cost.mean), _between(one.cost))
    time = (never, "") if never else (_short(one.seconds.mean), _times(one.seconds))
    losses = f"{one.losses:.3g}" if one.losses < 1000 else f"{one.losses:,.0f}"
    done = f"{one.done:.0f}" if one.finishes else f"{one.done:.0f} of {one.runs}"
    repeated = show_duration(round(one.repeated)) if one.repeated else "0"
    return (one.fleet, show_duration(one.every), *time, *cost, losses, repeated, done)


def as_json(found: Study, results: Sequence[Summary], chosen: Summary | None, then: str) -> dict[str, Any]:
    return {
        "sweep": found.job.name,
        "runs": found.runs,
        "seeds": found.seeds,
        "results": [{**asdict(one), "finishes": one.finishes} for one in results],
        "best": {"fleet": chosen.fleet, "every": chosen.every} if chosen else None,
        "next": then or None,
        "notes": [*found.notes, *troubles(results)],
    }


def _time(span: Span) -> str:
    return f"{_short(span.mean)} ({_times(span)})"


def _money(span: Span) -> str:
    return f"{show_money(span.mean)} ({_between(span)})"


def _between(span: Span) -> str:
    return f"{show_money(span.low)}-{show_money(span.high)}"


def _times(span: Span) -> str:
    return f"{_short(span.low)}-{_short(span.high)}"


def _short(seconds: float) -> str:
    return show_duration(round(seconds)) if seconds >= 10 else show_duration(seconds)
