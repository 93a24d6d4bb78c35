from __future__ import annotations

import torch

from hostler.train.looks import AHEAD, Looks


class Event:
    """A mark in the device's work that is reached when it is waited for."""

    def __init__(self) -> None:
        self.reached = False

    def query(self) -> bool:
        return self.reached

    def synchronize(self) -> None:
        self.reached = True


def on_its_way(looks: Looks, step: int) -> Event:
    """A loss that the device has not computed yet; there is no GPU here that would."""
    event, loss = Event(), torch.tensor(float(step))
    looks.add(step, loss)
    made = looks._waiting.pop()
    looks._waiting.append(type(made)(step, made.there, made.here, event))  # type: ignore[arg-type]
    return event


def test_loss_on_the_host_arrives_at_once_as_it_was() -> None:
    looks, loss = Looks(), torch.tensor(2.5)
    looks.add(9, loss)
    loss.fill_(0)
    assert list(looks.arrived()) == [(9, 2.5)] and list(looks.arrived()) == []


def test_loss_on_its_way_is_not_waited_for() -> None:
    looks = Looks()
    events = [on_its_way(looks, step) for step in range(AHEAD)]
    assert list(looks.arrived()) == [] and not any(one.reached for one in events)
    events[0].reached = True
    assert list(looks.arrived()) == [(0, 0.0)]


def test_host_is_only_so_far_ahead_of_the_device() -> None:
    looks = Looks()
    events = [on_its_way(looks, step) for step in range(AHEAD + 1)]
    assert list(looks.arrived()) == [(0, 0.0)]
    assert [one.reached for one in events] == [True] + [False] * AHEAD


def test_end_of_an_epoch_waits_for_all_in_order() -> None:
    looks = Looks()
    for step in range(AHEAD):
        on_its_way(looks, step)
    assert [step for step, _ in looks.arrived(all_of_them=True)] == list(range(AHEAD))


def test_checkpoint_keeps_losses_that_are_on_their_way() -> None:
    looks, other = Looks(), Looks()
    on_its_way(looks, 4)
    other.load_state_dict(looks.state_dict())
    assert list(other.arrived()) == [(4, 4.0)]
