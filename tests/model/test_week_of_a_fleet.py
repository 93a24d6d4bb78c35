"""A week of a fleet on a virtual clock: workers are killed, frozen, cut off and unanswered, and every run is
done once, with the weights and the curve of one that nobody disturbed. The checker of histories decides."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import checker
import pytest
from recorder import events_of
from schedule import repeatable
from test_three_weeks import Weeks
from virtual_evidence import evidence
from virtual_fleet import HOUR, Fleet, weights_of

WEEK = 7 * 24 * HOUR


def evidence_of(fleet: Fleet, place: Path) -> Path:
    expected = {key.run: wanted(fleet, n) for n, key in enumerate(fleet.keys)}
    return evidence(place, fleet.store, fleet.keys, expected)


def wanted(fleet: Fleet, run: int) -> dict[str, Any]:
    steps = fleet.weeks.steps
    state = json.dumps({"step": steps, "w": weights_of(run, steps)})
    weights = {"weights.json": hashlib.sha256(state.encode()).hexdigest()}
    curves = {"loss": [(step, 1 / step) for step in range(1, steps + 1)]}
    return {"state": "done", "curves": curves, "weights": weights, "judged": "^weights.json$"}


def played(folder: Path, place: Path, **given: Any) -> Fleet:
    fleet = Fleet(folder, seed=repeatable(), **given)
    fleet.play()
    print(f"{fleet.took / 24 / HOUR:.1f} days, {dict(fleet.seen)}")
    assert [str(violation) for violation in checker.check(evidence_of(fleet, place))] == []
    return fleet


def test_day_of_a_fleet_with_killed_workers_passes_the_checker(folder: Path, tmp_path: Path) -> None:
    shift = Weeks(steps=24, save_every=2, pace=600.0)
    fleet = played(folder, tmp_path, runs=12, places=3, weeks=shift, life=3 * HOUR)
    assert fleet.seen["killed"] >= 3
    events = events_of(tmp_path)
    happened = Counter(event["what"] for event in events)
    assert all(happened[what] == count for what, count in fleet.seen.items()) and happened["saved"] >= 12
    claims = [event for event in events if event.get("kind") == "claim"]
    ended = {event["run"] for event in events if event.get("kind") == "end"}
    assert len(claims) >= 12 and ended == {key.run for key in fleet.keys}
    wrong = {event["session"] for event in events if event["what"] == "started" and event["clock"]}
    assert all((abs(event["theirs"] - event["at"]) > 1) == (event["session"] in wrong) for event in claims), (
        "each claim has the clock of who made it"
    )


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_week_of_a_fleet_of_eight_passes_the_checker(folder: Path, tmp_path: Path) -> None:
    part = float(os.environ.get("HOSTLER_DOSE", "1"))
    day = Weeks(steps=240, save_every=2, pace=300.0)
    fleet = played(folder, tmp_path, runs=round(max(4, 60 * part)), places=8, weeks=day, life=6 * HOUR)
    assert fleet.seen["killed"] >= 100 * part and fleet.seen["frozen"] >= 20 * part
    assert part < 1 or WEEK < fleet.took < 2 * WEEK
