"""Runs that hardly use their GPU are offered company, with the rate of both ways."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hostler.records.sweep import gpu_company
from hostler.records.sweep.gpu_company import offer
from seen_world import Seen

GB = 10**9


def end(share: float = 1.0, use: float = 9.0, used: float = 2.1, **more: Any) -> dict[str, Any]:
    gpu = {"memory": 24 * GB, "share": share, "use": use, "used": used * GB, **more}
    return {"state": "done", "gpu": gpu}


def test_run_that_uses_a_tenth_is_offered_a_quarter() -> None:
    found = offer([end(rate=12.0), end(use=11.0, rate=14.0)])
    assert found is not None and found.line == (
        "a run computes 10 % of the time on its GPU, and uses 2.1 of its 24 GB: `resources: {gpus: 0.25}` "
        "puts 4 on one; alone 13 steps/s, in company not measured yet"
    )


def test_rate_in_company_stands_beside_the_one_alone() -> None:
    found = offer([end(rate=12.0), *[end(share=0.25, use=40.0, rate=10.0)] * 3])
    assert found is not None
    assert found.line.endswith("alone 12 steps/s, in company 10 steps/s each, 40 together")


@pytest.mark.parametrize(
    "ends",
    [[], [end(use=60.0)], [end(used=7.0)], [end(share=0.25)], [end(share=2.0)],
     [{**end(), "state": "failed"}], [end(use=5.0), end(use=50.0)], [{"state": "done"}]],
    ids=["none", "computes", "full", "shares", "two", "failed", "others compute", "no gpu"],
)  # fmt: skip
def test_others_are_offered_nothing(ends: list[dict[str, Any]]) -> None:
    assert offer(ends) is None


def test_offer_is_read_from_the_ends_of_a_sweep(tmp_path: Path) -> None:
    seen = Seen(tmp_path / "store")
    job = seen.submit("grid", [{"lr": n} for n in range(3)])
    assert gpu_company.of_sweep(seen.store, "grid") is None
    seen.claim(job, 0)
    seen.end(job, 0, gpu=end(rate=3.0)["gpu"])
    found = gpu_company.of_sweep(seen.store, "grid")
    assert found is not None and found.alone == 3.0
