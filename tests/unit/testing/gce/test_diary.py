"""What befell emulated machines, as a trace."""

from __future__ import annotations

import math

from hostler.emulators.gce.diary import ASKED, BACK, OUT, SAID, TAKEN, Entry, trace
from hostler.emulators.gce.meter import Usage
from hostler.simulate.stock import Outage
from hostler.simulate.trace import Leave, MachineLoss, MachineStart


def stretch(name: str, began: float, seconds: float, zone: str = "a", kind: str = "machine") -> Usage:
    return Usage(kind, name, zone, "e2-standard-4", True, (), 0, (), began, seconds)


def test_times_count_from_the_first_launch_and_only_machines_count() -> None:
    entries = [
        Entry(100, ASKED, "group"),
        Entry(104, SAID, "x", "working"),
        Entry(150, SAID, "x", "leaving: done"),
    ]
    found = trace(entries, [stretch("x", 102, 50), stretch("x", 101, 60, kind="disk")], 20.0)
    assert found.scale == 20 and found.starts == (MachineStart(0, 2, 2, "a"),)
    assert found.leaves == (Leave(0, 50, 52),) and found.losses == ()


def test_returning_machine_keeps_its_number_and_moved_one_too() -> None:
    used = [stretch("x", 0, 10), stretch("y", 1, 100), stretch("x", 15, 10), stretch("z", 30, 5, "b")]
    entries = [Entry(0, ASKED), Entry(8, TAKEN, "x", notice=True), Entry(25, TAKEN, "x")]
    found = trace(entries, used, 1.0)
    assert [(one.vm, one.zone) for one in found.starts] == [(0, "a"), (1, "a"), (0, "a"), (0, "b")]
    assert found.losses == (MachineLoss(0, 8, 10, notice=True), MachineLoss(0, 25, 25, notice=False))


def test_shortages_begin_and_end_for_one_zone_or_for_all() -> None:
    entries = [
        Entry(0, OUT, "a"),
        Entry(5, ASKED),
        Entry(6, OUT, "b"),
        Entry(9, BACK, "a"),
        Entry(12, OUT, "a"),
    ]
    assert trace(entries, [], 1.0).outages == (Outage("a", 0, 4), Outage("b", 1), Outage("a", 7))
    assert trace([*entries, Entry(15, BACK)], [], 1.0).outages[1:] == (Outage("b", 1, 10), Outage("a", 7, 10))
    assert trace(entries, [], 1.0).outages[1].ends == math.inf


def test_a_shortage_that_was_over_before_the_launch_is_none() -> None:
    entries = [Entry(0, OUT, "a"), Entry(3, BACK, "a"), Entry(5, ASKED)]
    assert trace(entries, [], 1.0).outages == ()
