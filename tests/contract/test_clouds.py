"""The contracts of backends and of clouds over both clouds: Compute Engine emulated, Kubernetes stood in."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import pytest

import known_python
import servers
from gce_world import TIMES, ZONES
from hostler import settings
from hostler.backends.base import Backend, Cloud, Launch
from hostler.backends.kubernetes.client import connect
from hostler.backends.registry import backend as by_name
from hostler.emulators.gce import GceEmulator, emulator
from hostler.emulators.k8s import Cluster
from hostler.fleet import library, machines
from hostler.fleet.ready import drivers
from hostler.fleet.snapshot import snapshot
from hostler.records import project as projects
from hostler.records.sweep import sweeps
from hostler.spec.job import Job, Source
from hostler.spec.project import Fleet
from hostler.store import open_store
from hostler.testing.backend_contract import BackendContract
from hostler.testing.cloud_contract import CloudContract

SCALE = 60.0
SHORT, LONG = 4, 600  # seconds that the runs of a store take
pytestmark = pytest.mark.timeout(600)


def launch_of(cloud: Cloud, fleet: Fleet, folder: Path, seconds: int) -> Launch:
    """A launch for a store with a run for each worker, which takes so long."""
    store = open_store(fleet.store)
    projects.ensure(store, "contract", settings.timing())
    (folder / "code").mkdir()
    taken = snapshot.take(folder / "code", settings.sizes(), cache=folder / "cache")
    snapshot.upload(store, taken)
    command = ("python3", "-c", f"import time; time.sleep({seconds})")
    runs = tuple({"n": n} for n in range(8 * fleet.workers if seconds == LONG else fleet.workers))
    job = Job(name="naps", command=command, runs=runs, source=Source(snapshot=taken.sha), style="none")
    assert sweeps.submit(store, job)
    library.bring(store)
    return Launch(
        store=fleet.store,
        generation=f"{fleet.name}/1",
        at=time.time(),
        parcels=machines.parcels_of(drivers(store, [cloud.likely(fleet)])),
        variables={**settings.given(), **machines.emulated()},
    )


@pytest.fixture(autouse=True)
def times(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with tempfile.TemporaryDirectory(prefix="h-", ignore_cleanup_errors=True) as cache:  # sockets: short
        for name, value in {**TIMES, "HOSTLER_CACHE": cache}.items():
            monkeypatch.setenv(name, value)
        known_python.give_drivers(Path(cache))
        yield


class OnGce:
    """Fixtures of an emulated Compute Engine with a bucket."""

    workers = 2

    @pytest.fixture
    def gce(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[GceEmulator]:
        gce_oracle = servers.library("gce_oracle")
        with emulator(buckets=["runs"], scale=SCALE, strict=True) as made:
            for name, value in made.environ().items():
                monkeypatch.setenv(name, value)
            yield made
            gce_oracle.check_seen(made.requests)

    @pytest.fixture
    def backend(self, gce: GceEmulator) -> Backend:
        return by_name("gce")

    @pytest.fixture
    def fleet(self, gce: GceEmulator) -> Fleet:
        options = {"project": gce.project, "zones": list(ZONES), "secret_manager": True}
        return Fleet(
            "burst", "gce", self.workers, slots=1, options=options, scope="cifar", store="gs://runs/cifar"
        )


class OnKubernetes:
    """Fixtures of a stand-in cluster; the store is a folder on a volume."""

    workers = 2

    @pytest.fixture
    def cluster(self, root: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
        with Cluster(tmp_path / "k8s") as made:
            monkeypatch.setenv("KUBECONFIG", str(made.kubeconfig))
            yield made

    @pytest.fixture
    def backend(self, cluster: Cluster) -> Backend:
        return by_name("kubernetes")

    @pytest.fixture
    def fleet(self, cluster: Cluster, tmp_path: Path) -> Fleet:
        store = tmp_path / "store"
        store.mkdir()
        options = {"image": "python:3.12-slim", "volumes": {str(store): {"host": str(store)}}}
        return Fleet(
            "gke", "kubernetes", self.workers, slots=1, options=options, scope="cifar", store=str(store)
        )


class TestGce(OnGce, BackendContract):
    chooses = True

    @pytest.fixture
    def launch(self, backend: Cloud, fleet: Fleet, tmp_path: Path) -> Launch:
        return launch_of(backend, fleet, tmp_path, SHORT)


class TestKubernetes(OnKubernetes, BackendContract):
    chooses = True

    @pytest.fixture
    def launch(self, backend: Cloud, fleet: Fleet, tmp_path: Path) -> Launch:
        return launch_of(backend, fleet, tmp_path, SHORT)


class TestGceCloud(OnGce, CloudContract):
    workers = 1

    @pytest.fixture
    def cloud(self, backend: Backend) -> Backend:
        return backend

    @pytest.fixture
    def colleague(self, gce: GceEmulator) -> Backend:
        return by_name("gce")

    @pytest.fixture
    def launch(self, backend: Cloud, fleet: Fleet, tmp_path: Path) -> Launch:
        return launch_of(backend, fleet, tmp_path, LONG)

    @pytest.fixture
    def refuse(self, gce: GceEmulator, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
        def stock_out() -> None:
            monkeypatch.setenv("HOSTLER_MACHINES", "5")
            for zone in ZONES:
                gce.stockout(zone)

        return stock_out

    @pytest.fixture
    def kept_secrets(self, gce: GceEmulator) -> Callable[[], Collection[str]]:
        return lambda: list(gce.secret_manager.secrets)


class TestKubernetesCloud(OnKubernetes, CloudContract):
    workers = 1

    @pytest.fixture
    def cloud(self, backend: Backend) -> Backend:
        return backend

    @pytest.fixture
    def colleague(self, cluster: Cluster) -> Backend:
        return by_name("kubernetes")

    @pytest.fixture
    def launch(self, backend: Cloud, fleet: Fleet, tmp_path: Path) -> Launch:
        return launch_of(backend, fleet, tmp_path, LONG)

    @pytest.fixture
    def refuse(self, cluster: Cluster, fleet: Fleet) -> Callable[[], None]:
        return lambda: cluster.pull_fails(fleet.options["image"])

    @pytest.fixture
    def kept_secrets(self, fleet: Fleet) -> Callable[[], Collection[str]]:
        return lambda: [secret["metadata"]["name"] for secret in connect(fleet).list("Secret")]
