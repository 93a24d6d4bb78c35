"""A table larger than the screen: what is in sight is there, and numbers are compared by column."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from board_server import ROW, board, names
from browser import Tab, TabAt
from seen_world import Seen

pytestmark = [pytest.mark.real, pytest.mark.needs("chromium")]

RUNS, KEYS = 40, 12
# Numbers that came by column, then changed alone, then came alone: what passes a filter each time.
PASSING = """async () => {
  const { rowsOf, Columns } = await import('/static/rows.js'), { parse } = await import('/static/filter.js');
  const each = (...values) => ({ each: values }), all = (value) => ({ all: value });
  const part = {
    count: 4, fields: { id: each('a', 'b', 'c', 'd'), state: all('done'), step: each(1, 2, 3, 4) },
    params: { lr: each(0.1, null, '3', 'high') },
    metrics: { lr: all(9), loss: each(1, 'NaN', 'Infinity', null) },
  };
  const { rows } = rowsOf(part), columns = new Columns();
  columns.add(part, rows);
  const words = ['lr>1', 'metric.lr>1', 'param.lr<=3', 'loss>=1', 'step<3', '-step<3', 'width>0'];
  const tests = words.map((one) => parse(one));
  const passing = () => tests.map((test) => rows.filter(test).map((row) => row.id).join(''));
  const found = [passing()];
  Object.assign(rows[0], { params: { lr: 5 }, step: 7 });
  columns.change(rows[0]);
  found.push(passing());
  rows.push({ id: 'e', params: { width: 8 }, metrics: {}, step: 0 });
  columns.change(rows[4]);
  found.push(passing());
  return found;
}"""


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    seen = Seen(tmp_path_factory.mktemp("wide") / "store")
    seen.submit("wide", [{f"key{k:02d}": n + k / 100 for k in range(KEYS)} for n in range(RUNS)])
    with board(seen.url) as url:
        yield url


def opened(tab: Tab, url: str, width: int = 1280) -> Tab:
    tab.page.set_viewport_size({"width": width, "height": 700})
    tab.page.goto(f"{url}#/sweep/wide")
    tab.page.get_by_text(f"{RUNS} of {RUNS} runs").wait_for()
    return tab


def drawn(tab: Tab) -> list[str]:
    """Titles over the cells of the first row, by the column that each says it is in."""
    return tab.page.evaluate(
        """() => { const heads = [...document.querySelectorAll('.headrow .cell')].map(one => one.innerText);
        return [...document.querySelector('#row-0').children].map(one => heads[one.ariaColIndex - 1]) }"""
    )


def test_columns_out_of_sight_come_when_scrolled_to(tab_at: TabAt, wide: str) -> None:
    tab = opened(tab_at(wide), wide, width=700)
    assert "Run" in drawn(tab) and "key00" in drawn(tab) and "key11" not in drawn(tab)
    far = tab.page.locator("#row-0 .cell", has_text="0.11")
    assert far.count() == 0
    tab.page.get_by_role("grid").evaluate("grid => { grid.scrollLeft = 5000 }")
    far.wait_for()
    assert "Run" in drawn(tab) and "key00" not in drawn(tab)  # what is pinned stays
    head = tab.page.get_by_role("columnheader", name="key11")
    edge = "one => one.getBoundingClientRect().x"
    assert far.evaluate(edge) == pytest.approx(head.evaluate(edge), abs=1)  # under its title
    tab.check()


def test_paper_has_every_column_of_the_table(tab_at: TabAt, wide: str) -> None:
    tab = opened(tab_at(wide), wide, width=700)
    assert "key11" not in drawn(tab)
    tab.page.emulate_media(media="print")
    tab.page.locator("#row-0 .cell", has_text="0.11").wait_for()
    assert tab.page.locator(ROW).count() == RUNS


def test_rows_beside_the_screen_follow_those_in_sight(tab_at: TabAt, wide: str) -> None:
    tab = opened(tab_at(wide), wide)
    tab.page.get_by_label("Filter runs").fill("key00>=5")
    tab.page.get_by_text(f"{RUNS - 5} of {RUNS} runs").wait_for()
    grid = tab.page.get_by_role("grid")
    seen = int(grid.evaluate("one => Math.ceil(one.clientHeight / 34)"))
    tab.page.locator(f"#row-{seen + 3}").wait_for(state="attached")
    assert names(tab)[0] == "wide/5" and tab.page.locator(f"#row-{seen + 4}").count() == 0


def test_numbers_pass_a_filter_by_column_and_after_changes(tab_at: TabAt, wide: str) -> None:
    found: Any = opened(tab_at(wide), wide).page.evaluate(PASSING)
    assert found == [
        ["bc", "abcd", "ac", "ac", "ab", "cd", ""],
        ["abc", "abcd", "c", "ac", "b", "acd", ""],
        ["abc", "abcd", "c", "ac", "be", "acd", "e"],
    ]


def test_first_view_of_a_sweep_is_two_requests(tab_at: TabAt, wide: str) -> None:
    tab = tab_at(wide)
    paths: list[str] = []
    tab.page.on("request", lambda one: paths.append(one.url.split("/", 3)[3].partition("#")[0]))
    opened(tab, wide)
    assert paths[:2] == ["", "api/table?sweep=wide"]
    assert {one.partition("?")[0] for one in paths[2:]} <= {"api/events"}
