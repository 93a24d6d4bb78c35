"""The look of the dashboard in a real browser: every page at two sizes and on paper, and its parts."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest

from board_server import CALM, ROW, board, names, workers_of
from browser import Tab, TabAt
from cli_world import eventually
from golden_pictures import LOOKS, NARROW, WIDE, WIDER, faults_of_page, tab_of
from hostler.records.run import control
from hostler.records.run.log import RunKey
from hostler.records.series.points import Point
from seen_world import Seen
from showroom import NOW, job_of, showroom

pytestmark = [pytest.mark.real, pytest.mark.needs("chromium")]

PAGES = {  # name → its address and words that stand there
    "sweeps": ("#/", "cifar-grid"),
    "runs": ("#/sweep/digits-search", "24 of 24 runs"),
    "grid": ("#/sweep/cifar-grid", "36 of 36 runs"),
    "compare": ("#/sweep/digits-search/compare", "Parameters that differ"),
    "errors": ("#/errors", "CUDA out of memory"),
    "workers": ("#/workers", "1.47, ideal 0.86"),
    "run": ("#/run/{survivor}", "epoch 90 of 90"),
    "failed": ("#/run/{failed}", "Traceback"),
    "nothing": ("#/sweep/empty", "0 of 0 runs"),
}
UNREADABLE = {  # filter → what is said of it
    "lrr<0.1": "there is no parameter or metric lrr; did you mean lr?",
    "lr<": "lr< needs a value after <",
    "lr<many": "lr< needs a number, not many",
    "name~[": "[ is not a regular expression",
    '"two words': 'a quote " is not closed',
}
# What pointing at each date says that is told as "5m ago".
POINTED = """() => {
  const texts = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT), found = [];
  while (texts.nextNode()) {
    const { data, parentElement } = texts.currentNode;
    if (/ ago$|just now$/.test(data.trim())) found.push(parentElement.closest('[title]')?.title ?? data);
  }
  return found }"""
# Curves have pictures of their own.
WITHOUT_CURVES = f"""() => {{
  ({CALM})();
  for (const one of document.querySelectorAll('.curves')) one.style.display = 'none';
}}"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    return showroom(tmp_path_factory.mktemp("seen") / "store")


@pytest.fixture
def tab(tab: Tab, address: str) -> Tab:
    tab.page.clock.set_fixed_time(NOW)
    tab.page.goto(address)
    return tab


def select(tab: Tab, *rows: int) -> None:
    for n in rows:
        tab.page.locator(f"{ROW} .tick").nth(n).click()


def column(tab: Tab, title: str) -> list[str]:
    """What stands in a column, by the title over it."""
    heads = tab.page.locator(".headrow .cell").all_inner_texts()
    n = next(i for i, head in enumerate(heads) if head.strip().rstrip(" ↓↑") == title)
    return [one.strip() for one in tab.page.locator(f"{ROW} [aria-colindex='{n + 1}']").all_inner_texts()]


def cells(tab: Tab, title: str) -> list[list[str]]:
    """The table under a heading of a run's page."""
    lines = tab.page.locator("section", has=tab.page.get_by_role("heading", name=title)).locator("tr")
    return [[one.strip() for one in line.locator("th, td").all_inner_texts()] for line in lines.all()]


def assert_dated(tab: Tab) -> None:
    """Every relative date of the page tells its moment to who points at it."""
    moments = tab.page.evaluate(POINTED)
    assert moments and all(re.fullmatch(r"\d+ \w+ 20\d\d, \d\d:\d\d:\d\d", one) for one in moments), moments


@pytest.mark.parametrize(("medium", "size", "theme"), LOOKS)
def test_every_page_fits_is_axe_clean_still_and_looks_as_before(
    browser: Any, address: str, seen: Seen, medium: str, size: tuple[int, int], theme: str
) -> None:
    tab = tab_of(browser, address, size, theme)
    tab.page.clock.set_fixed_time(NOW)
    tab.page.goto(address)
    tab.page.get_by_role("link", name="cifar-grid").first.wait_for()
    tab.go(*PAGES["runs"])
    select(tab, 0, 1, 5)
    runs = {"survivor": job_of(seen, "survivor").run_id(0), "failed": job_of(seen, "cifar-grid").run_id(32)}
    wrong = []
    for name, (place, words) in PAGES.items():
        tab.go(place.format(**runs), words)
        if name == "run":
            tab.page.locator(".files img").wait_for()
        if name == "workers":  # these are fetched apart from what money was for
            tab.page.locator(".meter").first.wait_for()
        wrong += faults_of_page(tab, name, medium, theme, WITHOUT_CURVES)
    assert wrong == []
    tab.check()
    tab.context.close()


