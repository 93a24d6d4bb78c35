"""Which VM a person means who names only the fleet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hostler.backends.gce import entrance
from hostler.backends.gce.client import GceClient
from hostler.backends.gce.names import KEPT, GceOwner
from hostler.errors import MissingError

OWNER = GceOwner("cifar", "burst", "gs://runs/cifar")


class Cloud(GceClient):
    """VMs that run, all with one host key."""

    def __init__(self, *names: str) -> None:
        super().__init__("p")
        self.names = names

    def aggregated(self, kind: str, **query: str | int) -> Iterator[dict[str, Any]]:
        assert kind == "instances" and query["filter"] == OWNER.filter
        for name in self.names:
            yield {
                "name": name,
                "status": "RUNNING",
                "zone": "z/us-east1-b",
                "networkInterfaces": [{"networkIP": "10.0.0.2"}],
            }

    def find(self, path: str, **query: str | int) -> dict[str, Any]:
        return {"queryValue": {"items": [{"key": "ssh-ed25519", "value": "AAAA"}]}}


def test_the_vm_for_hand_work_comes_before_those_that_work() -> None:
    kept, other = OWNER.name(KEPT), f"{OWNER.name(1)}-abcd"
    assert entrance.address(Cloud(other, kept), OWNER, "").name == kept
    assert entrance.address(Cloud(other, kept), OWNER, other).name == other
    assert entrance.address(Cloud(other), OWNER, "").name == other


def test_of_several_that_work_one_must_be_named() -> None:
    with pytest.raises(MissingError, match="name one of them"):
        entrance.address(Cloud("a", "b"), OWNER, "")
    with pytest.raises(MissingError, match="no VM of fleet burst runs"):
        entrance.address(Cloud(), OWNER, "")
