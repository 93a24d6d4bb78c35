from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler.spec.job import Resources
from hostler.worker.claim.slots import NEVER, Device, Offer, Placement, place

GB = 10**9
CPU = Offer(cpus=8, memory=32 * GB)
TWO = Offer(cpus=8, memory=32 * GB, gpus=(Device("GPU-a", 24 * GB), Device("GPU-b", 80 * GB)))

offers = st.builds(
    Offer,
    cpus=st.integers(1, 8).map(float),
    memory=st.integers(1, 64).map(lambda n: n * GB),
    gpus=st.lists(st.sampled_from([0, 24 * GB, 80 * GB]), max_size=3).map(
        lambda sizes: tuple(Device(f"GPU-{i}", size) for i, size in enumerate(sizes))
    ),
    slots=st.none() | st.integers(1, 5),
)
asks = st.builds(
    Resources,
    cpus=st.none() | st.sampled_from([0.5, 1.0, 2.0, 4.0, 16.0]),
    gpus=st.sampled_from([0.0, 0.1, 0.25, 1 / 3, 0.5, 0.7, 1.0, 1.5, 2.0]),
    gpu_memory=st.none() | st.integers(1, 90).map(lambda n: n * GB),
    memory=st.none() | st.integers(1, 80).map(lambda n: n * GB),
)


@given(offers, st.lists(asks, max_size=12))
def test_a_machine_is_never_oversubscribed(offer: Offer, wanted: list[Resources]) -> None:
    taken: list[Placement] = []
    for ask in wanted:
        found = place(offer, taken, ask)
        if isinstance(found, Placement):
            taken.append(found)
    assert offer.slots is None or len(taken) <= offer.slots
    assert sum(one.cpus for one in taken) <= offer.cpus + 1e-6
    assert sum(one.memory for one in taken) <= offer.memory
    for device in offer.gpus:
        on_it = [one for one in taken if device.id in one.devices]
        assert sum(one.share for one in on_it) <= 1 + 1e-6
        assert not device.memory or sum(one.gpu_memory for one in on_it) <= device.memory
        assert len(on_it) == 1 or all(one.share < 1 + 1e-6 for one in on_it)
    assert not any(one.alone for one in taken) or len(taken) == 1


@given(offers, asks)
def test_never_is_said_exactly_when_the_empty_machine_refuses(offer: Offer, ask: Resources) -> None:
    found = place(offer, [], ask)
    assert isinstance(found, Placement) or found.startswith(NEVER)


@given(offers, st.lists(asks, max_size=6), asks)
def test_run_that_fits_the_empty_machine_waits_instead_of_never(
    offer: Offer, wanted: list[Resources], ask: Resources
) -> None:
    taken = [found for one in wanted if isinstance(found := place(offer, [], one), Placement)]
    found = place(offer, taken, ask)
    if isinstance(place(offer, [], ask), Placement):
        assert isinstance(found, Placement) or not found.startswith(NEVER)


def fill(offer: Offer, ask: Resources) -> list[Placement]:
    taken: list[Placement] = []
    while isinstance(found := place(offer, taken, ask), Placement) and len(taken) < 50:
        taken.append(found)
    return taken


@pytest.mark.parametrize(
    ("offer", "ask", "count"),
    [
        (CPU, Resources(), 1),
        (CPU, Resources(cpus=2), 4),
        (CPU, Resources(cpus=1, memory=10 * GB), 3),
        (Offer(8, 32 * GB, slots=3), Resources(), 3),
        (Offer(8, 32 * GB, slots=3), Resources(cpus=1), 3),
        (TWO, Resources(), 2),
        (TWO, Resources(gpus=1), 2),
        (TWO, Resources(gpus=2), 1),
        (TWO, Resources(gpus=0.5), 4),
        (TWO, Resources(gpus=1 / 3), 6),
        (TWO, Resources(gpu_memory=24 * GB), 4),
        (TWO, Resources(gpus=0.25, gpu_memory=24 * GB), 4),
        (TWO, Resources(gpus=1, gpu_memory=40 * GB), 1),
        (TWO, Resources(gpus=1, cpus=6), 1),
    ],
)
def test_so_many_runs_fit(offer: Offer, ask: Resources, count: int) -> None:
    assert len(fill(offer, ask)) == count


def test_whole_gpus_go_to_different_runs_and_name_themselves() -> None:
    assert [one.visible for one in fill(TWO, Resources(gpus=1))] == ["GPU-a", "GPU-b"]


def test_shares_go_to_the_emptiest_gpu_first() -> None:
    assert [one.visible for one in fill(TWO, Resources(gpus=0.5))] == ["GPU-a", "GPU-b", "GPU-a", "GPU-b"]


def test_run_that_asks_for_nothing_gets_its_own_gpu() -> None:
    assert {one.visible for one in fill(TWO, Resources())} == {"GPU-a", "GPU-b"}


def test_run_without_gpu_request_sees_all_with_given_slots() -> None:
    found = place(Offer(8, 32 * GB, TWO.gpus, slots=1), [], Resources())
    assert isinstance(found, Placement) and found.visible is None


def test_whole_gpu_is_not_given_while_shares_are_on_it() -> None:
    taken = fill(TWO, Resources(gpus=0.5))[:2]
    assert "0 free" in str(place(TWO, taken, Resources(gpus=1)))


@pytest.mark.parametrize(
    ("ask", "word"),
    [
        (Resources(cpus=9), "9 CPUs"),
        (Resources(memory=64 * GB), "64 GB"),
        (Resources(gpus=3), "3 GPU"),
        (Resources(gpus=1.5), "whole number"),
        (Resources(gpu_memory=90 * GB), "90 GB"),
    ],
)
def test_what_can_never_fit_says_so_in_plain_words(ask: Resources, word: str) -> None:
    reason = place(TWO, [], ask)
    assert isinstance(reason, str) and reason.startswith(NEVER) and word in reason
