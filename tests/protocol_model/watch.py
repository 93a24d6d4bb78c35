"""The watch over one heartbeat: when may a watcher say that it stands still?

A watch is a series of reads, each stamped on the watcher's own clock; a gap of over a quarter of the
lease starts it anew; stale = the first and the last stamp with one etag are a lease apart. Between any
two of its steps the watcher may be frozen, a read may take any time on its way there and back, and an
answer may be judged more than once.

Only differences of times matter, so the state holds ages, cut off where they make no difference any
more: the search covers a watch of any length.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from protocol_model.rules import Rules

LEASE = 8
GAP = LEASE // 4
SLOWEST_BEAT = 5  # a beat in time, even if slow: under lease - gap
SKEW = 6  # how far the two machines' clocks are apart
FOREVER = 2 * LEASE


class Watch(NamedTuple):
    beat: int = 0  # age of the last beat
    first: int = -1  # age of the series' first stamp; -1 = no series yet
    last: int = -1  # age of its last stamp
    moved: bool = False  # the holder has beaten since the series' etag was read
    stamp: int = -1  # age of the stamp of the read that is under way; -1 = none
    answer: str = ""  # "same" or "new" etag, once the store has read it
    answer_moved: bool = False  # the holder has beaten since
    beat_seen: int = -1  # how old the answered beat looks if two clocks are compared
    stale: bool = False


@dataclass(frozen=True)
class Watching:
    """A holder that beats in time (or, if dead, never), and one watcher."""

    rules: Rules = field(default_factory=Rules)
    dead: bool = False

    def start(self) -> Watch:
        return Watch()

    def steps(self, now: Watch) -> Iterator[tuple[str, Watch]]:
        if now.stale:
            return
        if self.dead or now.beat < SLOWEST_BEAT:
            yield "time passes", _older(now)
        if not self.dead and now.beat > 0:
            yield "the holder beats", now._replace(beat=0, moved=True, answer_moved=True)
        if now.first >= 0:
            yield "the watcher judges its last answer again", self._judged_again(now)
        if now.stamp < 0:
            yield "the watcher stamps a read", now._replace(stamp=0)
        elif not now.answer:
            yield "the store answers the read", self._answered(now)
        else:
            yield "the watcher has the answer", self._judged(now)

    def broken(self, now: Watch) -> str:
        return "P8: a worker that beats in time is called stale" if now.stale and not self.dead else ""

    def ended(self, now: Watch) -> bool:
        return now.stale or not self.dead

    def out_of_bounds(self, now: Watch) -> bool:
        return False

    def _answered(self, now: Watch) -> Watch:
        same = now.first >= 0 and not now.moved
        return now._replace(
            answer="same" if same else "new", answer_moved=False, beat_seen=min(now.beat, LEASE) + SKEW
        )

    def _judged_again(self, now: Watch) -> Watch:
        """Workers decide more often than they read: an old answer says no more than it did."""
        stamp = now.last if self.rules.stamp_before_send else 0
        return now._replace(last=stamp, stale=now.first - stamp >= LEASE)

    def _judged(self, now: Watch) -> Watch:
        stamp = now.stamp if self.rules.stamp_before_send else 0
        gap = now.last - stamp > GAP and self.rules.watch_restarts_after_gap
        anew = now.answer == "new" or gap
        first = stamp if anew else now.first
        moved = now.answer_moved if now.answer == "new" else now.moved
        stale = first - stamp >= LEASE if self.rules.own_clock else now.beat_seen >= LEASE
        return Watch(beat=now.beat, first=first, last=stamp, moved=moved, stale=stale)


def _older(now: Watch) -> Watch:
    return now._replace(
        beat=min(now.beat + 1, FOREVER),
        first=_age(now.first),
        last=_age(now.last),
        stamp=_age(now.stamp),
    )


def _age(age: int) -> int:
    return age if age < 0 else min(age + 1, FOREVER)
