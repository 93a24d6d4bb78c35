"""hostler on a real Slurm: several nodes on this machine, started by the tests."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostler.backends.base import Backend, Launch
from hostler.backends.registry import backend as by_name
from hostler.spec.project import Fleet
from hostler.testing.backend_contract import BackendContract
from slurm_cluster import Cluster, cluster


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("slurm"), nodes=2, cpus=8) as made:
        yield made


@pytest.fixture(autouse=True)
def at_the_site(site: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, value in site.variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOSTLER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


class TestSlurm(BackendContract):
    @pytest.fixture
    def backend(self) -> Backend:
        return by_name("slurm")

    @pytest.fixture
    def fleet(self, backend: Backend) -> Iterator[Fleet]:
        fleet = Fleet(name="ta'u; echo x", backend="slurm", workers=2)
        yield fleet
        backend.stop(fleet, now=True)

    @pytest.fixture
    def launch(self, tmp_path: Path) -> Launch:
        store = tmp_path / "a store with 'quotes' and 100 %j"
        store.mkdir()
        return Launch(store=str(store), python=sys.executable, logs=f"{store}/logs")
