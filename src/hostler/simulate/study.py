"""Prepares a simulation from a person's options, the store's history, and assumptions for the rest.

Everything that was not said is told: a number that nobody gave is a guess, and named as one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from math import hypot, sqrt
from statistics import stdev

from hostler.errors import UsageError
from hostler.fleet.launcher import Launcher
from hostler.frozen import dataclass
from hostler.records.sweep import measured_rates
from hostler.settings import Timing
from hostler.simulate import fleets, history, stock
from hostler.simulate.fleets import Setting, SimulatedSweep
from hostler.simulate.history import Known, Launches
from hostler.simulate.outcome import SimulationOutcome, SimulationSummary, summarize
from hostler.simulate.rates import PreemptionRate, named_rates
from hostler.simulate.stock import Stockouts
from hostler.simulate.times import VaryingSeconds
from hostler.simulate.trace import Trace, of_teams, strangers
from hostler.simulate.weather import AsItWas, ByChance, Habits, Weather, habits_of
from hostler.simulate.world import World
from hostler.spec.job import Job
from hostler.spec.units import counted, show_duration
from hostler.store import Store

# Many simulations: each fleet with each interval between checkpoints, with many chances.
WORK = 2_000_000  # machines and runs that are simulated in all, where nobody says how often
FEWEST, MOST = 20, 200


@dataclass(frozen=True)
class Sky:
    """Events common to all fleets: a trace, or stockouts by chance beside each fleet's own rate."""

    trace: Trace | None = None
    stockouts: Stockouts = field(default_factory=Stockouts)


