"""Random numbers that depend on keys alone: spread evenly, and the same alone and among others."""

from __future__ import annotations

import pytest
import torch

from hostler.train.data.chance import Chance, keys
from hostler.train.data.order import mixed


def test_keys_are_those_of_each_seed_and_step() -> None:
    seeds, steps = [0, 7, 2**31 - 1], [0, 1, 99_999]
    found = keys(torch.tensor(seeds), torch.tensor(steps), rank=3)
    assert found.tolist() == [[mixed(seed, step, 3) for seed in seeds] for step in steps]


def test_member_draws_the_same_alone_and_among_others() -> None:
    several = torch.tensor([mixed(seed, 5, 0) for seed in range(4)])
    together, alone = Chance(several), Chance(several[2:3])
    for draw in (lambda one: one.uniform(3, 5), lambda one: one.permutation(9), lambda one: one.beta(0.4)):
        assert torch.equal(draw(together)[2:3], draw(alone))


def test_numbers_are_even_and_of_no_neighbour() -> None:
    drawn = Chance(keys(torch.arange(64), torch.tensor([1]))[0]).uniform(4096)
    counts = torch.histc(drawn, 64, 0, 1)
    assert drawn.min() >= 0 and drawn.max() < 1
    assert (counts - drawn.numel() / 64).abs().max() < 6 * (drawn.numel() / 64) ** 0.5
    for other in (drawn.roll(1, 0), drawn.roll(1, 1)):
        together = torch.corrcoef(torch.stack([drawn.flatten(), other.flatten()]))[0, 1]
        assert together.abs() < 0.01


@pytest.mark.parametrize("alpha", [0.2, 1.0, 3.0])
def test_shares_have_the_spread_of_their_beta(alpha: float) -> None:
    found = Chance(keys(torch.arange(20_000), torch.tensor([0]))[0]).beta(alpha)
    assert found.min() >= 0 and found.max() <= 1
    assert float(found.mean()) == pytest.approx(0.5, abs=0.01)
    assert float(found.var()) == pytest.approx(1 / (4 * (2 * alpha + 1)), rel=0.05)
