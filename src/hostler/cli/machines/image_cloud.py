"""Images of VMs: which fleet's cloud is meant, what is put on them, what it costs; asked before it does."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import datetime, timezone
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import click

from hostler import settings
from hostler.backends.base import Cloud
from hostler.backends.images import Image, Imager, Recipe, older
from hostler.backends.registry import BACKENDS, backend, backend_of
from hostler.cli import here
from hostler.cli.machines import image_recipe
from hostler.cli.terminal import output
from hostler.cli.terminal.ask import ask
from hostler.cli.terminal.screen import columns
from hostler.errors import MissingError, UsageError
from hostler.fleet.fleet_choice import fleet_of
from hostler.frozen import dataclass
from hostler.money import tariff
from hostler.spec import units
from hostler.spec.project import Fleet
from hostler.spec.units import counted, show_duration, show_money, show_size

MACHINE = "e2-standard-4"
HEAD = ("", "NAME", "FAMILY", "MADE", "SIZE", "A MONTH", "")
KEPT = (
    "project",
    "zones",
    "exclude_zones",
    "disk",
    "network",
    "subnetwork",
    "external_ip",
    "service_account",
)  # of a fleet
GB = 1e9

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Site:
    """The fleet of the project to build for, or the options given instead of one."""

    on: str | None
    project: str | None
    zones: tuple[str, ...]


@dataclass(frozen=True)
class ImageOptions:
    """The options that were typed."""

    family: str
    script: Path | None
    requirements: bool
    base: str | None
    from_project: str | None
    from_vm: str | None
    timeout: str
    machine: str | None
    gpu: str | None
    disk: str | None


def build(wanted: ImageOptions, site: Site, *, yes: bool, as_json: bool) -> int:
    recipe = _recipe(wanted)
    fleet, engine = _at(site)
    if not fleet.options.get("zones"):
        raise UsageError(
            "no zone is given to build the image in", hint="--zone us-central1-a, or a fleet in hostler.yaml"
        )
    fleet = _workshop(fleet, engine, wanted, recipe)
    engine.check(fleet, recipe)
    for line in image_recipe.doubts(recipe):
        click.echo(f"hostler: {line}", err=True)
    click.echo(_costs(engine, fleet, recipe), err=True)
    if not ask("Build?", yes=yes):
        return 1
    with _interruptible():
        made = engine.build(fleet, recipe)
    if as_json:
        output.print_json(asdict(made))
    else:
        click.echo(made.name)
    month = show_money(_month(made))
    click.echo(
        f"hostler: `family: {made.family}` in a fleet uses it; it costs about {month} a month, until "
        f"hostler image delete {made.family} --keep 0",
        err=True,
    )
    return 0


def show(family: str, site: Site, *, as_json: bool) -> int:
    fleet, engine = _at(site)
    images, build_leftovers = engine.images(fleet, family), engine.leavings(fleet)
    if as_json:
        output.print_json([asdict(image) for image in images])
    elif images:
        click.echo("\n".join(columns((HEAD, *map(_cells, images)), indent="")))
        click.echo(f"{_count(len(images))}, about {show_money(sum(map(_month, images)))} a month", err=True)
    else:
        click.echo(f"hostler: no images{f' of {family}' if family else ''} exist", err=True)
    for leftover in build_leftovers:
        what = (
            "was left behind by a build; hostler doctor --remove removes it"
            if leftover.over
            else "belongs to a build that runs, or that was broken off"
        )
        click.echo(f"hostler: {leftover} of {leftover.family} {what}", err=True)
    return 0


def delete(family: str, keep: int, site: Site, *, yes: bool) -> int:
    fleet, engine = _at(site)
    images = engine.images(fleet, family)
    if not images:
        raise MissingError(f"no images of {family} exist", hint="hostler image list shows families")
    doomed = older(images, keep)
    others = sum(not image.ours for image in images)
    if others:
        verb = "is not hostler's, and stays" if others == 1 else "are not hostler's, and stay"
        click.echo(f"hostler: {_count(others)} of {family} {verb}", err=True)
    if not doomed:
        click.echo(f"hostler: nothing of {family} is older than the newest {keep}", err=True)
        return 0
    for image in doomed:
        click.echo(f"  {image.name}  {made_at(image)}  {show_size(image.size)}", err=True)
    users = [name for name, one in here.project().fleets.items() if one.options.get("family") == family]
    if len(doomed) == len(images) and users:
        click.echo(f"hostler: no image of {family} would be left, and {', '.join(users)} needs one", err=True)
    saved = show_money(sum(map(_month, doomed)))
    if not ask(f"Delete {len(doomed)} of {_count(len(images))} ({saved} a month)?", yes=yes):
        return 1
    engine.drop(fleet, doomed)
    rest = len(images) - len(doomed)
    gone = f"{_count(len(doomed))} of {family} {'is' if len(doomed) == 1 else 'are'} gone"
    click.echo(f"hostler: {gone}, {rest} kept", err=True)
    return 0


def _count(images: int) -> str:
    return counted(images, "image")


def _recipe(wanted: ImageOptions) -> Recipe:
    if wanted.from_vm and (wanted.base or wanted.from_project):
        raise UsageError("--from-vm and --from cannot be combined", hint="leave one of them out")
    if wanted.from_project and not wanted.base:
        raise UsageError("--from-project needs --from", hint="--from FAMILY")
    project = here.project()
    return image_recipe.recipe(
        project,
        wanted.family,
        script=wanted.script,
        packages=wanted.requirements or not (wanted.script or wanted.from_vm),
        vm=wanted.from_vm or "",
        seconds=_seconds(wanted.timeout),
    )


def _at(site: Site) -> tuple[Fleet, Imager]:
    """The fleet to build for, made from the options if the project has none."""
    project = here.project()
    named = site.on or (project.fleet or "").split(",")[0].strip()
    fleets = [fleet_of(project, named)] if named else []
    fleets += [] if site.on else [fleet_of(project, name) for name in project.fleets]
    known = [
        (fleet, engine)
        for fleet in fleets
        if fleet.backend in BACKENDS and isinstance(engine := backend_of(fleet), Imager)
    ]
    if site.on and not known:
        raise UsageError(f"the machines of {site.on} have no images", hint="name a fleet on Compute Engine")
    fleet = known[0][0] if known else Fleet("image", _first_imager())
    values: dict[str, Any] = {"project": site.project} if site.project else {}
    values |= {"zones": site.zones} if site.zones else {}
    fleet = replace(fleet, options={**fleet.options, **values})
    engine = backend_of(fleet)
    if not isinstance(engine, Imager):
        raise UsageError("no fleet here has images", hint="--on FLEET names one on Compute Engine")
    if isinstance(engine, Cloud):
        engine.say = lambda line: click.echo(f"hostler: {line}", err=True)
    return fleet, engine


def _first_imager() -> str:
    """The backend that makes images where no fleet names one."""
    found = next((name for name in BACKENDS if isinstance(backend(name), Imager)), None)
    if found is None:
        raise UsageError("no backend here makes images", hint="--docker: a container image")
    return found


def _workshop(fleet: Fleet, engine: Imager, wanted: ImageOptions, recipe: Recipe) -> Fleet:
    """The machine that it is built on: cheap, and not taken away in the middle."""
    kept = {key: value for key, value in fleet.options.items() if key in KEPT}
    options = {**kept, "machine": wanted.machine or (None if wanted.gpu else MACHINE), "spot": False}
    if wanted.gpu:
        options["gpu"] = wanted.gpu
    if wanted.disk:
        options["disk"] = _size(wanted.disk)
    if wanted.base:
        options["family"] = "/".join(one for one in (wanted.from_project, wanted.base) if one)
    elif not recipe.vm and not wanted.gpu and fleet.options.get("gpu"):
        options["family"] = engine.gpu_family()
    record = {key: value for key, value in options.items() if value is not None}
    return replace(fleet, workers=1, price=None, options=record)


def _costs(engine: Imager, fleet: Fleet, recipe: Recipe) -> str:
    done = engine.completed(fleet) if isinstance(engine, Cloud) else fleet
    machine = str(done.options.get("machine", ""))
    try:
        price = tariff.price(done, 1).worker
    except UsageError:
        price = None  # a price that nobody knows is no reason not to build
    hours = recipe.longest / 3600
    money = f", {show_money(price)} an hour, {show_money(price * hours)} at most" if price else ""
    return (
        f"hostler: {recipe.family}: one {machine}{money}; "
        f"a build that takes longer than {show_duration(recipe.seconds)} is ended"
    )


def _month(image: Image) -> float:
    return image.size / GB * settings.sizes().image_price


def made_at(image: Image) -> str:
    """In UTC, like its name; Google says it in the time of California."""
    if not image.created:  # one that is not ready
        return ""
    return f"{datetime.fromtimestamp(image.made, timezone.utc):%Y-%m-%d %H:%M}"


def _cells(image: Image) -> tuple[str, ...]:
    text = "" if image.ours else "not hostler's"
    text = text if image.ready else "not ready"
    size, month = show_size(image.size), show_money(_month(image))
    return ("*" if image.newest else "", image.name, image.family, made_at(image), size, month, text)


def _seconds(text: str) -> float:
    try:
        seconds = units.duration(text)
    except ValueError as error:
        raise UsageError(f"--timeout {text}: {error}", hint="for example 30m or 2h") from None
    if not 1 <= seconds <= 86400:
        raise UsageError(f"--timeout {text}: between a second and a day", hint="for example 30m or 2h")
    return seconds


def _size(text: str) -> int:
    try:
        return units.size(text)
    except ValueError as error:
        raise UsageError(f"--disk {text}: {error}", hint="for example 100GB") from None


@contextmanager
def _interruptible() -> Iterator[None]:
    """Signals that end this process let it clean up first, as Ctrl-C does."""

    def end(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
