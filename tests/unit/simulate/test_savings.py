"""Changes that would have saved money, by simulation."""

from __future__ import annotations

from dataclasses import replace

from hostler.backends.capacity import MachineGroup
from hostler.settings import Timing
from hostler.simulate.fleets import Setting
from hostler.simulate.rates import rate
from hostler.simulate.savings import of_part, savings
from hostler.simulate.scene import Scene
from hostler.simulate.study import Sky
from hostler.simulate.times import VaryingSeconds
from hostler.simulate.weather import Habits
from hostler.spec.job import Job

HOUR = 3600.0


def setting(name: str = "burst", price: float = 1.0, workers: int = 10, every: float = HOUR / 2) -> Setting:
    group = MachineGroup("r", name, ("z",), workers, True)
    length = VaryingSeconds((), HOUR, HOUR)
    job = Job("sweep", ("python", "train.py"), retries=50)
    scene = Scene(
        name, job, 30, workers, (group,), length, every, Timing(), prices={("z", True): price}, save=5
    )
    boots = VaryingSeconds((), 200, 400)
    return Setting(scene, Habits(VaryingSeconds(), boots, VaryingSeconds(), 0.0), rate("50%/h"), spot=True)


def test_shorter_interval_and_image_save_where_machines_vanish() -> None:
    found = savings(setting(), [], Sky(), 10)
    words = [one.words for one in found]
    assert any(one.startswith("checkpoint: {every: 7m30s") for one in words), found
    assert any("image" in one for one in words) and len(words) <= 3
    assert [one.saves for one in found] == sorted((one.saves for one in found), reverse=True)
    assert all(0.01 <= one.share < 1 for one in found)


def test_cheaper_fleet_is_named_first() -> None:
    found = savings(setting(), [setting("tau", price=0.2)], Sky(), 5)
    assert found[0].words == "10 workers of tau" and found[0].share > 0.7


def test_launch_that_wastes_nothing_has_nothing_to_change() -> None:
    calm = replace(setting(workers=1, every=HOUR / 2), rate=rate("0"), habits=Habits())
    assert savings(calm, [setting("dear", price=9.0)], Sky(), 2) == []


def test_launch_of_a_tenth_of_the_sweep_saves_a_tenth() -> None:
    found = savings(setting(), [setting("tau", price=0.2)], Sky(), 5)
    whole = found[0].saves / found[0].share  # what the sweep costs on this fleet
    [part, *_] = of_part(found, whole / 10)
    assert abs(part.saves / found[0].saves - 0.1) < 1e-6 and part.share == found[0].share
    assert abs(part.seconds) <= abs(found[0].seconds) / 9
    assert of_part(found, 2 * whole) == found  # it cost more than was simulated: so much is sure
