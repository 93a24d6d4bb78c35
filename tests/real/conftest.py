"""What tests with real things share: a dashboard open in a browser.

A module says by its own `seen` which store the dashboard shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from board_server import board
from browser import Tab, TabAt, window
from seen_world import Seen, gallery


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    return gallery(tmp_path_factory.mktemp("seen") / "store")


@pytest.fixture(scope="module")
def address(seen: Seen) -> Iterator[str]:
    with board(seen.url) as url:
        yield url


@pytest.fixture(scope="module")
def light_window(browser: Any) -> Iterator[Any]:
    """One for the tests of a module, since a new one takes seconds until it has shown a page."""
    context = window(browser, color_scheme="light")
    yield context
    context.close()


@pytest.fixture
def tab_at(browser: Any, light_window: Any) -> Iterator[TabAt]:
    """Tabs in light colours with nothing open yet; the window remembers nothing of them."""
    yield lambda home: Tab(browser, home, context=light_window)
    for page in light_window.pages:
        page.evaluate("() => { try { localStorage.clear() } catch { /* a page without storage */ } }")
        page.close()
    light_window.clear_permissions()


@pytest.fixture
def tab(tab_at: TabAt, address: str) -> Iterator[Tab]:
    """A tab in which nothing may have gone wrong after the test."""
    one = tab_at(address)
    yield one
    one.check()
