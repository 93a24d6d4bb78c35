"""The backend contract over every backend."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostler.backends.base import Backend, Launch
from hostler.backends.registry import backend as by_name
from hostler.errors import UsageError
from hostler.spec.project import Fleet
from hostler.testing.backend_contract import BackendContract


class TestLocal(BackendContract):
    @pytest.fixture(autouse=True)
    def machine(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
        monkeypatch.setenv("HOSTLER_CACHE", str(tmp_path / "cache"))

    @pytest.fixture
    def backend(self) -> Backend:
        return by_name("local")

    @pytest.fixture
    def fleet(self, backend: Backend) -> Iterator[Fleet]:
        fleet = Fleet(name="de'sk; echo x", backend="local", workers=2, slots=1)
        yield fleet
        backend.stop(fleet, now=True)

    @pytest.fixture
    def launch(self, tmp_path: Path) -> Launch:
        return Launch(store=str(tmp_path / "a store with 'quotes'"), python=sys.executable)


def test_the_local_plan_is_word_for_word_what_is_started() -> None:
    fleet = Fleet(name="desk", backend="local", workers=2, slots=3, runs_per_worker=5)
    launch = Launch(store="/data/my store", sweeps=("lr-search",), python="python3")
    golden = Path(__file__).parent.parent / "golden" / "local_plan.txt"
    assert by_name("local").plan(fleet, launch).text == golden.read_text().rstrip("\n")


def test_the_cache_of_the_fleet_or_else_the_projects_is_in_the_plan() -> None:
    launch, local = Launch(store="/s", cache="/scratch/ours"), by_name("local")
    plain = local.plan(Fleet(name="desk", backend="local"), launch)
    assert plain.fleet.cache == "/scratch/ours" and "HOSTLER_CACHE=/scratch/ours" in plain.text
    assert local.plan(Fleet(name="desk", backend="local", cache="/fast"), launch).fleet.cache == "/fast"


def test_an_unknown_backend_gets_did_you_mean() -> None:
    with pytest.raises(UsageError, match="did you mean local"):
        by_name("locall")
