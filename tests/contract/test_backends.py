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
from sshhosts import Hosts


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
        store = tmp_path / "a store with 'quotes'"
        store.mkdir()
        return Launch(store=str(store), python=sys.executable)


@pytest.mark.real
@pytest.mark.needs("sshd")
class TestSsh(BackendContract):
    """On machines with a real sshd that have nothing but Python."""

    hosts = 2

    @pytest.fixture
    def backend(self, hosts: Hosts) -> Backend:
        return by_name("ssh")

    @pytest.fixture
    def fleet(self, backend: Backend) -> Iterator[Fleet]:
        options = {"hosts": ["n1", "root@n2:22"]}
        fleet = Fleet(name="la'b; echo x", backend="ssh", workers=2, slots=1, options=options)
        yield fleet
        backend.stop(fleet, now=True)

    @pytest.fixture
    def launch(self, hosts: Hosts) -> Launch:
        name = "a store with 'quotes'"
        for host in hosts.every:
            (host.root / "tmp" / name).mkdir(exist_ok=True)
        return Launch(store=f"/tmp/{name}")


def test_the_ssh_plan_is_word_for_word_what_is_started() -> None:
    options = {"hosts": ["gpu1", "me@gpu2:2222"], "user": "you", "key": "/keys/id", "jump": "door"}
    fleet = Fleet(name="lab", backend="ssh", workers=2, slots=3, cache="/scratch", options=options)
    launch = Launch(
        store="ssh://gpu1/data/my runs",
        sweeps=("lr-search",),
        variables={"WANDB_API_KEY": "hidden"},
        folders={"you@gpu1": "/data/my runs"},
    )
    plan = by_name("ssh").plan(fleet, launch)
    golden = Path(__file__).parent.parent / "golden" / "ssh_plan.txt"
    assert plan.text == golden.read_text().rstrip("\n")
    assert "hidden" not in plan.text + repr(plan)


def test_a_host_that_is_named_twice_is_refused() -> None:
    fleet = Fleet(name="lab", backend="ssh", options={"hosts": ["gpu1", "gpu2", "gpu1"]})
    with pytest.raises(UsageError, match="gpu1 is named twice"):
        by_name("ssh").plan(fleet, Launch(store="s3://b"))


def test_the_local_plan_is_word_for_word_what_is_started() -> None:
    fleet = Fleet(name="desk", backend="local", workers=2, slots=3, runs_per_worker=5)
    launch = Launch(store="/data/my store", sweeps=("lr-search",), python="python3")
    golden = Path(__file__).parent.parent / "golden" / "local_plan.txt"
    assert by_name("local").plan(fleet, launch).text == golden.read_text().rstrip("\n")


def test_plan_holds_the_fleets_cache_or_else_the_projects() -> None:
    launch, local = Launch(store="/s", cache="/scratch/ours"), by_name("local")
    plain = local.plan(Fleet(name="desk", backend="local"), launch)
    assert plain.fleet.cache == "/scratch/ours" and "HOSTLER_CACHE=/scratch/ours" in plain.text
    assert local.plan(Fleet(name="desk", backend="local", cache="/fast"), launch).fleet.cache == "/fast"


def test_an_unknown_backend_gets_did_you_mean() -> None:
    with pytest.raises(UsageError, match="did you mean local"):
        by_name("locall")
