"""The report, opened from disk in a real browser: wide, narrow and on paper."""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import servers
from board_server import CALM
from browser import Tab
from cli_world import SOURCE, eventually
from golden_pictures import LOOKS, WIDER, faults_of_page, picture, tab_of
from hostler.records import layout
from hostler.records.sweep import sweeps
from hostler.spec.units import show_elapsed, show_number
from seen_world import Seen, learning

pytestmark = [pytest.mark.real, pytest.mark.needs("chromium")]

OUTSIDE = """width => [...document.querySelectorAll(".plot text")].filter((one) => {
    const box = one.getBoundingClientRect();
    return one.textContent.trim() && box.width && (box.left < 0 || box.right > width);
}).map((one) => one.textContent)"""  # labels that the window cuts

# Each drawing says where it begins and ends, so that the sheets of paper say it, too.
MARKS = """body { counter-reset: plot } .plot { position: relative; counter-increment: plot }
.plot::before, .plot::after { position: absolute; font: 6px sans-serif; line-height: 6px; color: #000 }
.plot::before { content: "begin-" counter(plot); left: 0; top: 0 }
.plot::after { content: "end-" counter(plot); right: 0; bottom: 0 }"""
WIDTHS = "[...document.querySelectorAll('.plot svg.main-svg')].map((one) => one.clientWidth)"
HEIGHTS = "[...document.querySelectorAll('.plot')].map((one) => one.getBoundingClientRect().height)"
# Parts of a drawing outside its card, and names of a legend that its own end hides.
CUT = """() => [...document.querySelectorAll(".plot")].flatMap((card) => {
    const box = card.getBoundingClientRect();
    const legend = card.querySelector(".legend .bg")?.getBoundingClientRect();
    const out = (one, { left, right, top, bottom } = one.getBoundingClientRect()) => right > left && (
        left < box.left || right > box.right || top < box.top || bottom > box.bottom
        || (legend && one.matches(".legendtext") && bottom > legend.bottom + 1));
    return [...card.querySelectorAll("svg.main-svg, svg.main-svg text, .legend .bg")]
        .filter((one) => out(one))
        .map((one) => `${card.querySelector("h3").textContent}: ${one.textContent.slice(0, 60)}`);
})"""
LINES = """() => Object.fromEntries([...document.querySelectorAll("#runs th, #runs td")].map((cell) => {
    const text = document.createRange();
    text.selectNodeContents(cell.querySelector("button") ?? cell);
    return [cell.textContent.trim(), new Set([...text.getClientRects()].map((line) => line.top)).size];
}))"""  # that each text of the table takes


def written(seen: Seen, sweep: str, name: str) -> str:
    """A report's address on disk."""
    path = seen.folder.parent / f"{name}.html"
    command = [sys.executable, "-m", "hostler", "report", sweep, "--store", seen.url, "-o", str(path)]
    env = {**os.environ, "PYTHONPATH": str(SOURCE)}
    subprocess.run(command, check=True, env=env, stdout=subprocess.DEVNULL)
    return path.as_uri()


@cache
def made(seen: Seen, sweep: str) -> str:
    """The report of a sweep as it is, written once."""
    return written(seen, sweep, sweep)


@contextmanager
def opened(browser: Any, address: str, **options: Any) -> Iterator[Tab]:
    """A report in a window of its own."""
    tab = Tab(browser, "file:", **options)
    try:
        tab.page.goto(address, timeout=300_000)
        if tab.page.locator("#plot-0").count():
            tab.page.locator("#plot-0").scroll_into_view_if_needed()
            tab.page.locator("#plot-0 svg.main-svg").first.wait_for()
        yield tab
    finally:
        tab.context.close()


@pytest.fixture(scope="module")
def light(browser: Any, seen: Seen) -> Iterator[Tab]:
    """For tests that look, or whose own traces do not bother the next: its plots take seconds."""
    with opened(browser, made(seen, "cifar-grid"), color_scheme="light") as tab:
        yield tab