@pytest.mark.parametrize(("medium", "size", "theme"), LOOKS)
def test_token_page_fits_is_axe_clean_and_looks_as_before(
    browser: Any, address: str, medium: str, size: tuple[int, int], theme: str
) -> None:
    tab = tab_of(browser, address, size, theme)
    tab.page.goto(address.partition("#")[0])
    tab.page.get_by_text("or paste the token").wait_for()
    assert faults_of_page(tab, "token", medium, theme, CALM) == []
    tab.check()
    tab.context.close()


@pytest.mark.parametrize(("size", "theme"), [(WIDE, "light"), (NARROW, "dark")])
def test_menus_completion_and_dialogs_fit_and_axe_is_content(
    browser: Any, address: str, size: tuple[int, int], theme: str
) -> None:
    tab = tab_of(browser, address, size, theme)
    tab.page.goto(f"{address}{PAGES['runs'][0]}")
    tab.page.get_by_text(PAGES["runs"][1]).first.wait_for()
    box = tab.page.get_by_label("Filter runs")
    wrong = []

    def look(at: str) -> None:
        shown = tab.page.locator(at)
        shown.wait_for()
        place = shown.bounding_box()
        if place["x"] < 0 or place["x"] + place["width"] > size[0]:
            wrong.append(f"{at} is cut by the window: {place}")
        wrong.extend(f"{at}: {fault}" for fault in tab.faults(every=True))

    tab.page.get_by_text("Columns", exact=True).click()
    look(".menu .panel")
    tab.page.keyboard.press("Escape")
    box.press_sequentially("wid")
    look(".offers")
    box.fill("state=paused")
    tab.page.get_by_text("7 of 24 runs").wait_for()
    box.blur()
    select(tab, 0, 1)
    for deed in ("Tag", "Retry", "Stop"):
        tab.page.get_by_role("toolbar").get_by_role("button", name=deed).click()
        look("dialog")
        tab.page.keyboard.press("Escape")
        tab.page.locator("dialog").wait_for(state="detached")
    assert wrong == []
    tab.check()
    tab.context.close()


def test_numbers_durations_and_dates_read_by_one_rule(tab: Tab) -> None:
    said = tab.page.evaluate(
        """async () => { const { number, duration, ago } = await import('/static/words.js');
        return [[0.96829, 0.00163, 0.009999999, 0.01, 128, 1234.56, 1234567.8, 3e-5, 0, -0.00163].map(number),
                [0.34, 4.25, 45, 125, 3720, 274000].map(duration),
                [2, 12, 300, 7200, 172800].map((s) => ago(1e9 - s, 1e9))]; }"""
    )
    assert said == [
        ["0.9683", "1.63e-3", "0.01", "0.01", "128", "1235", "1.235e6", "3e-5", "0", "-1.63e-3"],
        ["340ms", "4.2s", "45s", "2m 05s", "1h 02m", "3d 04h"],
        ["just now", "12s ago", "5m ago", "2h ago", "2d ago"],
    ]


def test_decimal_points_are_aligned_and_hovering_shows_full_values(tab: Tab) -> None:
    tab.go(*PAGES["runs"])
    cells = tab.page.locator(f"{ROW} .cell.num", has_text=".")
    places = cells.evaluate_all(
        """cells => cells.map(cell => {
          const text = cell.firstChild, at = text.data.indexOf('.'), point = document.createRange();
          point.setStart(text, at);
          point.setEnd(text, at + 1);
          return [cell.getAttribute('aria-colindex'), point.getBoundingClientRect().x];
        })"""
    )
    assert len(places) > 30
    for column in {one for one, _ in places}:
        found = [x for one, x in places if one == column]
        assert max(found) - min(found) < 0.5, column
    first = cells.first
    first.hover()
    assert len(first.get_attribute("title") or "") > len(first.inner_text()) + 4


