"""The position of a DataLoader inside an epoch: resumed anywhere, the same batches to the bit."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hostler.errors import UsageError
from hostler.sdk.checkpoint.checkpointer import Checkpointer
from hostler.sdk.checkpoint.policy import SavePolicy

try:
    import numpy
    import torch as _torch
    from torch.utils.data import DataLoader, Dataset, IterableDataset, RandomSampler, WeightedRandomSampler
except ImportError:  # the fixture says so
    Dataset = IterableDataset = object  # type: ignore[assignment,misc]

pytestmark = pytest.mark.usefixtures("torch")

EPOCHS, SIZE, BATCH = 2, 22, 4


class Noisy(Dataset):  # type: ignore[type-arg,misc]
    """Every item is augmented by all generators there are, and by one of its own."""

    def __init__(self) -> None:
        self.own = random.Random(8)

    def __len__(self) -> int:
        return SIZE

    def __getitem__(self, index: int) -> Any:
        noise = [_torch.rand(1).item(), random.random(), float(numpy.random.rand()), self.own.random()]
        return _torch.tensor([float(index), *noise], dtype=_torch.float64)


class Stream(IterableDataset):  # type: ignore[type-arg,misc]
    def __iter__(self) -> Iterator[Any]:
        info = _torch.utils.data.get_worker_info()
        for index in range(info.id if info else 0, SIZE, info.num_workers if info else 1):
            yield _torch.tensor(
                [float(index), float(info is not None) * random.random()], dtype=_torch.float64
            )


class Shuffled:
    """A sampler of the user's own, that draws from Python's generator when it begins."""

    def __iter__(self) -> Iterator[int]:
        order = list(range(SIZE))
        random.shuffle(order)
        return iter(order)

    def __len__(self) -> int:
        return SIZE


class Training:
    """Batches and numbers drawn between them, as a model with dropout would; stopped where one likes."""

    def __init__(self, folder: Path, make: Callable[[], Any]) -> None:
        _torch.manual_seed(1)
        random.seed(2)
        numpy.random.seed(3)
        self.loader = make()
        self.checkpointer = Checkpointer(folder, policy=SavePolicy(every_steps=1), say=print)
        found = self.checkpointer.restore()
        self.checkpointer.track(loader=self.loader)
        self.at = dict(found.state) if found else {"epoch": 0, "step": 0}
        self.seen: dict[int, list[float]] = {}

    def run(self, stop: int | None = None) -> dict[int, list[float]]:
        self.checkpointer.resume_rng()
        for epoch in range(self.at["epoch"], EPOCHS):
            self.at["epoch"] = epoch
            for batch in self.loader:
                self.at["step"] += 1
                drawn = [_torch.rand(1).item(), random.random(), float(numpy.random.rand())]
                self.seen[self.at["step"]] = [*batch.flatten().tolist(), *drawn]
                if self.at["step"] == stop:
                    self.checkpointer.save(stop, self.at, wait=True)
                    return self.seen
        return self.seen


def loader(workers: int = 0, data: Any = Noisy, **options: Any) -> Callable[[], Any]:
    return lambda: DataLoader(data(), batch_size=BATCH, num_workers=workers, **options)


LOADERS = {
    "in order": loader(),
    "shuffled": loader(shuffle=True),
    "shuffled, own generator": lambda: DataLoader(
        Noisy(), batch_size=BATCH, shuffle=True, generator=_torch.Generator().manual_seed(5)
    ),
    "two workers": loader(2, shuffle=True),
    "two workers, own generator, one batch ahead": lambda: DataLoader(
        Noisy(),
        batch_size=BATCH,
        shuffle=True,
        num_workers=2,
        prefetch_factor=1,
        generator=_torch.Generator().manual_seed(5),
    ),
    "three workers, last left out": loader(3, shuffle=True, drop_last=True),
    "own sampler": lambda: DataLoader(Noisy(), batch_size=BATCH, sampler=Shuffled()),
    "own sampler, workers": lambda: DataLoader(Noisy(), batch_size=BATCH, sampler=Shuffled(), num_workers=2),
    "with replacement": lambda: DataLoader(
        Noisy(), batch_size=BATCH, sampler=RandomSampler(range(SIZE), replacement=True)
    ),
    "weighted": lambda: DataLoader(
        Noisy(), batch_size=BATCH, sampler=WeightedRandomSampler([1.0, 2.0] * 11, SIZE)
    ),
    "without batches": lambda: DataLoader(Noisy(), batch_size=None, shuffle=True),
    "a stream": loader(0, Stream),
    "a stream, workers": loader(2, Stream),
}


@pytest.mark.parametrize("name", LOADERS)
def test_a_resumed_epoch_gives_the_same_batches_and_numbers(tmp_path: Path, name: str) -> None:
    whole = Training(tmp_path / "whole", LOADERS[name]).run()
    last = max(whole)
    seen: dict[int, list[float]] = {}
    for stop in (1, 3, last // 2, last // 2 + 1, last - 1, None):
        seen.update(Training(tmp_path / "parts", LOADERS[name]).run(stop))
    assert seen == whole


def test_without_workers_what_was_taken_is_not_made_again(tmp_path: Path) -> None:
    Training(tmp_path, loader(shuffle=True)).run(stop=4)
    made: list[int] = []

    class Counting(Noisy):
        def __getitem__(self, index: int) -> Any:
            made.append(index)
            return super().__getitem__(index)

    Training(tmp_path, loader(0, Counting, shuffle=True)).run(stop=5)
    assert len(made) == BATCH


def test_an_iteration_left_by_break_is_over(tmp_path: Path) -> None:
    training = Training(tmp_path, loader(shuffle=True))
    for _ in training.loader:
        break
    training.checkpointer.save(1, training.at, wait=True)
    later = Training(tmp_path, loader(shuffle=True))
    assert len(list(later.loader)) == 6


def test_an_iterator_that_is_kept_goes_on(tmp_path: Path) -> None:
    training = Training(tmp_path, loader(shuffle=True))
    going = iter(training.loader)
    next(going), next(going)
    training.checkpointer.save(1, training.at, wait=True)
    expected = next(going)
    assert _torch.equal(next(iter(Training(tmp_path, loader(shuffle=True)).loader)), expected)


def test_the_loader_stays_what_it_was_and_is_given_back(tmp_path: Path) -> None:
    made = loader(shuffle=True)()
    checkpointer = Checkpointer(tmp_path, policy=SavePolicy(), say=print)
    checkpointer.track(loader=made)
    assert isinstance(made, DataLoader) and type(made).__name__ == "DataLoader" and len(made) == 6
    assert len(iter(made)) == 6
    checkpointer.close()
    assert type(made) is DataLoader and not hasattr(made, "_hostler_position")


def test_a_second_checkpointer_may_keep_the_same_loader(tmp_path: Path) -> None:
    training = Training(tmp_path / "one", loader(shuffle=True))
    best = Checkpointer(tmp_path / "best", policy=SavePolicy(), say=print)
    best.track(loader=training.loader)
    going = iter(training.loader)
    next(going)
    best.save(1, {}, wait=True)
    best.close()
    assert len(list(going)) == 5 and type(training.loader) is not DataLoader


def test_persistent_workers_and_an_unknown_order_are_refused(tmp_path: Path) -> None:
    checkpointer = Checkpointer(tmp_path, policy=SavePolicy(), say=print)
    with pytest.raises(UsageError, match=r"loader has persistent_workers.*persistent_workers=False"):
        checkpointer.track(loader=loader(2, persistent_workers=True)())
    if "in_order" in DataLoader.__init__.__annotations__:
        with pytest.raises(UsageError, match="in_order=False"):
            checkpointer.track(other=loader(2, in_order=False)())


def test_a_data_set_that_changed_is_said(tmp_path: Path) -> None:
    Training(tmp_path, loader(shuffle=True)).run(stop=3)

    class Longer(Noisy):
        def __len__(self) -> int:
            return SIZE + 1

    with pytest.raises(UsageError, match="loader cannot be resumed: its sampler chose another order"):
        Training(tmp_path, loader(0, Longer, shuffle=True)).run()


def test_boundary_comes_between_batches_and_not_during_gradient_accumulation(tmp_path: Path) -> None:
    model = _torch.nn.Linear(5, 1, dtype=_torch.float64)
    optimizer = _torch.optim.SGD(model.parameters(), 0.1)
    training = Training(tmp_path, loader())
    training.checkpointer.track(model=model, optimizer=optimizer)
    reached: list[int] = []
    training.checkpointer.at_boundary = lambda: reached.append(n)
    for n, batch in enumerate(training.loader, 1):
        model(batch).sum().backward()
        if n % 2 == 0:
            optimizer.step()
            optimizer.zero_grad()
    assert reached == [2, 4, 6]


def test_nothing_is_saved_while_another_loader_runs_in_the_epoch(tmp_path: Path) -> None:
    training, validation = Training(tmp_path, loader()), loader()()
    training.checkpointer.track(validation=validation)
    reached: list[str] = []
    for epoch in range(2):
        training.checkpointer.epoch_began()
        for name, one in (("train", training.loader), ("validate", validation)):
            training.checkpointer.at_boundary = lambda name=name, epoch=epoch: reached.append(
                f"{name} {epoch}"
            )
            for _ in one:
                pass
    assert reached == ["train 0"] * 6 + ["train 1"] * 6


def test_loader_inside_anothers_loop_does_not_save(tmp_path: Path) -> None:
    training, validation = Training(tmp_path, loader()), loader()()
    training.checkpointer.track(validation=validation)
    training.checkpointer.epoch_began()
    reached: list[str] = []
    where = "between"
    training.checkpointer.at_boundary = lambda: reached.append(where)
    for _ in training.loader:
        where = "in the body"
        list(validation)
        where = "between"
    assert reached == ["between"] * 6


def test_nothing_is_saved_after_a_break_before_the_epoch_ends(tmp_path: Path) -> None:
    training, validation = Training(tmp_path, loader()), loader()()
    training.checkpointer.track(validation=validation)
    training.checkpointer.epoch_began()
    for _ in training.loader:
        break
    reached: list[int] = []
    training.checkpointer.at_boundary = lambda: reached.append(1)
    list(validation)
    assert reached == []
    training.checkpointer.epoch_began()
    list(training.loader)
    assert len(reached) == 6


def test_peek_at_a_batch_before_the_first_epoch_keeps_position(tmp_path: Path) -> None:
    whole = Training(tmp_path / "a", loader(shuffle=True)).run()
    Training(tmp_path / "b", loader(shuffle=True)).run(stop=3)
    later = Training(tmp_path / "b", loader(shuffle=True))
    next(iter(later.loader))
    later.checkpointer.epoch_began()
    assert later.run() == {step: seen for step, seen in whole.items() if step > 3}
