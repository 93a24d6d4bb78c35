"""An attempt is stopped before each of its store requests while others take over: no promise breaks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import plays
import pytest
from plays import NewStage, Play
from staged import Seat, Stage
from verdict import violations

from hostler.attempt.saver import Saver
from hostler.attempt.uploader import Uploader
from hostler.errors import StoreError
from hostler.records.checkpoint import checkpoints
from hostler.records.checkpoint.checkpoints import Place
from hostler.records.run import attempt, log
from hostler.records.series import metrics
from hostler.store import Store
from hostler.worker.claim.claimer import Claimer

ALL: tuple[Play, ...] = (
    plays.frozen,
    plays.frozen_unaware,
    plays.killed,
    plays.killed_after_a_lost_answer,
    plays.unanswered,
    plays.unreached,
    plays.stopped_and_taken_over,
    plays.stopped_while_it_goes_on,
    plays.preempted_then_stopped,
)


@pytest.fixture
def new_stage(folder: Path) -> NewStage:
    return lambda: Stage(folder)


def test_an_undisturbed_run_is_done(new_stage: NewStage) -> None:
    stage = new_stage()
    assert len(stage.worker("a").work().seat.requests) > 50
    assert violations(stage) == []


@pytest.mark.parametrize(
    "play",
    [*ALL, pytest.param(plays.killed_at_any_gap_after_a_lost_answer, marks=pytest.mark.soak)],
    ids=lambda play: play.__name__,
)
def test_no_promise_breaks_wherever_a_worker_is(play: Play, new_stage: NewStage) -> None:
    scenes = 0
    for what, wrong in play(new_stage):
        assert wrong == [], what
        scenes += 1
    assert scenes > 50


@pytest.mark.parametrize("play", ALL[:7], ids=lambda play: play.__name__)
def test_no_promise_breaks_wherever_a_short_runs_worker_is(play: Play, new_stage: NewStage) -> None:
    def moments() -> Stage:
        stage = new_stage()
        stage.moment = True
        return stage

    scenes = 0
    for what, wrong in play(moments):
        assert wrong == [], what
        scenes += 1
    assert scenes > 10


def test_no_promise_breaks_when_its_successor_is_stopped_too(new_stage: NewStage) -> None:
    for what, wrong in plays.twice(new_stage, stride=61):
        assert wrong == [], what


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_no_promise_breaks_wherever_two_workers_are(new_stage: NewStage) -> None:
    for what, wrong in plays.twice(new_stage, stride=1):
        assert wrong == [], what


def test_who_finds_a_run_finished_ends_it_and_starts_nothing(new_stage: NewStage) -> None:
    requests = plays.undisturbed(new_stage)
    before_end = next(
        i for i, r in enumerate(requests, 1) if r.startswith("put sweeps/staged/log/") and i > 20
    )
    stage = new_stage()
    successors: list[list[str]] = []
    stage.worker("a").die_before(
        before_end, lambda: successors.append(stage.worker("b").work().seat.requests)
    ).work()
    assert violations(stage) == []
    assert not [request for request in successors[0] if "/env/" in request or request.startswith("upload")]


def _fences_nothing(patch: pytest.MonkeyPatch) -> None:
    def check(self: attempt.Attempt) -> None:
        own = [k for k, e in enumerate(self._log.entries, 1) if e.get("token") == self._token]
        self._closed = own[0] if own else 0

    patch.setattr(attempt.Attempt, "_check", check)


def _writes_entries_over(patch: pytest.MonkeyPatch) -> None:
    def append(self: log.RunLog, entry: log.Record, *, read: bool = True) -> bool:
        data = log.encode(entry)
        self._store.put(self._next_key(), data)
        self.entries.append(log.decode(data, ""))
        return True

    patch.setattr(log.RunLog, "append", append)


def _takes_the_highest_step(patch: pytest.MonkeyPatch) -> None:
    ordered = checkpoints.committed

    def by_step(store: Store, run: str) -> list[Place]:
        return sorted(ordered(store, run), key=lambda place: place.step, reverse=True)

    patch.setattr(checkpoints, "committed", by_step)


def _shows_every_point(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(metrics, "chain", lambda fragments, attempt: [p for f in fragments for p in f.points])


def _commits_before_its_metrics(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Uploader, "covered", lambda uploader, logged: {"position": uploader._writer.position})


def _names_no_source(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Uploader, "continue_from", lambda uploader, origin, covered: None)
    patch.setattr(Uploader, "start_over", lambda uploader: None)


def _deletes_whatever_it_likes(patch: pytest.MonkeyPatch) -> None:
    def retain(store: Seat, run: str, own: int, keep: int) -> None:
        for place in checkpoints.committed(store, run)[keep:] or checkpoints.committed(store, run):
            checkpoints.delete(store, run, place)

    patch.setattr(checkpoints, "retain", retain)


def _forgets_a_stop(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Claimer, "_settle", lambda *_: False)


def _gives_back_over_a_stop(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(attempt, "answering", lambda outcome, stop: outcome)


def _commits_without_files(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Seat, "upload", lambda *_: None)


def _saves_to_one_place_twice(patch: pytest.MonkeyPatch) -> None:
    tick = Saver.tick

    def again(saver: Saver) -> None:
        number = saver._number
        try:
            tick(saver)
        except StoreError:
            saver._number = number
            raise

    patch.setattr(Saver, "tick", again)


@pytest.mark.parametrize(
    ("switch_off", "play"),
    [
        (_fences_nothing, plays.frozen_unaware),
        (_writes_entries_over, plays.frozen_unaware),
        (_takes_the_highest_step, plays.frozen_unaware),
        (_shows_every_point, plays.frozen),
        (_commits_before_its_metrics, plays.killed),
        (_names_no_source, plays.killed),
        (_deletes_whatever_it_likes, plays.killed),
        (_forgets_a_stop, plays.stopped_and_taken_over),
        (_gives_back_over_a_stop, plays.preempted_then_stopped),
        (_commits_without_files, plays.killed),
        (_saves_to_one_place_twice, plays.killed_at_any_gap_after_a_lost_answer),
    ],
)
def test_without_a_rule_a_promise_breaks(
    switch_off: Callable[[pytest.MonkeyPatch], None],
    play: Play,
    new_stage: NewStage,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    switch_off(monkeypatch)
    assert any(wrong for _, wrong in play(new_stage))
