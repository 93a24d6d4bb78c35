"""Changes that would have made a launch cheaper, by simulation: one thing changed at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from hostler.frozen import dataclass
from hostler.simulate.fleets import Setting
from hostler.simulate.study import Sky, compare
from hostler.simulate.target_choice import sizes
from hostler.simulate.times import VaryingSeconds
from hostler.spec.units import counted, show_duration

SHOWN = 3
LEAST = 0.01  # of the cost: less is not worth a change
IMAGE = 30.0  # seconds in which a machine boots whose image has all packages


@dataclass(frozen=True)
class Saving:
    words: str
    saves: float  # money
    share: float  # of the simulated cost
    seconds: float  # that it takes longer; below 0 where it is quicker


@dataclass(frozen=True)
class _Change:
    kind: str  # of several of one kind the best is shown
    words: str
    setting: Setting


def savings(one: Setting, others: Sequence[Setting], sky: Sky, seeds: int) -> list[Saving]:
    """The changes that save most, one of each kind. `others`: fleets whose runs were measured."""
    changes = [_Change("", "", one), *_changes(one, others)]
    found = [compare([each.setting], [each.setting.scene.every], sky, seeds)[0] for each in changes]
    now = found[0]
    if now.cost is None or not now.cost.mean:
        return []
    best: dict[str, Saving] = {}
    for change, then in zip(changes[1:], found[1:], strict=True):
        if then.cost is None or (now.finishes and not then.finishes):
            continue
        saves = now.cost.mean - then.cost.mean
        made = Saving(change.words, saves, saves / now.cost.mean, then.seconds.mean - now.seconds.mean)
        if made.share >= LEAST and saves > best.get(change.kind, made).saves - 1e-12:
            best[change.kind] = made
    return sorted(best.values(), key=lambda saving: -saving.saves)[:SHOWN]


def _changes(one: Setting, others: Sequence[Setting]) -> Iterator[_Change]:
    scene = one.scene
    for factor in (0.25, 0.5, 2.0, 4.0):
        every = scene.every * factor
        if every < scene.length.longest:
            words = f"checkpoint: {{every: {show_duration(every, exact=True)}}}"
            yield _Change("checkpoint", words, replace(one, scene=replace(scene, every=every)))
    for workers in sizes(scene.runs, scene.workers, scene.seats):
        if workers < scene.workers:
            yield _Change("workers", f"workers: {workers}", _sized(one, workers))
    if one.habits.boots.mean > 2 * IMAGE:
        habits = replace(one.habits, boots=VaryingSeconds((), IMAGE, IMAGE))
        yield _Change(
            "image", "an image with its packages (hostler image build)", replace(one, habits=habits)
        )
    for other in others:
        words = f"{counted(other.scene.workers, 'worker')} of {other.scene.fleet}"
        yield _Change("fleet", words, other)


def _sized(one: Setting, workers: int) -> Setting:
    """The same fleet with fewer workers, the first groups full."""
    left, groups = workers, []
    for group in one.scene.groups:
        size = min(left, group.size)
        left -= size
        groups += [replace(group, size=size)] if size else []
    return replace(one, scene=replace(one.scene, workers=workers, groups=tuple(groups)))
