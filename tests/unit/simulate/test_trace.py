"""Traces as files, what is no trace, and the habits that one shows."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from hostler.errors import SpecError
from hostler.simulate import trace
from hostler.simulate.stock import Outage
from hostler.simulate.times import VaryingSeconds
from hostler.simulate.trace import Leave, MachineLoss, MachineStart, Trace
from hostler.simulate.weather import Habits, habits_of

FULL = Trace(
    20.0,
    (MachineStart(0, 1.5, 60.0, "us-central1-a"), MachineStart(1, 2.0)),
    (MachineLoss(0, 100.0, 130.0), MachineLoss(1, 200.0, 200.0, notice=False)),
    (Leave(0, 900.0, 905.0),),
    (Outage("us-central1-a", 0.0, 50.0), Outage("us-central1-b", 10.0, math.inf)),
)


def test_a_trace_is_read_as_it_was_written(tmp_path: Path) -> None:
    trace.write(FULL, tmp_path / "t")
    assert trace.read(tmp_path / "t") == FULL


def test_trace_lines_may_come_in_any_order_or_be_missing(tmp_path: Path) -> None:
    (tmp_path / "t").write_text(
        '\n{"kind": "loss", "vm": 0, "at": 9}\n{"kind": "loss", "vm": 1, "at": 3, "gone": 4}\n'
    )
    assert trace.read(tmp_path / "t") == Trace(losses=(MachineLoss(1, 3, 4), MachineLoss(0, 9, 9)))
    (tmp_path / "t").write_text('{"kind": "stockout", "zone": "a", "begins": 5}\n')
    assert trace.read(tmp_path / "t") == Trace(outages=(Outage("a", 5.0, math.inf),))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("not json", "t:1: not a line of a trace"),
        ("[1]", "t:1: not a line of a trace"),
        ('{"vm": 0}', "t:1: 'kind' is missing"),
        ('{"kind": "quake"}', "'quake' is not start, loss, leave or stockout"),
        ('{"kind": "loss", "vm": 0}', "t:1: 'at' is missing"),
        ('{"kind": "loss", "vm": 0, "at": -1}', "at: -1 is not a number of seconds"),
        ('{"kind": "loss", "vm": 0, "at": "soon"}', "at: 'soon' is not a number"),
        ('{"kind": "loss", "vm": 0, "at": 9, "gone": 8}', "`gone` is earlier than `at`"),
        ('{"kind": "loss", "vm": 0, "at": NaN}', "is not a number of seconds"),
        ('{"kind": "loss", "vm": 1e999, "at": 1}', "vm: inf is not the number of a machine"),
        ('{"kind": "loss", "vm": 1.5, "at": 1}', "vm: 1.5 is not the number of a machine"),
        ('{"kind": "loss", "vm": -1, "at": 1}', "vm: -1 is not the number of a machine"),
        ('{"kind": "stockout", "zone": "a", "begins": 5, "ends": 5}', "the stockout ends before it begins"),
        ('{"format": 1, "scale": -1}', "scale: -1 is not a number above zero"),
        ('{"format": 2}', "format 2 is not 1"),
        ('{"format": 1, "scale": 0}', "scale is 0"),
        ('{"format": 1}', "the trace has no events"),
        ("", "the trace has no events"),
    ],
)
def test_what_is_no_trace_is_said_with_its_line(tmp_path: Path, line: str, said: str) -> None:
    (tmp_path / "t").write_text(line)
    with pytest.raises(SpecError) as caught:
        trace.read(tmp_path / "t")
    assert said in caught.value.message and "docs/simulate.md" in caught.value.hint


def test_machines_that_train_together_are_lost_together() -> None:
    found = trace.of_teams(
        Trace(starts=tuple(MachineStart(n, n, n) for n in range(4)), losses=(MachineLoss(3, 9, 9),)), 2
    )
    assert found.losses == (MachineLoss(1, 9, 9),) and found.starts == (
        MachineStart(0, 1, 1),
        MachineStart(1, 3, 3),
    )
    assert trace.of_teams(FULL, 1) is FULL


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="No such file"):
        trace.read(tmp_path / "t")
    (tmp_path / "t").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SpecError, match="not a text file"):
        trace.read(tmp_path / "t")


def test_the_habits_of_machines_are_those_of_the_trace() -> None:
    starts = (MachineStart(0, 3, 60), MachineStart(1, 5), MachineStart(0, 108, 70))
    found = Trace(starts=starts, losses=(MachineLoss(0, 100, 101),), leaves=(Leave(1, 50, 58),))
    assert habits_of(found, Habits(notice=9)) == Habits(
        VaryingSeconds((3, 5, 7)), VaryingSeconds((60, 70)), VaryingSeconds((8,)), 9
    )
    assert habits_of(Trace(), Habits(boots=VaryingSeconds((1,)))) == Habits(boots=VaryingSeconds((1,)))


def test_machine_that_waited_for_its_zone_gives_no_start_time() -> None:
    starts = (MachineStart(0, 3, zone="b"), MachineStart(1, 95, zone="a"))
    outages = (Outage("a", 0, 90),)
    assert habits_of(Trace(starts=starts, outages=outages), Habits()).comes == VaryingSeconds((3,))
    assert habits_of(Trace(starts=starts[1:], outages=outages), Habits()).comes == VaryingSeconds((95,))
