"""Batches that threads read ahead of the step."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest
import torch

from hostler.errors import DamagedError
from hostler.train.data.ahead import AHEAD, held, read_ahead
from hostler.train.data.feed import AheadFeed, Share, in_order
from hostler.train.data.order import ExampleOrder
from hostler.train.data.split import Gathered

HERE = torch.device("cpu")
PATIENCE = 20.0  # seconds for a thread of a busy machine


class Watched(Gathered):
    """Pictures of one byte, their number; tells which batches were read, and by which thread."""

    shape = (1, 1, 1)

    def __init__(self, count: int, bad: int = -1) -> None:
        self.targets, self._bad = torch.arange(count) % 3, bad
        self.read: list[list[int]] = []
        self.threads: set[str] = set()
        self.more = threading.Condition()

    def gather(self, chosen: Sequence[int], device: torch.device) -> torch.Tensor:
        if self._bad in chosen:
            raise DamagedError(f"picture {self._bad} is damaged")
        with self.more:
            self.read.append(list(chosen))
            self.threads.add(threading.current_thread().name)
            self.more.notify_all()
        return torch.tensor(chosen, dtype=torch.uint8).reshape(-1, 1, 1, 1)

    def waits_for(self, batches: int) -> bool:
        with self.more:
            return self.more.wait_for(lambda: len(self.read) >= batches, PATIENCE)


def feed(split: Watched, threads: int, share: Share | None = None, total: int = 50) -> AheadFeed:
    order = ExampleOrder(len(split), 4, seed=3)
    return AheadFeed(split, order, share or Share(), HERE, threads, total)


@pytest.mark.parametrize("threads", [0, 1, 3])
@pytest.mark.parametrize("share", [Share(), Share(0, 2), Share(1, 2)])
def test_batch_read_ahead_follows_the_order_from_any_step(threads: int, share: Share) -> None:
    split, order = Watched(10), ExampleOrder(10, 4, seed=3)
    made = feed(split, threads, share)
    for step in (0, 1, 2, 3, 8, 9, 2, 5, 49):
        x, y = made.at(step)
        wanted = share.of(order.at(step))
        assert x.flatten().tolist() == wanted.tolist() and torch.equal(y, split.targets[wanted])
    made.close()


def test_next_batches_are_read_before_anybody_asks() -> None:
    split = Watched(40)
    made = feed(split, 2)
    made.at(0)
    assert split.waits_for(1 + 2 * AHEAD)
    made.at(1)
    assert split.waits_for(2 + 2 * AHEAD)
    assert len(split.read) == 2 + 2 * AHEAD, "no more than fit"
    assert threading.current_thread().name not in split.threads
    made.close()


def test_without_threads_nothing_is_read_ahead() -> None:
    split = Watched(40)
    made = feed(split, 0)
    made.at(0)
    made.at(1)
    assert len(split.read) == 2 and split.threads == {threading.current_thread().name}


def test_no_batch_beyond_the_last_step_is_read() -> None:
    split = Watched(40)
    made = feed(split, 3, total=2)
    made.at(0)
    made.at(1)
    made.close()
    assert len(split.read) == 2


def test_threads_end_with_the_feed() -> None:
    made = feed(Watched(40), 3)
    made.at(0)
    assert any(one.name.startswith("read-ahead") for one in threading.enumerate())
    made.close()
    assert not any(one.name.startswith("read-ahead") for one in threading.enumerate())


def test_error_of_a_batch_comes_out_at_its_step() -> None:
    order = ExampleOrder(40, 4, seed=3)
    made = feed(Watched(40, bad=int(order.at(2)[0])), 2)
    made.at(0)
    made.at(1)
    with pytest.raises(DamagedError, match="is damaged"):
        made.at(2)
    made.close()


@pytest.mark.parametrize("threads", [0, 2])
def test_evaluation_sees_all_examples_once(threads: int) -> None:
    split = Watched(10)
    parts = [list(in_order(split, 4, HERE, threads, Share(rank, 2))) for rank in range(2)]
    seen = [one for rank in parts for x, _ in rank for one in x.flatten().tolist()]
    assert sorted(seen) == list(range(10)) and len(seen) == 10
    first = in_order(split, 4, HERE, threads, Share())
    assert next(iter(first))[0].flatten().tolist() == [0, 1, 2, 3]


def test_whole_split_is_held_as_it_is_read() -> None:
    split = Watched(10)
    whole = held(split, HERE, 2)
    assert whole.x.flatten().tolist() == list(range(10)) and torch.equal(whole.y, split.targets)
    assert len(list(read_ahead(split, [range(3), range(3, 10)], HERE, 1))) == 2


def test_example_by_its_index_is_a_pair() -> None:
    split = Watched(10)
    assert [int(one) for one in split[4]] == [4, 1]
    assert int(split[-1][0]) == 9
    with pytest.raises(IndexError):
        split[10]
