"""What worker processes ask of a bucket for runs that are over at once, counted at the bucket."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hostler.settings import Timing

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
WORKERS, RUNS = 2, 40
RARE = Timing(beat=60.0, lease=600.0, usage=600.0, flush=600.0, flush_max=600.0)


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "")  # which the bucket sets: as before once it is gone
    for name in ("late_buckets", "real_fleet"):
        monkeypatch.delitem(sys.modules, name, raising=False)


def test_run_of_a_real_fleet_costs_claim_end_and_copy() -> None:
    import real_fleet

    played = real_fleet.play(WORKERS, RUNS, latency=0.0, timing=RARE)
    kinds = played.kinds
    # Some claims are lost while the two do not know of each other, and where they meet at the end. A look at
    # all that is open may bring the copy of an end whose holder is about to write it.
    assert 2 * RUNS <= kinds["claims and ends"] <= 2 * RUNS + 6 * WORKERS, kinds
    assert RUNS <= kinds["copies of ends"] <= RUNS + 4 * WORKERS, kinds
    assert kinds["points and output"] == 0, kinds  # nobody reads for a segment what a worker has in memory
    assert 1 <= kinds["segments"] <= 2 * WORKERS, kinds
    assert kinds["names and entries of logs, ends"] <= 24 * WORKERS, kinds
    assert kinds["beginning of a worker, facts of its machine"] <= 16 * WORKERS, kinds
