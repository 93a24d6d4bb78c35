"""Money of a launch by purpose: whatever its machines and attempts did, it adds up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler import settings
from hostler.backends.gce import lifetimes
from hostler.records.launch import breakdown
from hostler.records.launch.breakdown import Breakdown, Work
from hostler.records.launch.launches import Generation, Stay

TIMING = settings.timing()
PRICE = 3600.0  # a second costs one
ONE = Generation("burst", 1, workers=1, price=PRICE, billed=True)


def stay(session: str = "s", began: float = 10.0, seconds: float = 90.0, **more: float | str) -> Stay:
    age = began + seconds
    facts = {"machine": "vm", "age": age, **more}
    return Stay(session, seconds, True, True, modified=began + seconds, **facts)  # type: ignore[arg-type]


def test_each_second_of_a_machine_has_one_purpose() -> None:
    works = [Work("s", 15, 45, prepare=5, save=2, vain=10), Work("s", 50, 80, prepare=1, save=3)]
    found = breakdown.explain(ONE, [stay()], works, {"vm": (0.0, 110.0)}, 200.0, TIMING)
    assert found == Breakdown(
        training=13 + 26, booting=10 + 5 + 1, saving=5, repeated=10, idle=5 + 5, tail=30
    )  # fmt: skip
    assert found.total == pytest.approx(110)


moment = st.floats(min_value=0, max_value=200)
span = st.floats(min_value=0, max_value=100)
works = st.lists(
    st.builds(
        lambda began, lasted, *parts: Work("s", began, began + lasted, *parts), moment, span, span, span, span
    )
)


@given(works, moment, span, span, st.floats(min_value=0, max_value=50))
def test_purposes_add_up_whatever_the_attempts_say(
    some: list[Work], began: float, booted: float, lasted: float, used: float
) -> None:
    one = stay(began=began + booted, seconds=lasted, used=used)
    life = (began, began + booted + lasted + 5)
    found = breakdown.explain(ONE, [one], some, {"vm": life}, 1000.0, TIMING)
    assert found.total == pytest.approx(life[1] - life[0], abs=1e-6)
    assert all(value >= -1e-6 for value in vars(found).values()), found


def test_machine_that_never_had_a_worker_was_booting() -> None:
    found = breakdown.explain(ONE, [], [], {"vm": (0.0, 30.0)}, 50.0, TIMING)
    assert found == Breakdown(booting=30.0)


def test_workers_of_other_prices_cost_theirs() -> None:
    cheap, plain = stay("a", price=PRICE / 2, machine="x"), stay("b", machine="y")
    lives = {"x": (0.0, 100.0), "y": (0.0, 100.0)}
    assert breakdown.explain(ONE, [cheap, plain], [], lives, 200.0, TIMING).total == pytest.approx(150)


def test_without_the_platforms_word_notes_count() -> None:
    found = breakdown.explain(ONE, [stay()], [Work("s", 10, 90)], {}, 200.0, TIMING)
    assert found == Breakdown(training=80, booting=10, tail=10)


def test_member_of_a_gang_trains_without_a_claim() -> None:
    found = breakdown.explain(ONE, [stay(used=60.0)], [], {"vm": (0.0, 100.0)}, 200.0, TIMING)
    assert found == Breakdown(training=60, booting=10, idle=30)


def claim(at: float, session: str, **more: object) -> dict[str, object]:
    return {"kind": "claim", "at": at, "session": session, **more}


@pytest.mark.parametrize(
    ("told", "vain"),
    [
        ({"restored": "1-3", "phases": {"from": 130.0, "prepare": 2.0}}, 20.0),  # saved 20 s before
        ({"phases": {"prepare": 2.0}}, 50.0),  # begun anew: all of it
        ({"restored": "1-3", "phases": {}}, 50.0),
    ],
)  # fmt: skip
def test_work_after_the_last_checkpoint_was_in_vain(told: dict[str, object], vain: float) -> None:
    entries = [
        claim(100.0, "a"),
        claim(160.0, "b", after={"why": "lost", "seconds": 50.0, "attempt": 1, "progress": True}),
        {"kind": "end", "at": 200.0, "state": "done", "attempt": 2, "seconds": 40.0, **told},
    ]
    first, second = breakdown.attempts(entries, 300.0)
    assert (first.began, first.ended) == (100.0, 150.0)
    assert min(first.vain, 50.0) == vain
    assert (second.session, second.vain) == ("b", 0.0)


def test_finished_attempt_is_never_in_vain() -> None:
    entries = [
        claim(100.0, "a"),
        {"kind": "end", "at": 150.0, "state": "done", "attempt": 1, "seconds": 50.0},
        {"kind": "reopen", "at": 160.0, "by": "me", "source": None, "fresh": True},
        claim(170.0, "b"),
        {"kind": "end", "at": 180.0, "state": "done", "attempt": 4, "seconds": 10.0},
    ]
    assert [one.vain for one in breakdown.attempts(entries, 300.0)] == [0.0, 0.0]


def test_lives_of_vms_are_read_from_operations() -> None:
    def told(kind: str, vm: str, at: str, own: str = "7", **more: object) -> dict[str, object]:
        link = f"https://x/zones/z/instances/{vm}"
        return {
            "operationType": kind,
            "targetLink": link,
            "targetId": own,
            "endTime": at,
            "status": "DONE",
            **more,
        }

    name = "hostler-c-burst-1"
    found = [
        told("insert", f"{name}-ab12", "2026-11-18T01:00:00.000-08:00"),
        told("compute.instances.preempted", f"{name}-ab12", "2026-11-18T01:01:00.000-08:00"),
        told("delete", f"{name}-ab12", "2026-11-18T01:01:30.000-08:00"),
        told("insert", f"{name}-cd34", "2026-11-18T01:02:00.000-08:00", "8"),
        told("insert", f"{name}-ef56", "2026-11-18T01:02:00.000-08:00", "9", error={"errors": []}),
        told("insert", "hostler-c-burst-12-ab12", "2026-11-18T01:02:00.000-08:00", "10"),
        told("setLabels", f"{name}-ab12", "2026-11-18T03:00:00.000-08:00"),
    ]  # fmt: skip
    lives = lifetimes.of_launch(found, name, "1", 2e9)
    assert {own: ended - began for own, (began, ended) in lives.items() if own == "7"} == {"7": 90.0}
    assert set(lives) == {"7", "8"} and lives["8"][1] == 2e9
