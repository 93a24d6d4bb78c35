"""`hostler export`: copies past runs to a tracking tool; a second time adds only what is missing."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hostler.cli import here
from hostler.cli.terminal import named_rows, output
from hostler.errors import HostlerError, HostUnreachable, MachineError, UsageError
from hostler.records.rows import Row
from hostler.records.sweep import sweeps
from hostler.spec import tracking
from hostler.spec.files import tracking_words
from hostler.spec.job import Job
from hostler.spec.states import RUNNING
from hostler.spec.units import counted
from hostler.store import Store

if TYPE_CHECKING:
    from hostler.trackers.exporting import Exported


def command(
    names: tuple[str, ...], kind: str, given: tuple[str, ...], store_url: str | None, as_json: bool
) -> int:
    """Copy past runs to a tracking tool: parameters, tags, states, curves. A second time adds nothing."""
    store = here.open_here(store_url)
    chosen = named_rows.rows_named(store, names)
    asked = _options(kind, given)
    code = 0
    done: list[Exported] = []
    with tempfile.TemporaryDirectory(prefix="hostler-export-") as work:
        for row, outcome in _exported(store, chosen, kind, asked, Path(work)):
            if isinstance(outcome, HostlerError):
                code = 1
                click.echo(f"hostler: {row.name}: {outcome.message}", err=True)
            else:
                done.append(outcome)
                if not as_json:
                    click.echo(f"{row.name}: {counted(outcome.points, 'point')}  {outcome.url}".rstrip())
    if as_json:
        output.print_json([asdict(exported) for exported in done])
    elif done and done[0].note:
        click.echo(f"hostler: {done[0].note}", err=True)
    return code


def _options(kind: str, given: Sequence[str]) -> dict[str, str]:
    pairs = dict(word.partition("=")[::2] for word in given)
    try:
        (found,) = tracking_words.at(tracking_words.parse({kind: pairs}), Path.cwd())
    except ValueError as error:
        raise UsageError(f"--with: {error}", hint="--with project=digits") from None
    return dict(found.options)


def _exported(
    store: Store, chosen: Sequence[Row], kind: str, asked: Mapping[str, str], work: Path
) -> Iterator[tuple[Row, Exported | HostlerError]]:
    from hostler.trackers import registry
    from hostler.trackers.exporting import Exporter

    if not registry.is_here(kind):
        raise MachineError(f"{kind} needs the package {registry.package(kind)}", hint=registry.remedy(kind))
    exporters: dict[str, Exporter] = {}
    for row in chosen:
        if not row.attempt:
            continue  # nothing of it yet
        job = sweeps.load(store, row.sweep)
        if row.state == RUNNING and any(tracker.kind == kind for tracker in job.trackers):
            yield (
                row,
                UsageError(
                    f"it is running and already shown in {kind}", hint="export it again once it has ended"
                ),
            )
            continue
        if row.sweep not in exporters:
            options = _whole(kind, {**_own(job, kind), **asked})
            exporters[row.sweep] = Exporter(store, job, kind, options, work)
        try:
            yield row, exporters[row.sweep].export(row)
        except (HostUnreachable, UsageError):  # so would the others
            raise
        except HostlerError as error:
            yield row, error


def _own(job: Job, kind: str) -> dict[str, str]:
    return next((dict(tracker.options) for tracker in job.trackers if tracker.kind == kind), {})


def _whole(kind: str, options: Mapping[str, str]) -> dict[str, str]:
    """The options, with a folder for files where the tool writes some."""
    place = {"dir": str(Path.cwd() / kind)} if "dir" in tracking.OPTIONS[kind] else {}
    return {**place, **options}
