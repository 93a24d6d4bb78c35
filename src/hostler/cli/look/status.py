"""`hostler status`: a row per run, live where there is a terminal; a line per sweep."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

import click

from hostler.cli import here
from hostler.cli.look import sweep_lines
from hostler.cli.terminal import output, run_columns, screen
from hostler.cli.terminal.run_columns import ALL
from hostler.cli.terminal.screen import paint
from hostler.cli.terminal.table import WIDEST, need_a_worker, print_table, watch_table
from hostler.errors import DamagedError, MissingError, NewerFormatError
from hostler.records.rows import Row, rows
from hostler.records.run.log import CAP
from hostler.records.run.state import LOST, UNREADABLE
from hostler.records.sweep import sweeps
from hostler.records.sweep.summary import Summary
from hostler.spec.states import DIVERGED, FAILED, PAUSED, QUEUED
from hostler.store import Store

if TYPE_CHECKING:
    from hostler.cli.terminal.output import Say
    from hostler.records.launch.settlement import Spend
    from hostler.spec.job import Job

_NONE: Mapping[str, Job] = MappingProxyType({})
HERE = "here"  # a fleet that no file names
ERRORS = 3  # that are shown
NEEDY = (FAILED, LOST, DIVERGED, UNREADABLE)  # states that a person should look at
MANY = 20  # a sweep of more runs is one line, unless it is named
MOST = 10_000  # of a sweep of more runs those that nobody has had are only counted


def command(
    names: tuple[str, ...],
    watch: bool,
    only_sweeps: bool,
    states: tuple[str, ...],
    tags: tuple[str, ...],
    trash: bool,
    sort: str,
    columns: str,
    store_url: str | None,
    as_json: bool,
) -> int:
    """List runs: running, waiting, ended. Large sweeps are one line each, unless they are named."""
    store, say = here.open_here(store_url), output.saying()
    chosen = _named(store, names) or sweeps.names(store)
    chosen = chosen if as_json else _newest_last(store, chosen)
    if only_sweeps:
        return _sweeps(store, chosen, as_json, say)
    whole = bool(names or states or tags or as_json)
    large: dict[str, Job] = {}

    def look() -> list[Row]:
        if watch:
            here.deliver_left(store, say)
        large.clear()
        large.update({} if whole else _large(store, chosen))
        found = _rows(store, names, [name for name in chosen if name not in large], trash=trash, say=say)
        return [r for r in found if (not states or r.state in states) and set(tags) <= set(r.tags)]

    found = look()
    if as_json:
        output.print_json([output.row_json(row) for row in found])
        return 0
    run_columns.check(found, [word for word in columns.split(",") if word not in ("", ALL)], "--columns")
    run_columns.check(found, [sort.lstrip("-")] if sort else [], "--sort")
    lines, spends = ([], []) if states or tags else _lines(store, chosen, say, large)
    if not found and not lines:
        click.echo(_nothing(store, filtered=bool(states or tags)), err=True)
    elif watch:
        from hostler.fleet import late_hosts
        from hostler.fleet.pending import goes_on  # with all searches and pruners: one look needs none

        _hint(store, found, say)
        over = () if states or tags else chosen
        with late_hosts.awaited(here.store_url(store_url)):
            watch_table(look, lambda seen: goes_on(store, seen, over), sort=sort, columns=columns)
        lines, spends = _lines(store, chosen, say)
    elif found:
        print_table(found, sort=sort, columns=columns)
    queues = _in_queues(store, say) if _any_queued(found, lines) or any(row.forming for row in found) else []
    waiting = _hint(store, found, say) if found and not watch and not lines and not queues else False
    for line in (*queues, *_forming(store, found)):
        click.echo(f"  {line}")
    for line in [] if names or states or tags else _by_hand(spends):
        click.echo(line)
    _print_troubles(store, found, lines)
    waiting |= sweep_lines.print_lines(store, lines, say, hint=not queues)
    if line := attention(found, lines, waiting=waiting):
        click.echo(paint(line, "yellow"), err=True)
    return 0


def _print_troubles(store: Store, found: list[Row], lines: Sequence[Summary]) -> None:
    for line in (*_died(store, found), *_capped(store, found, {summary.name for summary in lines})):
        click.echo(f"  → {line}", err=True)
    room = screen.size().columns if sys.stderr.isatty() else WIDEST
    for line in (*_failures(found), *filter(None, [output.nan_line(found)])):
        shown = f"  {line}"
        is_command = line.startswith("→")  # to be copied: stays one line
        click.echo(shown if is_command else screen.hanging(shown, room), err=True)


def attention(found: Sequence[Row], lines: Sequence[Summary], *, waiting: bool) -> str:
    """The line about what needs a person, the last before the prompt; empty if nothing does. Pure."""
    told = {line.name for line in lines}
    totals, where, silent = Counter[str](), dict[str, None](), 0
    for summary in lines:
        silent += summary.silent
        for state in NEEDY:
            totals[state] += summary.counts.get(state, 0)
            where |= dict.fromkeys([summary.name] if state == FAILED and summary.counts.get(state) else [])
    for row in found:
        if row.sweep not in told:
            silent += row.silent
            totals[row.counted] += 1
            where |= dict.fromkeys([row.sweep] if row.counted == FAILED else [])
    parts = [f"{totals[state]} {state}" for state in NEEDY if totals[state]]
    if where:
        errors = f"hostler errors {next(iter(where))}" if len(where) == 1 else "hostler errors"
        parts[0] += f" ({errors})"
    parts += [f"{silent} without a sign of life"] if silent else []
    nan = sum(math.isnan(row.metrics.get(row.metric or "", 0.0)) for row in found)
    parts += [f"{nan} with NaN"] if nan else []
    parts += [f"{line.name} is halted" for line in lines if line.halted][:1]
    parts += ["nobody works on what is queued"] if waiting else []
    return f"! needs attention: {', '.join(parts)}" if parts else ""


def _lines(
    store: Store, chosen: list[str], say: Say, read: Mapping[str, Job] = _NONE
) -> tuple[list[Summary], list[Spend]]:
    """Summaries of sweeps that get a line, and the spends of all launches. `read`: specs that have been read
    already."""
    spends = sweep_lines.spends(store, say)
    summaries = sweep_lines.summaries(store, chosen, spends, say, read)
    return [summary for summary in summaries if sweep_lines.has_line(summary)], spends


def _newest_last(store: Store, names: Sequence[str]) -> list[str]:
    """Sweeps in the order they were submitted, by the store's clock: the newest stands next to the prompt."""
    if len(names) < 2:
        return list(names)
    times = {name: sweeps.last_submitted(store, name) for name in names}
    return sorted(names, key=lambda name: times[name])


