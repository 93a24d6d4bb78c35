"""Curves of the dashboard in a real browser: drawn, zoomed, grouped, copied, kept in the address."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from board_server import CALM, board
from browser import Tab, TabAt
from golden_pictures import LOOKS, faults_of_page, tab_of
from hostler.analysis.board.live import FIRST
from hostler.records.series.points import Point
from search_store import BEGUN, search_store
from seen_world import HOSTILE, Seen

pytestmark = [pytest.mark.real, pytest.mark.needs("chromium")]

CURVES = "#/sweep/tpe-search/curves"
WINDOWS = [  # each size and each theme once, and the rest in the long dose
    pytest.param(1280, 800, "light", id="1280-light"),
    pytest.param(1280, 800, "dark", id="1280-dark", marks=pytest.mark.soak),
    pytest.param(390, 844, "light", id="390-light", marks=pytest.mark.soak),
    pytest.param(390, 844, "dark", id="390-dark"),
]
# Of each column of pixels, where the lines of the curve's colour are: [[height, opacity at its thickest], …].
LINES = """() => { const c = document.querySelector('.panel canvas'), counts = {};
  const copy = new OffscreenCanvas(c.width, c.height).getContext('2d', { willReadFrequently: true });
  copy.drawImage(c, 0, 0);
  const data = copy.getImageData(0, 0, c.width, c.height).data;
  for (let n = 0; n < data.length; n += 4) if (data[n + 3] > 250) {
    const rgb = data.slice(n, n + 3).join();
    counts[rgb] = (counts[rgb] ?? 0) + 1;
  }
  const ink = Object.entries(counts).sort((a, b) => b[1] - a[1])[0][0].split(',').map(Number);
  return [...Array(c.width).keys()].map(x => { const lines = []; let within = false;
    for (let y = 0; y < c.height; y++) { const n = 4 * (y * c.width + x), thick = data[n + 3];
      const is = thick > 12 && ink.every((v, i) => Math.abs(data[n + i] - v) < 30);
      if (is && !within) lines.push([y, thick]);
      else if (is) lines.at(-1)[1] = Math.max(lines.at(-1)[1], thick);
      within = is;
    }
    return lines }).filter(lines => lines.length) }"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    return search_store(tmp_path_factory.mktemp("seen") / "store")[0]


def see(tab: Tab, address: str, query: str = "", text: str = "56 curves") -> None:
    tab.page.goto("about:blank")
    tab.page.goto(f"{address}{CURVES}{query}")
    tab.page.get_by_text(text).first.wait_for()
    tab.page.wait_for_timeout(250)  # the picture at rest


def asked(tab: Tab) -> dict[str, list[str]]:
    """The view as the address names it."""
    tab.page.wait_for_timeout(250)
    return parse_qs(tab.page.url.partition("?")[2])


def box(tab: Tab) -> dict[str, float]:
    found = tab.page.locator(".panel canvas").first.bounding_box()
    assert found is not None
    return dict(found)


def drag(tab: Tab, begin: tuple[float, float], end: tuple[float, float], key: str = "") -> None:
    at = box(tab)
    if key:
        tab.page.keyboard.down(key)
    tab.page.mouse.move(at["x"] + begin[0], at["y"] + begin[1])
    tab.page.mouse.down()
    tab.page.mouse.move(at["x"] + end[0], at["y"] + end[1], steps=5)
    tab.page.mouse.up()
    if key:
        tab.page.keyboard.up(key)


def marks(tab: Tab, plot: int = 0) -> list[str]:
    """Texts of the axis below a plot."""
    return tab.page.locator(".panel").nth(plot).locator("svg.frame text[data-mark]").all_text_contents()


def picture(tab: Tab) -> bytes:
    return bytes(tab.page.locator(".panel canvas").first.screenshot())


def faint_share(tab: Tab) -> float:
    """How much of the plot's width has, apart from a line in full colour, one in a third of it or less."""
    columns = tab.page.evaluate(LINES)
    assert len(columns) > 500
    two = [
        lines for lines in columns if any(t > 200 for _, t in lines) and any(12 < t < 90 for _, t in lines)
    ]
    return len(two) / len(columns)


