"""The cost of launches by purpose, for `hostler cost --explain`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from hostler import settings
from hostler.backends.base import Timed
from hostler.backends.registry import backend_of
from hostler.cli import here
from hostler.errors import HostlerError
from hostler.fleet.fleet_choice import owned
from hostler.records.launch import breakdown
from hostler.records.launch.breakdown import Breakdown
from hostler.records.launch.launches import Generation
from hostler.records.launch.settlement import Spend
from hostler.records.run import heartbeats
from hostler.spec.names import slug
from hostler.spec.units import show_money
from hostler.store import Store

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
        one = spend.generation
        if one.by_hand:
            continue
        lives = _lives(store, one, now, say) if one.billed else {}
        parts = breakdown.read(store, one, lives, now, timing)
        result.append(Explained(one.name, parts, bool(lives)))
    return result


def _lives(
    store: Store, one: Generation, now: float, say: Callable[[str], None]
) -> Mapping[str, tuple[float, float]]:
    """As the platform remembers it; nothing where the fleet is not of this project, or nobody answers."""
    project = here.project()
    fleet = next((fleet for name, fleet in project.fleets.items() if slug(name) == one.fleet), None)
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
