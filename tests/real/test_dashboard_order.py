"""What comes first: sweeps on their page, runs in the table of a sweep whose metric is to be small."""

from __future__ import annotations

import os

import pytest

from board_server import names
from browser import Tab
from hostler.records.run import heartbeats
from hostler.records.series.points import Point
from seen_world import Seen

pytestmark = [pytest.mark.real, pytest.mark.needs("chromium")]

NEW = 1.79e9
SWEEPS = {  # name → hours since it was submitted; neither names nor times alone lead to the order on the page
    "p-runs": 2,
    "k-runs-long": 9,
    "a-ended": 1,
    "m-ended-long-ago": 12,
}
LOSSES = {2: 0.03, 0: 0.5, 3: 2.25, 1: 13.0}  # run → its last one, the best first


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    seen = Seen(tmp_path_factory.mktemp("seen") / "store", lease=1e5)
    held = {}
    for name, hours in sorted(SWEEPS.items()):
        job = seen.submit(name, [{"lr": n} for n in LOSSES], metric="loss", goal="min")
        seen.claim(job, 0)
        if "runs" in name:
            held[job.run_id(0)] = {"attempt": 1, "step": 3, "metrics": {"loss": 0.5}}
        else:
            for index, loss in LOSSES.items():
                seen.claim(job, index)
                seen.end(job, index, "done", seen.curve(job, index, [Point(9, NEW, {"loss": loss})]))
        for path in seen.folder.glob(f"sweeps/{name}/spec/*.json"):
            os.utime(path, (NEW - 3600 * hours,) * 2)
    heartbeats.beat(seen.store, "w-1", 1, {"host": "desk", "pid": 1, "runs": held})
    return seen


def test_running_sweeps_come_first_and_the_newest_of_each(tab: Tab, address: str) -> None:
    tab.page.goto(address)
    tab.page.get_by_role("link", name="m-ended-long-ago").wait_for()
    assert tab.page.locator(".sweeps .what a").all_inner_texts() == list(SWEEPS)


def test_runs_of_a_metric_to_be_small_go_upwards(tab: Tab, address: str) -> None:
    tab.page.goto(f"{address}#/sweep/a-ended")
    tab.page.get_by_text("4 of 4 runs").wait_for()
    assert tab.page.locator("[aria-sort=ascending]").inner_text() == "loss ↑"
    assert names(tab) == [f"a-ended/{index}" for index in LOSSES]