def test_curve_has_as_many_points_as_asked_and_keeps_its_peak(tab: Tab, address: str) -> None:
    see(tab, address, "?runs=3", "1 curve,")
    drawn = tab.page.evaluate(
        """async () => { const { Series } = await import('/static/plots/series.js');
          const x = [...Array(10000).keys()], y = x.map((n) => (n === 7777 ? 9 : n % 7 / 7));
          const series = new Series(x, y), plain = { at: (v) => v };
          const count = (most) => { let n = 0, top = 0;
            const go = (_, v) => { n++; top = Math.max(top, v); };
            series.trace({ moveTo: go, lineTo: go }, plain, plain, 0, 9999, most);
            return [n, top]; };
          return [40, 120, 250, 1000, 3000].map((most) => [most, ...count(most)]) }"""
    )
    assert all(most / 2 <= count <= most + 4 and top == 9 for most, count, top in drawn), drawn


def test_smoothing_draws_the_mean_and_the_raw_curve_faint(tab: Tab, address: str) -> None:
    see(tab, address, "?runs=3", "1 curve,")
    assert faint_share(tab) < 0.05
    before = picture(tab)
    slider = tab.page.get_by_label("Smoothing")
    slider.fill("0.9")
    tab.page.wait_for_timeout(300)
    assert picture(tab) != before
    assert asked(tab)["smooth"] == ["0.9"]
    at = box(tab)
    tab.page.mouse.move(at["x"] + 500, at["y"] + 120)
    for y in range(60, 400, 12):  # along the column, until the curve is near
        tab.page.mouse.move(at["x"] + 500, at["y"] + y)
        if tab.page.locator(".tip").first.is_visible():
            break
    assert "not smoothed" in tab.page.locator(".tip").first.inner_text()
    tab.page.mouse.move(5, 5)
    tab.page.wait_for_timeout(300)
    assert faint_share(tab) > 0.25


def test_x_axis_is_step_epoch_relative_or_wall_time(tab: Tab, address: str) -> None:
    see(tab, address, "?runs=0-3", "4 curves")
    assert "80" in marks(tab)
    found = {}
    for value in ("epoch", "relative", "time"):
        tab.page.get_by_label("X", exact=True).select_option(value)
        tab.page.wait_for_timeout(500)
        assert asked(tab)["x"] == [value]
        found[value] = marks(tab)
    assert set(found["epoch"]) <= set("123456789")
    assert any("m" in one for one in found["relative"])
    assert all(re.fullmatch(r"\d\d:\d\d(:\d\d)?", one) for one in found["time"])


def test_several_metrics_are_panels_that_zoom_together(tab: Tab, address: str) -> None:
    see(tab, address)
    tab.page.locator("summary", has_text="Metrics").click()
    tab.page.get_by_role("checkbox", name="loss").check()
    tab.page.get_by_text("112 curves").wait_for()
    tab.page.keyboard.press("Escape")
    assert tab.page.locator(".panel h2").all_inner_texts() == ["accuracy", "loss"]
    drag(tab, (150, 100), (300, 100))
    tab.page.wait_for_timeout(300)
    assert marks(tab, 0) == marks(tab, 1)
    assert asked(tab)["metric"] == ["accuracy", "loss"]


@pytest.mark.parametrize("band", ["deviation", "quantiles", "range", "runs", "none"])
def test_grouping_draws_one_mean_for_each_group(tab: Tab, address: str, band: str) -> None:
    see(tab, address, f"?by=width&by=augment&band={band}")
    groups = tab.page.locator(".legend.keys button").all_inner_texts()
    assert len(groups) == 8
    assert groups[0].startswith("width=32, augment=false")
    assert "8 curves of accuracy" in (tab.page.locator(".panel canvas").get_attribute("aria-label") or "")
    soft = tab.page.evaluate(
        """() => { const c = document.querySelector('.panel canvas'); let found = 0;
        const data = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
        for (let n = 3; n < data.length; n += 4) if (data[n] > 20 && data[n] < 120) found++;
        return found }"""
    )
    assert (soft > 8000) == (band in ("deviation", "quantiles", "range", "runs")), soft


