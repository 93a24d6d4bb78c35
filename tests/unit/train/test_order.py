from __future__ import annotations

import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from hostler.train.config import Config
from hostler.train.data.order import ExampleOrder
from hostler.train.span import of


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(count=some.integers(1, 50), batch=some.integers(1, 60), seed=some.integers(0, 2**31))
def test_every_pass_sees_every_example_once(count: int, batch: int, seed: int) -> None:
    order = ExampleOrder(count, batch, seed)
    for passes in range(2):
        seen = torch.cat([order.at(passes * order.steps + place) for place in range(order.steps)])
        assert sorted(seen.tolist()) == list(range(count))
    assert order.seen(2 * order.steps) == 2 * count


def test_passes_differ_and_seeds_differ() -> None:
    assert not torch.equal(ExampleOrder(100, 100, 1).at(0), ExampleOrder(100, 100, 1).at(1))
    assert not torch.equal(ExampleOrder(100, 100, 1).at(0), ExampleOrder(100, 100, 2).at(0))


def test_a_length_may_be_epochs_steps_or_samples() -> None:
    assert of(Config(train_length=3), 7).total == 21
    assert of(Config(train_length=30, train_length_unit="step"), 7).epochs == 5
    assert of(Config(train_length=1000, train_length_unit="sample", batch_size=100), 7).total == 10


def test_an_epoch_may_have_its_own_length() -> None:
    span = of(Config(train_length=2, steps_per_epoch=5), 7)
    assert (span.total, span.each) == (10, 5)
    assert of(Config(train_length=2, samples_per_epoch=250, batch_size=100), 7).each == 3


def test_the_last_epoch_holds_what_is_left() -> None:
    span = of(Config(train_length=10, train_length_unit="step", steps_per_epoch=4), 7)
    assert [span.steps(epoch) for epoch in range(span.epochs)] == [4, 4, 2]
