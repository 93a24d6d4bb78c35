"""A VM as it sees itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

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


class Ending(GceClient):
    """Three groups of a launch and its template; the VM that asks is taken away before some request."""

    def __init__(self, lasts: int) -> None:
        super().__init__("p")
        self.lasts = lasts  # changes until then
        self.members = {f"regions/{one}/instanceGroupManagers/x-1": 0 for one in ("a-1", "us-east1", "z-1")}
        self.members[OWN] = 1
        self.templates = {"global/instanceTemplates/x-1"}
        self.alone = False  # the VM is in no group

    def _lives(self) -> None:
        if not self.lasts:
            raise KeyboardInterrupt
        self.lasts -= 1

    def change(self, verb: str, path: str, body: Any = None, **query: Any) -> dict[str, Any]:
        assert (verb, path) == ("POST", f"{OWN}/abandonInstances")
        if not self.alone:
            self._lives()
            self.members[OWN], self.alone = 0, True
        return {}

    def delete(self, path: str) -> bool:
        self._lives()
        assert self.alone or path != OWN, "a group takes its VMs along"
        assert path not in self.templates or not self.members, "a group uses it"
        found = path in self.members or path in self.templates
        self.members.pop(path, None)
        self.templates.discard(path)
        return found

    def find(self, path: str) -> dict[str, Any] | None:
        return {}

    def begin(self, verb: str, path: str, body: Any = None) -> str:
        self._lives()
        assert (verb, path) == ("DELETE", "zones/us-east1-b/instances/x-1-abcd")
        return "operation"

    def managed(self, group: str) -> Iterator[dict[str, Any]]:
        yield from ()


OWN = "regions/us-east1/instanceGroupManagers/x-1"
CHANGES = 6  # two groups, out of its own, that, the template, itself


def ended(client: Ending) -> None:
    made = GceHost()
    made.vm = Vm("x-1-abcd", "us-east1-b", {"groups": [*client.members], "templates": ["x-1"]}, client)
    made.tear_down(lambda: None)


@pytest.mark.parametrize("changes", range(CHANGES))
def test_vm_lost_while_it_ends_its_launch_comes_back_or_leaves_one_group(changes: int) -> None:
    client = Ending(changes)
    with pytest.raises(KeyboardInterrupt):
        ended(client)
    if client.members.get(OWN):  # its group makes it anew, and that one ends what is left
        client.lasts = CHANGES
        ended(client)
        assert not client.members and not client.templates
    else:
        assert set(client.members) <= {OWN}, "what the next launch finds and removes is as little as can be"


def test_end_of_a_launch_leaves_nothing_of_it() -> None:
    client = Ending(CHANGES)
    ended(client)
    assert not client.members and not client.templates and not client.lasts
