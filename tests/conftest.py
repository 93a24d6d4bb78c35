"""Servers and a browser for the tests that want real ones: started at first use, one per test process."""

from __future__ import annotations

import gc
import os
import secrets
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))

import costs
import dealing
import known_python
import servers
import sshhosts
import torchvision_here
from browser import chromium
from hostler.emulators.gcs import GcsEmulator
from hostler.remote import connection
from sshhosts import Hosts
from worker_world import World

# A busy machine is not a wrong answer: property tests have no time limit for an example.
slow = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
settings.register_profile("suite", deadline=None, suppress_health_check=slow)
settings.load_profile("suite")


def pytest_configure() -> None:
    """As a person's terminal has it: commands keep their bytecode, and Ctrl-C is heard.

    Some machines are set up without the one, a shell's background without the other."""
    os.environ.pop(
        "PYTHONDONTWRITEBYTECODE", None
    )  # thousands of processes would each compile all of hostler
    os.environ["PATH"] = known_python.without_shims(os.environ["PATH"])
    os.environ["OMP_NUM_THREADS"] = "1"  # threads that wait for each other burn what other tests need
    torchvision_here.watch()
    os.environ["HF_HUB_OFFLINE"] = "1"  # nothing is fetched, and nobody waits for a network
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


@pytest.hookimpl(trylast=True)  # those that are left out are gone
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With several workers, each begins with its share of the slow ones."""
    workers = int(getattr(config, "workerinput", {}).get("workercount", 1))
    if workers > 1:
        files = [item.nodeid.partition("::")[0] for item in items]
        known = costs.earlier(config.rootpath / costs.FOLDER)
        seconds = [
            known.get(item.nodeid, dealing.guess(file)) for item, file in zip(items, files, strict=True)
        ]
        fixtures = [getattr(item, "fixturenames", ()) for item in items]
        shared = dealing.kin(list(zip(files, fixtures, strict=True)))
        items[:] = [items[place] for place in dealing.dealt(files, workers, seconds, shared)]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Ten thousand tests are no garbage: nobody looks for any among them, now or when a test makes some."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("needs"):
        if shutil.which(mark.args[0]) is None:
            servers.missing(f"{mark.args[0]} is not installed")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One for all tests of a process: each has pages of its own, with nothing kept from others."""
    with chromium() as one:
        yield one


@pytest.fixture(scope="session")
def moto_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Endpoint of a moto server with the bucket servers.BUCKET."""
    with servers.moto(tmp_path_factory.mktemp("moto")) as url:
        yield url


@pytest.fixture(scope="session")
def seaweed_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Endpoint of a SeaweedFS server with the bucket servers.BUCKET."""
    with servers.seaweed(tmp_path_factory.mktemp("seaweed")) as url:
        yield url


@pytest.fixture(scope="session")
def azurite_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Endpoint of azurite's blob service with the container servers.BUCKET."""
    with servers.azurite(tmp_path_factory.mktemp("azurite")) as url:
        yield url


@pytest.fixture
def gcs(monkeypatch: pytest.MonkeyPatch) -> Iterator[GcsEmulator]:
    """A GCS emulator of its own, with the bucket servers.BUCKET, that gs:// leads to."""
    with GcsEmulator(servers.BUCKET) as started:
        for name, value in started.environ().items():
            monkeypatch.setenv(name, value)
        monkeypatch.delenv("GCE_METADATA_HOST", raising=False)
        yield started


@pytest.fixture
def azurite_store_url(azurite_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A fresh az:// URL on azurite; AZURE_* are in the environment, children inherit them."""
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", servers.AZURE_ACCOUNT)
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", servers.AZURE_KEY)
    monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", f"{azurite_url}/{servers.AZURE_ACCOUNT}")
    return f"az://{servers.BUCKET}/test-{secrets.token_hex(6)}"


@pytest.fixture
def moto_store_url(moto_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A fresh s3:// URL on moto; AWS_* are in the environment, children inherit them."""
    return fresh_store(moto_url, monkeypatch)


@pytest.fixture
def seaweed_store_url(seaweed_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A fresh s3:// URL on SeaweedFS; AWS_* are in the environment, children inherit them."""
    return fresh_store(seaweed_url, monkeypatch)


@pytest.fixture(scope="session")
def four_hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    with sshhosts.running(tmp_path_factory.mktemp("hosts"), 4) as started:
        yield started


@pytest.fixture
def hosts(four_hosts: Hosts, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hosts]:
    """Four machines n1 to n4 with a real sshd; `ssh` in this process is that of their laptop."""
    monkeypatch.setenv("PATH", f"{four_hosts.ssh_path}:{os.environ['PATH']}")
    monkeypatch.setenv("TMPDIR", str(four_hosts.short))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    connection._sockets.cache_clear()
    yield four_hosts
    four_hosts.hang_up()
    connection._sockets.cache_clear()
    four_hosts.mend()


def fresh_store(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> str:
    for name, value in servers.CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    return f"s3://{servers.BUCKET}/test-{secrets.token_hex(6)}"


@pytest.fixture(scope="session")
def machine_memory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What this test process knows of the machine's interpreters: asked once, not once per test."""
    return tmp_path_factory.mktemp("machine")


@pytest.fixture
def world(tmp_path: Path, machine_memory: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A project, a store, and workers with times of tests; nothing of it is outside tmp_path."""
    monkeypatch.setenv("HOSTLER_CACHE", str(machine_memory))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(machine_memory))
    return World(tmp_path / "world")
