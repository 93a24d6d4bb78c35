"""The store contract over every store."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest

import servers
from hostler.emulators.gcs import GcsEmulator
from hostler.store import Store, open_store
from hostler.store.folder import FolderStore
from hostler.store.memory import MemoryStore
from hostler.store.ssh import SshStore
from hostler.testing.store_contract import StoreContract
from sshhosts import Hosts

AWKWARD = "my 'runs' \"x\"; echo x\nüber $HOME"


class TestFolder(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return FolderStore(tmp_path / AWKWARD / "store")


@pytest.mark.real
class TestSsh(StoreContract):
    """The folder of a machine with a real sshd, which has neither hostler nor anything else but Python."""

    @pytest.fixture
    def store(self, hosts: Hosts) -> Iterator[Store]:
        url = f"ssh://n1/tmp/{secrets.token_hex(6)}/{quote(AWKWARD)}/store"
        with closing(SshStore(url)) as store:
            yield store


class TestMemory(StoreContract):
    processes = False

    @pytest.fixture
    def store(self) -> Store:
        return MemoryStore()


@pytest.mark.real
class TestMoto(StoreContract):
    """A second implementation of the S3 API. It looks and stores without a lock, so that two racing creators
    may both win: it takes part in no race."""

    test_of_many_threads_one_creates = None  # type: ignore[assignment]
    test_of_many_processes_one_creates = None  # type: ignore[assignment]

    @pytest.fixture
    def store(self, moto_store_url: str) -> Store:
        return open_store(moto_store_url)

    @pytest.mark.soak  # each of these puts is slow here
    def test_thousands_of_keys_are_listed_in_order_from_anywhere(self, store: Store) -> None:
        super().test_thousands_of_keys_are_listed_in_order_from_anywhere(store)


@pytest.mark.real
class TestSeaweed(StoreContract):
    flat = False  # its filer is a tree: 'd/x' comes before 'd-e'

    @pytest.fixture
    def store(self, seaweed_store_url: str) -> Store:
        return open_store(seaweed_store_url)


class TestGcs(StoreContract):
    @pytest.fixture
    def store(self, gcs: GcsEmulator) -> Store:
        return open_store(f"gs://{servers.BUCKET}/some/prefix")


class TestGcsWithFaults(StoreContract):
    """5 % of all answers are lost or failures; the contract holds as it stands."""

    @pytest.fixture
    def store(self, gcs: GcsEmulator) -> Iterator[Store]:
        gcs.faults.rate(0.05, seed=20)
        yield open_store(f"gs://{servers.BUCKET}")
        assert gcs.faults.met or gcs.counts.of() < 200, "no fault was met"


@pytest.mark.real
class TestAzurite(StoreContract):
    @pytest.fixture
    def store(self, azurite_store_url: str) -> Store:
        return open_store(azurite_store_url)

    @pytest.mark.soak  # each of these puts is slow here
    def test_thousands_of_keys_are_listed_in_order_from_anywhere(self, store: Store) -> None:
        super().test_thousands_of_keys_are_listed_in_order_from_anywhere(store)
