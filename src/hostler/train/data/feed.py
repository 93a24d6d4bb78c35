"""Batches on the device, from any step on: taken out of tensors that lie there, read ahead by threads, or
loaded by worker processes.

Random augmentation of an example is drawn from a seed of its own, so that it depends on no worker and no
place.
"""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Generator, Iterator
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

from hostler.errors import MachineError
from hostler.frozen import dataclass
from hostler.train.data.ahead import Batch, read_ahead
from hostler.train.data.order import ExampleOrder, mixed
from hostler.train.data.split import Arrays, Gathered, Items

LONGEST = 107 - len("/pymp-12345678/listener-12345678")  # bytes of a path that a socket may have


@dataclass(frozen=True)
class Share:
    """Which part of every batch is this rank's."""

    rank: int = 0
    ranks: int = 1

    def of(self, indices: torch.Tensor) -> torch.Tensor:
        if self.ranks == 1:
            return indices
        return indices[self.rank :: self.ranks] if self.rank < len(indices) else indices[:1]  # without weight


class ArrayFeed:
    """A feed of tensors: a gather per batch. The order of a whole pass lies beside them, so that no step
    waits for the device to take its part of it."""

    def __init__(self, arrays: Arrays, order: ExampleOrder, share: Share, device: torch.device) -> None:
        self._arrays, self._order, self._share, self._device = arrays, order, share, device
        self._orders: dict[int, torch.Tensor] = {}  # of a pass, and of the next

    def at(self, step: int, into: Batch | None = None) -> Batch:
        """`into`: tensors that are filled with the batch, where it is of their form and lies beside them."""
        passes = step // self._order.steps
        if passes not in self._orders:
            self._orders = {passes: self._sent(passes)}
        elif passes + 1 not in self._orders:  # not in the first step of a pass: the device has work by now
            self._orders = {passes: self._orders[passes], passes + 1: self._sent(passes + 1)}
        chosen = self._share.of(self._orders[passes][self._order.places(step)])
        if into is not None and self._fits(chosen, into):
            torch.index_select(_pictures_last(self._arrays.x), 0, chosen, out=_pictures_last(into[0]))
            torch.index_select(self._arrays.y, 0, chosen, out=into[1])
            return into
        x, y = _rows(self._arrays.x, chosen), self._arrays.y[chosen]
        return x.to(self._device, non_blocking=True), y.to(self._device, non_blocking=True)

    def close(self) -> None:
        """Nothing is open."""

    def _fits(self, chosen: torch.Tensor, into: Batch) -> bool:
        return all(
            mine.device == to.device and mine.dtype == to.dtype and (len(chosen), *mine.shape[1:]) == to.shape
            for mine, to in zip((self._arrays.x, self._arrays.y), into, strict=True)
        ) and _is_last(self._arrays.x) == _is_last(into[0])

    def _sent(self, passes: int) -> torch.Tensor:
        order, device = self._order.in_pass(passes), self._arrays.x.device
        return order.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else order


