"""squeue's answers of many versions, its states and reasons, each to what it means.

Samples are written from the manual pages of squeue (versions 20.02 to 25.05) and Slurm's job state and reason
tables; nothing here is a copy of a site's output.
"""

# ruff: noqa: E501  (tables)
from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from hostler.backends.slurm import queue
from hostler.backends.slurm.queue import SEPARATOR, Listing
from hostler.backends.slurm.reasons import REASONS, in_words
from hostler.backends.slurm.states import GONE, LEAVING, RUNNING, STATES, WAITING, meaning
from hostler.backends.terminal import Here, Ran


def line(*parts: str) -> str:
    return queue.SEPARATOR.join(parts)


def test_running_pending_and_single_jobs_are_rows() -> None:
    text = "\n".join(
        [
            "Welcome to the cluster!",  # a site's wrapper may talk first
            line("71_3", "RUNNING", "None", "n1", "9:59", "(null)", "0000003-lr-a1b2c3", "hostler:p:tau"),
            line("71_[4-9%2]", "PENDING", "JobArrayTaskLimit", "", "10:00", "", "lr", "hostler:p:tau"),
            line(
                "90", "COMPLETING", "None", "n[1-4]", "UNLIMITED", "", "mine", "a comment with | and , in it"
            ),
        ]
    )
    rows = queue.parse(text)
    assert [(row.id, row.tasks, row.node) for row in rows] == [
        ("71_3", 1, "n1"), ("71_[4-9%2]", 6, ""), ("90", 1, "n[1-4]"),
    ]  # fmt: skip
    assert rows[2].comment == "a comment with | and , in it" and rows[0].name == "0000003-lr-a1b2c3"


@pytest.mark.parametrize(
    ("job", "tasks"),
    [
        ("5", 1), ("5_0", 1), ("5_[0]", 1), ("5_[0-99]", 100), ("5_[0-99%10]", 100), ("5_[1,3,7-9]", 5),
        ("5_[0-30:2%4]", 16), ("5_[1,2,...]", 2),
    ],
)  # fmt: skip
def test_a_waiting_array_is_counted(job: str, tasks: int) -> None:
    assert queue.count(job) == tasks


@pytest.mark.parametrize(
    ("job", "array"), [("5", ""), ("5_3", ""), ("5_[0%1]", "5"), ("5_[0-8:2]", "5"), ("5_[1,3,7-9%2]", "5")]
)
def test_what_waits_of_an_array_is_known_by_its_job(job: str, array: str) -> None:
    [row] = queue.parse(line(job, "PENDING", "None", "", "", "", "", "hostler:p:tau"))
    assert row.array == array


@pytest.mark.parametrize(
    ("native", "worker"),
    [
        ("PENDING", WAITING), ("CONFIGURING", WAITING), ("REQUEUED", WAITING), ("REQUEUE_HOLD", WAITING),
        ("RUNNING", RUNNING), ("SUSPENDED", RUNNING), ("STOPPED", RUNNING), ("SIGNALING", RUNNING),
        ("COMPLETING", LEAVING), ("STAGE_OUT", LEAVING), ("RUNNING,COMPLETING", LEAVING),
        ("COMPLETED", GONE), ("FAILED", GONE), ("TIMEOUT", GONE), ("PREEMPTED", GONE), ("NODE_FAIL", GONE),
        ("OUT_OF_MEMORY", GONE), ("BOOT_FAIL", GONE), ("DEADLINE", GONE), ("REVOKED", GONE),
        ("CANCELLED", GONE), ("CANCELLED by 1000", GONE), ("CANCELLED+", GONE),
    ],
)  # fmt: skip
def test_each_state_says_whether_a_worker_is_there(native: str, worker: str) -> None:
    assert meaning(native).worker == worker


@pytest.mark.parametrize(
    ("native", "attempt"),
    [
        ("PREEMPTED", "preempted"), ("TIMEOUT", "preempted"), ("DEADLINE", "preempted"), ("NODE_FAIL", "lost"),
        ("OUT_OF_MEMORY", "lost"), ("FAILED", "lost"), ("CANCELLED", "released"), ("COMPLETED", "released"),
        ("RUNNING", ""), ("COMPLETING", ""),
    ],
)  # fmt: skip
def test_each_state_says_how_an_attempt_in_it_ended(native: str, attempt: str) -> None:
    assert meaning(native).attempt == attempt


def test_unknown_state_is_shown_as_it_is_and_not_gone() -> None:
    assert meaning("EXPEDITING").worker == RUNNING and meaning("EXPEDITING").words == "expediting"


def test_every_state_has_words() -> None:
    assert all(one.words and one.worker in (WAITING, RUNNING, LEAVING, GONE) for one in STATES.values())


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("Resources", "waits for machines to become free (Resources)"),
        ("(Priority)", "jobs with a higher priority come first (Priority)"),
        ("QOSMaxJobsPerUserLimit", "as many jobs run as you may have at a time (QOSMaxJobsPerUserLimit)"),
        ("AssocMaxJobsLimit", "as many jobs run as you may have at a time (AssocMaxJobsLimit)"),
        ("QOSMaxSubmitJobPerUserLimit", "as many jobs as one user may submit are in the queue "
         "(QOSMaxSubmitJobPerUserLimit)"),
        ("QOSMaxGRESPerUser", "you use all that you may at a time (QOSMaxGRESPerUser)"),
        ("AssocGrpCpuLimit", "your group uses all that it may at a time (AssocGrpCpuLimit)"),
        ("QOSMaxWallDurationPerJobLimit", "asks for more time than its limit allows: lower `time` "
         "(QOSMaxWallDurationPerJobLimit)"),
        ("ReqNodeNotAvail, UnavailableNodes:n[1-3]", "a machine it needs is down, drained or reserved "
         "(ReqNodeNotAvail, UnavailableNodes:n[1-3])"),
        ("None", "the scheduler has not looked at it yet"),
        ("SomethingNew", "SomethingNew"),
    ],
)  # fmt: skip
def test_a_reason_is_said_in_plain_words(reason: str, said: str) -> None:
    assert in_words(reason) == said


def test_no_reason_is_said_in_slurms_own_words() -> None:
    assert all(re.search(r"[a-z] [a-z]", words) for words in REASONS.values())


def test_squeue_is_asked_less_often_while_it_answers_the_same() -> None:
    row, now, asked = ["71_0", "RUNNING", "None", "n1", "9:00", "c", "grid", "mark"], [0.0], list[float]()

    class Typed(Here):
        def run(self, words: Sequence[str], *given: object, **more: object) -> Ran:
            asked.append(now[0])
            row[4] = f"{9 - len(asked) % 9}:00"  # the time left is another each time
            return Ran(0, SEPARATOR.join(row) + "\n", "")

    listing = Listing(Typed(), lambda: now[0])
    for now[0] in range(60):
        listing.now()
    assert len(asked) < 12 and asked[-1] - asked[-2] >= 15
    row[1], before = "COMPLETING", len(asked)
    for now[0] in range(60, 80):
        listing.now()
    assert asked[-1] - asked[-2] < 15, "it has changed"
    listing.forget()
    listing.now()
    assert asked[-1] == 79 and len(asked) > before
