"""What counts against a run, and what does not."""

from __future__ import annotations

from hostler.records.run.state import Tally, count


def after(*attempts: dict[str, object]) -> Tally:
    tally = Tally()
    for attempt in attempts:
        tally = count(tally, attempt)
    return tally


def test_same_error_is_counted_in_a_row_despite_saves() -> None:
    error = {"counts": "failures", "signature": "e", "progress": True}
    assert after(*[error] * 4).same_error == 4


def test_run_killed_by_strangers_that_always_saves_has_no_error() -> None:
    killed = {"counts": "lost", "signature": "killed", "progress": True}
    assert after(*[killed] * 50) == Tally()


def test_script_that_asks_for_retries_and_saves_has_no_error() -> None:
    assert after(*[{"counts": "tempfail", "signature": "75", "progress": True}] * 50) == Tally()


def test_losses_without_anything_saved_add_up() -> None:
    assert after(*[{"counts": "lost", "signature": "killed", "progress": False}] * 3).lost == 3
