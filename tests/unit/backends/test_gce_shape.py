"""What a fleet's keys make of its VMs, and what is refused before anything is asked of Google."""

from __future__ import annotations

from typing import Any

import pytest

from hostler.backends.gce.names import GceOwner, described
from hostler.backends.gce.shape import memory_of, shape, warnings
from hostler.errors import UsageError
from hostler.spec.project import Fleet


def fleet(**options: Any) -> Fleet:
    return Fleet(name="burst", backend="gce", options={"zones": ["us-central1-a"], **options})


@pytest.mark.parametrize(
    ("options", "machine", "gpu", "attached"),
    [
        ({}, "e2-standard-4", ("", 0), False),
        ({"machine": "n2-custom-8-32768"}, "n2-custom-8-32768", ("", 0), False),
        ({"gpu": "T4"}, "n1-standard-8", ("T4", 1), True),
        ({"gpu": "t4:4"}, "n1-standard-32", ("T4", 4), True),
        ({"gpu": "V100:8", "machine": "n1-highmem-96"}, "n1-highmem-96", ("V100", 8), True),
        ({"machine": "g2-standard-8"}, "g2-standard-8", ("L4", 1), False),
        ({"machine": "g2-standard-48", "gpu": "L4:4"}, "g2-standard-48", ("L4", 4), False),
        ({"gpu": "A100:2"}, "a2-highgpu-2g", ("A100", 2), False),
        ({"gpu": "nvidia-h100-80gb:8"}, "a3-highgpu-8g", ("H100", 8), False),
        ({"gpu": "RTXPRO6000"}, "g4-standard-48", ("RTXPRO6000", 1), False),
        ({"machine": "g4-standard-384"}, "g4-standard-384", ("RTXPRO6000", 8), False),
        ({"gpu": "T4:1", "machine": "custom-4-8192"}, "custom-4-8192", ("T4", 1), True),
        ({"machine": "n2-custom-2-32768-ext"}, "n2-custom-2-32768-ext", ("", 0), False),
        ({"machine": "n2d-custom-48-98304"}, "n2d-custom-48-98304", ("", 0), False),
        ({"machine": "custom-1-3840"}, "custom-1-3840", ("", 0), False),
    ],
)
def test_machine_and_gpu_follow_from_each_other(
    options: dict[str, Any], machine: str, gpu: tuple[str, int], attached: bool
) -> None:
    found = shape(fleet(**options))
    assert (found.machine, (found.gpu, found.gpus), found.attached) == (machine, gpu, attached)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"zones": []}, "the fleet names no zone"),
        ({"zones": ["us-central1"]}, "'us-central1' is not a zone"),
        ({"exclude_zones": ["us-central1-a"]}, "every zone is excluded"),
        ({"gpu": "T5:1"}, "GPU 'T5' does not exist"),
        ({"gpu": "A100:3"}, "no machine has 3 × A100"),
        ({"machine": "g2-standard-8", "gpu": "T4:1"}, "g2-standard-8 has 1 × L4, not 1 × T4"),
        ({"machine": "Big One"}, "is not a machine type"),
        ({"image": "mine", "family": "ours"}, "image and family cannot be combined"),
        ({"machine": "n2-custom-7-1"}, "7 CPUs: CPUs up to 32 in steps of 2"),
        ({"machine": "n2-custom-8-32100"}, "32100 MB, which is not a multiple of 256"),
        (
            {"machine": "n2-custom-7-14336"},
            "7 CPUs: CPUs up to 32 in steps of 2, then up to 128 in steps of 4",
        ),
        ({"machine": "n2-custom-34-34816"}, "34 CPUs"),
        ({"machine": "n2d-custom-6-6144"}, "6 CPUs"),
        ({"machine": "e2-custom-4-1024"}, "0.25 GiB for each CPU: CPUs up to 32 in steps of 2; 0.5 to 8 GiB"),
        ({"machine": "n2-custom-2-32768"}, "16 GiB for each CPU"),
        ({"machine": "custom-3-3072"}, "3 CPUs: CPUs 1, or up to 96"),
        ({"disk": 0}, "0 GB are too small for an image"),
        ({"disk": 5 << 30}, "5 GB are too small for an image"),
        ({"disk": 100 << 40}, "102400 GB are too large for a disk"),
        ({"gpu": "T4:1", "machine": "e2-standard-4"}, "T4 works with N1 machines only"),
        ({"gpu": "V100:1", "machine": "n1-standard-96"}, "1 × V100 take 12 CPUs at most"),
        ({"gpu": "V100:3", "machine": "n1-standard-8"}, "only 1, 2, 4, 8 are possible"),
        ({"gpu": "T4:8"}, "no machine has 8 × T4"),
        ({"gpu": "A100:1", "machine": "n1-standard-8"}, "A100 comes with machines of its own"),
    ],
)
def test_what_cannot_be_is_refused_and_named(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match="fleet burst") as error:
        shape(fleet(**options))
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("options", "image"),
    [
        ({"image": "mine"}, "global/images/mine"),
        ({"image": "projects/p/global/images/i"}, "projects/p/global/images/i"),
        ({"family": "mine"}, "global/images/family/mine"),
        ({"family": "debian-cloud/debian-12"}, "projects/debian-cloud/global/images/family/debian-12"),
    ],
)
def test_an_image_is_named_in_full(options: dict[str, Any], image: str) -> None:
    assert shape(fleet(**options)).image == image


@pytest.mark.parametrize(
    ("machine", "memory"),
    [
        ("n1-standard-8", 30.0),
        ("n2-custom-8-32768", 32.0),
        ("custom-4-8192", 8.0),
        ("a2-highgpu-2g", 170.0),
        ("m9-x", 0.0),
    ],
)
def test_memory_is_known_from_the_name(machine: str, memory: float) -> None:
    assert memory_of(machine) == memory


def test_host_with_less_memory_than_its_gpus_gives_a_warning() -> None:
    [said] = warnings(shape(fleet(machine="n1-highcpu-16", gpu="V100:4", service_account="me@p.iam")))
    assert "14.4 GiB" in said and "64 GiB" in said
    assert warnings(shape(fleet(machine="g2-standard-8", service_account="me@p.iam"))) == []


def test_names_fit_and_projects_with_long_ones_stay_apart() -> None:
    one, other = GceOwner("p" * 60, "f" * 60, "s"), GceOwner("p" * 59 + "q", "f" * 60, "s")
    assert len(one.name(12345)) <= 54 and one.name(1) != other.name(1)
    assert one.labels != other.labels


def test_a_description_says_whose_it_is_and_another_says_nothing() -> None:
    one, other = GceOwner("a-b", "c", "gs://b"), GceOwner("a", "b-c", "gs://b")
    assert one.name(1) == other.name(1)
    thing = {"name": one.name(1), "description": one.describe(1)}
    assert one.owns(thing) and not other.owns(thing)
    assert described({"description": "my own group"}) == {} == described({})


def test_same_fleet_with_another_store_has_another_owner() -> None:
    one, other = (
        GceOwner("cifar", "burst", "gs://mine/cifar"),
        GceOwner("cifar", "burst", "gs://theirs/cifar"),
    )
    assert one.name(1) == other.name(1)
    for thing in ({"labels": one.labels}, {"description": one.describe(1)}):
        assert one.owns(thing) and not other.owns(thing)
    assert one.filter != other.filter
    assert GceOwner("cifar", "burst", "gs://mine/cifar/").labels == one.labels
    assert all(len(value) <= 63 for value in one.labels.values())
