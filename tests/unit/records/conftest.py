"""The records over a store in memory and over a real folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostler.store import Store
from hostler.store.folder import FolderStore
from hostler.store.memory import MemoryStore


@pytest.fixture(params=["memory", "folder"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return MemoryStore() if request.param == "memory" else FolderStore(tmp_path / "a store; echo 'x'")


@pytest.fixture
def memory() -> MemoryStore:
    return MemoryStore()
