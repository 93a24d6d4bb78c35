"""Money by purpose as the report and the dashboard show it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostler.analysis.plots.chart import Bars
from hostler.analysis.plots.spending import spending
from hostler.analysis.purposes import LaunchPurposes, Purposes, rows
from hostler.analysis.report import report
from hostler.records.launch import launches
from hostler.records.launch.breakdown import Breakdown
from hostler.records.launch.launches import Generation, Stay
from seen_world import Seen

PARTS = Breakdown(training=8.0, booting=1.0, saving=0.5, repeated=0.25, idle=0.0, tail=0.25)


@pytest.fixture
def seen(tmp_path: Path) -> Seen:
    """A sweep with one launch of a machine for 100 seconds at one a second, 60 of them with a run."""
    made = Seen(tmp_path / "store")
    job = made.submit("grid", [{"lr": 1}])
    now = 1.7e9
    made.claim(job, 0, session="w", at=now)
    made.end(job, 0, seconds=60.0, at=now + 60)
    launches.begin(
        made.store, Generation("burst", 1, "t", 1, 3600.0, now, now + 900, ("grid",), counted=True)
    )
    launches.note(made.store, "burst", 1, Stay("w", 100.0, over=True, final=True, used=60.0))
    return made


def test_bars_of_a_launch_add_up_to_what_it_cost() -> None:
    chart = spending([LaunchPurposes("burst/2", PARTS), LaunchPurposes("burst/1", PARTS)])
    bars = [mark for mark in chart.panels[0].marks if isinstance(mark, Bars)]
    assert [one.name for one in bars] == ["training", "booting", "saving", "repeated work", "tail"]
    assert all(tuple(one.labels) == ("burst/1", "burst/2") for one in bars)
    assert sum(one.values[0] for one in bars) == pytest.approx(PARTS.total)
    assert chart.note == "20.00 in all; the training alone, which is the ideal, 16.00 (80 %)"


def test_launch_without_price_or_of_another_sweep_is_not_shown(seen: Seen) -> None:
    assert [one.name for one in Purposes(seen.store).read("grid")] == ["burst/1"]
    assert Purposes(seen.store).read("other") == []
    launches.begin(seen.store, Generation("lab", 1, "t", 1, None, 1.0, None, ("grid",)))
    assert [one.name for one in Purposes(seen.store).read()] == ["burst/1"]


def test_page_gets_each_purpose_by_its_name(seen: Seen) -> None:
    [row] = rows(Purposes(seen.store).read())
    assert row["launch"] == "burst/1" and [name for name, _ in row["parts"]][3] == "repeated work"
    assert sum(cost for _, cost in row["parts"]) == pytest.approx(row["total"], rel=1e-5)
    assert row["total"] == pytest.approx(100.0, rel=0.01)


def test_report_has_a_money_chart_where_money_is_known(seen: Seen) -> None:
    assert "Cost by purpose" in report(seen.store, "grid")
    seen.submit("free", [{"lr": 2}])
    assert "Cost by purpose" not in report(seen.store, "free")


def test_damaged_launch_leaves_the_others(seen: Seen) -> None:
    launches.begin(seen.store, Generation("lab", 1, "t", 1, 1.0, 1.0, None, ("grid",)))
    seen.store.put("fleets/lab/000001/workers/x.json", b"half a rec")
    assert [one.name for one in Purposes(seen.store).read()] == ["burst/1"]
