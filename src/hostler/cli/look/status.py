"""`hostler status`: a row per run, live where there is a terminal; a line per sweep."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from hostler import settings
from hostler.cli import here
from hostler.cli.terminal import output
from hostler.cli.terminal.table import need_a_worker, print_table, watch_table
from hostler.errors import DamagedError, MissingError, NewerFormatError
from hostler.records.launch import costs, launches
from hostler.records.rows import Row, rows
from hostler.records.run.log import CAP
from hostler.records.sweep import summary, sweeps
from hostler.records.sweep.summary import Summary
from hostler.spec.states import FAILED, PAUSED, QUEUED
from hostler.spec.units import show_duration, show_money
from hostler.store import Store

if TYPE_CHECKING:
    from hostler.cli.terminal.output import Say
    from hostler.records.launch.costs import SweepCost
    from hostler.records.launch.settlement import Spend

HERE = "here"  # a fleet that no file names
ERRORS = 3  # that are shown
MANY = 20  # a sweep of more runs is one line, unless it is named
MOST = 10_000  # of a sweep of more runs those that nobody has had are only counted


def command(
    names: tuple[str, ...],
    watch: bool,
    only_sweeps: bool,
    states: tuple[str, ...],
    tags: tuple[str, ...],
    trash: bool,
    store_url: str | None,
    as_json: bool,
) -> int:
    """List runs: running, waiting, ended. Large sweeps are one line each, unless they are named."""
    store, say = here.open_here(store_url), output.saying()
    chosen = _named(store, names) or sweeps.names(store)
    if only_sweeps:
        return _sweeps(store, chosen, as_json, say)
    whole = bool(names or states or tags or as_json)

    def look() -> list[Row]:
        if watch:
            here.deliver_left(store, say)
        found = _rows(store, names, chosen, trash=trash, whole=whole, say=say)
        return [r for r in found if (not states or r.state in states) and set(tags) <= set(r.tags)]

    found = look()
    if as_json:
        output.print_json([output.row_json(row) for row in found])
        return 0
    lines = [] if states or tags else [one for one in _summaries(store, chosen, say) if _has_line(one)]
    if not found and not lines:
        click.echo(_nothing(store, filtered=bool(states or tags)), err=True)
    elif watch:
        from hostler.fleet.pending import goes_on  # with all searches and pruners: one look needs none

        _hint(store, found, say)
        watch_table(look, lambda seen: goes_on(store, seen, () if states or tags else chosen))
        lines = [one for one in _summaries(store, chosen, say) if _has_line(one)]
    elif found:
        print_table(found)
    queues = _in_queues() if _any_queued(found, lines) or any(row.forming for row in found) else []
    _print(store, lines, say, hint=not queues)
    if found and not watch and not lines and not queues:
        _hint(store, found, say)
    for line in (*queues, *_forming(store, found)):
        click.echo(f"  {line}")
    for line in [] if names or states or tags else _by_hand(store):
        click.echo(line)
    for line in (*_died(store, found), *_capped(store, found)):
        click.echo(f"  → {line}", err=True)
    for line in _failures(found):
        click.echo(f"  {line}", err=True)
    return 0


def _named(store: Store, names: tuple[str, ...]) -> list[str]:
    """Sweeps that these words mean."""
    if not names:
        return []
    from hostler.records.run import resolve  # only for words

    return list(dict.fromkeys(resolve.sweep(store, name) for name in names))


def _by_hand(store: Store) -> list[str]:
    """Machines that work on nothing, and cost. What cannot be read was said with the sweeps' costs."""
    found = costs.spends(store, settings.timing(), lambda line: None)
    there = [one for one in found if one.generation.by_hand and not one.over]
    if not there:
        return []
    from hostler.cli.look.cost import by_hand_line  # another verb

    return [by_hand_line(one) for one in there]


def _capped(store: Store, found: list[Row]) -> list[str]:
    names = dict.fromkeys(row.sweep for row in found if row.state == PAUSED and row.paused_by == CAP)
    return [
        f"{name}: a cap was reached; {resuming(store, name)} goes on, hostler cost {name}" for name in names
    ]


def _failures(found: list[Row]) -> list[str]:
    """The error of failed runs, those that ended alike in one line, and the command that tries them again."""
    alike: dict[str, list[str]] = {}
    for row in found:
        if row.state == FAILED and row.failure:
            alike.setdefault(str(row.failure.get("message", "")), []).append(row.name)
    if not alike:
        return []
    from hostler.records.sweep.error_groups import retry_command  # with all that groups failures

    lines = [f"{_listed(names)} failed: {message}" for message, names in list(alike.items())[:ERRORS]]
    more = len(alike) - len(lines)
    lines += [f"{more} more: hostler errors"] if more else []
    names = [name for names in alike.values() for name in names]
    return [*lines, f"→ after a repair: {retry_command(names)}"]


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def resuming(store: Store, name: str) -> str:
    """The command that resumes a sweep where it ran last: without `--on` it might be this machine."""
    served = [
        one
        for one in launches.everywhere(store, lambda line: None)
        if name in one.sweeps and one.fleet != HERE
    ]
    last = max(served, key=lambda one: one.began, default=None)
    return f"hostler resume {f'--on {last.fleet} ' if last else ''}{name}"


def _in_queues() -> list[str]:
    from hostler.cli.look import queued  # with all that starts workers, which is not needed to look at them

    return queued.lines(here.project())


