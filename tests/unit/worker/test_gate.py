"""A gate lets a few runs work at once: the others wait outside, unless they have to go."""

from __future__ import annotations

import threading
from collections.abc import Callable

from hostler.worker.shared.gate import FAR, NEAR, Gate, width_of


def through(
    gate: Gate, hurried: Callable[[], bool] = lambda: False
) -> tuple[threading.Thread, threading.Event]:
    """A thread that passes the gate; the event is set once it is through."""
    passed = threading.Event()

    def run() -> None:
        with gate.passed(hurried):
            passed.set()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, passed


def test_next_one_passes_when_a_place_is_free() -> None:
    gate = Gate(1)
    with gate.passed():
        thread, passed = through(gate)
        assert not passed.wait(0.05)
    thread.join(60)
    assert passed.is_set()


def test_hurried_run_passes_a_full_gate() -> None:
    gate, going = Gate(1), threading.Event()
    with gate.passed():
        thread, passed = through(gate, going.is_set)
        assert not passed.wait(0.05)
        going.set()
        assert passed.wait(60)
        thread.join(60)
        waiting, _ = through(gate)
        assert waiting.is_alive(), "who passed without a place has given none back"
    waiting.join(60)


def test_thread_that_is_through_passes_again() -> None:
    gate = Gate(1)
    with gate.passed():
        with gate.passed():
            pass
        _, passed = through(gate)
        assert not passed.wait(0.05), "the inner passage has kept the place"
    assert passed.wait(60)


def test_place_is_free_while_its_holder_rests() -> None:
    passed = list[threading.Event]()

    def rest(_: float) -> None:
        thread, there = through(gate)
        thread.join(60)
        passed.append(there)

    gate = Gate(1, rest)
    with gate.passed():
        gate.rest(1.0)
        assert passed[0].is_set()
        _, late = through(gate)
        assert not late.wait(0.05), "the place was taken again"


def test_rest_outside_the_gate_only_sleeps() -> None:
    slept = list[float]()
    gate = Gate(1, slept.append)
    gate.rest(2.0)
    with gate.passed():
        assert slept == [2.0]


def test_runs_are_counted_while_they_are_carried_out() -> None:
    gate = Gate()
    with gate.counted(), gate.counted():
        assert gate.runs == 2
    assert gate.runs == 0


def test_gate_of_a_bucket_is_wider() -> None:
    assert width_of("/home/me/.hostler") == NEAR < FAR == width_of("s3://bucket/prefix")