def test_means_and_bands_are_what_arithmetic_says(tab: Tab, address: str) -> None:
    see(tab, address)
    made = tab.page.evaluate(
        """async () => { const { mean } = await import('/static/plots/groups.js');
        const { Series } = await import('/static/plots/series.js');
        const all = [[1, 2], [3, 4], [5, 12]].map((y) => new Series([0, 1], y));
        const apart = [new Series([0, 2], [0, 2]), new Series([1, 3], [5, 5])];
        const of = (one) => [[...one.y], [...one.low], [...one.high]];
        return { deviation: of(mean(all, 'deviation')), quantiles: of(mean(all, 'quantiles')),
          range: of(mean(all, 'range')), apart: [...mean(apart, 'none').y] } }"""
    )
    assert made["deviation"] == [[3, 6], [1, pytest.approx(6 - 28**0.5)], [5, pytest.approx(6 + 28**0.5)]]
    assert made["quantiles"] == [[3, 6], [2, 3], [4, 8]]
    assert made["range"] == [[3, 6], [1, 2], [5, 12]]
    assert made["apart"] == [0, 3, 3.5, 5]  # each run counts only between its own ends


def test_smoothing_is_an_average_without_pull_of_its_first_value(tab: Tab, address: str) -> None:
    see(tab, address)
    made = tab.page.evaluate(
        "async () => [...(await import('/static/plots/series.js')).smooth([1, 1, NaN, 3], 0.5)].map(String)"
    )
    assert made == ["1", "1", "NaN", str((3 * 0.5 + 0.375) / 0.875)]


def test_best_run_is_starred_thick_and_linked(tab: Tab, address: str) -> None:
    tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    see(tab, address)
    starred = [one for one in tab.page.locator(".legend.keys button").all_inner_texts() if "★" in one]
    assert len(starred) == 1
    tab.page.get_by_role("button", name="Copy accuracy as SVG").click()
    tab.page.get_by_text("Copied as SVG.").wait_for()
    drawn = tab.page.evaluate("navigator.clipboard.readText()")
    widths = [float(one) for one in re.findall(r'<path[^>]*stroke-width="([\d.]+)"', drawn)]
    assert widths.count(2.8) == 1 and sorted(set(widths)) == [1.0, 2.8]
    link = tab.page.locator(".panelhead .best a")
    assert link.inner_text() == starred[0].replace("★", "").strip()
    link.click()
    tab.page.get_by_role("heading", name=starred[0].replace("★", "").strip()).wait_for()


def test_pointing_at_a_curve_names_run_and_varying_parameters(tab: Tab, address: str) -> None:
    see(tab, address, "?runs=2", "1 curve,")
    at, tip = box(tab), tab.page.locator(".tip").first
    for y in range(40, 420, 15):
        tab.page.mouse.move(at["x"] + 640, at["y"] + y)
        if tip.is_visible():
            break
    text = tip.inner_text()
    assert "tpe-search/2" in text
    assert all(
        name in text for name in ("lr", "width", "optimizer", "dropout", "augment", "step", "accuracy")
    )
    value = float(re.search(r"accuracy\s+([\d.]+)", text)[1])  # type: ignore[index]
    assert len(str(value)) > 8  # in full
    tab.page.mouse.click(at["x"] + 640, at["y"] + y)
    tab.page.get_by_role("heading", name="tpe-search/2").wait_for()


def test_twenty_runs_have_twenty_colours(tab: Tab, address: str) -> None:
    see(tab, address, "?runs=5-24", "20 curves")
    colours = tab.page.locator(".legend.keys .swatch").evaluate_all(
        "all => all.map(one => one.style.background)"
    )
    assert len(set(colours)) == 20


def test_legend_hides_and_shows_a_run(tab: Tab, address: str) -> None:
    see(tab, address, "?runs=0-4", "5 curves")
    entry = tab.page.get_by_role("button", name="tpe-search/1", exact=True)
    before = picture(tab)
    entry.click()
    tab.page.mouse.move(5, 5)
    tab.page.wait_for_timeout(300)
    assert entry.get_attribute("aria-pressed") == "false"
    assert picture(tab) != before
    assert asked(tab)["off"] == ["1"]
    entry.focus()
    tab.page.keyboard.press("Enter")
    assert tab.page.get_by_role("button", name="tpe-search/1").get_attribute("aria-pressed") == "true"


def test_brush_zooms_and_a_double_click_shows_all_again(tab: Tab, address: str) -> None:
    see(tab, address)
    before = marks(tab)
    drag(tab, (300, 60), (600, 220))
    tab.page.wait_for_timeout(300)
    assert tab.page.locator(".chart").get_attribute("data-zoomed") == "yes"
    assert marks(tab) != before
    low, high = (float(one) for one in asked(tab)["zoom"][0].split(","))
    assert 1 < low < high < 81
    at = box(tab)
    tab.page.mouse.dblclick(at["x"] + 400, at["y"] + 400)
    tab.page.wait_for_timeout(300)
    assert marks(tab) == before
    assert "zoom" not in asked(tab)


