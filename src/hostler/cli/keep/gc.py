"""`hostler gc`: room in the store: checkpoints of runs that are over, code and data that nothing names."""

from __future__ import annotations

import time
from collections.abc import Mapping

import click

from hostler import settings
from hostler.cli import here
from hostler.cli.terminal import output
from hostler.cli.terminal.ask import ask
from hostler.errors import DamagedError
from hostler.records import garbage
from hostler.records.garbage import OVER, Waste
from hostler.records.rows import FEW
from hostler.records.run.heartbeats import store_time
from hostler.records.series import packing
from hostler.records.sweep import sweeps
from hostler.spec.units import counted, show_size
from hostler.store import Store

LINES = 20


def command(
    states: tuple[str, ...],
    dry: bool,
    skip_damaged: bool,
    yes: bool,
    store_url: str | None,
    as_json: bool,
) -> int:
    """Remove checkpoints, code and data that nothing needs, after showing them."""
    store = here.open_here(store_url)
    grace, say = settings.timing().gc_grace, output.saying()

    def look() -> Waste:
        return garbage.find(
            store, _now(store), {*OVER, *states}, grace=grace, say=say if skip_damaged else None
        )

    with output.refusing_damage("" if skip_damaged else "hostler gc --skip-damaged"):
        waste = look()
    if as_json:
        output.print_json(_json(waste))
    else:
        click.echo(_shown(waste), err=not dry)
    if dry:
        return 0
    if (waste.saved or waste.blobs) and not ask("Delete them for good?", yes=yes):
        click.echo("hostler: nothing was deleted", err=True)
        return 1
    if waste.saved or waste.blobs:
        output.say_spared(garbage.remove(store, waste, look))
    _pack(store, say)
    return 0


def _now(store: Store) -> float:
    """Time by the store's clock; an empty store is not created by asking."""
    return store_time(store) if any(True for _ in store.list("")) else time.time()


def _shown(found: Waste) -> str:
    most = sorted(found.saved, key=lambda one: -one.size)
    lines = [f"  {one.row.name}  {one.row.state}  {show_size(one.size)}" for one in most[:LINES]]
    lines += [f"  and {len(most) - LINES} more"] if len(most) > LINES else []
    if found.saved:
        size = show_size(sum(one.size for one in found.saved))
        lines.insert(0, f"checkpoints of {counted(len(found.saved), 'run')}, {size}:")
    if found.blobs:
        size = show_size(sum(one.size for one in found.blobs))
        lines.append(f"code, data and parts of models that nothing names: {len(found.blobs)}, {size}")
    if not lines:
        lines = ["nothing to remove"]
    return "\n".join([*lines, *_why(found.kept)])


def _why(kept: Mapping[str, int]) -> list[str]:
    return [f"kept: {counted(count, 'run')} ({why})" for why, count in sorted(kept.items())]


def _json(found: Waste) -> dict[str, object]:
    return {
        "size": found.size,
        "runs": [
            {"run": checkpoints.row.id, "state": checkpoints.row.state, "size": checkpoints.size}
            for checkpoints in found.saved
        ],
        "objects": [{"keys": list(blob.keys), "size": blob.size} for blob in found.blobs],
        "kept": dict(found.kept),
    }


def _pack(store: Store, say: output.Say) -> None:
    for name in sweeps.names(store):
        try:
            if sweeps.is_there(store, name):
                packing.compact(store, sweeps.load(store, name), least=FEW)
        except DamagedError as error:
            say(f"{name} is left out: {error}")
