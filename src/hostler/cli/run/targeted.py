"""`hostler sweep --by --under`: fleet and size for a sweep that is to be done by a moment, for its money."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from hostler.backends.base import Named
from hostler.cli.run.fleet_pick import fleet_names
from hostler.cli.run.wish import SweepTarget, moment_words
from hostler.errors import UsageError
from hostler.fleet import machine_choice
from hostler.fleet.launcher import Launcher, sweep_launcher
from hostler.frozen import dataclass
from hostler.records import project as projects
from hostler.records.run import heartbeats
from hostler.records.sweep.target import Target
from hostler.settings import Timing
from hostler.simulate.fleets import Setting, teams
from hostler.simulate.study import Study, StudyOptions, seeds_for, study
from hostler.simulate.target_choice import SizedFleet, TargetChoice, boot_of, choose, comparable, sizes
from hostler.spec.job import Job
from hostler.spec.project import Project
from hostler.spec.units import counted, show_money
from hostler.store import Store

LONGER = 1.2  # times the time there is: the launch ends then, whether or not the sweep is done
MORE = 2  # times its workers: the most that it may grow to
NO_PRICE = "its cost is not known; set `price:`, the price of one worker for an hour"


@dataclass(frozen=True)
class Targeted:
    """The launch that was chosen, and the record of its target, whose moment is by this machine's clock."""

    workers: Launcher
    target: Target
    lines: tuple[str, ...]

    def agreed(self, store: Store) -> Target:
        """The record by the store's clock. Reading that clock writes: only after somebody has agreed."""
        ahead = heartbeats.store_time(store) - time.time()
        return replace(self.target, by=self.target.by + ahead)


def targeted(
    store: Store,
    project: Project,
    url: str,
    on: str | None,
    job: Job,
    runs: int,
    wish: SweepTarget,
    *,
    apart: Path | bool,
) -> Targeted:
    """UsageError with the two nearest that can be, where the wish cannot, and where no run is open.
    `apart`: its workers are started in another way."""
    if apart:
        raise UsageError("--by and --under choose workers: -s and --no-start cannot be combined with them")
    if not runs and not job.search:
        raise UsageError(
            f"{job.name} has no open run: --by and --under have no workers to choose",
            hint="leave them out; -r alone does failed runs again",
        )
    names = fleet_names([on or ""])
    every = [sweep_launcher(project, url, name, job.parallel) for name in names or _all(project)]
    launchers = [each for launcher in every for each in _as_learned(launcher, store, job)]
    timing = projects.agreed(store, projects.timing_of(url))
    options = StudyOptions(preempt=wish.rates, run_time=wish.run_time)

    def look(bound: Job, *, free: bool) -> tuple[TargetChoice, Study]:
        """`free`: without an end of the launch, to see what could be instead."""
        every = [each for able in _every(launchers, runs, job, wish, free=free) for each in able.values()]
        found = study(store, every, bound, runs, options, timing, time.time())
        able, unpriced = comparable(found.settings, wish.under)
        if not able:
            raise _unpriced(unpriced)
        lines = [f"{name} is not considered: {NO_PRICE}" for name in unpriced]
        found = replace(found, settings=tuple(able), notes=(*_told(found, unpriced), *lines))
        made: dict[str, dict[int, Setting]] = {}
        for setting in found.settings:
            made.setdefault(setting.scene.fleet, {})[setting.scene.workers] = setting
        fleets = [(sorted(own), own.__getitem__) for own in made.values()]
        seeds = seeds_for(found.settings[:1], 10)
        return choose(fleets, wish.seconds, wish.under, found.sky, seeds, widely=free), found

    try:
        choice, found = look(job, free=False)
    except UsageError:  # the money does not last for any size, or nothing is known: then this says so, too
        choice = TargetChoice(None)
    if choice.chosen is None:
        unbound = replace(job, budget=replace(job.budget, cost=None))
        choice, found = look(unbound, free=True)
        if choice.chosen is not None:  # it would do, but for money kept for machines that end late
            choice = TargetChoice(None, (choice.chosen,))
        raise _impossible(job, wish, choice, found.settings)
    fleet = choice.chosen
    notes = list(_of_interest(found))
    sized = {
        able[n].fleet.name: able for able in _every(launchers, runs, job, wish, free=False) for n in able
    }
    return _launch(sized[fleet.fleet][fleet.workers], fleet, wish, timing, launchers, notes)


def _told(found: Study, unpriced: Sequence[str]) -> list[str]:
    """Notes of a study but for those of fleets that are left out of it."""
    return [note for note in found.notes if not any(note.startswith(f"{name}: ") for name in unpriced)]


def _as_learned(launcher: Launcher, store: Store, job: Job) -> list[Launcher]:
    """The launcher, and that of each machine of its wish which scouts compared."""
    try:
        learned = machine_choice.as_learned(launcher, store, [job])
        return [learned, *machine_choice.scouted(learned)]
    except UsageError:  # a wish that nothing fits: the study says so, and goes on with the others
        return [launcher]


def _of_interest(found: Study) -> Iterator[str]:
    """Notes without those on single sizes; a fleet of which no size can be looked at is said once."""
    told = {setting.scene.fleet for setting in found.settings}
    for note in found.notes:
        name, out, _ = note.partition(" is left out: ")
        if "gone after" in note or (out and name in told):
            continue
        told |= {name} if out else set()
        yield note