@pytest.fixture(scope="module")
def dark(browser: Any, seen: Seen) -> Iterator[Tab]:
    with opened(browser, made(seen, "cifar-grid"), color_scheme="dark") as tab:
        yield tab


def test_page_opens_from_disk_with_plots_table_errors_and_best(browser: Any, seen: Seen) -> None:
    best = sweeps.load(seen.store, "cifar-grid").run_id(21)
    seen.store.put(layout.output_commit(best, 1), b"{}")
    address = written(seen, "cifar-grid", "pulled")
    seen.store.delete(layout.output_commit(best, 1))  # the pictures of other tests do not show it
    with opened(browser, address, color_scheme="light", offline=True) as tab:
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
        tab.check()
        assert tab.faults() == []


def test_plots_zoom_and_the_table_filters_and_sorts(light: Tab) -> None:
    tab = light
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
    assert tab.page.locator("#runs tbody tr").first.inner_text().startswith("cifar-grid/21")
    tab.page.get_by_label("Filter runs").fill("")
    tab.page.get_by_text("36 of 36 runs").wait_for()
    tab.check()


@pytest.mark.parametrize("sweep", ["odd-values", "empty"])
def test_hostile_odd_and_absent_values_are_shown_and_never_run(browser: Any, seen: Seen, sweep: str) -> None:
    with opened(browser, made(seen, sweep), color_scheme="dark") as tab:
        tab.page.get_by_text("of 4 runs" if sweep == "odd-values" else "0 of 0 runs").first.wait_for()
        if sweep == "odd-values":
            assert "<script>window.pwned=1</script>" in tab.page.inner_text("main")
        tab.check()
        assert tab.faults() == []


@pytest.mark.parametrize(("medium", "size", "theme"), LOOKS)
def test_page_fits_is_axe_clean_and_looks_as_before(
    browser: Any, seen: Seen, medium: str, size: tuple[int, int], theme: str
) -> None:
    tab = tab_of(browser, "file:", size, theme)
    tab.page.goto(made(seen, "cifar-grid"), timeout=300_000)
    drawn = tab.page.locator(".plot svg.main-svg").count()
    assert drawn >= tab.page.locator(".plot").count() >= 9, "no card is blank before anybody scrolls"
    if medium != "paper":
        assert tab.page.evaluate(OUTSIDE, size[0]) == []
    assert faults_of_page(tab, "report", medium, theme, CALM) == []
    tab.check()
    tab.context.close()


def test_every_control_of_the_report_is_reached_by_tab(dark: Tab) -> None:
    names = dark.page.locator("#plot-0 .modebar-btn").evaluate_all("all => all.map(one => one.ariaLabel)")
    assert {"Pan", "Zoom in", "Reset axes"} <= set(names) and not any("hare" in name for name in names)
    assert dark.unreached() == ([], set())
    dark.check()


def test_taking_its_picture_leaves_the_page_as_wide_as_it_was(light: Tab) -> None:
    light.page.evaluate("window.widths = []; addEventListener('resize', () => widths.push(innerWidth))")
    picture(light)  # a page that hears of another width draws its plots anew while it is looked at
    assert set(light.page.evaluate("window.widths")) == {1280}


def test_conclusion_is_first_and_the_best_run_is_starred(light: Tab) -> None:
    tab = light
    assert tab.page.locator("header .lead").inner_text() == (
        "lr=0.01, model=resnet50 reaches accuracy 0.9681 after 40 epochs; lr explains 89 %; "
        "2 of 36 failed and 2 diverged."
    )
    first = tab.page.locator("#runs tbody tr").first
    assert first.inner_text().startswith("cifar-grid/21 ★"), "sorted by the metric, the best first"
    assert tab.page.locator("#runs thead th[aria-sort]").inner_text() == "accuracy"
    assert "ago" in tab.page.locator("time").inner_text() or "now" in tab.page.locator("time").inner_text()
    assert tab.page.locator("time").get_attribute("title").startswith("20")


