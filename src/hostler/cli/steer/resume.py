"""`hostler resume`: stopped or paused runs are queued again, and a worker is started for them."""

from __future__ import annotations

from hostler.cli import here
from hostler.cli.steer import acting
from hostler.cli.steer.acting import Result
from hostler.cli.steer.requeue import affords, allow_hours, start_for
from hostler.records.rows import Row
from hostler.records.run import control


def command(
    names: tuple[str, ...], on: str | None, no_start: bool, yes: bool, store_url: str | None, as_json: bool
) -> int:
    """Go on with stopped or paused runs, from their last checkpoints, with the code they had."""
    url = here.store_url(store_url)
    store = here.open_here(store_url)

    def do(row: Row) -> Result:
        if row.trashed:
            return acting.in_trash(row)
        return acting.result(row, control.resume(store, row.key, by="hostler resume"))

    allow_hours(store, names)
    if not affords(store, url, names, on, no_start=no_start, yes=yes):
        return 1
    held = acting.let_go(store, names)
    results = acting.act(store, names, do)
    start_for(store, url, results, on, no_start=no_start, also=held)
    return acting.report(store, results, as_json=as_json)