def test_sweeps_that_run_come_first_then_the_newest(tab: Tab) -> None:
    tab.page.get_by_role("link", name="survivor").first.wait_for()
    listed = tab.page.locator(".sweeps .what a").all_inner_texts()
    assert listed == ["cifar-grid", "digits-search", "empty", "odd-values", "survivor"]
    line = tab.page.locator("tr", has_text="digits-search")
    assert "0.9764" in line.inner_text() and "8.12" in line.inner_text()
    assert "from 0.9" in (line.locator(".spark").get_attribute("aria-label") or "")
    assert line.locator("time").inner_text() == "1h ago"
    assert_dated(tab)


def test_sweeps_are_cards_on_a_phone(browser: Any, address: str) -> None:
    tab = Tab(browser, address)
    tab.page.set_viewport_size({"width": 390, "height": 844})
    tab.page.goto(address)
    tab.page.get_by_role("link", name="cifar-grid").first.wait_for()
    assert not tab.page.locator(".sweeps thead").is_visible()
    widths = tab.page.locator(".sweeps .what, .sweeps .how").evaluate_all(
        "all => all.map(one => one.offsetWidth)"
    )
    assert min(widths) > 300
    tab.check()
    tab.context.close()


def test_long_names_leave_room_for_other_columns_on_a_phone(browser: Any, tmp_path: Path) -> None:
    seen = Seen(tmp_path / "store")
    seen.submit("a-sweep-with-quite-a-long-name", [{"lr": n} for n in range(12)])
    with board(seen.url) as url:
        tab = tab_of(browser, url, NARROW, "light")
        tab.page.goto(f"{url}#/sweep/a-sweep-with-quite-a-long-name")
        tab.page.get_by_text("12 of 12 runs").wait_for()
        edge = tab.page.locator(".headrow .pin.edge").bounding_box()
        assert edge["x"] + edge["width"] < 0.65 * NARROW[0]
        assert names(tab)[10] == "a-sweep-with-quite-a-long-name/10"
        inside = """row => { const cell = row.children[1].getBoundingClientRect(), range = new Range();
          range.selectNodeContents(row.querySelector('a').lastChild);
          return range.getBoundingClientRect().right <= cell.right }"""
        assert tab.page.locator(ROW).nth(10).evaluate(inside), "the number is in sight"
        tab.check()
        tab.context.close()


def test_what_runs_are_ranked_by_is_in_sight_on_a_phone(browser: Any, address: str) -> None:
    tab = tab_of(browser, address, NARROW, "light")
    tab.page.goto(address)
    for page, title in (("runs", "Ranked by"), ("grid", "accuracy")):
        tab.go(*PAGES[page])
        head = tab.page.locator("[aria-sort=descending]")
        assert head.inner_text() == f"{title} ↓"
        box = head.bounding_box()
        assert box["x"] + box["width"] <= NARROW[0]
    tab.check()
    tab.context.close()


def test_search_with_long_names_fits_a_phone(browser: Any, tmp_path: Path) -> None:
    seen = Seen(tmp_path / "store")
    metric = "validation/top-1-accuracy-on-the-held-out-split"
    keys = [f"model.encoder.layers.{n}.attention.dropout_probability" for n in range(14)]
    job = seen.submit("long", [dict.fromkeys(keys, n + 0.5) for n in range(4)], metric=metric)
    for n in range(4):
        seen.claim(job, n)
        seen.end(job, n, "done", seen.curve(job, n, [Point(1, NOW, {metric: n / 10})]))
    with board(seen.url) as url:
        tab = tab_of(browser, url, NARROW, "light")
        tab.page.goto(f"{url}#/sweep/long/search")
        tab.page.get_by_text("4 of 4 runs with a value").wait_for()
        assert tab.page.evaluate(WIDER) == 0 and tab.faults(every=True) == []
        names = tab.page.locator(".importance .what").all_inner_texts()
        assert all(name.startswith("model") and name.endswith("bility") for name in names)
        tab.check()
        tab.context.close()


def test_empty_tables_and_curves_say_why(tab: Tab) -> None:
    tab.go(*PAGES["nothing"])
    tab.page.get_by_text("No runs yet.").wait_for()
    tab.go("#/sweep/empty/curves", "No curves yet: no run here has logged a metric.")
    tab.go(*PAGES["grid"])
    tab.page.get_by_label("Filter runs").fill("lr>9")
    tab.page.get_by_text("No run is let through by the filter and the states above.").wait_for()