def test_shift_drag_wheel_and_keys_move_the_picture(tab: Tab, address: str) -> None:
    see(tab, address)
    drag(tab, (500, 200), (300, 200), "Shift")
    moved = [float(one) for one in asked(tab)["zoom"][0].split(",")]
    assert moved[0] > 5 and moved[1] > 81
    tab.page.locator(".panel canvas").focus()
    tab.page.keyboard.press("+")
    grown = [float(one) for one in asked(tab)["zoom"][0].split(",")]
    assert grown[1] - grown[0] == pytest.approx((moved[1] - moved[0]) * 0.7, rel=1e-6)
    tab.page.keyboard.press("ArrowLeft")
    assert float(asked(tab)["zoom"][0].split(",")[0]) < grown[0]
    tab.page.keyboard.press("0")
    assert "zoom" not in asked(tab)


def test_plot_is_copied_as_png_and_as_svg(tab: Tab, address: str) -> None:
    tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    see(tab, address, "?by=optimizer")
    tab.page.get_by_role("button", name="Copy accuracy as SVG").click()
    tab.page.get_by_text("Copied as SVG.").wait_for()
    text = tab.page.evaluate("navigator.clipboard.readText()")
    assert text.startswith("<svg") and text.count("<path") >= 6
    assert "optimizer=&lt;" in text  # a hostile name is text there, too
    assert "<img" not in text and "<script>" not in text
    tab.page.get_by_role("button", name="Copy accuracy as PNG").click()
    tab.page.get_by_text("Copied as PNG.").wait_for()
    size = tab.page.evaluate(
        """async () => { const [one] = await navigator.clipboard.read();
        const image = await createImageBitmap(await one.getType('image/png'));
        return [image.width, image.height] }"""
    )
    assert size[0] == 1920 and size[1] > 900


def test_browser_without_clipboard_saves_the_plot_as_a_file(tab: Tab, address: str) -> None:
    see(tab, address)
    tab.page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    with tab.page.expect_download() as saved:
        tab.page.get_by_role("button", name="Copy accuracy as PNG").click()
    assert saved.value.suggested_filename == "accuracy.png"


def test_address_brings_the_same_view_to_another_browser(browser: Any, tab: Tab, address: str) -> None:
    query = (
        "?metric=loss&metric=accuracy&x=relative&smooth=0.4&by=width&band=range&log=y&zoom=20,90&y=0.3,1.1,loss"
        "&off=width%3D64&runs=0-29&filter=lr%3C0.05&state=done"
    )
    see(tab, address, query, "curves")
    tab.page.wait_for_timeout(600)
    link = tab.page.url
    first = tab.page.locator(".panels").screenshot()
    other = Tab(browser, address, color_scheme="light")
    other.page.goto(
        address.partition("#")[0] + "#" + address.partition("#")[2] + "#" + link.partition("#")[2]
    )
    other.page.get_by_text("curves").first.wait_for()
    other.page.wait_for_timeout(1500)
    assert other.page.url == link
    for words in ("width=32", "width=128"):
        other.page.get_by_role("button", name=words).first.wait_for()
    assert parse_qs(link.partition("?")[2]) == parse_qs(query[1:])
    assert len(other.page.locator(".panels").screenshot()) == pytest.approx(len(first), rel=0.05)
    other.check()
    other.context.close()


def test_nonsense_in_the_address_is_as_if_it_were_absent(tab: Tab, address: str) -> None:
    see(
        tab,
        address,
        "?metric=none&x=%3Cscript%3E&smooth=NaN&by=toString&zoom=9,1&y=a,b,c&runs=x&band=7&log=q",
    )
    assert tab.page.locator(".panel h2").all_inner_texts() == ["accuracy"]


