"""How a task that died hard ended: by the texts of sacct and scontrol, asked once for an array."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from hostler.backends.slurm.fates import FRESH, Fates, of_accounting, of_controller
from hostler.backends.slurm.host import SlurmHost

SACCT = """71_0|COMPLETED
71_0.batch|COMPLETED
71_1|OUT_OF_MEMORY
71_1.batch|OUT_OF_MEMORY
71_2|CANCELLED by 1000
71_2.batch|CANCELLED
71_3|NODE_FAIL
71_3|RUNNING
71_3.batch|RUNNING
71_4|TIMEOUT
71_5|FAILED
71_5.0|OUT_OF_MEMORY
71_6|PREEMPTED
71_7|FAILED
71_[8-9]|PENDING
72_0|FAILED|0:9||cpu=1,mem=400M,node=1|1
72_0.batch|CANCELLED by 0|0:9|413568K||1
72_1|FAILED|0:9||cpu=1,mem=400M,node=1|1
72_1.batch|FAILED|0:9|113568K||1
72_2|FAILED|1:0||cpu=1,mem=400M,node=1|1
72_2.batch|FAILED|1:0|537.50M||1
72_3|FAILED|0:9||cpu=4,mem=2G,node=4|4
72_3.0|CANCELLED by 0|0:9|537.50M||4
72_4|PREEMPTED|0:0||cpu=1,mem=400M,node=1|1
72_4.batch|CANCELLED|0:15|1K||1
72_4|FAILED|0:9||cpu=1,mem=400M,node=1|1
72_4.batch|FAILED|0:9|1K||1
72_5|FAILED|0:9|||1
72_5.batch|FAILED|0:9|1T||1
"""  # 72: a site without cgroups, where whoever takes too much is killed as a failure
SCONTROL = """JobId=73 ArrayJobId=71 ArrayTaskId=1 JobName=grid JobState=OUT_OF_MEMORY Reason=None
JobId=71 ArrayJobId=71 ArrayTaskId=9 JobName=ArrayTaskId=1 JobState=NODE_FAIL Reason=NodeDown Requeue=1
JobId=80 JobName=grid UserId=me(1000) JobState=CANCELLED Reason=None
"""


@pytest.mark.parametrize(
    ("task", "fate"),
    [
        ("71_0", ""),
        ("71_1", "memory"),
        ("71_2", "cancelled"),
        ("71_3", "node-fail"),
        ("71_4", "timeout"),
        ("71_5", "memory"),
        ("71_6", "preempted"),
        ("71_7", ""),
        ("71_8", None),
        ("71", None),
        ("72_0", "memory"),
        ("72_1", ""),
        ("72_2", ""),
        ("72_3", "memory"),
        ("72_4", ""),
        ("72_5", ""),
    ],
)
def test_accounting_tells_the_last_end_of_a_task(task: str, fate: str | None) -> None:
    assert of_accounting(SACCT, task) == fate


@pytest.mark.parametrize(
    ("task", "fate"), [("71_1", "memory"), ("71_9", "node-fail"), ("80", "cancelled"), ("71", ""), ("73", "")]
)
def test_controller_tells_the_end_of_a_task(task: str, fate: str) -> None:
    assert of_controller(SCONTROL, task) == fate


def test_all_tasks_of_an_array_are_one_question() -> None:
    asked, now = list[str](), [0.0]

    def run(words: Sequence[str]) -> str | None:
        asked.append(words[0])
        return SACCT

    fates = Fates(run, lambda: now[0])
    assert [fates.of(f"71_{n}") for n in range(1, 5)] == ["memory", "cancelled", "node-fail", "timeout"]
    assert asked == ["sacct"]
    now[0] = FRESH + 1
    fates.of("71_1")
    assert asked == ["sacct", "sacct"]


def test_end_unknown_to_accounting_is_asked_of_the_controller() -> None:
    """The database hears of an end later than the controller."""
    late = "71_1|RUNNING|0:0||cpu=1,mem=400M,node=1|1\n71_9|RUNNING|0:0|||1\n71_3|FAILED|1:0|||1\n"
    asked = list[str]()

    def run(words: Sequence[str]) -> str | None:
        asked.append(words[0])
        return SCONTROL if words[0] == "scontrol" else late

    fates = Fates(run, lambda: 0.0)
    assert fates.of("71_3") == "" and asked == ["sacct"]
    assert [fates.of("71_1"), fates.of("71_9")] == ["memory", "node-fail"]
    assert asked == ["sacct", "scontrol"]


def test_site_without_accounting_asks_the_controller() -> None:
    asked = list[str]()

    def run(words: Sequence[str]) -> str | None:
        asked.append(words[0])
        return SCONTROL if words[0] == "scontrol" else None

    host = replace(SlurmHost("71_0", site="tau"), _fates=Fates(run))
    assert host.fate("slurm tau 71_1") == "memory" and asked == ["sacct", "scontrol"]
    assert host.fate("slurm other 71_1") == "" and host.fate("") == "" and len(asked) == 2
    assert host.job() == "slurm tau 71_0" and SlurmHost().job() == ""
