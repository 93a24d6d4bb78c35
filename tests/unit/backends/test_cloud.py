"""Decisions that both clouds share: whose a thing is, how long a launch is watched, when it is given up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hostler.backends import cloud
from hostler.backends.base import Launch, Thing, Undone
from hostler.backends.cloud import Again, GiveUp, KeepWaiting, Owner, Ready

OWNER = Owner("cifar", "burst", "gs://runs/cifar")


class Launched:
    """A launch that answers each look with the next decision, and its clock."""

    def __init__(self, *decisions: Ready | GiveUp | Again | KeepWaiting) -> None:
        self.now, self.decisions, self.waited = 100.0, list(decisions), list[float]()

    def look(self, waited: float) -> Ready | GiveUp | Again | KeepWaiting:
        self.waited.append(waited)
        return self.decisions.pop(0)

    def pause(self, seconds: float) -> None:
        self.now += seconds

    def watch(self) -> None:
        cloud.watch(self.look, _undone, clock=lambda: self.now, pause=self.pause, every=2.0)


def _undone(done: GiveUp) -> Undone:
    return Undone(done.why, done.hint, seconds=3.0, later=done.later)


def thing(owner: Owner) -> Thing:
    return Thing("VM", "x", "zones/x", *owner.labels.values(), "1")


def test_watch_looks_until_the_launch_is_ready() -> None:
    launched = Launched(KeepWaiting(), KeepWaiting(), Ready())
    launched.watch()
    assert launched.waited == [0.0, 2.0, 4.0]


def test_watch_counts_anew_after_a_change() -> None:
    launched = Launched(KeepWaiting(), Again(), KeepWaiting(), Ready())
    launched.watch()
    assert launched.waited == [0.0, 2.0, 2.0, 4.0]


def test_watch_raises_what_a_launch_was_taken_down_for() -> None:
    with pytest.raises(Undone, match="none left") as caught:
        Launched(KeepWaiting(), GiveUp("none left", "elsewhere", later=True)).watch()
    assert (caught.value.hint, caught.value.seconds, caught.value.exit_code) == ("elsewhere", 3.0, 75)


def test_owner_knows_its_things_by_project_fleet_and_store() -> None:
    others = [replace(OWNER, **{part: "other"}) for part in ("project", "fleet", "store")]
    found = [thing(owner) for owner in (OWNER, *others)]
    assert OWNER.things(found) == [found[0]]
    seen = OWNER.things(found, everywhere=True)
    assert [(one.fleet, one.ours) for one in seen] == [("burst", True), ("other", True), ("burst", False)]


@pytest.mark.parametrize(("generation", "number"), [("burst/12", "12"), ("", "1"), ("12", "12")])
def test_launch_number_is_the_end_of_its_generation(generation: str, number: str) -> None:
    assert cloud.number_of(generation) == number


def test_launch_without_deadline_lasts_a_day_or_as_told() -> None:
    launch = Launch("s", at=10.0)
    assert cloud.deadline_of(launch) == 10.0 + 24 * 3600 and cloud.deadline_of(launch, 5.0) == 15.0
    assert cloud.deadline_of(replace(launch, deadline=11.0), 5.0) == 11.0


def test_last_lines_skip_blanks_and_keep_twelve() -> None:
    text = "\n\n".join(map(str, range(30)))
    assert cloud.last_lines(text).splitlines() == [f"  | {n}" for n in range(18, 30)]
    assert cloud.last_lines("\n \n") == ""
