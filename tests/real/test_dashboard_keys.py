"""The dashboard by keys alone: every control of every page is reached, seen and worked without a mouse."""

from __future__ import annotations

from pathlib import Path

import pytest

from board_server import board, names
from browser import CONTROLS, Tab, TabAt
from hostler.records.run import control
from hostler.records.run.log import RunKey
from seen_world import Seen
from showroom import NOW, job_of, showroom

pytestmark = [pytest.mark.real, pytest.mark.needs("chromium")]

PAGES = {  # name → its address and words that stand there
    "sweeps": ("#/", "cifar-grid"),
    "runs": ("#/sweep/digits-search", "24 of 24 runs"),
    "curves": ("#/sweep/digits-search/curves", "24 curves"),
    "search": ("#/sweep/digits-search/search", "with a value"),
    "compare": ("#/sweep/digits-search/compare", "Parameters that differ"),
    "errors": ("#/errors", "CUDA out of memory"),
    "workers": ("#/workers", "4 workers on 4 machines"),
    "run": ("#/run/{survivor}", "epoch 90 of 90"),
}


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    return showroom(tmp_path_factory.mktemp("seen") / "store")


@pytest.fixture
def tab(tab: Tab, address: str) -> Tab:
    tab.page.clock.set_fixed_time(NOW)
    tab.page.goto(address)
    tab.page.get_by_role("link", name="cifar-grid").first.wait_for()
    return tab


def press(tab: Tab, *keys: str) -> None:
    for key in keys:
        tab.page.keyboard.press(key)


def tab_to(tab: Tab, wanted: str, most: int = 120) -> None:
    """Press Tab until a control has the focus, by its label or words."""
    label = "(document.activeElement.getAttribute('aria-label') || document.activeElement.innerText).trim()"
    for _ in range(most):
        press(tab, "Tab")
        if tab.page.evaluate(label).startswith(wanted):
            return
    raise AssertionError(f"Tab never came to {wanted}")


@pytest.mark.parametrize("page", PAGES)
def test_every_control_is_reached_by_tab_and_seen(tab: Tab, seen: Seen, page: str) -> None:
    if page == "compare":
        tab.go(*PAGES["runs"])
        press(tab, "j", "x", "j", "x")
    place, words = PAGES[page]
    tab.go(place.format(survivor=job_of(seen, "survivor").run_id(0)), words)
    tab.page.wait_for_timeout(500)
    assert tab.page.evaluate(f"({CONTROLS})().length") > 5
    assert tab.unreached() == ([], set())


def test_token_page_is_worked_by_keys(tab_at: TabAt, seen: Seen) -> None:
    with board(seen.url) as url:
        plain, token = url.split("#token=")
        tab = tab_at(url)
        tab.page.goto(f"{plain}#/errors")
        tab.page.get_by_text("or paste the token").wait_for()
        assert tab.unreached() == ([], set())
        tab_to(tab, "Token")
        tab.page.keyboard.type(token)
        press(tab, "Enter")
        tab.page.get_by_text("CUDA out of memory").first.wait_for()
        tab.check()


def test_sweep_and_a_tab_of_it_are_opened_by_enter(tab: Tab) -> None:
    tab_to(tab, "digits-search")
    press(tab, "Enter")
    tab.page.get_by_text("24 of 24 runs").wait_for()
    tab_to(tab, "Search")
    press(tab, "Enter")
    tab.page.get_by_text("with a value").wait_for()


def test_table_moves_selects_compares_and_filters_by_letters(tab: Tab) -> None:
    tab.go(*PAGES["runs"])
    press(tab, "j", "x", "j", "x", "j", "k", "x", "x")
    tab.page.get_by_role("toolbar").get_by_text("2 selected").wait_for()
    press(tab, "/")
    tab.page.keyboard.type("jkx")
    assert tab.page.get_by_label("Filter runs").input_value() == "jkx"
    press(tab, "Escape", "Control+a", "Delete")
    tab.page.get_by_text("24 of 24 runs").wait_for()
    tab_to(tab, "Runs of digits-search")
    press(tab, "c")
    tab.page.get_by_text("Parameters that differ").wait_for()


