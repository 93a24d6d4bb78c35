"""The emulator of Compute Engine, with everything it is asked and answers held against Google's document."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gce_api import Api
from hostler.testing.gce import GceEmulator, emulator

SCALE = 60.0


@pytest.fixture
def gce() -> Iterator[GceEmulator]:
    gce_oracle = pytest.importorskip("gce_oracle")
    with emulator(scale=SCALE) as started:
        yield started
        gce_oracle.check_seen(started.requests, refused_too=False)


@pytest.fixture
def api(gce: GceEmulator) -> Api:
    return Api(gce)
