"""Attempts whose worker is gone: what its platform's word for that makes of them."""

from __future__ import annotations

import pytest

from hostler.worker.claim.claimer import lost


@pytest.mark.parametrize("fate", ["preempted", "timeout", "node-fail", "cancelled", "evicted"])
def test_end_that_is_nobodys_fault_counts_as_lost(fate: str) -> None:
    assert lost(3, True, fate).record() == {
        "why": fate,
        "counts": "lost",
        "attempt": 3,
        "progress": True,
    }


def test_end_that_nobody_tells_is_lost() -> None:
    assert (lost(1, False, "").why, lost(1, False, "").counts) == ("lost", "lost")


@pytest.mark.parametrize(
    ("fate", "kind", "message"),
    [
        ("memory", "memory", "its worker was killed for using more memory than it was given"),
        (
            "disk-full: Usage of EmptyDir volume exceeds the limit: 1Gi",
            "disk-full",
            "its worker was killed for using more disk than it was given "
            "(Usage of EmptyDir volume exceeds the limit: 1Gi)",
        ),
    ],
)
def test_end_that_the_run_brought_about_counts_as_failure(fate: str, kind: str, message: str) -> None:
    found = lost(2, False, fate)
    assert (found.why, found.counts) == (kind, "failures")
    assert found.failure and (found.failure["kind"], found.failure["message"]) == (kind, message)
    assert "limit" in found.failure["advice"] or "resources.memory" in found.failure["advice"]