def test_columns_are_chosen_and_sorted_by_keys(tab: Tab) -> None:
    tab.go(*PAGES["runs"])
    tab_to(tab, "Columns")
    press(tab, "Enter")
    tab.page.locator(".choice").first.wait_for()
    press(tab, "Tab", "Space", "Escape")
    assert "Run" not in tab.page.locator(".headrow .cell button").all_inner_texts()
    tab_to(tab, "lr")
    press(tab, "Enter")
    assert tab.page.locator("[aria-sort=descending]").inner_text() == "lr ↓"
    assert len(names(tab)) > 5


def test_menu_of_metrics_is_opened_chosen_and_closed(tab: Tab) -> None:
    tab.go(*PAGES["curves"])
    tab_to(tab, "Metrics")
    press(tab, "Enter", "Tab", "Tab", "Space")
    tab.page.get_by_text("48 curves").wait_for()
    press(tab, "Escape")
    assert tab.page.evaluate("document.activeElement.tagName") == "SUMMARY"
    tab_to(tab, "Smoothing")
    press(tab, "ArrowRight")
    assert tab.page.get_by_label("Smoothing").input_value() == "0.01"


def test_code_of_other_runs_is_compared_by_keys(tab: Tab) -> None:
    tab.go(*PAGES["runs"])
    press(tab, "j", "x", *"jjjjj", "x", "c")
    tab.page.get_by_text("Parameters that differ").wait_for()
    tab_to(tab, "From")
    before = tab.page.get_by_label("From", exact=True).input_value()
    press(tab, "ArrowDown")
    assert tab.page.get_by_label("From", exact=True).input_value() != before


def test_errors_are_opened_and_tried_again_by_keys(tab_at: TabAt, tmp_path: Path) -> None:
    seen = Seen(tmp_path / "store")
    job = seen.submit("one", [{"lr": n} for n in range(2)])
    for index in range(2):
        seen.claim(job, index)
        seen.end(job, index, "failed", message="too large" if index else "too small")
    with board(seen.url) as url:
        tab = tab_at(url)
        tab.page.goto(f"{url}#/errors")
        tab.page.get_by_text("too large").first.wait_for()
        second = tab.page.locator("details.error").nth(1)
        message = second.locator(".message").inner_text()
        tab_to(tab, "Retry 1 run")
        tab_to(tab, "exception")
        assert second.get_attribute("open") is None
        press(tab, "Enter")
        second.locator("pre").wait_for()
        tab_to(tab, "Retry 1 run")
        press(tab, "Enter")
        tab.page.get_by_role("dialog").wait_for()
        press(tab, "Escape")
        tab.page.get_by_role("dialog").wait_for(state="hidden")
        assert tab.page.evaluate("document.activeElement.innerText") == "Retry 1 run", message
        run = RunKey("one", job.run_id(0))
        assert control.state_of(seen.store, run).state == "failed", "Escape is not yes"
        tab.check()


def test_worker_leads_to_its_run_by_enter(tab: Tab) -> None:
    tab.go(*PAGES["workers"])
    tab_to(tab, "digits-search/22")
    press(tab, "Enter")
    tab.page.get_by_role("heading", name="digits-search/22").wait_for()


def test_run_is_tagged_read_and_searched_by_keys(tab: Tab, seen: Seen) -> None:
    tab.go(f"#/run/{job_of(seen, 'survivor').run_id(0)}", "epoch 90 of 90")
    tab_to(tab, "Tag")
    press(tab, "Enter")
    tab.page.keyboard.type("by-key")
    press(tab, "Enter")
    tab.page.locator(".tag", has_text="by-key").wait_for()
    tab_to(tab, "notes.txt")
    press(tab, "Enter")
    tab.page.get_by_text("All of it went well.").wait_for()
    tab_to(tab, "Search the log")
    tab.page.keyboard.type("epoch 17 ")
    tab.page.get_by_text("1 line", exact=True).wait_for()
    tab_to(tab, "Copy command")
