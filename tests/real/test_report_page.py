"""The report, opened from disk in a real browser."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from browser import Tab
from cli_world import SOURCE
from seen_world import Seen, gallery

pytestmark = [pytest.mark.real, pytest.mark.needs("chromium")]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    return gallery(tmp_path_factory.mktemp("seen") / "store")


def made(seen: Seen, sweep: str) -> str:
    """A report's address on disk."""
    path = seen.folder.parent / f"{sweep}.html"
    command = [sys.executable, "-m", "hostler", "report", sweep, "--store", seen.url, "-o", str(path)]
    env = {**os.environ, "PYTHONPATH": str(SOURCE)}
    subprocess.run(command, check=True, env=env, stdout=subprocess.DEVNULL)
    return path.as_uri()


def opened(browser: Any, address: str, **options: Any) -> Tab:
    tab = Tab(browser, "file:", **options)
    tab.page.goto(address)
    tab.page.locator("#plot-0").scroll_into_view_if_needed()
    tab.page.locator("#plot-0 svg.main-svg").first.wait_for()
    return tab


def test_page_opens_from_disk_with_plots_table_errors_and_best(browser: Any, seen: Seen) -> None:
    tab = opened(browser, made(seen, "cifar-grid"), color_scheme="light", offline=True)
    plots = tab.page.locator(".plot").count()
    assert plots >= 9
    for n in range(plots):
        tab.page.locator(f"#plot-{n}").scroll_into_view_if_needed()
        tab.page.locator(f"#plot-{n} svg.main-svg").first.wait_for()
    text = tab.page.inner_text("main")
    assert "hostler pull cifar-grid/21" in text
    assert "CUDA out of memory" in text
    assert 'File "train.py", line 7' in text
    assert "36 of 36 runs" in text
    tab.page.locator("#plot-0").evaluate("one => one.scrollIntoView()")
    tab.picture("report")
    tab.check()
    assert tab.faults() == []


def test_plots_zoom_and_the_table_filters_and_sorts(browser: Any, seen: Seen) -> None:
    tab = opened(browser, made(seen, "cifar-grid"))
    tab.page.locator("#plot-1").scroll_into_view_if_needed()
    drag = tab.page.locator("#plot-1 .nsewdrag").bounding_box()
    axis = "document.getElementById('plot-1').layout.xaxis.range"
    before = tab.page.evaluate(axis)
    tab.page.mouse.move(drag["x"] + 100, drag["y"] + 40)
    tab.page.mouse.down()
    tab.page.mouse.move(drag["x"] + 400, drag["y"] + 140, steps=5)
    tab.page.mouse.up()
    assert tab.page.evaluate(axis) != before
    tab.page.get_by_label("Filter runs").fill("resnet50 done")
    tab.page.get_by_text("15 of 36 runs").wait_for()
    tab.page.get_by_role("button", name="accuracy", exact=True).click()
    assert tab.page.locator("#runs tbody tr").first.inner_text().startswith("cifar-grid/21")
    tab.check()


@pytest.mark.parametrize("sweep", ["odd-values", "empty"])
def test_hostile_odd_and_absent_values_are_shown_and_never_run(browser: Any, seen: Seen, sweep: str) -> None:
    tab = opened(browser, made(seen, sweep), color_scheme="dark")
    tab.page.get_by_text("of 4 runs" if sweep == "odd-values" else "0 of 0 runs").first.wait_for()
    if sweep == "odd-values":
        assert "<script>window.pwned=1</script>" in tab.page.inner_text("main")
    tab.check()
    assert tab.faults() == []
