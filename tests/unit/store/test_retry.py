from __future__ import annotations

from hostler.store.retry import FIRST_WAIT, LONGEST_WAIT, RetryTime, attempts, wait_before


class Clock:
    """Time that passes only by sleeping, and by what each attempt costs."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds

    def patience(self, bound: float) -> RetryTime:
        return RetryTime(bound, lambda: self.now, self.sleep, lambda: 1.0)


def test_success_at_first_calls_once_and_never_sleeps() -> None:
    clock, calls = Clock(), 0
    for _ in attempts(clock.patience(30)):
        calls += 1
        break
    assert (calls, clock.waits) == (1, [])


def test_waits_double_and_stay_within_the_bound() -> None:
    clock = Clock()
    numbers = list(attempts(clock.patience(30)))
    assert numbers == list(range(len(clock.waits) + 1))
    assert clock.waits[:4] == [FIRST_WAIT, 0.2, 0.4, 0.8]
    assert max(clock.waits) == LONGEST_WAIT
    assert 30 - LONGEST_WAIT < sum(clock.waits) <= 30


def test_no_attempt_begins_after_the_bound() -> None:
    clock, begun = Clock(), []
    for _ in attempts(clock.patience(10)):
        begun.append(clock.now)
        clock.now += 4
    assert len(begun) == 3
    assert max(begun) <= 10


def test_without_patience_there_is_one_attempt() -> None:
    assert list(attempts(Clock().patience(0))) == [0]


def test_a_wait_is_spread_over_its_upper_half() -> None:
    assert wait_before(3, 0.0) == 0.2
    assert wait_before(3, 1.0) == 0.4
    assert wait_before(10_000, 1.0) == LONGEST_WAIT
