"""The position of a plain torch DataLoader inside an epoch, kept to the batch and to the random number.

The tracked loader stays the same object and gets a class of its own, derived from its class, whose iterators
count. An epoch is told by the state of all generators when its iteration began and by the number of batches
taken; a resumed one is begun again from that state, so that it draws the same order and gives its workers the
same seeds, and what was taken is passed over. Workers make the batches that are passed over once more, for
their random numbers must advance; without workers only the order is passed over, which costs next to nothing.
"""

from __future__ import annotations

import sys
import weakref
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any, Protocol

from hostler.errors import UsageError
from hostler.sdk.checkpoint import rng


def is_loader(value: Any) -> bool:
    data = sys.modules.get("torch.utils.data")
    return data is not None and isinstance(value, data.DataLoader)


def position_of(loader: Any) -> LoaderPosition | None:
    """The position that already counts this loader's batches."""
    found = getattr(loader, "_hostler_position", None)
    return found if isinstance(found, LoaderPosition) else None


class Boundaries(Protocol):
    """Receives a loader's batch boundaries."""

    def begins(self, position: LoaderPosition) -> None: ...

    def between(self, position: LoaderPosition) -> None: ...


class LoaderPosition:
    """A loader's position. `resumed` is called once the loader is there again."""

    copies = False

    def __init__(self, name: str, loader: Any, boundaries: Boundaries, resumed: Callable[[], bool]) -> None:
        _refuse(name, loader)
        self.name, self._resumed = name, resumed
        self._boundaries: Boundaries | None = boundaries
        self.streams = isinstance(loader.dataset, sys.modules["torch.utils.data"].IterableDataset)
        self.order = SampledOrder()
        self.iteration = 0  # the number of the newest one
        self._current: weakref.ref[Counted] | None = None
        self._waiting: Mapping[str, Any] | None = None
        self._lent: Mapping[str, Any] | None = None  # to the current iteration, which goes on from it
        self._own = own_generators(loader)
        self._loader, self._kind = weakref.ref(loader), type(loader)
        loader.__class__ = _counting(type(loader))
        object.__setattr__(loader, "_hostler_position", self)

    @property
    def taken(self) -> int:
        """Batches taken of the iteration that is under way; none where there is none."""
        current = self._current() if self._current else None
        return current.taken if current is not None and not current.over else 0

    def state(self) -> Any:
        current = self._current() if self._current else None
        inside = current.state() if current is not None and not current.over else self._waiting
        return {"inside": inside, "own": self.snapshot()["own"]}

    def load(self, state: Any) -> None:
        self._set_own(state["own"])
        inside = state["inside"]
        self._waiting = None if inside is None else {**inside, "own": state["own"]}

    def close(self) -> None:
        """Restore the loader; an iteration under way is no longer tracked."""
        self._boundaries = None
        loader = self._loader()
        if loader is not None and position_of(loader) is self:
            object.__delattr__(loader, "_hostler_position")
            loader.__class__ = self._kind

    def begin(self, make: Callable[[], Any]) -> Counted:
        """An iterator of the loader: at the beginning of an epoch, or where the restored one was."""
        waiting, self._waiting = self._waiting, None
        self._lent = waiting
        self.order = SampledOrder()
        self.iteration += 1
        if self._boundaries is not None:
            self._boundaries.begins(self)
        counted = self.counted(make, waiting)
        self._current = weakref.ref(counted)
        return counted

    def counted(self, make: Callable[[], Any], goes_on: Mapping[str, Any] | None) -> Counted:
        return Counted(self, make, goes_on)

    def take_back(self) -> None:
        """A look at a batch before the first epoch was not the epoch that goes on."""
        if self._lent is not None and self._current is not None and self._current() is None:
            self._waiting = self._lent

    def snapshot(self) -> dict[str, Any]:
        """Every generator that an iteration may draw from."""
        own = {path: rng.state_of(generator) for path, generator in self._own.items()}
        return {"shared": rng.snapshot(), "own": own}

    def set(self, snapshot: Mapping[str, Any]) -> None:
        rng.put_back(snapshot["shared"])
        self._set_own(snapshot["own"])

    def between(self, iteration: int) -> None:
        if self._boundaries is not None and iteration == self.iteration:
            self._boundaries.between(self)

    def arrive(self, own: Mapping[str, Any], before: Mapping[str, Any]) -> None:
        """The restored iteration stands where it stood: all generators, too. Where a checkpoint was made
        meanwhile, they stand where they did when it was asked for."""
        if self._resumed():
            self._set_own(own)
        else:
            self.set(before)

    def _set_own(self, states: Mapping[str, Any]) -> None:
        for path, generator in self._own.items():
            if path in states:
                rng.set_state(generator, states[path])


