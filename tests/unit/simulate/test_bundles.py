"""Runs in bundles: as much work, as many losses, a fraction of the simulation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hostler.backends.capacity import MachineGroup
from hostler.settings import Timing
from hostler.simulate.bundles import ROUNDS, bundled
from hostler.simulate.fleets import Setting
from hostler.simulate.rates import rate
from hostler.simulate.scene import Scene
from hostler.simulate.study import Sky, compare
from hostler.simulate.times import VaryingSeconds
from hostler.simulate.weather import Habits
from hostler.spec.job import Job

HABITS = Habits(VaryingSeconds((), 10, 30), VaryingSeconds((), 60, 150), VaryingSeconds((), 15, 45), 0.0)


def setting(runs: int, workers: int, often: str = "20%/h", every: float = 120.0) -> Setting:
    group = MachineGroup("r", "burst", ("z",), workers, True)
    length, gap = VaryingSeconds((), 400, 800), VaryingSeconds((), 0, 2)
    job, prices = Job("sweep", ("python",)), {("z", True): 1.0}
    scene = Scene("burst", job, runs, workers, (group,), length, every, Timing(), prices=prices, save=5.0)
    return Setting(replace(scene, gap=gap), HABITS, rate(often), spot=True)


@pytest.mark.parametrize(("often", "every"), [("20%/h", 120.0), ("5%/h", 120.0), ("20%/h", 3600.0)])
def test_large_sweep_in_bundles_costs_and_takes_the_same(often: str, every: float) -> None:
    one = setting(1600, 4, often, every)
    large = bundled(one)
    assert large.scene.runs == ROUNDS * 4
    [plain] = compare([one], [one.scene.every], Sky(), 6)
    [quick] = compare([large], [large.scene.every], Sky(), 6)
    assert plain.cost is not None and quick.cost is not None and quick.finishes
    assert quick.cost.mean == pytest.approx(plain.cost.mean, rel=0.03)
    assert quick.seconds.mean == pytest.approx(plain.seconds.mean, rel=0.04)


def test_sweep_of_few_runs_for_each_machine_stays_as_it_is() -> None:
    one = setting(300, 4)
    assert bundled(one) is one
    queued = replace(one, scene=replace(one.scene, runs=100_000, each=10))
    assert bundled(queued) is queued
    assert bundled(setting(100_000, 100)).scene.runs < 2 * ROUNDS * 100
