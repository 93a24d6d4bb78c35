"""torch and NumPy, for the tests that want them; and a run as a worker hands it over."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hostler
import servers
from hostler.records.run import handoff
from hostler.records.run.handoff import Handoff
from hostler.records.series.points import PointReader
from hostler.sdk.start import CURRENT


class Handed:
    """A folder as a worker would make it, and what the process leaves in it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = Handoff(folder)
        self.folder.make({"lr": 0.3})
        self._monkeypatch = monkeypatch
        for name, value in {
            "DIR": str(folder),
            "RUN": "0000000-job-abc",
            "SWEEP": "job",
            "ATTEMPT": "1",
        }.items():
            monkeypatch.setenv(f"HOSTLER_{name}", value)

    def again(self, name: str) -> Handed:
        """The next attempt: a new folder that begins with this one's checkpoints."""
        other = Handed(self.folder.folder.with_name(name), self._monkeypatch)
        other.folder.checkpoint.rmdir()
        self.folder.checkpoint.rename(other.folder.checkpoint)
        return other

    def points(self) -> list[tuple[int, dict[str, float]]]:
        reader, found = PointReader(self.folder.metrics), []
        while points := reader.read():
            found += [(point.step, dict(point.values)) for point in points]
        return found

    @property
    def finished(self) -> dict[str, Any] | None:
        return handoff.read(self.folder.finished)

    @property
    def joined(self) -> dict[str, Any] | None:
        return handoff.read(self.folder.joined)


class Counter:
    """Something to track."""

    def __init__(self) -> None:
        self.n = 0

    def state_dict(self) -> dict[str, int]:
        return {"n": self.n}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.n = state["n"]


@pytest.fixture
def handed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Handed]:
    yield Handed(tmp_path / "run", monkeypatch)
    if CURRENT.run is not None:
        CURRENT.run.close(RuntimeError("left open by the test"))


@pytest.fixture
def counter() -> Counter:
    return Counter()


@pytest.fixture
def start() -> Any:
    return hostler.start


@pytest.fixture
def torch() -> Any:
    try:
        import torch
    except ImportError:
        servers.missing("torch is not installed")
    torch.manual_seed(0)
    return torch


@pytest.fixture
def np() -> Any:
    try:
        import numpy
    except ImportError:
        servers.missing("NumPy is not installed")
    return numpy
