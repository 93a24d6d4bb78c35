"""What tests with real things share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from browser import chromium


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One for all tests of a process: each has pages of its own, with nothing kept from others."""
    with chromium() as one:
        yield one
