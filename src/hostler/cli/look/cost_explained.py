"""The cost of launches by purpose, for `hostler cost --explain`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from hostler import settings
from hostler.backends.base import Timed
from hostler.backends.registry import backend_of
from hostler.cli import here
from hostler.errors import DamagedError, HostlerError, NewerFormatError, UsageError
from hostler.fleet.fleet_choice import of_launch, owned
from hostler.frozen import dataclass
from hostler.records.launch import breakdown
from hostler.records.launch.breakdown import Breakdown
from hostler.records.launch.launches import Generation
from hostler.records.launch.settlement import Spend
from hostler.records.run import heartbeats
from hostler.records.sweep import gpu_company, measured_rates, sweeps
from hostler.spec.names import slug
from hostler.spec.units import counted, show_duration, show_money
from hostler.store import Store

if TYPE_CHECKING:
    from hostler.simulate.savings import Saving

SEEDS = 20  # simulations of each change
MOST_WORKERS, MOST_RUNS = 10_000, 100_000  # of a launch that is simulated
WORDS = {
    "training": "training",
    "booting": "booting, until a script runs",
    "saving": "saving, after a script's end",
    "repeated": "repeated work, lost before it was saved",
    "idle": "idle",
    "tail": "tail, after a machine's last run",
}


@dataclass(frozen=True)
class Explained:
    """`told`: the platform itself said when machines came and went."""

    name: str
    parts: Breakdown
    told: bool


def explained(store: Store, found: Sequence[Spend], say: Callable[[str], None]) -> list[Explained]:
    """Launches by purpose; a machine for hand work has none."""
    now, timing = heartbeats.readers_time(store), settings.timing()
    result = []
    for spend in found:
        generation = spend.generation
        if generation.by_hand:
            continue
        lives = _lives(store, generation, now, say) if generation.billed else {}
        parts = breakdown.read(store, generation, lives, now, timing, say)
        result.append(Explained(generation.name, parts, bool(lives)))
    return result


def _lives(
    store: Store, one: Generation, now: float, say: Callable[[str], None]
) -> Mapping[str, tuple[float, float]]:
    """As the platform remembers it; nothing where the fleet is not of this project, or nobody answers."""
    project = here.project()
    fleet = of_launch(project, one.fleet)
    if fleet is None:
        return {}
    try:
        engine = backend_of(fleet)
        return (
            engine.lives(owned(project, fleet, store.url), one.number, now)
            if isinstance(engine, Timed)
            else {}
        )
    except HostlerError as error:
        say(f"{one.name}: its platform was not asked when machines came and went: {error.message}")
        return {}


def advice(store: Store, found: Sequence[Spend], say: Callable[[str], None]) -> dict[str, list[Saving]]:
    """Launch → the changes that would have saved most, simulated; none where too little is known of it, or it
    cost nothing."""
    result: dict[str, list[Saving]] = {}
    for spend in found:
        generation = spend.generation
        if not generation.by_hand and generation.price and spend.cost:
            try:
                result[generation.name] = _advice(store, generation, spend.cost)
            except HostlerError as error:
                say(f"{generation.name}: nothing is simulated: {error.message}")
    return result


def _advice(store: Store, one: Generation, spent: float) -> list[Saving]:
    from hostler.fleet.launcher import sweep_launcher
    from hostler.records import project as projects
    from hostler.simulate.savings import of_part, savings
    from hostler.simulate.study import StudyOptions, study

    project = here.project()
    own = of_launch(project, one.fleet)
    if own is None or not one.sweeps:
        raise UsageError(f"hostler.yaml here has no fleet {one.fleet}, or it served no sweep")
    job = sweeps.load(store, one.sweeps[0])
    if not 0 < one.workers <= MOST_WORKERS or job.count > MOST_RUNS:
        size = f"{counted(one.workers, 'worker')} and {counted(job.count, 'run')}"
        raise UsageError(f"{size} are more than can be simulated, or none")
    scouted = [name for name in project.fleets if measured_rates.read(store, job.name, name)]
    launchers = [sweep_launcher(project, store.url, own.name, job.parallel)]
    launchers[0] = replace(launchers[0], fleet=replace(launchers[0].fleet, workers=one.workers))
    launchers += [
        sweep_launcher(project, store.url, name, job.parallel) for name in scouted if name != own.name
    ]
    free = replace(job, budget=replace(job.budget, cost=None, hours=None))
    timing = projects.agreed(store, projects.timing_of(store.url))
    found = study(store, launchers, free, job.count, StudyOptions(seeds=SEEDS), timing, time.time())
    this, *others = found.settings
    if slug(this.scene.fleet) != one.fleet:
        raise UsageError(f"fleet {own.name} cannot be simulated as hostler.yaml has it now")
    return of_part(savings(this, others, found.sky, SEEDS), spent)


def company(store: Store, names: Sequence[str], say: Callable[[str], None]) -> dict[str, str]:
    """Sweep → the line that offers company on a GPU which its runs hardly use."""
    lines = dict[str, str]()
    for name in names:
        try:
            found = gpu_company.of_sweep(store, name)
        except (DamagedError, NewerFormatError) as error:
            say(f"{name}: company on a GPU is not looked at: {error}")
            continue
        lines |= {name: f"{name}: {found.line}"} if found else {}
    return lines


def saving_lines(found: Mapping[str, Sequence[Saving]]) -> Iterator[str]:
    for name, changes in found.items():
        yield (
            f"{name}: would have been cheaper, simulated, with"
            if changes
            else f"{name}: nothing cheaper found"
        )
        for change in changes:
            later = (
                f"{show_duration(round(abs(change.seconds)))} {'later' if change.seconds > 0 else 'sooner'}"
            )
            yield f"  {change.words}: {show_money(change.saves)} less ({100 * change.share:.0f} %), {later}"


def lines(found: Sequence[Explained]) -> Iterator[str]:
    for one in found:
        total = one.parts.total
        source = "by its platform's times" if one.told else "by the notes of its workers"
        yield f"{one.name}: {show_money(total)} in all, {source}; ideal {show_money(one.parts.training)}"
        width = max(map(len, WORDS.values()))
        for key, words in WORDS.items():
            cost = getattr(one.parts, key)
            part = f"{100 * cost / total:.0f} %" if total else "-"
            yield f"  {words:<{width}}  {show_money(cost):>10}  {part:>5}"


def as_json(one: Explained) -> dict[str, object]:
    parts = {key: round(value, 6) for key, value in asdict(one.parts).items()}
    return {**parts, "total": round(one.parts.total, 6), "ideal": parts["training"], "by_platform": one.told}
