"""When a checkpoint is due, by a clock of the test's own."""

from __future__ import annotations

from hostler.sdk.checkpoint.interval import Cost
from hostler.sdk.checkpoint.policy import SavePolicy, Schedule


class Scene:
    def __init__(self, **policy: float) -> None:
        self.now, self.said = 100.0, list[str]()
        self.schedule = Schedule(SavePolicy(**policy), lambda: self.now, self.said.append)  # type: ignore[arg-type]


def test_policy_by_steps_is_due_past_a_multiple_after_resume() -> None:
    scene = Scene(every_steps=10)
    assert [step for step in range(1, 25) if scene.schedule.due(step) and not scene.schedule.began(step)] == [
        10,
        20,
    ]
    scene.schedule.began(34)
    assert not scene.schedule.due(39) and scene.schedule.due(40)


def test_by_time_it_is_due_when_that_has_passed() -> None:
    scene = Scene(every_seconds=5)
    scene.now = 104.0
    assert not scene.schedule.due(1)
    scene.now = 105.0
    assert scene.schedule.due(2)
    scene.schedule.began(2)
    assert not scene.schedule.due(3)


def test_automatic_interval_is_measured_and_reported_when_it_changes() -> None:
    scene = Scene()
    scene.now += 10
    assert scene.schedule.due(1), "the first one soon, to learn what it costs"
    scene.schedule.began(1)
    scene.schedule.cost(Cost(0.5, 1.0))
    scene.schedule.cost(Cost(0.51, 1.0))
    assert len(scene.said) == 1 and "a checkpoint every 93 s" in scene.said[0]
    scene.now += 92
    assert not scene.schedule.due(2)
    scene.now += 2
    assert scene.schedule.due(3)
    scene.schedule.cost(Cost(5.0, 10.0))
    assert len(scene.said) == 2


def test_a_chosen_interval_is_left_alone() -> None:
    scene = Scene(every_seconds=5)
    scene.schedule.cost(Cost(60.0, 600.0))
    scene.now += 5
    assert scene.schedule.due(1) and scene.said == []
