"""What a process tells its worker: which best states it keeps, and that early stopping ended it."""

from __future__ import annotations

from typing import Any

import pytest

from hostler import EarlyStopping
from hostler.errors import UsageError
from hostler.records.run import handoff


def told(handed: Any) -> Any:
    return handoff.read(handed.folder.best)


def test_best_state_is_told_when_it_is_kept(handed: Any, counter: Any, start: Any) -> None:
    with start() as run:
        run.track(counter=counter)
        run.keep_best("acc", "maximize")
        for step, value in enumerate([0.2, 0.9, float("nan"), 0.4]):
            run.log(acc=value, step=step)
        assert told(handed) == {"acc": {"goal": "max", "value": 0.9, "step": 1}}


def test_best_value_without_a_state_is_not_told(handed: Any, start: Any) -> None:
    with start() as run:
        run.keep_best("acc")
        run.log(acc=0.9)
    assert told(handed) is None


def test_resumed_run_tells_of_the_state_it_goes_on_with(handed: Any, counter: Any, start: Any) -> None:
    run = start()
    run.track(counter=counter)
    run.keep_best("acc")
    run.log(acc=0.9, step=7)
    run.save(wait=True)
    run.log(acc=0.95, step=8)  # after the checkpoint: it will be logged again
    run.close(KeyboardInterrupt())
    handed.folder.best.unlink()
    with start() as again:
        assert again.resumed
        assert told(handed) == {"acc": {"goal": "max", "value": 0.9, "step": 7}}


def test_goal_that_is_unknown_is_refused(handed: Any, start: Any) -> None:
    with start() as run, pytest.raises(UsageError, match="goal='up' is neither 'max' nor 'min'"):
        run.keep_best("acc", "up")


@pytest.mark.parametrize("tracked", [True, False])
def test_early_stopping_is_told_as_the_run_finishes(handed: Any, start: Any, tracked: bool) -> None:
    stopping = EarlyStopping("max", patience=2)
    with start() as run:
        if tracked:
            run.track(stopping=stopping)
        for step in run.steps(10):
            run.log(acc=0.5, step=step)
            if stopping.stop(0.5):
                break
        run.finish()
    assert handoff.read(handed.folder.early) == {"why": "early stopping", "step": 2}


def test_patience_that_was_not_used_up_is_not_told(handed: Any, start: Any) -> None:
    stopping = EarlyStopping("max", patience=5)
    with start() as run:
        run.log(acc=0.5)
        stopping.stop(0.5)
    assert not handed.folder.early.exists()


def test_early_stopping_is_not_carried_over_to_the_next_run(handed: Any, start: Any) -> None:
    stopping = EarlyStopping("max", patience=1)
    assert not stopping.stop(1.0) and stopping.stop(1.0)
    start().finish()
    handed.folder.early.unlink()
    start(resume="never").finish()
    assert not handed.folder.early.exists()
