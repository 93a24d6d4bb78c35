"""What fleets cost by purpose, on the dashboard in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from browser import Tab
from golden_pictures import NARROW, WIDER
from hostler.records.launch import launches
from hostler.records.launch.launches import Generation, Stay
from seen_world import Seen

pytestmark = [pytest.mark.real, pytest.mark.needs("chromium")]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """A launch of 100 seconds at one a second."""
    made = Seen(Path(tmp_path_factory.mktemp("seen")) / "store")
    job = made.submit("grid", [{"lr": 1}])
    made.claim(job, 0, session="w")
    made.end(job, 0)
    launches.begin(made.store, Generation("burst", 1, "t", 1, 3600.0, 1.7e9, 1.8e9, ("grid",), counted=True))
    launches.note(made.store, "burst", 1, Stay("w", 100.0, over=True, final=True, used=60.0))
    return made


def test_workers_page_shows_what_money_was_for(tab: Tab, address: str) -> None:
    tab.page.goto(address)
    tab.go("#/workers", "Cost by purpose")
    [label] = tab.page.locator(".purpose .progress").evaluate_all(
        "all => all.map(one => one.getAttribute('aria-label'))"
    )
    assert label.startswith("burst/1: ") and "training" in label
    assert tab.page.locator(".purpose .words").inner_text().startswith("100.00, ideal ")
    assert tab.page.locator(".purposes .key span").all_inner_texts() == [
        "training", "booting", "saving", "repeated work", "idle", "tail",
    ]  # fmt: skip
    widths = tab.page.locator(".purpose .progress span").evaluate_all("all => all.map(o => o.clientWidth)")
    assert min(widths) > 0 and tab.faults(every=True) == []


def test_bar_of_purposes_fits_a_phone_and_keeps_its_colours_on_paper(tab: Tab, address: str) -> None:
    tab.page.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})
    tab.page.goto(address)
    tab.go("#/workers", "Cost by purpose")
    assert tab.page.evaluate(WIDER) == 0 and tab.faults(every=True) == []
    line, words = (tab.page.locator(f".purpose .{part}").bounding_box() for part in ("progress", "words"))
    assert line["width"] > 250 and words["y"] + words["height"] <= line["y"], "one above the other"
    tab.page.emulate_media(media="print")
    inks = "all => all.map(one => getComputedStyle(one).printColorAdjust)"
    assert set(tab.page.locator(".purpose .progress span, .purposes .key i").evaluate_all(inks)) == {"exact"}