def seeds_for(found: Sequence[Setting], intervals: int) -> int:
    """The number of simulations of each setting, enough for a smooth interval."""
    size = sum(setting.scene.runs + setting.scene.workers for setting in found) * max(1, intervals)
    return min(MOST, max(FEWEST, WORK // max(1, size)))


def compare(
    found: Sequence[Setting],
    intervals: Sequence[float],
    sky: Sky,
    seeds: int,
    tell: Callable[[str], None] = lambda line: None,
) -> list[SimulationSummary]:
    """`tell` hears what is simulated next. The same seed is the same luck for every fleet and interval."""
    made = []
    for setting in found:
        for every in intervals:
            tell(f"{setting.scene.fleet}, a checkpoint every {show_duration(every)}")
            outcomes = _outcomes(replace(setting, scene=replace(setting.scene, every=every)), sky, seeds)
            made.append(
                summarize(setting.scene.fleet, every, setting.scene.runs, outcomes, priced=setting.priced)
            )
    return made


def _outcomes(one: Setting, sky: Sky, seeds: int) -> list[SimulationOutcome]:
    outcomes = []
    for seed in range(seeds):
        outcomes.append(World(one.scene, weather(one, sky, seed), 2 * seed + 1).run())
        if outcomes[-1].endless:  # nor with other luck
            break
    return outcomes


def weather(one: Setting, sky: Sky, seed: int) -> Weather:
    chance = random.Random(2 * seed)
    if sky.trace is not None:
        return AsItWas(of_teams(sky.trace, one.scene.job.resources.nodes), one.habits, chance, one.zones)
    windows = stock.windows_of(sky.stockouts, one.zones, chance, _far(one))
    return ByChance(one.habits, one.rate, windows, chance)


def _far(one: Setting) -> float:
    """Long after all is over, however slow."""
    work = one.scene.length.mean * one.scene.runs / (one.scene.workers * one.scene.seats)
    return 20 * (work + 3600.0)


GUESS, LEAST = 0.05, 0.02  # of a run's length: how wrong it may be
SAVE = 5.0  # seconds of a checkpoint, where nobody says
PART = 1 / 60  # of the time between two: those that are made often are assumed to be quicker


@dataclass(frozen=True)
class StudyOptions:
    """A person's options; None where not given."""

    preempt: tuple[str, ...] = ()
    history: bool = False
    trace: Trace | None = None
    stockouts: Stockouts = field(default_factory=Stockouts)
    run_time: VaryingSeconds | None = None
    like: tuple[str, ...] = ()  # sweeps whose runs take as long
    intervals: tuple[float, ...] = ()
    save: float | None = None
    boot: VaryingSeconds | None = None
    notice: float | None = None
    seeds: int | None = None

    @property
    def scale(self) -> float:
        return self.trace.scale if self.trace else 1.0


@dataclass(frozen=True)
class Study:
    job: Job
    runs: int
    settings: tuple[Setting, ...]
    intervals: tuple[float, ...]
    sky: Sky
    seeds: int
    notes: tuple[str, ...]

    def results(self, tell: Callable[[str], None] = lambda line: None) -> list[SimulationSummary]:
        """`tell` hears what is simulated next."""
        return compare(self.settings, self.intervals, self.sky, self.seeds, tell)


def study(
    store: Store,
    launchers: Sequence[Launcher],
    job: Job,
    runs: int,
    wishes: StudyOptions,
    timing: Timing,
    now: float,
) -> Study:
    """UsageError where something is missing that nobody can guess, or cannot be."""
    _check(job, runs)
    known = history.of_runs(store, wishes.like or [job.name])
    scouted = _scouted(store, job, launchers, wishes)
    if known.lengths is None and scouted:
        known = replace(known, lengths=next(iter(scouted.values())), scouted=True)
    sweep, notes = _sweep(job, runs, wishes, known)
    intervals = wishes.intervals or (sweep.every,)
    notes += _check_intervals(wishes, intervals, sweep.length)
    notes += [f"{name}: a run takes {length}, as a scout measured" for name, length in scouted.items()]
    rates = named_rates(wishes.preempt, [launcher.fleet.name for launcher in launchers])
    made, pasts = list[Setting](), dict[str, Launches]()
    for one in launchers:
        try:
            setting = fleets.setting(one, store, _on(one, sweep, scouted, known), timing, wishes.scale)
        except UsageError as error:  # one of several may be refused; the others are compared
            if len(launchers) == 1 or (one is launchers[-1] and not made):
                raise
            notes.append(f"{one.fleet.name} is left out: {error}")
            continue
        if one.fleet.name not in pasts:
            pasts[one.fleet.name] = history.of_fleet(store, one.fleet.name, now, timing)
        past = pasts[one.fleet.name]
        setting, lines = _completed(setting, wishes, past, rates.get(one.fleet.name))
        made.append(setting)
        notes += lines
    notes += _check_zones(wishes.stockouts, made)
    if wishes.trace is not None:
        most = max(one.scene.workers * job.resources.nodes for one in made)
        notes += strangers(wishes.trace, [zone for one in made for zone in one.zones], most)
    sky = Sky(wishes.trace, wishes.stockouts)
    seeds = wishes.seeds or seeds_for(made, len(intervals))
    return Study(job, runs, tuple(made), intervals, sky, seeds, tuple(dict.fromkeys(notes)))


def _scouted(
    store: Store, job: Job, launchers: Sequence[Launcher], wishes: StudyOptions
) -> dict[str, VaryingSeconds]:
    """Durations of a run by fleet, as scouts measured them; a person's own word stands over them."""
    if wishes.run_time is not None or wishes.like:
        return {}
    names = dict.fromkeys(launcher.fleet.name for launcher in launchers)
    rates = {name: measured_rates.read(store, job.name, name) for name in names}
    seconds = {name: rate.seconds for name, rate in rates.items() if rate}
    return {name: VaryingSeconds((known * wishes.scale,)) for name, known in seconds.items() if known}


def _on(
    one: Launcher, sweep: SimulatedSweep, scouted: Mapping[str, VaryingSeconds], known: Known
) -> SimulatedSweep:
    """The sweep as it is on this fleet."""
    own = scouted.get(one.fleet.name)
    if own is not None:
        return replace(sweep, length=own, doubt=doubt(own))
    if known.scouted:  # no run has ended: nobody knows how long one takes here
        raise UsageError(f"it was not scouted: hostler scout --on {one.fleet.name} measures it")
    return sweep


def _check(job: Job, runs: int) -> None:
    if job.search and job.budget.runs is None:
        raise UsageError(
            f"{job.name} is a search ({job.method}) without a limit: its number of runs is unknown",
            hint="set `budget: {runs: 200}` in the file",
        )
    if runs < 1:
        raise UsageError(
            f"{job.name} has no runs left to simulate",
            hint="--whole simulates all of it anew; hostler cost shows what it has cost",
        )


def _sweep(job: Job, runs: int, wishes: StudyOptions, known: Known) -> tuple[SimulatedSweep, list[str]]:
    notes = []
    length, gap = wishes.run_time, known.gaps
    if length is None and known.lengths is not None:
        length = known.lengths.times(wishes.scale)
    if wishes.run_time is None and known.lengths is not None and not known.scouted:
        count = len(known.lengths.seen)
        notes.append(f"a run takes {length}, as {counted(count, 'earlier run')} did")
    if wishes.like and known.lengths is None:
        raise UsageError(
            f"--like {', '.join(wishes.like)}: none of its runs has ended in this store",
            hint="hostler status lists the sweeps",
        )
    if wishes.run_time is not None and wishes.run_time.longest <= 0:
        raise UsageError("--run-time 0: the time must be above 0", hint="for example --run-time 40m")
    if length is None or length.longest <= 0:
        raise UsageError(
            f"the duration of a run of {job.name} is unknown: none has ended in this store yet",
            hint="give --run-time 40m (or 30m-1h); hostler scout measures it on a fleet; hostler simulate "
            "also takes --like SWEEP, whose runs take as long",
        )
    if gap is None:
        notes.append(f"assumed: {fleets.GAP} between two runs of a worker")
    every = job.checkpoint.every * wishes.scale
    save = min(SAVE, PART * min(wishes.intervals or (every,))) if wishes.save is None else wishes.save
    if wishes.save is None:
        notes.append(f"assumed: a checkpoint holds the training up for {show_duration(save)} (--save)")
    if job.prune:
        notes.append("pruning is not simulated: with `prune` the sweep takes less")
    between = (gap or fleets.GAP).times(wishes.scale)
    return SimulatedSweep(job, runs, length, every, save, between, doubt(length)), notes


def doubt(length: VaryingSeconds) -> float:
    """Uncertainty of the mean duration of all runs. Pure. A given time may be a
    twentieth off; a measured one, what the number of runs allows, and a fiftieth."""
    if not length.seen:
        return GUESS
    spread = stdev(length.seen) / length.mean if len(length.seen) > 1 and length.mean else GUESS
    return hypot(LEAST, spread / sqrt(len(length.seen)))


def _check_intervals(wishes: StudyOptions, intervals: Sequence[float], length: VaryingSeconds) -> list[str]:
    """An interval that is longer than every run means that none is ever saved."""
    long = [interval for interval in intervals if interval >= length.longest]
    if not long:
        return []
    text = f"a checkpoint every {show_duration(long[0])} would never be made: no run takes longer than "
    text += show_duration(length.longest)
    if wishes.intervals:
        raise UsageError(text, hint="give a shorter --checkpoint, or leave it out to use the project's")
    return [f"{text}; preempted runs begin anew"]


def _check_zones(stockouts: Stockouts, made: Sequence[Setting]) -> list[str]:
    """A window of a zone that no fleet has would change nothing, and be believed."""
    zones = list(dict.fromkeys(zone for setting in made for zone in setting.zones))
    for window in stockouts.windows:
        if window.zone not in (*zones, "*"):
            raise UsageError(
                f"--stockout: no simulated fleet uses zone {window.zone}",
                hint=f"choose from: {', '.join(zones)}" if zones else "only fleets of VMs have zones",
            )
    without = [setting.scene.fleet for setting in made if stockouts and not setting.zones]
    return [f"{name} has no zones: --stockout does not affect it" for name in without]


def _completed(
    found: Setting, wishes: StudyOptions, past: Launches, given: PreemptionRate | None
) -> tuple[Setting, list[str]]:
    """With how often its machines are taken away, and how they come."""
    habits, notes = _habits(found, wishes, past)
    found = replace(found, habits=habits)
    name = found.scene.fleet
    if not found.priced:
        notes.append(f"{name}: its cost is unknown; set `price:`, the price of one worker for an hour")
    if found.scene.lasts is not None:
        notes.append(
            f"{name}: its machines are gone after {show_duration(round(found.scene.lasts))} at the latest"
        )
    limit = found.scene.limit
    if limit is not None and limit < found.scene.length.longest:
        notes.append(
            f"{name}: a job ends after {show_duration(limit)}, and counts as preempted; its run goes on"
        )
    if wishes.trace is not None:
        return found, notes
    chosen, lines = _rate(found, wishes, past, given)
    per_team = PreemptionRate(chosen.hazard * found.scene.job.resources.nodes, chosen.said)
    return replace(found, rate=per_team), [*notes, *lines]


def _habits(found: Setting, wishes: StudyOptions, past: Launches) -> tuple[Habits, list[str]]:
    habits, notes = found.habits, list[str]()
    if past.boots:
        habits = replace(
            habits,
            boots=VaryingSeconds(past.boots).times(wishes.scale),
            comes=VaryingSeconds(past.comes).times(wishes.scale) if past.comes else habits.comes,
            parts=VaryingSeconds(past.parts).times(wishes.scale) if past.parts else habits.parts,
        )
    if wishes.trace is not None:
        habits = habits_of(wishes.trace, habits)
    elif wishes.boot is None and not past.boots:
        notes.append(f"assumed: {found.scene.fleet} takes {habits.boots} until a worker starts (--boot)")
    if wishes.boot is not None:
        _check_boot(found, wishes.boot)
        habits = replace(habits, boots=wishes.boot, comes=VaryingSeconds())
    return replace(habits, notice=habits.notice if wishes.notice is None else wishes.notice), notes


def _check_boot(found: Setting, boot: VaryingSeconds) -> None:
    """A launch of VMs that say nothing so long would be taken down."""
    name, report = found.scene.fleet, found.scene.timing.report
    if found.zones and boot.low > report:
        raise UsageError(
            f"--boot {boot}: a launch of {name} is given up when no VM reports in {show_duration(report)}",
            hint="give a shorter --boot, or raise HOSTLER_REPORT",
        )


def _rate(
    found: Setting, wishes: StudyOptions, past: Launches, given: PreemptionRate | None
) -> tuple[PreemptionRate, list[str]]:
    name = found.scene.fleet
    if given is not None and (found.spot or any(one.startswith(f"{name}=") for one in wishes.preempt)):
        return given, _noticed(found, wishes, given)
    if given is not None:
        return PreemptionRate(), [
            f"{name}: assumed never preempted, as it is not spot (--preempt {name}=5%/h)"
        ]
    if past.rate is not None:
        text = f"{name}: preempted as before: {past.rate.said}"
        return past.rate, [text, *_noticed(found, wishes, past.rate)]
    if wishes.history:
        raise UsageError(
            f"the store has less than an hour of {name}'s machines: too little for a rate",
            hint="give one: --preempt 5%/h",
        )
    return PreemptionRate(), [f"assumed: {name} is never preempted (--preempt 5%/h)"] if found.spot else []


def _noticed(found: Setting, wishes: StudyOptions, rate: PreemptionRate) -> list[str]:
    """With notice nothing is repeated, and the longest interval looks best: so that is said."""
    if wishes.notice is not None or not rate.hazard or not found.habits.notice:
        return []
    long = show_duration(found.habits.notice)
    return [
        f"assumed: {found.scene.fleet} gets {long} of notice before a preemption, and saves in it (--notice)"
    ]