def test_runs_are_sorted_by_what_they_are_ranked_by(tab: Tab) -> None:
    tab.go(*PAGES["runs"])
    values = [float(one) for one in column(tab, "Ranked by")]
    assert values == sorted(values, reverse=True)
    assert tab.page.locator("[aria-sort=descending]").inner_text() == "Ranked by ↓"


def test_checkbox_stands_on_the_line_of_its_run(tab: Tab) -> None:
    tab.go(*PAGES["runs"])
    middles = tab.page.locator(ROW).evaluate_all(
        """rows => rows.map(row => ['.box', 'a', '.state'].map(name => {
             const box = row.querySelector(name).getBoundingClientRect(); return box.y + box.height / 2 }))"""
    )
    assert len(middles) > 10
    assert max(max(line) - min(line) for line in middles) <= 1.5


def test_paused_by_pruner_is_grey_and_nan_is_marked(tab: Tab) -> None:
    tab.go(*PAGES["runs"])
    tab.page.get_by_label("Filter runs").fill("state=paused")
    paused = tab.page.locator(f"{ROW} .s-parked").first
    assert paused.inner_text() == "paused · rung 9"
    colour = "one => getComputedStyle(one).color"
    chip = tab.page.get_by_role("button", name="paused at a rung 7")
    assert chip.get_attribute("title") == "rung 3: 5 runs, rung 9: 2 runs"
    assert {one.evaluate(colour) for one in (paused, chip)} == {"rgb(102, 112, 119)"}
    progress = tab.page.locator(".head .progress")
    assert progress.locator(".s-parked").count() == 1 and progress.locator(".s-paused").count() == 0
    assert "7 paused at a rung" in (progress.get_attribute("aria-label") or "")
    tab.page.get_by_label("Filter runs").fill("train/loss=NaN")
    tab.page.get_by_text("1 of 24 runs").wait_for()
    assert tab.page.locator(f"{ROW} .odd").inner_text() == "NaN"


def test_unreadable_filter_says_so_and_keeps_the_table(tab: Tab) -> None:
    tab.go(*PAGES["runs"])
    box = tab.page.get_by_label("Filter runs")
    for typed, said in UNREADABLE.items():
        box.fill("width=64")
        tab.page.get_by_text("11 of 24 runs").wait_for()
        before = names(tab)
        box.fill(typed)
        tab.page.get_by_text(f"Not a filter: {said}.").wait_for()
        assert names(tab) == before
        box.fill("")
        tab.page.get_by_text("24 of 24 runs").wait_for()
        assert tab.page.locator(".problem").inner_text() == ""


def test_filter_completes_names_and_values_by_keys(tab: Tab) -> None:
    tab.go(*PAGES["runs"])
    box = tab.page.get_by_label("Filter runs")
    box.press_sequentially("wid")
    tab.page.get_by_role("option", name="width").wait_for()
    tab.page.keyboard.press("Tab")
    assert box.input_value() == "width"
    box.press_sequentially("=")
    tab.page.get_by_role("option", name="256").wait_for()
    while (
        box.get_attribute("aria-activedescendant") is None
        or "256" not in tab.page.locator("[role=option][aria-selected=true]").inner_text()
    ):
        tab.page.keyboard.press("ArrowDown")
    tab.page.keyboard.press("Enter")
    assert box.input_value() == "width=256 "
    assert set(column(tab, "width")) == {"256"}


