"""Batches of tensors; loader processes where they cannot work."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
import torch

from hostler.errors import MachineError
from hostler.train.data.feed import ArrayFeed, Share, check_sockets
from hostler.train.data.order import ExampleOrder
from hostler.train.data.split import Arrays

HERE = torch.device("cpu")


@pytest.mark.parametrize("share", [Share(), Share(0, 2), Share(1, 2)])
def test_batch_follows_the_order_from_any_step_and_layout(share: Share) -> None:
    pictures = Arrays(torch.randn(10, 3, 4, 4), torch.arange(10))
    order = ExampleOrder(10, 4, seed=3)
    as_it_is = ArrayFeed(pictures, order, share, HERE)
    laid_out = ArrayFeed(pictures.to(HERE, channels_last=True), order, share, HERE)
    for step in (0, 1, 2, 3, 8, 2, 5):
        wanted = share.of(order.at(step))
        assert len(order.at(step)) == order.size(step)
        for feed in (as_it_is, laid_out):
            x, y = feed.at(step)
            assert torch.equal(y, wanted) and torch.equal(x, pictures.x[wanted])
        assert x.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("last", [False, True], ids=["channels first", "channels last"])
def test_batch_is_put_where_it_is_wanted(last: bool) -> None:
    pictures = Arrays(torch.randn(10, 3, 4, 4), torch.arange(10)).to(HERE, channels_last=last)
    order = ExampleOrder(10, 4, seed=3)
    feed = ArrayFeed(pictures, order, Share(), HERE)
    first = feed.at(0)
    place = torch.empty_like(first[0]), torch.empty_like(first[1])
    for step in (0, 1, 3):
        x, y = feed.at(step, place)
        assert x is place[0] and y is place[1]
        assert torch.equal(y, order.at(step)) and torch.equal(x, pictures.x[order.at(step)])
    x, y = feed.at(2, place)
    assert x is not place[0] and torch.equal(y, order.at(2)), "the last of a pass is smaller"


def test_temporary_folder_too_long_for_loader_sockets_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / ("long" * 20)))
    with pytest.raises(MachineError, match="too long for loader processes"):
        check_sockets(2)
    check_sockets(0)


def test_a_short_one_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/tmp")
    check_sockets(2)
