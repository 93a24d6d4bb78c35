"""The order a sampler chose, as a checksum: a resumed epoch must choose the same one."""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Iterator
from typing import Any


class Order:
    """A checksum of the indices that a sampler gave, after each batch: workers are sent some ahead."""

    def __init__(self) -> None:
        self._recent: deque[tuple[int, int]] = deque([(0, 0)], maxlen=4096)

    def draw(self, indices: Any) -> None:
        drawn, crc = self._recent[-1]
        self._recent.append((drawn + 1, zlib.crc32(repr(indices).encode(), crc)))

    def at(self, count: int) -> int | None:
        """After this many batches; None if that is too long ago."""
        return next((crc for drawn, crc in reversed(self._recent) if drawn == count), None)


class Watched:
    """A loader's sampler, whose indices are summed as they are drawn."""

    def __init__(self, sampler: Any, order: Order) -> None:
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
