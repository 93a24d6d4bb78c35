"""What is made of Google's advice on capacity."""

from __future__ import annotations

from typing import Any

import pytest

from hostler.backends.capacity import MachineGroup
from hostler.backends.gce import advice
from hostler.backends.gce.client import GceClient
from hostler.backends.gce.shape import shape
from hostler.errors import CloudUnavailable
from hostler.spec.project import Fleet

SHAPE = shape(Fleet("burst", "gce", options={"zones": ["us-east1-b", "us-west1-b"]}))


class Adviser(GceClient):
    """Google, as far as it is asked for advice."""

    def __init__(self, answers: dict[str, dict[str, Any]]) -> None:
        super().__init__("p")
        self.answers, self.asked = answers, list[str]()

    def advise(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(path)
        if path not in self.answers:
            raise CloudUnavailable("no advice")
        return self.answers[path]


def capacity(value: float) -> dict[str, Any]:
    return {"recommendations": [{"scores": {"obtainability": value}}]}


def lost(*rates: float) -> dict[str, Any]:
    return {"preemptionHistory": [{"preemptionRate": rate} for rate in rates]}


def group(region: str, *, spot: bool = True) -> MachineGroup:
    return MachineGroup(region, "g", (f"{region}-b",), 2, spot)


def test_region_with_fewer_preemptions_wins_among_equal_stock() -> None:
    told = Adviser(
        {
            "regions/us-east1/advice/capacity": capacity(0.8),
            "regions/us-east1/advice/capacityHistory": lost(0.5, 0.7),
            "regions/us-west1/advice/capacity": capacity(0.8),
            "regions/us-west1/advice/capacityHistory": lost(0.1),
        }
    )
    found = advice.ask(told, SHAPE, [group("us-east1"), group("us-west1")])
    assert found == pytest.approx({"us-east1": 0.8 * 0.7, "us-west1": 0.8 * 0.95})


def test_missing_advice_is_not_judged_and_on_demand_never_preempted() -> None:
    told = Adviser({"regions/us-west1/advice/capacity": capacity(0.6)})
    found = advice.ask(told, SHAPE, [group("us-east1"), group("us-west1", spot=False)])
    assert found == {"us-west1": 0.6}
    assert "regions/us-west1/advice/capacityHistory" not in told.asked


def test_only_a_region_that_has_none_gets_nothing() -> None:
    assert advice.score(0.0, 0.0) == 0.0 and advice.score(None, 1.0) > 0.0
    assert advice.score(0.9, None) == 0.9