def _forming(store: Store, found: list[Row]) -> list[str]:
    if not any(row.forming for row in found):
        return []
    from hostler.cli.terminal import hints  # with what starts workers: only for runs that wait

    return list(hints.lines(store, found))


def _died(store: Store, found: list[Row]) -> list[str]:
    if not any(row.lost for row in found):
        return []
    from hostler.cli.terminal import hints  # with what starts workers: only for scripts that died

    return hints.died(store, found)


def _any_queued(found: list[Row], lines: list[Summary]) -> bool:
    return any(row.counted == QUEUED for row in found) or any(one.counts.get(QUEUED) for one in lines)


def _rows(
    store: Store, names: tuple[str, ...], chosen: list[str], *, trash: bool, whole: bool, say: Say
) -> list[Row]:
    if not names:
        return rows(store, [n for n in chosen if whole or not _is_large(store, n)], trash=trash, say=say)
    from hostler.cli.terminal import named_rows  # only for words

    return named_rows.rows_named(store, names, trash=trash, most=MOST, say=say)


def _is_large(store: Store, name: str) -> bool:
    """Whether the sweep is shown as one line; an unreadable one is not: its rows say why."""
    try:
        return sweeps.load(store, name).count > MANY
    except (MissingError, DamagedError, NewerFormatError):
        return False


def _sweeps(store: Store, chosen: list[str], as_json: bool, say: Say) -> int:
    found = _summaries(store, chosen, say)
    if as_json:
        output.print_json([_as_json(one) for one in found])
    else:
        _print(store, found, say)
    return 0


def _summaries(store: Store, chosen: list[str], say: Say) -> list[Summary]:
    """Summaries of sweeps that are not wholly in the trash."""
    found = [one for name in chosen if (one := _summary(store, name, say))]
    spends = costs.spends(store, settings.timing(), say)
    return [_with_cost(store, one, spends, say) for one in found if one.runs or one.method]


def _summary(store: Store, name: str, say: Say) -> Summary | None:
    try:
        return summary.of_sweep(store, name, say)
    except MissingError:  # being submitted, or deleted, right now
        return None
    except (DamagedError, NewerFormatError) as error:
        say(f"{name} is left out: {error}")
        return None


def _has_line(one: Summary) -> bool:
    """Whether a sweep gets a line: a single run is its row, unless it costs."""
    return one.runs != 1 or one.cost is not None


def _with_cost(store: Store, one: Summary, spends: list[Spend], say: Say) -> Summary:
    if one.budget is None and not spends:
        return one
    try:
        return replace(one, cost=costs.of_sweep(store, one.name, one.budget, spends))
    except (DamagedError, NewerFormatError) as error:
        say(f"no costs of {one.name} are shown: {error}")
        return one


def _print(store: Store, found: list[Summary], say: Say, *, hint: bool = True) -> None:
    queued = [one.name for one in found if hint and one.counts.get(QUEUED) and not one.halted]
    left = _left(store, queued, say) if queued else {}
    for one in found:
        click.echo(_line(one))
        if one.unlogged:
            click.echo(f"  → {one.unlogged}", err=True)
        if one.name in left:
            click.echo(f"  → nobody works on it: {left[one.name]}", err=True)


def _left(store: Store, names: list[str], say: Say) -> dict[str, str]:
    """sweep → the command that starts a worker, of those that nobody works on."""
    from hostler.cli.terminal import hints  # with what starts workers: only for runs that wait

    return dict.fromkeys(hints.unserved(store, names, say), hints.worker_command(store))


def _line(found: Summary) -> str:
    counts = ", ".join(f"{n} {state}" for state, n in found.counts.items()) or "none yet"
    counts += f", {found.unchosen} to be chosen" if found.unchosen else ""
    parts = [f"{found.name}: {found.runs:,} run{'s' * (found.runs != 1)}: {counts}"]
    if found.eta is not None:
        parts.append(f"about {show_duration(round(found.eta))} left")
    if found.best is not None and found.value is not None:
        parts.append(f"best {found.best.name} {found.metric}={output.number(found.value)}")
        parts[-1] += f" ({output.params_line(found.best.params, limit=60)})"
    if found.cost is not None:
        parts.append(_spent(found.cost))
    if found.halted:
        parts.append(f"halted: {found.halted}")
    return "; ".join(parts)


def _spent(cost: SweepCost) -> str:
    of = f" of {show_money(cost.budget)}" if cost.budget is not None else ""
    more = f", {show_money(cost.reserved)} more reserved" if cost.reserved else ""
    return f"{show_money(cost.spent)}{of} spent{more}"


def _as_json(found: Summary) -> dict[str, Any]:
    best = found.best
    facts = {name: value for name, value in vars(found).items() if name not in ("best", "value", "cost")}
    shown = best and {"run": best.id, "name": best.name, "value": found.value, "params": dict(best.params)}
    return {**facts, "best": shown, "cost": found.cost and vars(found.cost)}


def _nothing(store: Store, *, filtered: bool) -> str:
    if filtered:
        return f"no such runs in {store.url}; hostler status shows all"
    return f"no runs yet in {store.url}\n  → hostler run train.py --lr 0.1   starts one"


def _hint(store: Store, found: list[Row], say: Say) -> None:
    if not need_a_worker(found):
        return
    from hostler.cli.terminal import hints  # with what starts workers: only for runs that wait

    hint = hints.nobody(store, found, say)
    if hint:
        click.echo(f"  → {hint}", err=True)
