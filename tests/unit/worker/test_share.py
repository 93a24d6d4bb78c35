"""Which part of a machine's price a run bears."""

from __future__ import annotations

import pytest

from hostler.worker.claim.room import share
from hostler.worker.claim.slots import Device, Offer, Placement

GPUS = tuple(Device(str(n), 16) for n in range(4))


@pytest.mark.parametrize(
    ("offer", "placed", "part"),
    [
        (Offer(8, 100), Placement(alone=True), 1.0),
        (Offer(8, 100, slots=4), Placement(), 0.25),
        (Offer(8, 100, GPUS), Placement(("0", "1"), share=1.0), 0.5),
        (Offer(8, 100, GPUS), Placement(("0",), share=0.5), 0.125),
        (Offer(8, 100), Placement(cpus=2, memory=50), 0.5),
        (Offer(8, 100, GPUS), Placement(("0",), share=1.0, cpus=8), 1.0),
        (Offer(8, 100), Placement(), 1.0),
    ],
)
def test_a_run_bears_the_largest_of_its_parts(offer: Offer, placed: Placement, part: float) -> None:
    assert share(offer, placed) == part
