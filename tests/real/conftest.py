"""What tests with real things share: a dashboard open in a browser.

A module says by its own `seen` which store the dashboard shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from board_server import board
from browser import Tab
from seen_world import Seen, gallery


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    return gallery(tmp_path_factory.mktemp("seen") / "store")


@pytest.fixture(scope="module")
def address(seen: Seen) -> Iterator[str]:
    with board(seen.url) as url:
        yield url


@pytest.fixture
def tab(browser: Any, address: str) -> Iterator[Tab]:
    """A tab in light colours with nothing open yet; after the test nothing may have gone wrong in it."""
    one = Tab(browser, address, color_scheme="light")
    yield one
    one.check()
    one.context.close()
