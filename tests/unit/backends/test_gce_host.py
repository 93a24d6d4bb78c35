"""A VM as it sees itself."""

from __future__ import annotations

from typing import Any

from hostler.backends.gce.client import GceClient
from hostler.backends.gce.host import GceHost, Vm
from hostler.errors import CloudUnavailable


class Told(GceClient):
    """Compute Engine, as far as one VM is asked for."""

    def __init__(self, body: dict[str, Any] | None) -> None:
        super().__init__("p")
        self.body = body

    def get(self, path: str, **query: str | int) -> dict[str, Any]:
        assert path == "zones/us-east1-b/instances/x-1-abcd"
        if self.body is None:
            raise CloudUnavailable("no answer")
        return self.body


def host(body: dict[str, Any] | None) -> GceHost:
    made = GceHost()
    made.vm = Vm("x-1-abcd", "us-east1-b", {}, Told(body))
    return made


def test_a_vm_is_as_old_as_compute_engine_says() -> None:
    made = {"id": "77", "creationTimestamp": "2026-11-15T11:00:00.500-08:00"}
    assert host(made).born(lambda: 1794769200.5 + 42) == ("77", 42.0)
    assert host(made).born(lambda: 0.0) == ("77", 0.0)


def test_one_that_is_not_told_counts_from_its_worker_on() -> None:
    assert host(None).born() == host({}).born() == ("", 0.0)


def test_vm_made_again_under_its_name_has_the_same_place() -> None:
    place, tenant = host(None).place(lambda: 1000.7)
    assert (place, tenant) == ("zones/us-east1-b/instances/x-1-abcd", 1000)
    assert host(None).place(lambda: 1090.2) == (place, 1090)