def test_numbers_of_the_page_follow_the_rule_of_the_terminal(light: Tab) -> None:
    tab = light
    values = [
        0.96834,
        0.00163,
        3e-4,
        0.0099999999,
        0.01,
        -0.00123456,
        0,
        128,
        12345.678,
        1234567.8,
        1e10,
        math.pi,
    ]
    assert tab.page.evaluate("values => values.map(hostlerNumbers.number)", values) == list(
        map(show_number, values)
    )
    times = [0.25, 3.25, 12, 60, 125, 5400, 86405]
    assert tab.page.evaluate("values => values.map(hostlerNumbers.duration)", times) == list(
        map(show_elapsed, times)
    )
    cell = tab.page.locator("#runs tbody tr").first.locator("td.num").nth(2)
    assert (cell.inner_text(), len(cell.get_attribute("title")) > 8) == ("0.9681", True)
    points = tab.page.evaluate(
        """[...document.querySelectorAll("#runs tbody tr")].map((row) => row.querySelectorAll("td .part"))
            .filter((parts) => parts.length > 1).map((parts) => 
                Math.round(parts[1].getBoundingClientRect().left))"""
    )
    assert len(points) > 20 and len(set(points)) == 1, "decimal points stand under each other"


def sheets_of(tab: Tab, folder: Path) -> list[dict[str, float]]:
    """The page as it is printed: of each sheet its words, and how many CSS pixels from the top they stand."""
    tab.page.pdf(path=str(folder / "r.pdf"), format="A4")
    command = ["pdftotext", "-bbox", "r.pdf", "-"]
    found = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout
    word = re.compile(r'<word xMin="[-\d.]+" yMin="([-\d.]+)" xMax="[-\d.]+" yMax="[-\d.]+">([^<]*)</word>')
    sheets = found.split("<page ")[1:]
    return [{text: float(top) * 96 / 72 for top, text in word.findall(sheet)} for sheet in sheets]


def test_no_drawing_is_cut_or_goes_on_on_another_sheet(browser: Any, seen: Seen, tmp_path: Path) -> None:
    if shutil.which("pdftotext") is None:
        servers.missing("pdftotext is not installed")
    with opened(browser, made(seen, "cifar-grid"), color_scheme="light") as tab:
        tab.page.add_style_tag(content=MARKS)
        sheets = sheets_of(tab, tmp_path)
        tab.page.set_viewport_size({"width": 688, "height": 1000})  # of A4, without its margins
        tab.page.emulate_media(media="print")
        eventually(lambda: set(tab.page.evaluate(WIDTHS)) == {650})
        assert tab.page.evaluate(CUT) == []
        heights = tab.page.evaluate(HEIGHTS)
        assert len(heights) >= 9
        for n, height in enumerate(heights, 1):
            [sheet] = [one for one in sheets if f"begin-{n}" in one]
            assert f"end-{n}" in sheet, f"drawing {n} ends on the sheet on which it begins"
            assert sheet[f"end-{n}"] - sheet[f"begin-{n}"] == pytest.approx(height - 8, abs=12)
        tab.check()


