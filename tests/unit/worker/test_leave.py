"""The table of leaving."""

from __future__ import annotations

import pytest

from hostler.worker.claim.leave import LeaveView, leave

NOTHING = {
    "busy": 0,
    "takeable": 0,
    "becoming": 0,
    "held": 0,
    "unheld": 0,
    "idle_for": 0.0,
    "waits_free": True,
}


@pytest.mark.parametrize(
    ("seen", "may"),
    [
        ({}, True),
        ({"busy": 1}, False),
        ({"takeable": 1}, False),
        ({"held": 3}, True),
        ({"held": 3, "silent": 1}, False),
        ({"held": 3, "silent": 1, "stayed": 59.0, "waits_free": False}, False),
        ({"held": 3, "silent": 1, "stayed": 60.0}, True),
        ({"unheld": 1}, False),
        ({"unheld": 1, "idle_for": 1e9}, False),
        ({"unheld": 1, "waits_free": False}, False),
        ({"unheld": 1, "waits_free": False, "idle_for": 300.0}, True),
        ({"becoming": 1}, False),
        ({"becoming": 1, "waits_free": False, "idle_for": 299.0}, False),
        ({"becoming": 1, "waits_free": False, "idle_for": 301.0}, True),
        ({"busy": 1, "waits_free": False, "idle_for": 1e9}, False),
        ({"takeable": 1, "waits_free": False, "idle_for": 1e9}, False),
    ],
)
def test_a_worker_leaves_when_nothing_can_come_to_it(seen: dict[str, float], may: bool) -> None:
    assert leave(LeaveView(**{**NOTHING, **seen}), idle=300.0, lease=60.0) is may  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("seen", "may"),
    [
        ({"held": 1, "gangs": 1, "idle_for": 0.2}, False),
        ({"held": 1, "gangs": 1, "idle_for": 149.0, "waits_free": False}, False),
        ({"held": 1, "gangs": 1, "idle_for": 150.0}, True),
        ({"unheld": 1, "gangs": 1, "idle_for": 151.0}, False),
    ],
)
def test_replacement_of_a_member_not_yet_missed_stays_until_then(seen: dict[str, float], may: bool) -> None:
    assert leave(LeaveView(**{**NOTHING, **seen}), idle=300.0, lease=60.0, missed=150.0) is may  # type: ignore[arg-type]
