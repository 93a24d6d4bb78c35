"""The comparison of runs that the dashboard asks for."""

from __future__ import annotations

import pytest

from hostler.analysis.board import pages
from hostler.errors import MissingError
from hostler.store.memory import MemoryStore


def test_comparison_of_unreadable_runs_says_that_none_is_there() -> None:
    with pytest.raises(MissingError, match="none of these runs is there"):
        pages.compare(MemoryStore(), [])
