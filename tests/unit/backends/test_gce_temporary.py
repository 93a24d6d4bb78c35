"""The temporary VM of an image, held against Google's document; what is refused before it is asked for."""

from __future__ import annotations

from typing import Any

import pytest

from gce_oracle import check_request
from hostler.backends.gce.images import temporary
from hostler.backends.gce.shape import shape
from hostler.backends.images import Image, Recipe, older
from hostler.errors import UsageError
from hostler.spec.project import Fleet

RECIPE = Recipe("mine", "echo hi\n", "setup.sh", "needs.txt", {"needs.txt": "numpy"}, "numpy", seconds=60)


def made(recipe: Recipe = RECIPE, disk: str = "", **options: Any) -> dict[str, Any]:
    given = {"project": "p", "zones": ["us-central1-a"], "spot": False, **options}
    found = shape(Fleet("burst", "gce", options=given))
    marked = temporary.labels(recipe, 1_800_000_000.0)
    return temporary.body("hostler-image-ab", "us-central1-a", found, recipe, "ab", marked, "", disk)


def metadata(body: dict[str, Any]) -> dict[str, str]:
    return {one["key"]: one["value"] for one in body["metadata"]["items"]}


@pytest.mark.parametrize("options", [{}, {"gpu": "T4:1"}, {"gpu": "L4:1"}])
def test_compute_engine_removes_the_temporary_vm_by_its_own_timer(options: dict[str, str]) -> None:
    path = "/compute/v1/projects/p/zones/us-central1-a/instances"
    body = made(**options)
    assert check_request("POST", path, {}, body) == "instances.insert"
    assert body["scheduling"]["instanceTerminationAction"] == "DELETE"
    assert body["scheduling"]["maxRunDuration"] == {"seconds": "1860"}
    assert body["scheduling"]["provisioningModel"] == "STANDARD"
    assert body["disks"][0]["autoDelete"] is True
    assert body["labels"] == {"hostler-family": "mine", "hostler-until": "1800000000"}


def test_temporary_vm_gets_its_orders_and_uses_a_copied_disk() -> None:
    told = metadata(made())
    assert told["hostler-script"] == "echo hi\n" and told["block-project-ssh-keys"] == "TRUE"
    assert '"clean": false' in told["hostler-image"]
    body = made(Recipe("mine", vm="dev"), disk="projects/p/zones/z/disks/d")
    assert body["disks"][0]["source"] == "projects/p/zones/z/disks/d" and body["disks"][0]["autoDelete"]
    assert '"clean": true' in metadata(body)["hostler-image"]
    assert "hostler-script" not in metadata(body)


@pytest.mark.parametrize("family", ["", "Mine", "9mine", "mine-", "a b", "m" * 42, "my_family", "é"])
def test_a_name_that_is_none_is_refused(family: str) -> None:
    with pytest.raises(UsageError, match="not a valid family name"):
        temporary.check(Recipe(family, "x"))


def test_what_metadata_cannot_hold_is_refused() -> None:
    temporary.check(Recipe("mine", "x" * 256 * 1024, "setup.sh"))
    with pytest.raises(UsageError, match=r"setup\.sh is too large for a VM's metadata: 256 KB of 256"):
        temporary.check(Recipe("mine", "x" * (256 * 1024 + 1), "setup.sh"))
    large = "x" * 250_000
    with pytest.raises(UsageError, match="too large for a VM's metadata together"):
        temporary.check(Recipe("mine", large, "setup.sh", "needs.txt", {"needs.txt": large}))


def image(n: int, **more: Any) -> Image:
    return Image(f"mine-{n}", "mine", f"2026-01-0{n}T00:00:00Z", 1, 10, **more)


def test_newest_images_stay_and_so_do_foreign_and_unready_ones() -> None:
    there = [image(4, ready=False), image(3), image(2, ours=False), image(1)]
    assert [one.name for one in older(there, 1)] == ["mine-1"]
    assert [one.name for one in older(there, 0)] == ["mine-3", "mine-1"]
    assert older(there, 5) == []
