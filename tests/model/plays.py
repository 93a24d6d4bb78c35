"""The ways in which a worker is disturbed before one of its requests. Each yields (what, what broke)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from staged import LEASE, Stage, StagedWorker
from verdict import Weights, newest_weights, violations

from hostler.records.checkpoint import checkpoints
from hostler.records.run import control

NewStage = Callable[[], Stage]
Scene = tuple[str, list[str]]
Play = Callable[[NewStage], Iterator[Scene]]

GAPS = (6, 5, 1)  # requests from one whose answer is lost to the one before which its worker dies


def undisturbed(new_stage: NewStage) -> list[str]:
    """The requests of a worker that nobody disturbs."""
    return new_stage().worker("a").work().seat.requests


def frozen(new_stage: NewStage) -> Iterator[Scene]:
    """Another takes over and ends the run; then it goes on, and may notice how late it is."""
    yield from _taken_over(new_stage, lambda a, i, then: a.freeze_before(i, then))


def frozen_unaware(new_stage: NewStage) -> Iterator[Scene]:
    """Like `frozen`, but its own clock stood still, too: no rule about being late helps."""
    yield from _taken_over(new_stage, lambda a, i, then: a.freeze_before(i, then, seconds=0.0))


def killed(new_stage: NewStage) -> Iterator[Scene]:
    yield from _taken_over(new_stage, lambda a, i, then: a.die_before(i, then))


def killed_after_a_lost_answer(new_stage: NewStage) -> Iterator[Scene]:
    """It does not know what became of one request, and dies at the next, or while it makes up for it."""
    yield from _taken_over(
        new_stage, lambda a, i, then: _loses(a, i - GAPS[i % len(GAPS)]).die_before(i, then)
    )


def killed_at_any_gap_after_a_lost_answer(new_stage: NewStage) -> Iterator[Scene]:
    """Like `killed_after_a_lost_answer`, with every gap before every request."""
    for gap in GAPS:
        yield from _taken_over(
            new_stage,
            lambda a, i, then, gap=gap: _loses(a, i - gap).die_before(i, then),  # type: ignore[misc]
        )


def unanswered(new_stage: NewStage) -> Iterator[Scene]:
    """The request is carried out, its answer is lost, and nobody else is there."""
    for i, request in enumerate(undisturbed(new_stage), 1):
        stage = new_stage()
        a = stage.worker("a")
        a.seat.lose.add(i)
        a.work()
        yield f"unanswered {i}: {request}", violations(stage)


def unreached(new_stage: NewStage) -> Iterator[Scene]:
    """Three requests in a row do not reach the store, and nobody else is there."""
    for i, request in enumerate(undisturbed(new_stage), 1):
        stage = new_stage()
        a = stage.worker("a")
        a.seat.refuse.update((i, i + 1, i + 2))
        a.work()
        yield f"unreached {i}: {request}", violations(stage)


def stopped_and_taken_over(new_stage: NewStage) -> Iterator[Scene]:
    """A person stops the run while its worker is frozen; another worker answers; the run is resumed."""
    for i, request in enumerate(undisturbed(new_stage), 1):
        stage, expected = new_stage(), []

        def meanwhile(stage: Stage = stage, expected: list[str] = expected) -> None:
            expected.append("done" if _finished(stage) else "stopped")
            control.stop(stage.store, stage.key)
            stage.worker("b").work()

        stage.worker("a").freeze_before(i, meanwhile, seconds=0.0).work()
        yield f"stopped before {i}: {request}", violations(stage, states=(expected[0],))
        yield f"stopped before {i}, then resumed: {request}", _resumed(stage)


def stopped_while_it_goes_on(new_stage: NewStage) -> Iterator[Scene]:
    """A person stops the run between two requests of its worker, which then hears of it."""
    for i, request in enumerate(undisturbed(new_stage), 1):
        stage = new_stage()
        a = stage.worker("a")
        a.freeze_before(i, lambda stage=stage: _say(control.stop(stage.store, stage.key)), seconds=0.0)  # type: ignore[misc]
        a.work()
        yield f"stopped before {i}: {request}", violations(stage, states=("stopped", "done"))
        yield f"stopped before {i}, then resumed: {request}", _resumed(stage)


def preempted_then_stopped(new_stage: NewStage) -> Iterator[Scene]:
    """A worker that is told to leave gives its run back; a person's stop in between is not lost."""
    for i, request in enumerate(undisturbed(new_stage), 1):
        stage = new_stage()
        a = stage.worker("a")

        def meanwhile(stage: Stage = stage, a: StagedWorker = a) -> None:
            if a.execution:
                a.execution.stop("preempted")
            control.stop(stage.store, stage.key)

        a.freeze_before(i, meanwhile, seconds=0.0).work()
        yield f"preempted before {i}: {request}", violations(stage, states=("stopped", "done"))


def twice(new_stage: NewStage, stride: int) -> Iterator[Scene]:
    """The second worker is stopped before its j-th request, too, and a third ends the run."""
    last = len(undisturbed(new_stage)) + 12  # a takeover has more requests: it watches, and restores
    for i in range(1, len(undisturbed(new_stage)) + 1):
        for j in range(1 + i % stride, last, stride):
            stage = new_stage()

            def third(stage: Stage = stage) -> None:
                stage.worker("c").work()

            def second(
                stage: Stage = stage, i: int = i, j: int = j, third: Callable[[], None] = third
            ) -> None:
                b = stage.worker("b")
                (b.die_before if (i + j) % 2 else b.freeze_before)(j, third).work()

            stage.worker("a").freeze_before(i, second, seconds=LEASE * (j % 3)).work()
            yield f"{i}, then {j}", violations(stage)


def _taken_over(
    new_stage: NewStage, disturb: Callable[[StagedWorker, int, Callable[[], None]], StagedWorker]
) -> Iterator[Scene]:
    for i, request in enumerate(undisturbed(new_stage), 1):
        stage = new_stage()
        saved: list[Weights] = []

        def meanwhile(stage: Stage = stage, saved: list[Weights] = saved) -> None:
            saved.append(newest_weights(stage))
            stage.worker("b").work()

        disturb(stage.worker("a"), i, meanwhile).work()
        yield f"before {i}: {request}", violations(stage, saved=saved[0])


def _loses(worker: StagedWorker, i: int) -> StagedWorker:
    worker.seat.lose.add(i)
    return worker


def _resumed(stage: Stage) -> list[str]:
    """What is stopped goes on from what was saved, and is done."""
    saved = newest_weights(stage)
    control.resume(stage.store, stage.key)
    stage.worker("d").work()
    return violations(stage, saved=saved)


def _finished(stage: Stage) -> bool:
    places = checkpoints.committed(stage.store, stage.key.run)
    return bool(places) and checkpoints.read(stage.store, stage.key.run, places[0]).finished


def _say(line: str) -> None:
    print(line)