def test_columns_are_chosen_pinned_and_resized_and_stay_so(tab: Tab) -> None:
    tab.go(*PAGES["runs"])
    heads = tab.page.locator(".headrow .cell button")
    assert "epochs" not in heads.all_inner_texts()
    tab.page.get_by_text("Columns", exact=True).click()
    tab.page.get_by_label("epochs parameter").check()
    tab.page.get_by_label("Pin lr").check()
    tab.page.get_by_role("checkbox", name="Host", exact=True).uncheck()
    tab.page.keyboard.press("Escape")
    handle = tab.page.get_by_role("columnheader", name="train/loss").locator(".handle")
    box = handle.bounding_box()
    tab.page.mouse.move(box["x"] + 4, box["y"] + 4)
    tab.page.mouse.down()
    tab.page.mouse.move(box["x"] + 64, box["y"] + 4, steps=3)
    tab.page.mouse.up()
    tab.page.get_by_role("columnheader", name="width").get_by_role("button").focus()
    tab.page.keyboard.press("Shift+ArrowRight")
    width = "cell => cell.getBoundingClientRect().width"
    before = [
        tab.page.get_by_role("columnheader", name=name).evaluate(width) for name in ("train/loss", "width")
    ]
    tab.page.reload()
    tab.page.get_by_text("24 of 24 runs").wait_for()
    titles = [one.rstrip(" ↓") for one in heads.all_inner_texts()]
    assert titles[:2] == ["Run", "lr"] and "epochs" in titles and "Host" not in titles
    after = [
        tab.page.get_by_role("columnheader", name=name).evaluate(width) for name in ("train/loss", "width")
    ]
    assert before == after
    tab.page.get_by_role("grid").evaluate("grid => { grid.scrollLeft = 400 }")
    left = "cell => cell.getBoundingClientRect().x"
    assert tab.page.get_by_role("columnheader", name="lr").evaluate(left) < 400  # still in sight


def test_selection_bar_compares_tags_stops_and_clears(tab_at: TabAt, tmp_path: Path) -> None:
    seen = Seen(tmp_path / "store")
    job = seen.submit("one", [{"lr": n} for n in range(4)])
    with board(seen.url) as url:
        tab = tab_at(url)
        tab.page.goto(f"{url}#/sweep/one")
        tab.page.locator(ROW).first.wait_for()
        bar = tab.page.get_by_role("toolbar")
        assert not bar.is_visible()
        select(tab, 0, 1, 2)
        assert bar.inner_text().split() == ["3", "selected", "Compare", "Tag", "Stop", "×"]
        bar.get_by_role("button", name="Tag").click()
        tab.page.get_by_label("Tags").fill("good old")
        tab.page.keyboard.press("Enter")
        tab.page.get_by_text("tagged good old").wait_for()
        tab.page.get_by_role("columnheader", name="Tags").wait_for()
        bar.get_by_role("button", name="Tag").click()
        tab.page.get_by_label("Tags").fill("-old")
        tab.page.get_by_role("dialog").get_by_role("button", name="Tag").click()
        tab.page.locator(ROW).get_by_text("good", exact=True).first.wait_for()
        bar.get_by_role("button", name="Stop").click()
        tab.page.get_by_role("dialog").get_by_role("button", name="Stop").click()
        tab.page.get_by_role("button", name="stopped 3").wait_for()
        assert control.state_of(seen.store, RunKey("one", job.run_id(0))).state == "stopped"
        bar.get_by_role("button", name="Clear selection").click()
        assert not bar.is_visible()
        tab.check()


def test_compare_marks_the_best_cell_and_shows_code_and_packages(tab: Tab) -> None:
    tab.go(*PAGES["runs"])
    select(tab, 0, 5)
    tab.go(*PAGES["compare"])
    heads = tab.page.locator(".compare th[scope=row]").all_inner_texts()
    assert heads[0] == "lr" and "epochs" not in heads
    row = tab.page.locator(".compare tr", has_text="val/accuracy (best)")
    assert row.locator("td.top").inner_text().startswith("0.9764")
    assert row.locator("td").nth(0).get_attribute("class") == "value top"  # the best run is the first
    tab.page.get_by_text("1 equal parameter").click()
    assert tab.page.locator(".facts").inner_text().split() == ["epochs", "27"]
    assert tab.page.locator("tr", has_text="numpy").inner_text().split() == ["numpy", "1.26.4", "2.1.0"]
    tab.page.locator(".diff .added", has_text="momentum = 0.9").wait_for()
    assert tab.page.locator(".diff .removed").inner_text().strip() == "-lr = 0.1"
    tab.page.get_by_text("2 curves").wait_for()


