"""Finds leftovers of a project in clouds for `hostler doctor`, and removes them after asking."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence

import click

from hostler.backends.base import Cloud, Thing
from hostler.backends.doctor import BAD, OK, WARN, Check
from hostler.backends.images import Imager
from hostler.backends.registry import BACKENDS, backend_of
from hostler.cli.here import open_at
from hostler.cli.terminal.ask import ask
from hostler.errors import HostlerError, StoreGone
from hostler.fleet.fleet_choice import owned
from hostler.fleet.machines import is_open
from hostler.money import tariff
from hostler.records.launch import serving
from hostler.spec.names import as_label, slug
from hostler.spec.project import Fleet, Project
from hostler.spec.units import counted, show_money
from hostler.store import Store

PLACES = ("project", "context", "namespace")  # keys of a fleet that say where in a cloud it is


def clouds(project: Project, url: str, *, remove: bool, yes: bool) -> Iterator[Check]:
    """A line for each cloud project; what is left over is removed if one asks for it and agrees."""
    seen = set[tuple[str, ...]]()
    for fleet in project.fleets.values():
        engine = backend_of(fleet) if fleet.backend in BACKENDS else None
        where = (fleet.backend, *(str(fleet.options.get(key) or "") for key in PLACES))
        if not isinstance(engine, Cloud) or where in seen:
            continue
        seen.add(where)
        try:
            meant = owned(project, fleet, url)
            yield from _one(engine, meant, project, url, remove=remove, yes=yes)
            if isinstance(engine, Imager):
                yield from _builds(engine, meant, remove=remove, yes=yes)
        except HostlerError as error:
            yield Check(BAD, fleet.name, error.message, error.hint)


def orphans(
    found: Sequence[Thing], project: str, fleets: Collection[str], is_open: Callable[[str, int], bool]
) -> list[Thing]:
    """Things of a project in a cloud that belong to no open launch. Pure."""
    own = [thing for thing in found if thing.project == project and thing.ours]
    return [
        thing
        for thing in own
        if thing.fleet not in fleets
        or (thing.generation.isdigit() and not is_open(thing.fleet, int(thing.generation)))
    ]


def _is_open(store: Store, fleet: str, number: int) -> bool:
    """Whether the launch is open; a store that no longer exists holds none."""
    try:
        return is_open(store, fleet, number)
    except StoreGone:
        return False


def _working(store: Store) -> frozenset[str]:
    """Launches whose workers beat, also of a manifest that was applied by hand and no record knows."""
    try:
        beats = serving.look(store, lambda line: None).fresh.values()
    except StoreGone:
        return frozenset()
    return frozenset(str(beat.get("fleet") or "") for beat in beats)


def _by_hand(engine: Cloud, project: Project, found: Sequence[Thing]) -> Iterator[Check]:
    """Machines that work on nothing, and what they cost."""
    fleets = {as_label(name): fleet for name, fleet in project.fleets.items()}
    for thing in found:
        if thing.ours and thing.by_hand and thing.fleet in fleets:
            fleet = fleets[thing.fleet]
            price = show_money(tariff.price(engine.completed(fleet), 1).worker)
            text = f"{thing} is for hand work, {price} an hour, until it has been idle long enough"
            yield Check(OK, fleet.name, text, f"hostler down {fleet.name} removes it")


def _one(
    engine: Cloud, fleet: Fleet, project: Project, url: str, *, remove: bool, yes: bool
) -> Iterator[Check]:
    found, store = engine.remains(fleet, everywhere=True), open_at(url)
    names = {as_label(name): slug(name) for name in project.fleets}
    label = as_label(project.name)
    working = _working(store) if found else frozenset()
    left = orphans(
        found,
        label,
        names,
        lambda name, g: f"{names[name]}/{g}" in working or _is_open(store, names[name], g),
    )
    own = sum(thing.ours for thing in found)
    yield from _by_hand(engine, project, found)
    if others := len(found) - own:
        text = f"left alone: {counted(others, 'resource')} of project {project.name} in another store"
        yield Check(OK, fleet.backend, text)
    if not left:
        yield Check(OK, fleet.backend, f"{counted(own, 'resource')} of this project, all of working fleets")
        return
    for thing in left:
        yield Check(WARN, "orphan", f"{thing} belongs to no working fleet", "hostler doctor --remove")
    if remove and ask(f"Remove {counted(len(left), 'resource')} that no fleet needs?", yes=yes):
        engine.remove(fleet, left)
        again = [thing for thing in engine.remains(fleet, everywhere=True) if thing in left]
        click.echo(f"hostler: {len(left) - len(again)} removed, {len(again)} still there", err=True)


def _builds(engine: Imager, fleet: Fleet, *, remove: bool, yes: bool) -> Iterator[Check]:
    """Leftovers of builds of images; a build whose time is over has ended."""
    build_leftovers = engine.leavings(fleet)
    for leftover in build_leftovers:
        if leftover.over:
            text = f"{leftover} was left behind by a build of {leftover.family}"
            yield Check(WARN, "image", text, "hostler doctor --remove")
        else:
            until = time.strftime("%H:%M", time.localtime(leftover.until))
            yield Check(
                OK,
                "image",
                f"{leftover}: {leftover.family} is being built; it counts as left behind from {until} on",
            )
    over = [build_leftover for build_leftover in build_leftovers if build_leftover.over]
    if over and remove and ask(f"Remove {counted(len(over), 'leftover')} of image builds?", yes=yes):
        engine.sweep_up(fleet, over)
        again = [build_leftover for build_leftover in engine.leavings(fleet) if build_leftover.over]
        click.echo(f"hostler: {len(over) - len(again)} removed, {len(again)} still there", err=True)
