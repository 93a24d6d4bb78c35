"""How a launch of groups goes on: filled, moved to another region, on demand instead, given up."""

from __future__ import annotations

from dataclasses import replace

from hostler.backends.capacity import Filling, MachineGroup, Move, decide
from hostler.backends.cloud import GiveUp, KeepWaiting, Ready
from hostler.backends.gce import groups
from hostler.backends.gce.reasons import of_machine, reason
from hostler.backends.gce.shape import shape
from hostler.spec.project import Fleet

OUT = (reason("ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"),)
GPUS = (reason("QUOTA_EXCEEDED", "Quota 'GPUS_ALL_REGIONS' exceeded. Limit: 0.0 globally."),)
QUOTA = (reason("QUOTA_EXCEEDED", "Quota 'CPUS' exceeded. Limit: 8.0 in region a."),)
A, B = (
    MachineGroup("us-central1", "g", ("us-central1-a",), 3),
    MachineGroup("us-east1", "g", ("us-east1-b",), 2),
)
TIMES = {"patience": 600.0, "settled": 45.0}


def fleet(*zones: str, workers: int = 5, **more: object) -> Fleet:
    return Fleet(name="burst", backend="gce", workers=workers, options={"zones": list(zones), **more})


def test_group_sizes_add_up_and_first_regions_get_more() -> None:
    found = shape(fleet("us-central1-a", "us-central1-b", "us-east1-b"))
    made = groups.split(found, "g", 5)
    assert [(one.region, one.zones, one.size) for one in made] == [
        ("us-central1", ("us-central1-a", "us-central1-b"), 3),
        ("us-east1", ("us-east1-b",), 2),
    ]


def test_excluded_zones_are_left_out_of_the_groups() -> None:
    found = shape(fleet("us-central1-a", "us-central1-b", exclude_zones=["us-central1-a"]))
    [made] = groups.split(found, "g", 1)
    assert made.zones == ("us-central1-b",)


def test_a_launch_waits_while_vms_are_being_made() -> None:
    assert decide([Filling(A, 3, 1)], (), waited=1.0, **TIMES) == KeepWaiting()


def test_a_launch_is_ready_when_all_run() -> None:
    assert decide([Filling(A, 3, 3), Filling(B, 2, 2)], (), waited=1.0, **TIMES) == Ready()


def test_region_without_stock_gets_time_for_its_other_zones() -> None:
    assert decide([Filling(A, 3, 0, OUT), Filling(B, 2, 0)], (), waited=10.0, **TIMES) == KeepWaiting()


def test_what_one_region_does_not_get_another_tries() -> None:
    found = decide([Filling(A, 3, 1, OUT), Filling(B, 2, 2)], (), waited=50.0, **TIMES)
    assert found == Move(((B, 4), (A, 1)))


def test_a_quota_of_one_region_moves_on_to_another() -> None:
    assert isinstance(decide([Filling(A, 3, 0, QUOTA), Filling(B, 2, 0)], (), waited=50.0, **TIMES), Move)


def test_exhausted_spot_is_replaced_by_on_demand_where_preferred() -> None:
    spare = groups.instead((A, B))
    found = decide([Filling(A, 3, 1, OUT), Filling(B, 2, 0, OUT)], spare, waited=50.0, **TIMES)
    assert found == Move(((spare[0], 4), (A, 1), (B, 0)))
    assert not spare[0].spot and spare[0].name != A.name


def test_nothing_anywhere_is_given_up_after_a_bounded_wait() -> None:
    view = [Filling(A, 3, 0, OUT), Filling(B, 2, 0, OUT)]
    assert decide(view, (), waited=599.0, **TIMES) == KeepWaiting()
    found = decide(view, (), waited=600.0, **TIMES)
    assert isinstance(found, GiveUp) and found.later and "us-central1: the zone has none left" in found.why


def test_some_vms_are_enough_when_the_wait_is_over() -> None:
    assert decide([Filling(A, 3, 1, OUT)], (), waited=600.0, **TIMES) == Ready()


def test_exhausted_project_quota_stops_the_launch_and_says_where() -> None:
    found = decide([Filling(A, 3, 0, GPUS), Filling(B, 2, 0)], (), waited=1.0, **TIMES)
    assert isinstance(found, GiveUp) and not found.later and "GPUS_ALL_REGIONS" in found.why
    assert "iam-admin/quotas" in found.hint


def test_group_that_shrank_to_nothing_is_not_waited_for() -> None:
    assert decide([Filling(replace(A, size=0), 0, 0)], (), waited=0.0, **TIMES) == Ready()


def test_region_that_google_calls_exhausted_is_left_immediately() -> None:
    view = [Filling(A, 3, 0, OUT), Filling(B, 2, 2)]
    assert decide(view, (), waited=1.0, **TIMES) == KeepWaiting()
    found = decide(view, (), waited=1.0, advice={"us-central1": 0.0}, **TIMES)
    assert found == Move(((B, 5), (A, 0)))


def test_what_is_missing_goes_where_google_says_it_is_likely() -> None:
    c = MachineGroup("us-west1", "g", ("us-west1-a",), 1)
    view = [Filling(A, 3, 0, OUT), Filling(B, 2, 2), Filling(c, 1, 1)]
    found = decide(view, (), waited=50.0, advice={"us-east1": 0.2, "us-west1": 0.9}, **TIMES)
    assert found == Move(((c, 4), (A, 0)))


def test_nothing_moves_back_to_a_region_that_was_out_before() -> None:
    view = [Filling(A, 0, 0), Filling(B, 5, 0, OUT)]
    assert decide(view, (), waited=50.0, left=[A], **TIMES) == KeepWaiting()
    assert isinstance(decide(view, (), waited=600.0, left=[A], **TIMES), GiveUp)


def test_regions_exhausted_one_after_another_are_replaced_on_demand() -> None:
    spare = groups.instead((A, B))
    found = decide([Filling(A, 0, 0), Filling(B, 5, 0, OUT)], spare, waited=50.0, left=[A], **TIMES)
    assert found == Move(((spare[0], 5), (B, 0)))


def test_quota_exhausted_everywhere_says_where_to_ask_for_more() -> None:
    found = decide([Filling(A, 3, 0, QUOTA)], (), waited=600.0, **TIMES)
    assert isinstance(found, GiveUp) and found.later and "a quota of the region" in found.why
    assert "iam-admin/quotas" in found.hint


def test_requests_refused_everywhere_are_not_waited_for_beside_running_vms() -> None:
    for why in (OUT, QUOTA, GPUS):
        assert decide([Filling(A, 3, 1, why)], (), waited=44.0, **TIMES) == KeepWaiting()
        assert (
            decide([Filling(A, 3, 1, why), Filling(B, 2, 2)], (), waited=50.0, left=[B], **TIMES) == Ready()
        )
    assert (
        decide([Filling(A, 3, 1, OUT), Filling(B, 2, 1)], (), waited=50.0, left=[B], **TIMES) == KeepWaiting()
    )


def test_unknown_error_of_google_is_passed_on_in_its_words() -> None:
    told = of_machine("INVALID_FIELD_VALUE", "The disk is too small for the image.")
    assert told.words == "Compute Engine does not accept the request: The disk is too small for the image."
    assert of_machine("ZONE_RESOURCE_POOL_EXHAUSTED", "Try later.") == OUT[0]
