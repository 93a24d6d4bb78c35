"""A worker cut off from its store, a bucket or a host's folder: for half a lease, and for three."""

from __future__ import annotations

import json
import secrets
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from killer import Farm, farm, keys_of, often, outcome, until
from proxy import Fault, running
from test_store_unreachable import SCRIPT, STEPS

from hostler.records.checkpoint import checkpoints
from hostler.records.run import log
from hostler.records.run.log import RunLog
from hostler.spec.job import Job
from hostler.store import open_store
from sshhosts import Hosts

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]
LEASE = 8.0


@dataclass(frozen=True)
class Wire:
    """A way to a store that can be cut, and another that stays."""

    url: str
    near: str
    cut: Callable[[], None]
    join: Callable[[], None]
    extra: dict[str, str] = field(default_factory=dict)


@pytest.fixture(params=["bucket", "ssh"])
def wire(request: pytest.FixtureRequest) -> Iterator[Wire]:
    with (_bucket if request.param == "bucket" else _ssh)(request) as made:
        yield made


@contextmanager
def _bucket(request: pytest.FixtureRequest) -> Iterator[Wire]:
    url, endpoint = (request.getfixturevalue(name) for name in ("seaweed_store_url", "seaweed_url"))
    with running(endpoint) as proxy:

        def answer(fault: Fault | None) -> None:
            proxy.choose = lambda method, path: fault

        there = {"AWS_ENDPOINT_URL": proxy.url}
        yield Wire(url, url, lambda: answer(Fault.DROP_BEFORE), lambda: answer(None), there)


@contextmanager
def _ssh(request: pytest.FixtureRequest) -> Iterator[Wire]:
    """The store is a folder of a host whose link can be cut; its disk is seen from here all the while."""
    hosts: Hosts = request.getfixturevalue("hosts")
    host, name = hosts["n1"], f"tmp/{secrets.token_hex(6)}"
    yield Wire(f"ssh://n1/{name}", str(host.root / name), host.cut, host.join)


@contextmanager
def under_way(wire: Wire, folder: Path) -> Iterator[tuple[Farm, Job]]:
    """A run with something saved, on a worker behind the wire; the test itself reads beside it."""
    with farm(wire.url, folder, wire.extra, retry=1.0, lease=LEASE) as made:
        made.store = open_store(wire.near)
        (made.code / "steps.py").write_text(SCRIPT)
        job = made.submit(Job(name="steps", command=(sys.executable, "steps.py"), **often()))  # type: ignore[arg-type]
        made.start()
        until(lambda: checkpoints.committed(made.store, keys_of(job)[0].run), why=made.said)
        yield made, job


def entries(made: Farm, job: Job) -> list[dict[str, object]]:
    """The log of the run, which is done, with each step once."""
    [key] = keys_of(job)
    found = outcome(made.store, key)
    assert found.state.state == "done" and found.files == {"step": str(STEPS).encode()}
    assert found.points["value"] == [(step, 3.0 * step) for step in range(STEPS)]
    return RunLog(made.store, key).read_on().entries


def test_worker_cut_off_for_half_a_lease_goes_on(tmp_path: Path, wire: Wire) -> None:
    with under_way(wire, tmp_path) as (made, job), farm(wire.near, tmp_path / "other", lease=LEASE) as other:
        other.start()
        wire.cut()
        time.sleep(LEASE / 2)
        wire.join()
        until(lambda: not made.processes(), 120, why=made.said)
        assert [entry["kind"] for entry in entries(made, job)] == [log.CLAIM, log.END]


def test_worker_cut_off_for_three_leases_is_fenced(tmp_path: Path, wire: Wire) -> None:
    with under_way(wire, tmp_path) as (made, job), farm(wire.near, tmp_path / "other", lease=LEASE) as other:
        wire.cut()
        begun = time.monotonic()
        other.start()
        until(lambda: not made.is_open(keys_of(job)[0]), 120, why=other.said)
        time.sleep(max(0.0, 3 * LEASE - (time.monotonic() - begun)))
        before = json.dumps(entries(made, job))
        wire.join()
        until(lambda: not made.processes(), 120, why=made.said)
        after = entries(made, job)
        assert json.dumps(after) == before
        assert [entry["kind"] for entry in after] == [log.CLAIM, log.CLAIM, log.END]
