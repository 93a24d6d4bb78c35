"""Fleets that reserve at once over every store: the sum never passes the budget, and no return is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import servers
from hostler.emulators.gcs import GcsEmulator
from hostler.records import layout
from hostler.records.launch import ledger
from hostler.store import Store, open_store
from hostler.store.folder import FolderStore

FLEETS = 5
BUDGET = 3.0


class LedgerRace:
    @pytest.fixture
    def client(self) -> Callable[[], Store]:
        raise AssertionError("each store gives its own")

    def test_the_sum_of_what_is_held_never_passes_the_budget(self, client: Callable[[], Store]) -> None:
        won: list[float] = []
        start = threading.Barrier(FLEETS)

        def reserve(who: int) -> None:
            store = client()
            start.wait()
            for n in range(6):
                held = ledger.reserve(
                    store, "s", BUDGET, fleet=f"f{who}", generation=n, launch=f"{who}-{n}", most=0.4
                )
                if held and n % 2:
                    ledger.give_back(store, "s", held.n, 0.1)
                won.append(held.cost - 0.1 * (n % 2) if held else 0.0)

        threads = [threading.Thread(target=reserve, args=(who,)) for who in range(FLEETS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        store = client()
        account = ledger.read(store, "s")
        assert account.committed == pytest.approx(sum(won))
        assert 2.5 < account.committed <= BUDGET
        keys = [entry.key for entry in store.list(layout.ledger("s"))]
        assert keys == [layout.ledger_entry("s", n) for n in range(1, len(keys) + 1)]


class TestFolder(LedgerRace):
    @pytest.fixture
    def client(self, tmp_path: Path) -> Callable[[], Store]:
        return lambda: FolderStore(tmp_path / "store")


@pytest.mark.real
class TestSeaweed(LedgerRace):
    @pytest.fixture
    def client(self, seaweed_store_url: str) -> Callable[[], Store]:
        return lambda: open_store(seaweed_store_url)


class TestGcsWithFaults(LedgerRace):
    """Every tenth answer is lost or a failure: who does not know whether it won finds out."""

    @pytest.fixture
    def client(self, gcs: GcsEmulator) -> Callable[[], Store]:
        gcs.faults.rate(0.1, seed=5)
        return lambda: open_store(f"gs://{servers.BUCKET}/race")