def _named(store: Store, names: tuple[str, ...]) -> list[str]:
    """Sweeps that these words mean."""
    if not names:
        return []
    from hostler.records.run import resolve  # only for words

    return list(dict.fromkeys(resolve.sweep(store, name) for name in names))


def _by_hand(spends: Sequence[Spend]) -> list[str]:
    """Machines that work on nothing, and cost."""
    there = [spend for spend in spends if spend.generation.by_hand and not spend.over]
    if not there:
        return []
    from hostler.cli.look.cost import by_hand_line  # another verb

    return [by_hand_line(spend) for spend in there]


def _capped(store: Store, found: list[Row], told: Collection[str]) -> list[str]:
    """Hints for runs that a budget has paused; `told`: sweeps whose line has said it already."""
    names = dict.fromkeys(row.sweep for row in found if row.state == PAUSED and row.paused_by == CAP)
    if not names:
        return []
    from hostler.cli.terminal import halt_hints  # with what acts on runs: only for runs that a budget paused

    lines = []
    for name in names:
        if not (why := halt_hints.out_of_hours(store, name)):
            then = f"{resuming(store, name)} continues it; hostler cost {name} shows the cost"
            lines.append(f"{name} has reached a limit of money or time; {then}")
        elif name not in told:
            lines.append(f"{name}: {why}")
    return lines


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
    from hostler.records.launch import launches  # only for sweeps that are paused

    served = [
        one
        for one in launches.everywhere(store, lambda line: None)
        if name in one.sweeps and one.fleet != HERE
    ]
    last = max(served, key=lambda one: one.began, default=None)
    return f"hostler resume {f'--on {last.fleet} ' if last else ''}{name}"


def _in_queues(store: Store, say: Say) -> list[str]:
    from hostler.cli.look import queued  # with all that starts workers, which is not needed to look at them

    return queued.lines(here.project(), store, say)


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
    return any(row.counted == QUEUED for row in found) or any(line.counts.get(QUEUED) for line in lines)


def _rows(store: Store, names: tuple[str, ...], chosen: list[str], *, trash: bool, say: Say) -> list[Row]:
    if not names:
        return rows(store, chosen, trash=trash, say=say)
    from hostler.cli.terminal import named_rows  # only for words

    return named_rows.rows_named(store, names, trash=trash, most=MOST, say=say)


def _large(store: Store, names: Sequence[str]) -> dict[str, Job]:
    """Sweeps that are shown as one line, with their specs; an unreadable one is not: its rows say why."""
    jobs = {}
    for name in names:
        try:
            job = sweeps.load(store, name)
        except (MissingError, DamagedError, NewerFormatError):
            continue
        if job.count > MANY:
            jobs[name] = job
    return jobs


def _sweeps(store: Store, chosen: list[str], as_json: bool, say: Say) -> int:
    summaries = sweep_lines.summaries(store, chosen, sweep_lines.spends(store, say), say)
    if as_json:
        output.print_json([sweep_lines.as_json(summary) for summary in summaries])
    else:
        sweep_lines.print_lines(store, summaries, say)
    return 0


def _nothing(store: Store, *, filtered: bool) -> str:
    if filtered:
        return f"no such runs in {store.url}; hostler status shows all"
    return f"no runs yet in {store.url}\n  → hostler run train.py --lr 0.1   starts one"


def _hint(store: Store, found: list[Row], say: Say) -> bool:
    """Print the command that starts a worker; whether one is needed."""
    if not need_a_worker(found):
        return False
    from hostler.cli.terminal import hints  # with what starts workers: only for runs that wait

    hint = hints.nobody(store, found, say)
    if hint:
        click.echo(f"  → {hint}", err=True)
    return bool(hint)