def _unpriced(names: Sequence[str]) -> UsageError:
    return UsageError(f"--under: the cost of {', '.join(names)} is not known", hint=NO_PRICE)


def _every(
    launchers: Sequence[Launcher], runs: int, job: Job, wish: SweepTarget, *, free: bool
) -> list[dict[int, Launcher]]:
    return [_sized(launcher, runs, job, wish, free=free) for launcher in launchers]


def _all(project: Project) -> list[str | None]:
    return [*project.fleets] or [None]


def _sized(one: Launcher, runs: int, job: Job, wish: SweepTarget, *, free: bool) -> dict[int, Launcher]:
    """The fleet with each number of workers that is worth a look, as a simulation counts them; its own number
    is the most. One that names its machines has no other."""
    fleet, nodes = one.fleet, _nodes(one, job)
    hours = LONGER * wish.seconds / 3600
    hours = hours if fleet.max_hours is None else min(hours, fleet.max_hours)
    own = fleet.max_hours if wish.by is None or free else hours
    if isinstance(one.engine, Named):
        able = [fleet.workers]
    else:
        most = max(1, fleet.workers // nodes)
        able = [n * nodes for n in sizes(runs, most, max(1, fleet.slots or 1))]
    launchers: dict[int, Launcher] = {}
    for workers in able:
        made = replace(one, fleet=replace(fleet, workers=workers, max_hours=own))
        try:
            launchers.setdefault(teams(made, job, runs)[1], made)
        except UsageError:  # the study says why
            launchers.setdefault(-workers, made)
    return launchers


def _nodes(one: Launcher, job: Job) -> int:
    """Workers that are asked for by one for a run."""
    return 1 if one.engine.capabilities.gangs else job.resources.nodes


def _launch(
    workers: Launcher,
    one: SizedFleet,
    wish: SweepTarget,
    timing: Timing,
    launchers: Sequence[Launcher],
    notes: Sequence[str],
) -> Targeted:
    fleet, scene = workers.fleet, one.setting.scene
    count = one.workers * _nodes(workers, scene.job)
    cap = next(each.fleet.workers for each in launchers if each.fleet.name == fleet.name)
    most = count
    if workers.engine.capabilities.grows and wish.by is not None:
        most = growth_room(count, cap, one, wish, timing.cap_margin, fleet.max_hours or 0.0)
    aim = Target(
        wish.now.timestamp() + wish.seconds,
        fleet.name,
        count,
        most,
        scene.length.mean,
        scene.seats,
        boot_of(one.setting),
        wish.under,
    )
    grows = f", up to {most} if it is late" if most > count else ""
    latest = moment_words(wish.now + timedelta(seconds=one.latest), wish.now)
    lines = [
        f"{wish.words}: {counted(count, 'worker')} of {fleet.name}{grows}: done by {latest}{_cost(one)}",
        *notes,
    ]
    return Targeted(replace(workers, most=most), aim, tuple(lines))


def _cost(one: SizedFleet) -> str:
    if one.cost is None:
        return " in nineteen of twenty; its cost is not known"
    return f" for {show_money(one.cost)} (in nineteen of twenty; {show_money(one.dearest)} at most)"


def growth_room(
    workers: int, cap: int, one: SizedFleet, wish: SweepTarget, margin: float, hours: float
) -> int:
    """Workers that the money lasts for, until the launch ends at the latest; never more than the fleet may
    have. Pure."""
    most = min(cap, MORE * workers)
    price = max(one.setting.scene.prices.values(), default=0.0) / one.setting.scene.job.resources.nodes
    if wish.under is None or not price:
        return max(workers, most)
    return max(workers, min(most, int(wish.under / (price * (hours + margin / 3600)))))


def _impossible(job: Job, wish: SweepTarget, found: TargetChoice, settings: Sequence[Setting]) -> UsageError:
    near = list(_nearest(found, wish))
    hint = "; ".join(near) if near else "no size of these fleets ends all runs: hostler simulate shows why"
    prices = [price for setting in settings for price in setting.scene.prices.values() if price]
    if wish.under is not None and prices and wish.under < min(prices):
        short = f"{show_money(wish.under)} is less than an hour of one worker ({show_money(min(prices))})"
        return UsageError(f"{job.name} cannot be done {wish.words}: {short}", hint=hint)
    return UsageError(f"{job.name} cannot be done {wish.words}", hint=hint)


def _money(one: SizedFleet) -> str:
    return "at a cost that is not known" if one.dearest is None else f"for {show_money(one.dearest)}"


def _nearest(found: TargetChoice, wish: SweepTarget) -> Iterator[str]:
    for fleet in found.nearest:
        in_time = wish.by is None or fleet.latest <= wish.seconds
        when = f"by {moment_words(wish.now + timedelta(seconds=fleet.latest), wish.now)}"
        with_these = f"with {counted(fleet.workers, 'worker')} of {fleet.fleet}"
        yield (
            f"in time {_money(fleet)}, {with_these}"
            if in_time and wish.by
            else f"{_money(fleet)} {when}, {with_these}"
        )
