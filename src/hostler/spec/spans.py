"""A set of whole numbers in order, written in as few words as its pattern allows.

A grid that grew by a value has new cells at every so-manieth place: `first, length, period, times` says
that in four numbers, however many there are. Standard library only: workers read it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate

from hostler.frozen import dataclass


@dataclass(frozen=True)
class Stretch:
    """`times` blocks of `length` numbers each, the first at `first`, each `period` after the one before."""

    first: int
    length: int
    period: int = 0
    times: int = 1

    def __len__(self) -> int:
        return self.length * self.times

    def nth(self, n: int) -> int:
        block, at = divmod(n, self.length)
        return self.first + block * self.period + at

    def rank(self, number: int) -> int:
        """How many of its numbers are smaller."""
        if number <= self.first:
            return 0
        block, at = divmod(number - self.first, self.period) if self.times > 1 else (0, number - self.first)
        return len(self) if block >= self.times else block * self.length + min(at, self.length)


@dataclass(frozen=True)
class Spans:
    """Stretches in order, none reaching into the next."""

    stretches: tuple[Stretch, ...] = ()

    @cached_property
    def _firsts(self) -> list[int]:
        return [stretch.first for stretch in self.stretches]

    @cached_property
    def _before(self) -> list[int]:
        """How many numbers there are before each stretch, and in all."""
        return [0, *accumulate(len(stretch) for stretch in self.stretches)]

    def __len__(self) -> int:
        return self._before[-1]

    def __iter__(self) -> Iterator[int]:
        for stretch in self.stretches:
            for block in range(stretch.times):
                start = stretch.first + block * stretch.period
                yield from range(start, start + stretch.length)

    def __contains__(self, number: int) -> bool:
        return self.rank(number + 1) > self.rank(number)

    def nth(self, n: int) -> int:
        """The number that has n smaller ones in the set."""
        at = bisect_right(self._before, n) - 1
        return self.stretches[at].nth(n - self._before[at])

    def rank(self, number: int) -> int:
        """How many numbers of the set are smaller than this."""
        at = bisect_right(self._firsts, number) - 1
        return 0 if at < 0 else self._before[at] + self.stretches[at].rank(number)


def of(numbers: Iterable[int]) -> Spans:
    """The set of these numbers, which come in order."""
    return Spans(tuple(_folded(_blocks(numbers))))


def whole(count: int) -> Spans:
    """0, 1 … count - 1."""
    return Spans((Stretch(0, count),)) if count else Spans()


def to_json(spans: Spans) -> list[list[int]]:
    return [[s.first, s.length, *([s.period, s.times] if s.times > 1 else [])] for s in spans.stretches]


def from_json(rows: Sequence[Sequence[int]]) -> Spans:
    return Spans(tuple(Stretch(*row) for row in rows))


def _blocks(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """(first, length) of numbers that follow each other without a gap."""
    first = stop = -1
    for number in numbers:
        if number != stop:
            if stop > first:
                yield first, stop - first
            first = number
        stop = number + 1
    if stop > first:
        yield first, stop - first


def _folded(blocks: Iterable[tuple[int, int]]) -> Iterator[Stretch]:
    """Blocks of one length at one distance, taken together."""
    held: Stretch | None = None
    for first, length in blocks:
        if held and held.length == length and held.times == 1:
            held = Stretch(held.first, length, first - held.first, 2)
        elif held and held.length == length and first == held.first + held.period * held.times:
            held = Stretch(held.first, length, held.period, held.times + 1)
        else:
            if held:
                yield held
            held = Stretch(first, length)
    if held:
        yield held