def _rows(x: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    """As they lie there: pictures whose channels are last need not be laid out anew in every step."""
    if _is_last(x):
        return x.permute(0, 2, 3, 1)[chosen].permute(0, 3, 1, 2)
    return x[chosen]


def _is_last(x: torch.Tensor) -> bool:
    return x.ndim == 4 and x.is_contiguous(memory_format=torch.channels_last)


def _pictures_last(x: torch.Tensor) -> torch.Tensor:
    return x.permute(0, 2, 3, 1) if _is_last(x) else x


class AheadFeed:
    """A feed of what threads read ahead of the step."""

    def __init__(
        self,
        split: Gathered,
        order: ExampleOrder,
        share: Share,
        device: torch.device,
        threads: int,
        total: int,
    ) -> None:
        self._split, self._order, self._share, self._device = split, order, share, device
        self._threads, self._total = threads, total
        self._next = -1
        self._batches: Generator[Batch, None, None] | None = None

    def at(self, step: int, into: Batch | None = None) -> Batch:
        """`into` is of no use: the batch is on its way before anybody says where it should go."""
        if step != self._next or self._batches is None:
            self.close()
            self._batches = read_ahead(self._split, self._chosen(step), self._device, self._threads)
        self._next = step + 1
        return next(self._batches)

    def close(self) -> None:
        """The threads end; what they have read ahead is dropped."""
        if self._batches is not None:
            self._batches.close()
        self._batches, self._next = None, -1

    def _chosen(self, first: int) -> Iterator[list[int]]:
        for step in range(first, self._total):
            yield self._share.of(self._order.at(step)).tolist()


class LoaderFeed:
    """A feed of a dataset: one loader for the whole training, begun at the first step that is asked for."""

    def __init__(
        self, items: Items, order: ExampleOrder, share: Share, device: torch.device, workers: int, total: int
    ) -> None:
        self._items, self._order, self._share, self._device = items, order, share, device
        self._workers, self._total = workers, total
        self._next = -1
        self._batches: Iterator[Any] = iter(())

    def at(self, step: int, into: Batch | None = None) -> Batch:
        """`into` is of no use to what other processes load."""
        if step != self._next:
            self._batches = iter(self._loader(step))
        self._next = step + 1
        x, y = next(self._batches)
        return x.to(self._device, non_blocking=True), y.to(self._device, non_blocking=True)

    def close(self) -> None:
        """The loader's processes end."""
        self._batches, self._next = iter(()), -1

    def _loader(self, first: int) -> DataLoader[Any]:
        check_sockets(self._workers)
        return DataLoader(
            Seeded(self._items, self._order.seed),
            batch_sampler=_BatchSampler(self._order, self._share, first, self._total),
            num_workers=self._workers,
            pin_memory=self._device.type == "cuda",
            generator=torch.Generator(),  # its base seed is not the training's
        )


def check_sockets(workers: int) -> None:
    """Loader processes hand tensors over by sockets in the folder for temporary files, and would wait for
    ever where its path leaves no room for their names."""
    folder = tempfile.gettempdir()
    if workers and len(os.fsencode(folder)) > LONGEST:
        raise MachineError(
            f"the path {folder} is too long for loader processes: more than {LONGEST} bytes",
            hint="set TMPDIR to a shorter folder, or num_workers: 0",
        )


class _BatchSampler:
    """Batches of (example, pass) from a step on."""

    def __init__(self, order: ExampleOrder, share: Share, first: int, total: int) -> None:
        self._order, self._share, self._first, self._total = order, share, first, total

    def __iter__(self) -> Iterator[list[tuple[int, int]]]:
        for step in range(self._first, self._total):
            passes = step // self._order.steps
            yield [(index, passes) for index in self._share.of(self._order.at(step)).tolist()]

    def __len__(self) -> int:
        return self._total - self._first


class Seeded(Dataset[Any]):
    """An example as it is in one pass: its random augmentation begins from a seed of pass and index."""

    def __init__(self, items: Items, seed: int) -> None:
        self._items, self._seed = items, seed

    def __getitem__(self, place: tuple[int, int]) -> Any:
        index, passes = place
        with _own_chance(mixed(self._seed, passes, index)):
            return self._items[index]


class _own_chance:
    """Random numbers from this seed inside; outside everything as before."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def __enter__(self) -> None:
        self._python, self._torch = random.getstate(), torch.get_rng_state()
        random.seed(self._seed)
        torch.default_generator.manual_seed(self._seed)
        self._numpy = _seed_numpy(self._seed)

    def __exit__(self, *_: object) -> None:
        random.setstate(self._python)
        torch.set_rng_state(self._torch)
        if self._numpy is not None:
            import numpy as np

            np.random.set_state(self._numpy)


def _seed_numpy(seed: int) -> Any:
    try:
        import numpy as np
    except ImportError:
        return None
    before = np.random.get_state()
    np.random.seed(seed % 2**32)
    return before


def in_order(
    split: Arrays | Items, batch: int, device: torch.device, workers: int, share: Share
) -> Iterator[Batch]:
    """All examples once, for an evaluation; each rank its share."""
    if isinstance(split, Arrays):
        for first in range(0, len(split), batch):
            rows = slice(first + share.rank, min(first + batch, len(split)), share.ranks)
            yield split.x[rows].to(device), split.y[rows].to(device)
        return
    batches = [
        list(range(first + share.rank, min(first + batch, len(split)), share.ranks))
        for first in range(0, len(split), batch)
    ]
    if isinstance(split, Gathered):
        yield from read_ahead(split, [one for one in batches if one], device, workers)
        return
    check_sockets(workers)
    loader: DataLoader[Any] = DataLoader(
        _Plain(split),
        batch_sampler=[one for one in batches if one],
        num_workers=workers,
        generator=torch.Generator(),
    )
    for x, y in loader:
        yield x.to(device, non_blocking=True), y.to(device, non_blocking=True)


class _Plain(Dataset[Any]):
    def __init__(self, items: Items) -> None:
        self._items = items

    def __getitem__(self, index: int) -> Any:
        return self._items[index]
