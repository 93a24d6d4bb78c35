"""`hostler retry`: failed, diverged or lost runs are queued again, with today's code and settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from hostler.analysis import codediff
from hostler.cli import here
from hostler.cli.steer import acting
from hostler.cli.steer.acting import DID, Result
from hostler.cli.steer.requeue import affords, allow_hours, start_for, waits
from hostler.errors import UsageError
from hostler.fleet import submit
from hostler.fleet.snapshot import changes
from hostler.records.rows import Row
from hostler.records.run import control
from hostler.records.sweep import sweeps
from hostler.spec.job import Job, Source, source_facts
from hostler.spec.states import DIVERGED, FAILED, RUNNING
from hostler.store import Store

DIFF = 40  # lines of the difference that are shown


def command(
    names: tuple[str, ...],
    same_code: bool,
    fresh: bool,
    on: str | None,
    no_start: bool,
    yes: bool,
    store_url: str | None,
    as_json: bool,
) -> int:
    """Try failed, diverged or lost runs again, from their last checkpoints."""
    url = here.store_url(store_url)
    store = here.open_here(store_url)
    names = here.named_or_newest(store, names)
    code = None if same_code else _TodaysCode(store)

    def do(row: Row) -> Result:
        if row.trashed:
            return acting.in_trash(row)
        source = code.source(row) if code and _is_for(row, fresh) else None
        text = control.retry(store, row.key, by="hostler retry", source=source, fresh=fresh, lost=row.stale)
        return acting.result(row, text)

    allow_hours(store, names)
    if not affords(store, url, names, on, no_start=no_start, yes=yes):
        return 1
    results = acting.act(store, names, do)
    _lift(store, results, code)
    start_for(store, url, results, on, no_start=no_start)
    return acting.report(store, results, as_json=as_json)


def _lift(store: Store, results: Sequence[Result], code: _TodaysCode | None) -> None:
    """Sweeps with something to try again; and those that errors halted before the rest of them was taken:
    that rest was to meet the same errors, so it gets today's code, too."""
    tried = {result.row.sweep for result in results if result.row and result.kind == DID}
    left = {result.row.sweep for result in results if result.row and waits(result)} - tried
    halts = {name: sweeps.halted(store, name) for name in tried | left}
    by_errors = [name for name, halt in halts.items() if halt and "kind" not in halt]
    for name in sorted(tried.union(by_errors)):
        if code and name in by_errors:
            code.renew(name)
        sweeps.lift(store, name)


def _is_for(row: Row, fresh: bool) -> bool:
    lost = row.state == RUNNING and row.stale
    return row.state in (FAILED, DIVERGED) or lost or (fresh and row.state != RUNNING)


class _TodaysCode:
    """Taken once, when the first run needs it; what changed is said once for each old snapshot."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._taken: dict[str, Source] = {}  # by the sweep file that is left out of it
        self._told: set[str | None] = set()

    def source(self, row: Row) -> dict[str, Any]:
        job = sweeps.load(self._store, row.sweep)
        if job.source.function:
            self._keep_function(job)
            return source_facts(job.source)
        new = self._today(job.file)
        state = control.state_of(self._store, row.key)
        old = sweeps.with_source(job, state).source
        self._check(job, old, new)
        submit.renew(self._store, here.project(), job)
        self._tell(old, new)
        return source_facts(new)

    def renew(self, name: str) -> None:
        """Give today's code to the runs of a sweep that no worker has taken yet."""
        job = sweeps.load_spec(self._store, name)[0]
        if job.source.function:
            return
        new = self._today(job.file)
        self._check(job, job.source, new)
        self._tell(job.source, new)
        if sweeps.give_code(self._store, name, new):
            click.echo(f"hostler: {name}: queued runs also use today's code", err=True)

    def _keep_function(self, job: Job) -> None:
        """A function that is in no file is as it was last submitted."""
        if job.source.snapshot not in self._told:
            self._told.add(job.source.snapshot)
            text = "its function is not in a file: the last submitted one is used"
            click.echo(f"hostler: {job.name}: {text} (hostler.sweep submits a changed one)", err=True)

    def _today(self, file: str) -> Source:
        if file not in self._taken:
            self._taken[file], notes = submit.bring_code(self._store, here.project(), leave=[file])
            for note in notes:
                click.echo(f"hostler: {note}", err=True)
        return self._taken[file]

    def _check(self, job: Job, old: Source, new: Source) -> None:
        """Refuse if the current folder lacks the run's script: it may be another project's."""
        if gone := changes.script_gone(self._store, job, old, new):
            raise UsageError(
                f"{gone} of {job.name} is not in {here.project().root}",
                hint="go to the project's folder, or --same-code",
            )

    def _tell(self, old: Source, new: Source) -> None:
        if old.snapshot in self._told:
            return
        self._told.add(old.snapshot)
        line = changes.line(self._store, old, new)
        if line:
            click.echo(f"hostler: with today's code: {line}", err=True)
            _show_changes(codediff.compare(self._store, old, new))


def _show_changes(found: list[codediff.Change]) -> None:
    lines = [line for change in found for line in change.text]
    more = [f"… {len(lines) - DIFF} more lines"] if len(lines) > DIFF else []
    for line in [*lines[:DIFF], *more]:
        click.echo(f"  {line}", err=True)