class Counted:
    """An iterator of a loader that knows how many batches were taken."""

    def __init__(
        self, position: LoaderPosition, make: Callable[[], Any], goes_on: Mapping[str, Any] | None
    ) -> None:
        self._position, self._order, self._number = position, position.order, position.iteration
        self.taken, self.over = 0, False
        before = position.snapshot()
        if goes_on is not None:
            position.set(goes_on["start"])
        self._start = position.snapshot()
        self._first: Mapping[str, Any] | None = None
        self._inner = make()
        if goes_on is not None:
            self._go_on(goes_on)
            position.arrive(goes_on["own"], before)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self._first is None:
            self._first = self._position.snapshot()
        elif self.taken:
            self._position.between(self._number)
        return self._next()

    def __len__(self) -> int:
        return len(self._inner)

    def __getattr__(self, name: str) -> Any:
        if name == "_inner":  # it was never made
            raise AttributeError(name)
        return getattr(self._inner, name)

    def state(self) -> dict[str, Any]:
        """Enough to stand here again: how it began, and how far it came."""
        order = None if self._position.streams else self._order.at(self.taken)
        return {"start": self._start, "first": self._first, "taken": self.taken, "order": order}

    def _next(self) -> Any:
        try:
            batch = next(self._inner)
        except StopIteration:
            self.over = True
            raise
        self.taken += 1
        return batch

    def _go_on(self, state: Mapping[str, Any]) -> None:
        if state["first"] is not None:
            self._position.set(state["first"])
            self._first = self._position.snapshot()
        self._pass_over(state["taken"])
        if state["order"] is not None and self._order.at(self.taken) != state["order"]:
            raise UsageError(
                f"{self._position.name} cannot be resumed: its sampler chose another order this time",
                hint="let the sampler draw from a seed, from a generator, or once when it begins",
            )

    def _pass_over(self, count: int) -> None:
        """Without workers the order alone; workers, and data sets that are streams, give their batches."""
        if getattr(self._inner, "_num_workers", 1) == 0 and not self._position.streams:
            for _ in range(count):
                self._inner._next_index()
            self._inner._num_yielded = self.taken = count
            return
        for _ in range(count):
            try:
                self._next()
            except StopIteration:
                raise UsageError(
                    f"{self._position.name} cannot be resumed: it ended after {self.taken} batches, but "
                    f"{count} had been used",
                    hint="use the data set of the earlier attempt",
                ) from None


def _refuse(name: str, loader: Any) -> None:
    if loader.num_workers and loader.persistent_workers:
        raise UsageError(
            f"{name} has persistent_workers=True: random states inside them last from epoch to epoch "
            "and cannot be restored",
            hint="set persistent_workers=False, or leave the loader out of track()",
        )
    if loader.num_workers and not getattr(loader, "in_order", True):
        raise UsageError(
            f"{name} has in_order=False: the order of its batches cannot be restored",
            hint="set in_order=True",
        )


def _counting(kind: type[Any]) -> type[Any]:
    """The loader's class with iterators that count and an order that is summed."""

    class Counting(kind):  # type: ignore[misc]
        def __iter__(self) -> Any:
            return self._hostler_position.begin(super().__iter__)

        @property
        def _index_sampler(self) -> Any:
            return WatchedSampler(super()._index_sampler, self._hostler_position.order)

    Counting.__name__, Counting.__qualname__ = kind.__name__, kind.__qualname__
    Counting.__module__ = kind.__module__
    return Counting


# The order a sampler chose, as a checksum: a resumed epoch must choose the same one.


class SampledOrder:
    """A checksum of the indices that a sampler gave, after each batch: workers are sent some ahead."""

    def __init__(self) -> None:
        self._recent: deque[tuple[int, int]] = deque([(0, 0)], maxlen=4096)

    def draw(self, indices: Any) -> None:
        drawn, crc = self._recent[-1]
        self._recent.append((drawn + 1, zlib.crc32(repr(indices).encode(), crc)))

    def at(self, count: int) -> int | None:
        """After this many batches; None if that is too long ago."""
        return next((crc for drawn, crc in reversed(self._recent) if drawn == count), None)


class WatchedSampler:
    """A loader's sampler, whose indices are summed as they are drawn."""

    def __init__(self, sampler: Any, order: SampledOrder) -> None:
        self._sampler, self._order = sampler, order

    def __iter__(self) -> Iterator[Any]:
        return self._walk(iter(self._sampler))

    def __len__(self) -> int:
        return len(self._sampler)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._sampler, name)

    def _walk(self, inner: Iterator[Any]) -> Iterator[Any]:
        for indices in inner:
            self._order.draw(indices)
            yield indices


# Random generators that a loader, its sampler, its data set or what these hold keep for themselves.
#
# A data set with a generator of its own draws from it in the main process where there are no workers; a
# sampler does so in any case.


DEPTH = 4  # how deep they are looked for
ITEMS = 100  # of a list
OBJECTS = 2000


def own_generators(loader: Any) -> dict[str, Any]:
    """Generators that the loader, its sampler, its data set or what these hold keep for themselves."""
    record: dict[str, Any] = {}
    names = ("generator", "sampler", "batch_sampler", "dataset", "collate_fn")
    pending = [(name, getattr(loader, name, None), 0) for name in names]
    seen: set[int] = set()
    while pending and len(seen) < OBJECTS:
        path, value, depth = pending.pop(0)
        if value is None or id(value) in seen:
            continue
        seen.add(id(value))
        if rng.is_generator(value):
            record[path] = value
        elif depth < DEPTH:
            pending += [(f"{path}.{key}", item, depth + 1) for key, item in _held(value)]
    return record


def _held(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, (list, tuple)):
        return [(str(n), item) for n, item in enumerate(value[:ITEMS]) if hasattr(item, "__dict__")]
    held = getattr(value, "__dict__", None)
    return list(held.items()) if isinstance(held, dict) and not isinstance(value, (type, ModuleType)) else []
