from __future__ import annotations

from hostler.settings import Timing
from hostler.spec.names import check_part
from hostler.worker.parent import Restarts, argv_of, new_session

TIMING = Timing(restart_min=0.5, restart_max=8.0)


def test_the_wait_doubles_up_to_its_bound() -> None:
    restarts, waits = Restarts(), []
    for _ in range(6):
        restarts = restarts.after(alive=1.0)
        waits.append(restarts.wait(TIMING))
    assert waits == [0.5, 1.0, 2.0, 4.0, 8.0, 8.0]


def test_a_worker_that_lived_long_starts_the_count_again() -> None:
    assert Restarts(5).after(alive=61.0).wait(TIMING) == 0.5


def test_a_thousand_deaths_do_not_overflow() -> None:
    assert Restarts(5000).wait(TIMING) == 8.0


def test_sessions_are_names_a_key_may_hold_and_never_the_same() -> None:
    names = {new_session("Büro PC.local") for _ in range(100)}
    assert len(names) == 100
    assert all(check_part(name) for name in names)


def test_dead_sessions_are_passed_on_only_if_there_are_any() -> None:
    assert argv_of(["w"], "s", [], 5) == ["w", "--session", "s", "--parent-fd", "5"]
    assert argv_of(["w"], "s", ["a", "b"], 5)[-2:] == ["--dead", "a,b"]
