"""The page of a search in a real browser: history, importance, parallel, slices, contour; live."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from board_server import CALM, board
from browser import Tab, TabAt
from golden_pictures import LOOKS, faults_of_page, tab_of
from search_store import ENDED, learned, search_store
from seen_world import HOSTILE, Seen

pytestmark = [pytest.mark.real, pytest.mark.needs("chromium")]

SEARCH = "#/sweep/tpe-search/search"


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    return search_store(tmp_path_factory.mktemp("seen") / "store")[0]


@pytest.fixture
def tab(tab: Tab, address: str) -> Tab:
    tab.page.goto(f"{address}{SEARCH}")
    tab.page.get_by_text("56 of 60 runs with a value, 4 running").wait_for()
    tab.page.wait_for_timeout(300)
    return tab


def card(tab: Tab, name: str) -> Any:
    return tab.page.get_by_role("region", name=name, exact=True).first


def axis(tab: Tab, name: str) -> Any:
    return tab.page.get_by_role("slider", name=f"Keep by {name}", exact=True)


def label(tab: Tab, name: str) -> str:
    return str(card(tab, name).locator("canvas").first.get_attribute("aria-label"))


def kept(tab: Tab) -> int:
    tab.page.wait_for_timeout(200)
    return int(re.search(r": (\d+) runs? of 56 kept", label(tab, "Parallel coordinates"))[1])  # type: ignore[index]


def test_history_shows_every_run_and_the_best_so_far(tab: Tab) -> None:
    words = label(tab, "History")
    assert words.startswith("History: 56 runs by accuracy")
    assert re.search(r"the best 0\.9\d+", words)


def test_importance_ranks_the_parameter_that_matters_first(tab: Tab) -> None:
    names = card(tab, "Importance").locator("li .what").all_inner_texts()
    shares = [int(one.split()[0]) for one in card(tab, "Importance").locator("li .num").all_inner_texts()]
    assert names[0] == "lr"
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 30


def test_parallel_axes_carry_values_as_they_were_given(tab: Tab) -> None:
    texts = card(tab, "Parallel coordinates").locator("svg text").all_text_contents()
    shown = " ".join(texts)
    for words in (
        "lr",
        "width",
        "optimizer",
        "dropout",
        "augment",
        "accuracy",
        "32",
        "256",
        "adam",
        "sgd",
        "true",
    ):
        assert any(words in one for one in texts), (words, shown)
    assert "low" not in texts and "high" not in texts


def test_brush_on_an_axis_keeps_the_runs_that_pass(tab: Tab) -> None:
    at = axis(tab, "optimizer").bounding_box()
    place = card(tab, "Parallel coordinates").locator("svg text", has_text=re.compile("^sgd$")).bounding_box()
    middle = place["y"] + place["height"] / 2
    tab.page.mouse.move(at["x"] + 13, middle - 25)
    tab.page.mouse.down()
    tab.page.mouse.move(at["x"] + 13, middle + 25, steps=4)
    tab.page.mouse.up()
    some = kept(tab)
    assert 0 < some < 56
    assert axis(tab, "optimizer").get_attribute("aria-valuetext") == "sgd"
    tab.page.get_by_text(f"{some} runs of 56 kept").wait_for()
    tab.page.get_by_role("button", name="Select these runs").click()
    tab.page.get_by_role("link", name="Curves").click()
    tab.page.get_by_text(f"{some} curves").wait_for()


def test_brush_works_by_keys_alone(tab: Tab) -> None:
    axis(tab, "lr").focus()
    tab.page.keyboard.press("ArrowUp")
    half = kept(tab)
    assert 0 < half < 56
    assert " to " in str(axis(tab, "lr").get_attribute("aria-valuetext"))
    for _ in range(4):
        tab.page.keyboard.press("Shift+ArrowDown")
    assert kept(tab) < half
    tab.page.keyboard.press("Escape")
    assert kept(tab) == 56


def test_pointing_at_a_line_names_the_run_and_its_parameters(tab: Tab) -> None:
    plot = card(tab, "Parallel coordinates").locator(".parallel")
    plot.scroll_into_view_if_needed()
    at, tip = plot.bounding_box(), plot.locator(".tip")
    for y in range(60, 360, 6):
        tab.page.mouse.move(at["x"] + at["width"] * 0.3, at["y"] + y)
        if tip.is_visible():
            break
    assert "tpe-search/" in tip.inner_text() and "dropout" in tip.inner_text()


def test_slices_have_a_plot_for_each_varying_parameter(tab: Tab) -> None:
    plots = card(tab, "Slices").locator(".chart")
    assert plots.count() == 5
    words = [plots.nth(n).locator("canvas").get_attribute("aria-label") for n in range(5)]
    assert {one.rpartition("along ")[2] for one in words if one} == {
        "lr",
        "width",
        "optimizer",
        "dropout",
        "augment",
    }
    shown = card(tab, "Slices").locator("svg text").all_text_contents()
    assert {"32", "64", "128", "256", "true", "false"} <= set(shown)


FIELDS = """async ([x, y]) => { const { fields } = await import('/static/plots/contour.js');
  const { Axis } = await import('/static/plots/scatter.js');
  const points = [{ x: x[0], y: y[0], value: 0 }, { x: x[1], y: y[0], value: 1 }];
  const names = (ends) => typeof ends[0] === 'string';
  const axis = (ends) => new Axis('a', names(ends) ? { names: ends } : { low: ends[0], high: ends[1] });
  const box = { left: 0, right: 200, top: 0, bottom: 100 }, ax = axis(x), ay = axis(y);
  return fields(points, ax, ay, String)(ax.over(0, 200), ay.over(100, 0), box) }"""


def test_contour_does_not_interpolate_between_categories(tab: Tab) -> None:
    cells = tab.page.evaluate(FIELDS, [["adam", "sgd"], ["a", "b"]])
    assert [one["colour"] for one in cells] == ["0", "1"]  # the cells of b, where no run is, stay empty
    strips = tab.page.evaluate(FIELDS, [["adam", "sgd"], [1, 2]])
    assert {one["colour"] for one in strips if one["x"] < 100} == {"0"}
    assert {one["colour"] for one in strips if one["x"] >= 100} == {"1"}
    smooth = tab.page.evaluate(FIELDS, [[0, 1], [0, 1]])
    assert len({one["colour"] for one in smooth}) > 2  # between numbers it does


def test_contour_is_drawn_over_any_two_parameters(tab: Tab) -> None:
    tab.page.get_by_label("Contour x").select_option("optimizer")
    tab.page.get_by_label("Contour y").select_option("dropout")
    tab.page.wait_for_timeout(300)
    assert label(tab, "Contour").endswith("over optimizer and dropout")
    assert "sgd" in card(tab, "Contour").locator("svg text").all_text_contents()
    tab.page.get_by_label("Contour y").select_option("optimizer")
    tab.page.get_by_text("choose two different parameters").wait_for()


def test_another_metric_is_looked_at(tab: Tab) -> None:
    tab.page.get_by_label("Metric", exact=True).select_option("loss")
    tab.page.get_by_text("52 of 60 runs with a value").wait_for()
    assert label(tab, "History").startswith("History: 52 runs by loss")


def test_plots_of_a_search_are_copied(tab: Tab) -> None:
    tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    for name in ("History", "Parallel coordinates", "Contour"):
        tab.page.get_by_role("button", name=f"Copy {name} as SVG").click()
        tab.page.wait_for_timeout(200)
        text = tab.page.evaluate("navigator.clipboard.readText()")
        assert text.startswith("<svg") and f": {name}, accuracy" in text
        assert HOSTILE not in text


def test_running_search_grows_on_the_open_page(tab_at: TabAt, tmp_path: Path) -> None:
    seen, job = search_store(tmp_path / "store")
    with board(seen.url) as url:
        tab = tab_at(url)
        tab.page.goto(f"{url}{SEARCH}")
        tab.page.get_by_text("56 of 60 runs with a value, 4 running").wait_for()
        axis(tab, "lr").focus()
        tab.page.keyboard.press("ArrowUp")
        for index in range(ENDED, 58):
            if index >= 56:
                seen.claim(job, index)
            points = learned(index, dict(job.runs[index]))
            seen.end(job, index, "done", seen.curve(job, index, points) if index >= 56 else points)
        tab.page.get_by_text("58 of 60 runs with a value").wait_for()
        tab.page.wait_for_timeout(300)
        assert label(tab, "History").startswith("History: 58 runs")
        assert axis(tab, "lr").get_attribute("aria-valuetext") != "all"  # what was kept stays so
        tab.check()


def test_search_without_a_value_says_so(tab_at: TabAt, tmp_path: Path) -> None:
    seen = Seen(tmp_path / "store")
    seen.submit("new", [{"lr": 1}, {"lr": 2}])
    with board(seen.url) as url:
        tab = tab_at(url)
        tab.page.goto(f"{url}#/sweep/new/search")
        tab.page.get_by_text("no run has logged accuracy yet").wait_for()
        assert tab.faults() == []
        tab.check()


@pytest.mark.parametrize(("medium", "size", "theme"), LOOKS)
def test_search_fits_is_axe_clean_and_looks_as_before(
    browser: Any, address: str, medium: str, size: tuple[int, int], theme: str
) -> None:
    tab = tab_of(browser, address, size, theme)
    tab.page.goto(f"{address}{SEARCH}")
    tab.page.get_by_text("56 of 60 runs with a value").wait_for()
    tab.page.wait_for_timeout(300)
    assert faults_of_page(tab, "search", medium, theme, CALM) == []
    tab.check()
    tab.context.close()
