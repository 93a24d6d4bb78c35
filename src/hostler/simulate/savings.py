"""Changes that would have made a launch cheaper, by simulation: one thing changed at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from hostler.frozen import dataclass
from hostler.simulate.bundles import bundled
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
    large = [bundled(each.setting) for each in changes]
    summaries = [compare([each], [each.scene.every], sky, seeds)[0] for each in large]
    now = summaries[0]
    if now.cost is None or not now.cost.mean:
        return []
    best: dict[str, Saving] = {}
    for change, then in zip(changes[1:], summaries[1:], strict=True):
        if then.cost is None or (now.finishes and not then.finishes):
            continue
        saves = now.cost.mean - then.cost.mean
        made = Saving(change.words, saves, saves / now.cost.mean, then.seconds.mean - now.seconds.mean)
        if made.share >= LEAST and saves > best.get(change.kind, made).saves - 1e-12:
            best[change.kind] = made
    return sorted(best.values(), key=lambda saving: -saving.saves)[:SHOWN]


def of_part(found: Sequence[Saving], spent: float) -> list[Saving]:
    """The same of a launch that has spent so much on a part of the sweep: it saves in proportion. Pure."""
    parts = [min(1.0, saving.share * spent / saving.saves) for saving in found]
    return [
        replace(saving, saves=saving.saves * part, seconds=saving.seconds * part)
        for saving, part in zip(found, parts, strict=True)
    ]


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
    for setting in others:
        words = f"{counted(setting.scene.workers, 'worker')} of {setting.scene.fleet}"
        yield _Change("fleet", words, setting)


def _sized(one: Setting, workers: int) -> Setting:
    """The same fleet with fewer workers, the first groups full."""
    remaining, groups = workers, []
    for group in one.scene.groups:
        size = min(remaining, group.size)
        remaining -= size
        groups += [replace(group, size=size)] if size else []
    return replace(one, scene=replace(one.scene, workers=workers, groups=tuple(groups)))
