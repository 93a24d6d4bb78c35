"""`hostler rm`: runs to the trash, out of it again, and its emptying."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import click

from hostler.cli import here
from hostler.cli.steer import acting
from hostler.cli.steer.acting import NEEDLESS, ONE_BY_ONE, REFUSED, Result
from hostler.cli.terminal import output
from hostler.cli.terminal.ask import ask
from hostler.errors import UsageError
from hostler.records import garbage, trash
from hostler.records.rows import Row, rows
from hostler.records.run import log
from hostler.records.sweep import sweeps
from hostler.spec.states import QUEUED, RUNNING
from hostler.store import Store

LIVE = (QUEUED, RUNNING)


def command(
    names: tuple[str, ...],
    restore: bool,
    empty: bool,
    skip_damaged: bool,
    yes: bool,
    store_url: str | None,
    as_json: bool,
) -> int:
    """Put runs in the trash, after asking. They can come back until the trash is emptied."""
    if restore and empty:
        raise UsageError("--restore and --empty cannot be combined", hint="give one of them")
    if skip_damaged and not empty:
        raise UsageError("--skip-damaged is for --empty", hint="hostler rm --empty --skip-damaged")
    if not names and not empty:
        raise UsageError("name the runs or sweeps to remove", hint="hostler status lists them")
    store = here.open_here(store_url)
    if empty:
        return _empty(store, names, output.saying() if skip_damaged else None, yes, as_json)
    results = acting.act(store, names, partial(_restorable, store) if restore else _removable)
    chosen = [result for result in results if result.kind == acting.DID and result.row]
    if not restore and chosen and not ask(f"{_shown(chosen)}\nPut in the trash?", yes=yes):
        click.echo("hostler: nothing was removed", err=True)
        return 1
    turn = sweeps.take_out_of_trash if restore else sweeps.put_in_trash
    for one in chosen:
        if one.row:
            turn(store, one.row.sweep, one.row.id)
    return acting.report(store, results, as_json=as_json)


def _removable(row: Row) -> Result:
    if row.trashed:
        return Result(row.name, "already in the trash", NEEDLESS, row)
    if row.state in LIVE:
        return Result(row.name, f"{row.state}: first hostler stop {row.name}", REFUSED, row)
    return Result(row.name, "in the trash", row=row)


def _restorable(store: Store, row: Row) -> Result:
    if not row.trashed:
        return Result(row.name, "already out of the trash", NEEDLESS, row)
    if row.attempt and trash.emptied(store, row.id):
        return Result(row.name, "its files are deleted already", REFUSED, row)
    return Result(row.name, "restored", row=row)


def _empty(store: Store, names: Sequence[str], say: output.Say | None, yes: bool, as_json: bool) -> int:
    with output.refusing_damage("" if say else "hostler rm --empty --skip-damaged"):
        results = _decided(store, names, say)
    doomed = [result for result in results if result.kind == acting.DID and result.row]
    half = [] if names else trash.cut_off(store)
    if not doomed and not half:
        click.echo("hostler: nothing to delete", err=True)
        return acting.report(store, [result for result in results if result.refused], as_json=as_json)
    question = f"{_shown(doomed)}\nDelete for good, checkpoints and outputs too?"
    if doomed and not ask(question, yes=yes):
        click.echo("hostler: nothing was deleted", err=True)
        return 1
    chosen = [result.row for result in doomed if result.row]
    deleted = _delete(store, chosen, lambda: _decided(store, names, say))
    for name in trash.cut_off(store) if half else ():
        trash.delete_sweep(store, name)
    output.say_spared([result.name for result in doomed if result.row and result.row.id not in deleted])
    if as_json:
        gone = [result for result in doomed if result.row and result.row.id in deleted]
        output.print_json([{"id": result.row.id, "said": result.said} for result in gone if result.row])
        return int(any(result.refused for result in results))
    results = [
        result for result in results if result not in doomed or (result.row and result.row.id in deleted)
    ]
    return acting.report(store, results, as_json=False)


def _decided(store: Store, names: Sequence[str], say: output.Say | None) -> list[Result]:
    """Runs that may be deleted, of the named or of all in the trash. `say` gets what cannot be read: it is
    left out, but for runs that are in the trash themselves."""
    may = partial(_deletable, garbage.taken(store, say))
    return acting.act(store, names, may) if names else _all_deletable(store, may, say)


def _all_deletable(store: Store, may: Callable[[Row], Result], say: output.Say | None) -> list[Result]:
    """Runs in the trash that were not deleted before."""
    found = [row for row in rows(store, trash=True, say=say) if row.trashed]
    ids = {row.id for row in found}
    whole = {n for n in {row.sweep for row in found} if trash.is_whole(sweeps.load(store, n), ids)}
    return [may(row) for row in found if row.sweep in whole or not trash.emptied(store, row.id)]


def _deletable(taken: Mapping[str, str], row: Row) -> Result:
    if not row.trashed:
        return Result(row.name, f"not in the trash: first hostler rm {row.name}", REFUSED, row)
    if row.id in taken:
        return Result(
            row.name, f"{taken[row.id]} starts from it: first hostler stop {taken[row.id]}", REFUSED, row
        )
    if row.state in LIVE:  # reopened since
        return Result(row.name, f"{row.state}: first hostler stop {row.name}", REFUSED, row)
    return Result(row.name, "deleted", row=row)


def _delete(store: Store, doomed: Sequence[Row], decide: Callable[[], list[Result]]) -> set[str]:
    """Delete those that may go still, by a new decision; each is looked at again in the moment before.
    Returns their ids."""
    heads = {name: log.heads(store, name) for name in {row.sweep for row in doomed}}
    turns = {name: sweeps.trashed(store, name) for name in heads}
    may = {result.row.id for result in decide() if result.kind == acting.DID and result.row}
    deleted = set[str]()
    for row in doomed:
        turn, head = turns[row.sweep].get(row.id), heads[row.sweep].get(row.id, 0)
        if row.id in may and turn and trash.is_still(store, row.key, turn, head):
            trash.delete_run(store, row.id)
            deleted.add(row.id)
    for name in dict.fromkeys(row.sweep for row in doomed):
        if sweeps.is_there(store, name) and trash.is_whole(sweeps.load(store, name), deleted):
            trash.delete_sweep(store, name)
        else:
            trash.delete_packed(store, name, {row.id for row in doomed if row.sweep == name} & deleted)
    return deleted


def _shown(chosen: Sequence[Result]) -> str:
    lines = [f"  {result.name}  {result.row.state}" for result in chosen[:ONE_BY_ONE] if result.row]
    more = len(chosen) - ONE_BY_ONE
    return "\n".join([*lines, f"  and {more} more"] if more > 0 else lines)
