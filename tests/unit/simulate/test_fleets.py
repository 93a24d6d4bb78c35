"""How many runs fit on a machine, and what it costs where."""

from __future__ import annotations

from typing import Any

import pytest

from hostler.backends.capacity import MachineGroup
from hostler.backends.prices import FleetPrice, ZonePrice
from hostler.errors import UsageError
from hostler.settings import Timing
from hostler.simulate import fleets
from hostler.spec.job import Resources
from hostler.spec.project import Fleet


def fleet(slots: int | None = None, backend: str = "gce", **options: Any) -> Fleet:
    return Fleet("burst", backend, workers=2, slots=slots, options=options)


@pytest.mark.parametrize(
    ("given", "ask", "seats"),
    [
        (fleet(machine="g2-standard-8"), Resources(gpus=1), 1),
        (fleet(machine="g2-standard-8"), Resources(), 1),  # a GPU to itself
        (fleet(machine="g2-standard-48"), Resources(gpus=1), 4),
        (fleet(machine="g2-standard-48"), Resources(gpus=0.5, cpus=12), 4),  # the CPUs are the bound
        (fleet(machine="n1-standard-8", gpu="T4:2"), Resources(gpus=1), 2),
        (fleet(machine="e2-standard-4"), Resources(cpus=1), 4),
        (fleet(machine="e2-standard-4"), Resources(), 1),
        (fleet(3, machine="e2-standard-4"), Resources(), 3),
        (fleet(backend="ssh"), Resources(), 1),
        (fleet(4, backend="ssh"), Resources(), 4),
        (fleet(backend="ssh"), Resources(gpus=0.25), 4),
        (fleet(backend="ssh"), Resources(gpus=8), 1),
    ],
)
def test_runs_share_a_machine_as_the_worker_would_allow(given: Fleet, ask: Resources, seats: int) -> None:
    assert fleets.seats(given, ask) == seats


def test_run_that_fits_no_machine_of_the_fleet_is_refused() -> None:
    with pytest.raises(UsageError, match=r"does not fit.*asks for 2 GPU"):
        fleets.seats(fleet(machine="g2-standard-8"), Resources(gpus=2))


def test_zones_have_spot_and_on_demand_prices_for_all_nodes() -> None:
    zones = (ZonePrice("a", 3.0, 1.0), ZonePrice("b", 4.0, None))
    groups = (MachineGroup("r", "g", ("a", "b"), 2), MachineGroup("r", "g-od", ("a",), 0, spot=False))
    found = fleets.prices(FleetPrice(2, 4.0, "", zones, "prefer"), groups, nodes=2)
    assert found == {("a", True): 2.0, ("b", True): 8.0, ("a", False): 6.0}
    assert fleets.prices(FleetPrice(2, 0.5), (MachineGroup("", "lab", ("",), 2),), 1) == {("", True): 0.5}
    assert fleets.prices(FleetPrice(2), (MachineGroup("", "lab", ("",), 2),), 1) == {("", True): 0.0}


def test_all_times_are_scaled_for_a_clock_that_is_faster() -> None:
    assert fleets.scaled(Timing(), 20).lease == 20 * Timing().lease