def test_curves_of_a_running_run_grow_by_themselves(tab_at: TabAt, tmp_path: Path) -> None:
    seen = Seen(tmp_path / "store")
    job = seen.submit("live", [{"lr": 1}])
    seen.claim(job, 0)
    points = [Point(step, BEGUN + step, {"accuracy": step / 9}) for step in range(1, 9)]
    seen.curve(job, 0, points[:3])
    seen.beat(job, 0, 1, 3, accuracy=3 / 9)
    with board(seen.url) as url:
        tab = tab_at(url)
        tab.page.goto(f"{url}#/sweep/live/curves")
        tab.page.get_by_text("1 curve, 3 points").wait_for()
        from hostler.records.series.metrics import MetricWriter

        writer = MetricWriter(seen.store, job.run_id(0), 1)
        writer._sequence, writer.position = 1, 3
        writer.write(points[3:])
        seen.beat(job, 0, 2, 8, accuracy=8 / 9)
        tab.page.get_by_text("1 curve, 8 points").wait_for()
        tab.check()


def test_address_of_a_long_sweep_shows_all_its_curves(tab_at: TabAt, tmp_path: Path) -> None:
    """More runs than fill a screen: the others come while the first curves are read."""
    seen = Seen(tmp_path / "store")
    job = seen.submit("long", [{"lr": n} for n in range(FIRST + 20)])
    for index in range(FIRST + 20):
        seen.claim(job, index)
        values = [Point(step, BEGUN + step, {"accuracy": step + index}) for step in range(3)]
        seen.end(job, index, "done", seen.curve(job, index, values))
    with board(seen.url) as url:
        tab = tab_at(url)
        tab.page.goto(f"{url}#/sweep/long/curves")
        tab.page.get_by_text(f"{FIRST + 20} curves, {3 * (FIRST + 20)} points").wait_for()
        tab.check()


def test_hostile_names_of_metrics_and_parameters_are_text(tab_at: TabAt, tmp_path: Path) -> None:
    seen = Seen(tmp_path / "store")
    job = seen.submit("odd", [{HOSTILE: HOSTILE}, {HOSTILE: 2}], title=HOSTILE, metric=HOSTILE)
    for index in range(2):
        seen.claim(job, index)
        values = [Point(step, BEGUN + step, {HOSTILE: step + index}) for step in range(5)]
        seen.end(job, index, "done", seen.curve(job, index, values))
    with board(seen.url) as url:
        tab = tab_at(url)
        tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
        tab.page.goto(f"{url}#/sweep/odd/curves")
        tab.page.get_by_text("2 curves").wait_for()
        tab.page.locator("summary", has_text="Group by").click()
        tab.page.locator(".pick[open] input").first.check()
        tab.page.locator(".legend.keys", has_text="<script>").wait_for()
        at = tab.page.locator(".panel canvas").bounding_box()
        for y in range(20, 300, 15):
            tab.page.mouse.move(at["x"] + 400, at["y"] + y)
        tab.page.get_by_role("button", name="as PNG").click()
        tab.page.get_by_text("Copied as PNG.").wait_for()
        tab.page.get_by_role("link", name="Search").click()
        tab.page.get_by_text("2 of 2 runs with a value").wait_for()
        tab.page.wait_for_timeout(500)
        tab.check()


@pytest.mark.parametrize(("width", "height", "theme"), WINDOWS)
def test_curves_fit_the_window_and_axe_is_content(
    browser: Any, address: str, width: int, height: int, theme: str
) -> None:
    tab = Tab(browser, address, color_scheme=theme)
    tab.page.set_viewport_size({"width": width, "height": height})
    for query in ("", "?metric=accuracy&metric=loss&by=optimizer&smooth=0.5"):
        see(tab, address, query, "curves,")
        assert tab.page.evaluate("document.querySelector('main').scrollWidth <= innerWidth")
        assert tab.faults(every=True) == []
        tab.page.locator("summary", has_text="Metrics").click()
        assert tab.page.evaluate("document.querySelector('main').scrollWidth <= innerWidth")
        assert tab.faults(every=True) == []
    tab.check()
    tab.context.close()


@pytest.mark.parametrize(("medium", "size", "theme"), LOOKS)
def test_curves_look_as_before_on_screen_phone_and_paper(
    browser: Any, address: str, medium: str, size: tuple[int, int], theme: str
) -> None:
    tab = tab_of(browser, address, size, theme)
    wrong = []
    for name, query in (("curves", ""), ("groups", "?metric=accuracy&metric=loss&by=optimizer&smooth=0.5")):
        see(tab, address, query, "curves,")
        wrong += faults_of_page(tab, name, medium, theme, CALM)
    assert wrong == []
    tab.check()
    tab.context.close()
