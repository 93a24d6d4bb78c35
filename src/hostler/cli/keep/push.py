"""`hostler push`: a run's weights and a model card to a hub, a bucket or a folder.

Nothing leaves before a person has seen what goes where, and agreed.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import click

from hostler.cli import here
from hostler.cli.extras import needs
from hostler.cli.hubs import card
from hostler.cli.hubs.targets import HUB
from hostler.cli.hubs.targets import target as target_of
from hostler.cli.terminal import output
from hostler.cli.terminal.ask import ask
from hostler.errors import MissingError, UsageError
from hostler.fleet.snapshot.size_limit import in_bytes
from hostler.records.checkpoint import checkpoints, outputs, ranked_weights, selection
from hostler.records.checkpoint.tree import scan
from hostler.records.run import control, resolve, run_details, upstream
from hostler.records.run.log import RunKey
from hostler.records.series import metrics, packing
from hostler.spec.reference import Step
from hostler.spec.units import counted
from hostler.store import Store

NEWEST = 10**9  # over every attempt's number
LISTED = 8  # files that are named before the question
PICKLES = (".pt", ".pth", ".bin", ".pkl", ".ckpt")


def command(
    name: str,
    target: str,
    left: bool,
    public: bool,
    pickles: str | None,
    yes: bool,
    store_url: str | None,
    as_json: bool,
) -> int:
    """Push the weights of a run, with a card of its parameters, metrics, curves and provenance."""
    place = target_of(target, public=public)
    store = here.open_here(store_url)
    name, step = resolve.with_step(store, name)
    job, key = resolve.one(store, name)
    place.check()
    with tempfile.TemporaryDirectory(prefix="hostler-push-") as made:
        folder = Path(made)
        own = upstream.original(store, key)
        brought = _weights(store, name, own, step, folder, left)
        if left:
            _outputs(store, own, folder)
        _settle_pickles(folder, pickles, target)
        points = metrics.read(store, own.run, packing.ANY)
        found = run_details.read(store, key, output.saying(), job)
        at = found.row.step or 0 if brought is None else brought
        _write(folder, card.files(found, points, at, target, _homes()))
        names = _names(folder)
        size = sum((folder / name).stat().st_size for name in names)
        _show(name, at, place.shown, names, size)
        there = place.there(names)
        if not ask(f"Push {in_bytes(size)} to {place.shown}?{_replaced(there)}", yes=yes):
            click.echo("hostler: nothing was pushed", err=True)
            return 1
        where = place.push(folder, names, f"{found.row.name} at step {at}")
    if as_json:
        output.print_json(
            {"run": key.run, "step": at, "target": target, "at": where, "files": names, "size": size}
        )
    else:
        click.echo(where)
    return 0


def _weights(store: Store, name: str, key: RunKey, step: Step | None, folder: Path, left: bool) -> int | None:
    """Bring the checkpoint that is meant: of the step, else the weights that the run is ranked by, else the
    newest. Returns its step; None where there is none, and the files that the run has `left` do."""
    ranked = ranked_weights.of_run(store, key) if step is None else None
    chosen = selection.choose(store, key, step) if step is not None else ranked.elsewhere if ranked else None
    if chosen:
        checkpoints.restore(store, chosen.checkpoint, folder, chosen.folder)
        return chosen.step
    after = control.state_of(store, key).fresh_from
    checkpoint = checkpoints.restore_newest(
        store, key.run, folder, after=after, before=NEWEST, say=output.saying()
    )
    if checkpoint is None:
        files = outputs.newest(store, key.run)
        if left and files and files[1]:
            return None
        hint = "--outputs pushes the files that it has left" if files and files[1] else f"hostler show {name}"
        raise MissingError(f"{name} has no checkpoint to push", hint=hint)
    return checkpoint.step


def _outputs(store: Store, key: RunKey, folder: Path) -> None:
    found = outputs.newest(store, key.run)
    if found:
        _check_free(folder, "outputs", "push without --outputs, or rename it in the script")
        outputs.fetch(store, key.run, found[1], folder / "outputs")


def _settle_pickles(folder: Path, wish: str | None, target: str) -> None:
    """Pickles run code where they are loaded: a hub, from which strangers load, gets none unasked."""
    found = sorted(row.name for row in scan(folder).rows if row.name.endswith(PICKLES))
    if wish == "convert":
        with needs("train"):
            from hostler.train.models import unpickled
        for name in found:
            done = unpickled.convert(folder / name, name)
            if done.left_out:
                few = ", ".join(done.left_out[:3]) + (", …" if len(done.left_out) > 3 else "")
                click.echo(f"hostler: {name}: no tensors, left out: {few}", err=True)
    elif found and wish is None and target.startswith(HUB):
        raise UsageError(
            f"{', '.join(found[:3])}: pickles, which run code where they are loaded",
            hint="--pickles convert writes their tensors as safetensors, --pickles keep pushes them",
        )


def _write(folder: Path, texts: dict[str, str]) -> None:
    for name, content in texts.items():
        place = folder / name
        if place.parent.is_symlink() or not place.parent.is_dir():  # a folder of the script's own will do
            _check_free(folder, str(place.parent.relative_to(folder)))
        if name == "README.md" and os.path.lexists(place):  # a card that the script wrote is the better one
            continue
        _check_free(folder, name)
        place.parent.mkdir(exist_ok=True)
        place.write_text(content)


def _check_free(folder: Path, name: str, hint: str = "rename it in the script") -> None:
    if os.path.lexists(folder / name):
        raise UsageError(f"the checkpoint has {name!r} of its own", hint=hint)


def _names(folder: Path) -> list[str]:
    """Files to push. A link to a file becomes that file; other links and the insides of a repository are
    left out."""
    names = sorted(row.name for row in scan(folder).rows)
    left = [name for name in names if ".git" in name.lower().split("/") or not (folder / name).is_file()]
    if left:
        few = ", ".join(left[:3]) + (", …" if len(left) > 3 else "")
        click.echo(f"hostler: left out, links to no file or parts of .git: {few}", err=True)
    return [name for name in names if name not in set(left)]


def _homes() -> list[str]:
    try:
        home = Path.home()
    except RuntimeError:  # a user without one
        return []
    return [str(home), os.path.realpath(home)]


def _replaced(there: list[str]) -> str:
    if not there:
        return ""
    named = there if len(there) <= LISTED else [*there[:LISTED], f"{len(there) - LISTED} more"]
    return f" It replaces {' and '.join(part for part in (', '.join(named[:-1]), named[-1]) if part)}."


def _show(name: str, step: int, target: str, names: list[str], size: int) -> None:
    click.echo(f"{name} at step {step} → {target}: {counted(len(names), 'file')}, {in_bytes(size)}", err=True)
    for one in names[:LISTED]:
        click.echo(f"  {one}", err=True)
    if len(names) > LISTED:
        click.echo(f"  and {len(names) - LISTED} more", err=True)
    pickles = [one for one in names if one.endswith(PICKLES)]
    if pickles:
        click.echo(
            f"hostler: {', '.join(pickles[:3])}: pickles, to be trusted; run.track saves safetensors",
            err=True,
        )