def test_paper_has_no_toolbars_and_no_plot_on_two_pages(dark: Tab, tmp_path: Path) -> None:
    if shutil.which("pdftotext") is None:
        servers.missing("pdftotext is not installed")
    tab = dark
    tab.page.pdf(path=str(tmp_path / "r.pdf"), format="A4")
    text = subprocess.run(
        ["pdftotext", "-layout", "r.pdf", "-"], cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout
    pages = text.split("\f")
    for title, legend in (
        ("The best accuracy over the search", "best of cifar-grid"),
        ("Best run by accuracy", "cifar-grid/21: 0.9681"),
        ("accuracy over step", "lr=0.03"),
        ("Runs by sweep and state", "diverged"),
    ):
        [page] = [page for page in pages if title in page]
        assert legend in page, f"the legend of {title} is on its page"
    assert all(f"cifar-grid/{n} " in text for n in range(36)), "the table is whole"
    assert "Filter" not in text
    tab.page.emulate_media(media="print")
    assert tab.page.locator(".modebar").first.is_hidden() and tab.page.locator(".bar").is_hidden()
    tab.page.emulate_media(media="screen")
    tab.check()


def test_long_names_leave_short_words_whole_on_paper(browser: Any, seen: Seen) -> None:
    job = seen.submit(
        "conformer-large-960h-augmentation-ablation",
        [
            {
                f"{part}.augmentation.policy": f"randaugment-magnitude-{n}"
                for part in ("data", "text", "noise", "mix")
            }
            for n in range(4)
        ],
    )
    for index in range(4):
        seen.claim(job, index, host=f"node-{index}")
        seen.end(job, index, "done", seen.curve(job, index, learning({}, 3)), host=f"node-{index}")
    with opened(browser, written(seen, job.name, "long"), color_scheme="light") as tab:
        tab.page.set_viewport_size({"width": 718, "height": 1000})
        tab.page.emulate_media(media="print")
        lines = tab.page.evaluate(LINES)
        assert lines["done"] == lines["node-3"] == lines["state"] == lines["time"] == 1
        assert lines[f"{job.name}/3"] <= 3
        assert tab.page.evaluate(WIDER) == 0
        tab.check()


def test_every_page_of_a_printed_table_has_its_heads(browser: Any, seen: Seen, tmp_path: Path) -> None:
    if shutil.which("pdftotext") is None:
        servers.missing("pdftotext is not installed")
    job = seen.submit("long-table", [{"dropout": n / 100} for n in range(90)])
    for index in range(90):
        seen.claim(job, index)
        seen.end(job, index)
    with opened(browser, written(seen, job.name, "heads"), color_scheme="light") as tab:
        tab.page.pdf(path=str(tmp_path / "r.pdf"), format="A4")
        tab.check()
    command = ["pdftotext", "-layout", str(tmp_path / "r.pdf"), "-"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    tables = [page for page in text.split("\f") if page.count("long-table/") > 5]
    assert len(tables) > 1 and all("dropout" in page and "state" in page for page in tables)


def test_ink_on_paper_stays_dark_whatever_the_screen_had(dark: Tab) -> None:
    tab = dark
    ink = "getComputedStyle(document.querySelector('#plot-0 .xtick text')).fill"
    eventually(lambda: tab.page.evaluate(ink) == "rgb(223, 229, 229)")  # an earlier test had it on paper
    tab.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    tab.page.set_viewport_size({"width": 600, "height": 900})  # as a sheet of paper is narrower than a window
    tab.page.wait_for_timeout(300)
    assert tab.page.evaluate(ink) == "rgb(28, 35, 38)"
    assert tab.page.evaluate("document.getElementById('plot-0').layout.width") == 650
    tab.page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert tab.page.evaluate(ink) == "rgb(223, 229, 229)"
    tab.page.emulate_media(media="print")  # is paper, too
    eventually(lambda: tab.page.evaluate(ink) == "rgb(28, 35, 38)")
    tab.page.emulate_media(media="screen")
    eventually(lambda: tab.page.evaluate(ink) == "rgb(223, 229, 229)")
    tab.check()


def test_paper_plots_keep_their_width_before_and_after_a_picture(dark: Tab) -> None:
    dark.page.emulate_media(media="print")
    eventually(lambda: set(dark.page.evaluate(WIDTHS)) == {650})
    before = dark.page.evaluate(WIDTHS)
    dark.page.screenshot(full_page=True)  # a window of another size for as long, of which the page hears
    assert set(before) == set(dark.page.evaluate(WIDTHS)) == {650}
    dark.page.emulate_media(media="screen")
