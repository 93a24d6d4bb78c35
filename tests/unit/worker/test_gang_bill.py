"""What the others of a gang cost its run."""

from __future__ import annotations

import pytest

from hostler.records.run.gang import GangMember, GangView
from hostler.worker.gang.leader import Bill

HOUR = 3600.0


def member(slot: int, rate: float | None, **more: object) -> GangMember:
    facts = {"session": f"s{slot}", "host": f"h{slot}"}
    return GangMember(slot, facts, ready={"rate": rate}, exit=more or None)  # type: ignore[arg-type]


def test_each_member_counts_from_its_arrival_to_its_end() -> None:
    bill = Bill()
    leader = GangMember(0, {"session": "s0"})
    early = GangMember(1, {"session": "s1"})
    bill.see(GangView({0: leader, 1: early}), (), 0.0)
    bill.see(GangView({0: leader, 1: member(1, 2.0), 2: member(2, 1.0)}), (), HOUR)
    assert bill.total == pytest.approx(2.0)
    bill.see(GangView({0: leader, 1: member(1, 2.0), 2: member(2, 1.0)}), (), 2 * HOUR)
    assert bill.total == pytest.approx(5.0)
    bill.see(GangView({0: leader, 1: member(1, 2.0, kind="done"), 2: member(2, 1.0)}), ("s2",), 9 * HOUR)
    assert bill.total == pytest.approx(5.0)


def test_unready_and_unpriced_members_cost_nothing() -> None:
    bill = Bill()
    for now in (0.0, HOUR):
        bill.see(GangView({1: GangMember(1, {"session": "s1"}), 2: member(2, None)}), (), now)
    assert bill.total == 0.0
