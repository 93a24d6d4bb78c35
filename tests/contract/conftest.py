"""The emulator of Compute Engine, held against Google's document; and a Kubernetes cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import kube_world
import servers
from gce_api import Api
from hostler.emulators.gce import GceEmulator, emulator
from kube_world import Kube, StandIn

SCALE = 60.0


@pytest.fixture
def gce() -> Iterator[GceEmulator]:
    gce_oracle = servers.library("gce_oracle")
    with emulator(scale=SCALE) as started:
        yield started
        gce_oracle.check_seen(started.requests, refused_too=False)


@pytest.fixture
def api(gce: GceEmulator) -> Api:
    return Api(gce)


@pytest.fixture
def root() -> None:
    if os.geteuid() != 0:
        servers.missing("containers need the rights of root")


@pytest.fixture
def stand_in(root: None, tmp_path: Path) -> Iterator[StandIn]:
    """The stand-in for Kubernetes, for what no client could do to a real cluster."""
    with kube_world.stand_in(tmp_path) as started:
        yield started


@pytest.fixture
def kube(request: pytest.FixtureRequest) -> Iterator[Kube]:
    """A namespace of a real cluster if HOSTLER_TEST_KUBECONFIG names one, else of the stand-in."""
    if kube_world.REAL:
        with kube_world.namespace(Path(kube_world.REAL)) as real:
            yield real
    else:
        yield request.getfixturevalue("stand_in")
