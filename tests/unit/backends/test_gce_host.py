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


class Groups(GceClient):
    """Groups of a launch by path, with their sizes."""

    def __init__(self, **sizes: int) -> None:
        super().__init__("p")
        self.sizes = {f"regions/{region}/instanceGroupManagers/x-1": size for region, size in sizes.items()}

    def find(self, path: str) -> dict[str, Any] | None:
        return {"targetSize": self.sizes[path]} if path in self.sizes else None

    def change(self, verb: str, path: str, body: Any = None, **query: Any) -> dict[str, Any]:
        assert verb == "POST" and path.endswith("/resize")
        self.sizes[path.removesuffix("/resize")] = query["size"]
        return {}


class Beside(Groups):
    """Another worker grows its own group by three at the same moment."""

    def change(self, verb: str, path: str, body: Any = None, **query: Any) -> dict[str, Any]:
        if sum(self.sizes.values()) < 6:
            self.sizes["regions/europe-west4/instanceGroupManagers/x-1"] += 3
        return super().change(verb, path, body, **query)


def grown(client: Groups, workers: int, most: int) -> tuple[int | None, dict[str, int]]:
    made = GceHost()
    gone = "regions/us-west1/instanceGroupManagers/x-1"
    made.vm = Vm("x-1-abcd", "us-east1-b", {"groups": [*client.sizes, gone]}, client)
    found = made.grow(workers, most)
    return found, {path.split("/")[1]: size for path, size in client.sizes.items()}


def test_group_of_the_vm_gets_the_workers_that_are_lacking() -> None:
    sizes = {"us-east1": 1, "europe-west4": 2}
    assert grown(Groups(**sizes), 6, 8) == (6, {"us-east1": 4, "europe-west4": 2})
    assert grown(Groups(**sizes), 9, 5) == (5, {"us-east1": 3, "europe-west4": 2})
    assert grown(Groups(**sizes), 0, 5) == (3, sizes) == grown(Groups(**sizes), 2, 5)


def test_two_workers_that_grow_at_once_stay_within_the_cap() -> None:
    found, sizes = grown(Beside(**{"us-east1": 1, "europe-west4": 2}), 6, 7)
    assert found == 7 == sum(sizes.values())
