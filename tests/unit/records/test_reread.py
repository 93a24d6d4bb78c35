"""Stored output read again: chains of attempts, rivals, deaths in between, copies."""

from __future__ import annotations

import time

import pytest

from hostler.errors import StoreUnreachable
from hostler.records.rows import rows
from hostler.records.run import control
from hostler.records.run.attempt import claim
from hostler.records.run.entries import Claim, copied_end
from hostler.records.run.log import RunKey, RunLog
from hostler.records.run.state import fold
from hostler.records.series import metrics, packing
from hostler.records.series.logs import LogWriter
from hostler.records.series.metrics import MetricWriter, Origin
from hostler.records.series.reread import OPEN, SILENT, candidates, fitting_pattern, reread
from hostler.records.sweep import sweeps
from hostler.spec.job import Job, MetricSource, by_pattern
from hostler.store.memory import MemoryStore

JOB = Job(name="s", command=("x",), runs=({"lr": 0.1}, {"lr": 0.2}))
KEY, OTHER = RunKey("s", JOB.run_id(0)), RunKey("s", JOB.run_id(1))


class Flaky(MemoryStore):
    refused = "nothing"

    def put(self, key: str, data: bytes, *, if_absent: bool = False) -> bool:
        if self.refused in key:
            raise StoreUnreachable("away")
        return super().put(key, data, if_absent=if_absent)


@pytest.fixture
def store() -> Flaky:
    made = Flaky()
    assert sweeps.submit(made, JOB)
    return made


def attempt(store: Flaky, text: str, then: str, origin: Origin | None = None) -> int:
    held = claim(store, RunLog(store, KEY).read_on(), 60.0, lambda: 0.0, Claim("a"))
    assert held is not None
    if held.number > 1:
        MetricWriter(store, KEY.run, held.number).continue_from(origin)
    LogWriter(store, KEY.run, held.number).write(text.encode())
    if then == "queued":
        held.release(then)
    else:
        held.end(then, attempts=1, seconds=3.0)
    return held.number


def curve(store: Flaky, name: str = "loss") -> list[tuple[int, float]]:
    state = control.state_of(store, KEY)
    return [(p.step, p.values[name]) for p in metrics.read(store, KEY.run, state.attempt)]


def test_attempts_of_a_chain_make_one_curve(store: Flaky) -> None:
    first = attempt(store, "epoch 1 | loss=0.9\nepoch 2 | loss=0.8\nepoch 3 | loss=0.7\n", "queued")
    attempt(store, "epoch 3 | loss=0.6\nepoch 4 | loss=0.5\n", "done", Origin(first, 2, 0))
    found = reread(store, KEY, MetricSource())
    assert found.changed and found.names == ("loss",) and found.points == 4
    assert curve(store) == [(1, 0.9), (2, 0.8), (3, 0.6), (4, 0.5)]


ROUND = "[{}]\ttrain-logloss:0.{}\n"
BAR = " 45%|## | {}/9 [00:01<00:02, 5.1it/s, train-logloss=0.{}]\r"


@pytest.mark.parametrize(("line", "first"), [(ROUND, 0), (BAR, 1)])
def test_rounds_and_bars_of_a_resume_are_counted_on(store: Flaky, line: str, first: int) -> None:
    """Five were printed, the checkpoint had three: the fourth and fifth are printed again."""
    values = (91, 82, 73, 64, 55, 46)
    text = "".join(line.format(first + n, value) for n, value in enumerate(values[:5]))
    again = "".join(line.format(first + n, value) for n, value in enumerate(values[3:]))
    attempt(store, again, "done", Origin(attempt(store, text, "queued"), 2, 0))
    reread(store, KEY, MetricSource())
    assert curve(store, "train-logloss") == [(first + n, value / 100) for n, value in enumerate(values)]


@pytest.mark.parametrize("printed", [3, 4, 5])
def test_rounds_begin_where_the_worker_says_the_model_ends(store: Flaky, printed: int) -> None:
    text = "".join(ROUND.format(n, 90 - n) for n in range(printed))
    said = "[hostler] goes on from checkpoint 1-2 (4 boosting rounds)\n"
    again = said + ROUND.format(0, 50) + ROUND.format(1, 40)
    attempt(store, again, "done", Origin(attempt(store, text, "queued"), 2, 0))
    reread(store, KEY, MetricSource())
    old = [(n, 0.9 - n / 100) for n in range(min(printed, 4))]
    assert curve(store, "train-logloss") == [*old, (4, 0.5), (5, 0.4)]