def test_error_group_counts_runs_links_them_and_tries_them_again(tab_at: TabAt, tmp_path: Path) -> None:
    seen = Seen(tmp_path / "store")
    job = seen.submit("one", [{"lr": n} for n in range(3)])
    for index in (0, 1):
        seen.claim(job, index)
        failed = {"kind": "exception", "message": "too large", "traceback": 'File "train.py", line 7'}
        seen.entry(job, index, 2, {"kind": "release", "failure": failed, "signature": "a", "at": NOW - 7200})
        seen.entry(job, index, 3, {"kind": "claim", "session": "w-1", "host": "desk", "at": NOW - 7000})
        end = {"kind": "end", "state": "failed", "attempt": 3, "attempts": 2, "failure": failed}
        seen.entry(job, index, 4, {**end, "signature": "a", "at": NOW - 300 * (index + 1)})
    with board(seen.url, HOSTLER_CACHE=str(tmp_path / "cache")) as url:
        tab = tab_at(url)
        tab.page.clock.set_fixed_time(NOW)
        tab.page.goto(f"{url}#/errors")
        group = tab.page.locator("details.error")
        group.get_by_text("2 runs · 5m ago").wait_for()
        assert "first 10m ago, last 5m ago" in group.inner_text()
        assert_dated(tab)
        assert 'File "train.py", line 7' in group.locator("pre").inner_text()
        assert group.locator(".names a").all_inner_texts() == ["one/0", "one/1"]
        group.get_by_role("button", name="Retry 2 runs").click()
        tab.page.get_by_role("dialog").get_by_role("button", name="Try again").click()
        tab.page.get_by_text("queued again").wait_for()
    for index in (0, 1):
        assert control.entries_of(seen.store, RunKey("one", job.run_id(index)))[4]["kind"] == "reopen"
    eventually(lambda: not workers_of(str(tmp_path / "cache")))


def test_worker_shows_its_place_its_age_and_what_it_uses(tab: Tab) -> None:
    tab.go(*PAGES["workers"])
    card = tab.page.locator(".worker", has_text="gpu-1")
    assert card.locator("h2").inner_text() == "live/6"
    assert card.locator("h2").get_attribute("title") == "gpu-1-s"
    meters = card.locator(".meter").evaluate_all("all => all.map(one => one.getAttribute('aria-label'))")
    assert meters == [
        "slots: 1 of 2",
        "CPU: 5.5 of 16",
        "memory: 9.1 GB of 64 GB",
        "GPU: 87 %",
        "GPU memory: 19 GB of 24 GB",
    ]
    assert "seen " in card.inner_text() and " ago" in card.inner_text()
    assert_dated(tab)
    assert "digits-search/22 step 14" in card.inner_text()
    assert "cost of these runs 0.40" in card.inner_text()
    assert "waits for a run" in tab.page.locator(".worker", has_text="gpu-0").inner_text()


def test_run_page_has_files_attempts_use_and_its_command(tab: Tab, seen: Seen) -> None:
    tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    tab.go(f"#/run/{job_of(seen, 'survivor').run_id(0)}", "epoch 90 of 90")
    tiles = tab.page.locator(".tile").all_inner_texts()
    assert [one.split("\n")[1] for one in tiles][:3] == ["0.9394", "90", "31m 40s"]
    assert_dated(tab)
    assert cells(tab, "Parameters") == [["lr", "3e-3"], ["epochs", "90"], ["model", "resnet18"]]
    assert cells(tab, "Metrics") == [
        ["", "last", "min", "max", "step"],
        ["accuracy", "0.9394", "0.04633", "0.9394", "90"],
        ["loss", "0.02555", "0.02555", "2.188", "90"],
    ]
    most = tab.page.locator("tr", has_text="loss").locator(".figure").nth(2)
    assert float(most.get_attribute("title") or 0) == 2.3 * math.exp(-1 / 20), "in full on hover"
    picture = tab.page.locator(".files img")
    picture.wait_for()
    assert picture.evaluate("one => one.naturalWidth") == 160
    tab.page.get_by_text("notes.txt").click()
    tab.page.get_by_text("All of it went well.").wait_for()
    tab.page.get_by_text("weights.bin").click()
    tab.page.get_by_text("Neither a text nor a picture").wait_for()
    tries = tab.page.locator(".timeline li").all_inner_texts()
    assert [one.split("\n")[-1].split(" · ")[0] for one in tries] == ["lost", "preempted", "done"]
    bars = tab.page.locator(".timeline .span").evaluate_all(
        "all => all.map(one => one.getBoundingClientRect().x)"
    )
    assert bars == sorted(bars) and len(set(bars)) == 3
    assert tab.page.locator(".spark").count() >= 3
    tab.page.get_by_role("button", name="Copy command").click()
    assert tab.page.evaluate("navigator.clipboard.readText()") == "python train.py"
