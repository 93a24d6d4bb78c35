"""Askers at once over every store: of all of them one gets entry n, and the budget is never overrun."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import servers
from hostler.emulators.gcs import GcsEmulator
from hostler.records import layout
from hostler.records.sweep.journal import Journal, JournalEntry
from hostler.store import Store, open_store
from hostler.store.folder import FolderStore
from hostler.store.memory import MemoryStore

ASKERS = 6
BUDGET = 24


class JournalRace:
    """Each asker has a client of its own, reads on when it has lost, and asks until nothing is left."""

    @pytest.fixture
    def client(self) -> Callable[[], Store]:
        raise AssertionError("each store gives its own")

    def test_each_entry_has_one_winner_and_budget_is_never_exceeded(
        self, client: Callable[[], Store]
    ) -> None:
        won: list[tuple[int, int]] = []
        start = threading.Barrier(ASKERS)

        def ask(who: int) -> None:
            journal = Journal(client(), "s")
            start.wait()
            while len(journal.entries) < BUDGET:
                if journal.append(JournalEntry({"by": who, "n": len(journal.entries)}), BUDGET):
                    won.append((len(journal.entries), who))
            assert not journal.append(JournalEntry({"by": who}), BUDGET)

        threads = [threading.Thread(target=ask, args=(who,)) for who in range(ASKERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        store = client()
        found = Journal(store, "s").read_on()
        assert sorted(n for n, _ in won) == list(range(1, BUDGET + 1))
        assert [entry.params["by"] for entry in found] == [who for _, who in sorted(won)]
        assert [entry.params["n"] for entry in found] == list(range(BUDGET))
        keys = [entry.key for entry in store.list(layout.journal("s"))]
        assert keys == [layout.journal_entry("s", n) for n in range(1, BUDGET + 1)]


class TestFolder(JournalRace):
    @pytest.fixture
    def client(self, tmp_path: Path) -> Callable[[], Store]:
        return lambda: FolderStore(tmp_path / "store")


class TestMemory(JournalRace):
    @pytest.fixture
    def client(self) -> Callable[[], Store]:
        store = MemoryStore()
        return lambda: store


@pytest.mark.real
class TestSeaweed(JournalRace):
    @pytest.fixture
    def client(self, seaweed_store_url: str) -> Callable[[], Store]:
        return lambda: open_store(seaweed_store_url)


class TestGcs(JournalRace):
    @pytest.fixture
    def client(self, gcs: GcsEmulator) -> Callable[[], Store]:
        return lambda: open_store(f"gs://{servers.BUCKET}/race")


class TestGcsWithFaults(JournalRace):
    """Every tenth answer is lost or a failure: who does not know whether it won finds out."""

    @pytest.fixture
    def client(self, gcs: GcsEmulator) -> Callable[[], Store]:
        gcs.faults.rate(0.1, seed=5)
        return lambda: open_store(f"gs://{servers.BUCKET}/race")