def test_printed_steps_stay_where_values_repeat(store: Flaky) -> None:
    first = attempt(store, "epoch 1 | loss=0.5\nepoch 2 | loss=0.5\n", "queued")
    attempt(store, "epoch 3 | loss=0.5\nepoch 4 | loss=0.5\n", "done", Origin(first, 2, 0))
    reread(store, KEY, MetricSource())
    assert curve(store) == [(1, 0.5), (2, 0.5), (3, 0.5), (4, 0.5)]


def test_attempt_that_began_anew_is_read_alone(store: Flaky) -> None:
    attempt(store, "loss: 0.9\nloss: 0.8\n", "queued")
    attempt(store, "[hostler] loss: 7.5\nloss: 0.6\n", "done")
    reread(store, KEY, MetricSource())
    assert curve(store) == [(0, 0.6)]


def test_end_stays_the_same_but_for_its_metrics(store: Flaky) -> None:
    attempt(store, "loss: 0.9\nloss: 0.8\n", "done")
    before = control.state_of(store, KEY)
    packing.compact(store, JOB)
    reread(store, KEY, MetricSource())
    after = control.state_of(store, KEY)
    assert after.end is not None and before.end is not None
    assert {**after.end, "token": 0, "metrics": 0, "step": 0} == {
        **before.end,
        "token": 0,
        "metrics": 0,
        "step": 0,
    }
    assert (after.state, after.attempts, after.since) == (before.state, before.attempts, before.since)
    assert after.end["metrics"]["loss"]["last"] == 0.8 and after.end["step"] == 1
    assert rows(store, ["s"], touched=True)[0].metrics == {"loss": 0.8}
    assert packing.compact(store, JOB) == 1  # the row of before is void


def test_reading_killed_before_the_end_is_completed_by_the_next(store: Flaky) -> None:
    attempt(store, "loss: 0.9\n", "done")
    store.refused = "/log/"
    with pytest.raises(StoreUnreachable):
        reread(store, KEY, MetricSource())
    store.refused = "nothing"
    assert reread(store, KEY, MetricSource()).changed
    assert rows(store, ["s"], touched=True)[0].metrics == {"loss": 0.9}
    assert not reread(store, KEY, MetricSource()).changed


def test_open_and_silent_runs_are_left_out(store: Flaky) -> None:
    attempt(store, "loss: 0.9\n", "failed")
    assert control.retry(store, KEY) == "queued again"
    assert reread(store, KEY, MetricSource()).skipped == OPEN
    held = claim(store, RunLog(store, OTHER), 60.0, lambda: 0.0, Claim("a"))
    assert held is not None
    held.end("done", attempts=1)
    assert reread(store, OTHER, MetricSource()).skipped == SILENT


def test_copy_of_a_run_gets_the_metrics_of_its_original(store: Flaky) -> None:
    attempt(store, "loss: 0.9\n", "done")
    end = fold(RunLog(store, KEY).read_on().entries).end
    assert end is not None
    assert RunLog(store, OTHER).append(copied_end(end, KEY.run))
    reread(store, KEY, MetricSource())
    assert reread(store, OTHER, MetricSource()).changed
    assert [row.metrics for row in rows(store, ["s"], touched=True)] == [{"loss": 0.9}] * 2
    assert not reread(store, OTHER, MetricSource()).changed


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("pass 1 has dice 0.5.\npass 2 has dice 0.75.\n", "dice"),
        ("Result => myloss = -1.5e-3 (3 tries)\n", "myloss"),
        ("speed: 12\nhappiness: 0.5 of 1\nhappiness: 0.6 of 1\n", "happiness"),
        ("we saw accuracy:0.5 among 300 others, size 3.5\n", "accuracy"),
        ("nothing to see at 10:22:31 in v1.2.3\nepoch 3\n", None),
    ],
)
def test_fitting_pattern_finds_its_metric_in_the_log(store: Flaky, text: str, name: str | None) -> None:
    attempt(store, text, "done")
    found = fitting_pattern(store, [OTHER.run, KEY.run])
    assert (found and found[0]) == name
    if found:
        assert reread(store, KEY, by_pattern(found[1])).names == (name,)


def test_candidates_come_from_the_first_log_that_has_any(store: Flaky) -> None:
    attempt(store, "hello\nval_acc: 0.5 - loss: 0.9\n", "done")
    assert candidates(store, [OTHER.run, KEY.run]) == ["val_acc", "loss"]


def test_output_of_digits_is_searched_for_names_at_once(store: Flaky) -> None:
    attempt(store, "a " + "1" * 200_000 + "_\n", "done")
    began = time.process_time()
    assert fitting_pattern(store, [KEY.run]) is None
    assert time.process_time() - began < 2.0
