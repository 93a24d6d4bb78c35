"""All tracking tools of an attempt, fed from their own thread: training and worker never wait.

What a tool shows is the chain of points that counts: those of earlier attempts up to the checkpoint that this
one went on from, then its own, each once. Two attempts never deliver at the same time, since a server asked
what it has would not know what is on its way: one that gives the run back says first that it delivers, and
the next waits for it, a while. How each does, and files that it leaves, go into the store; a line about
trouble goes into the run's log, once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hostler.errors import HostlerError, StoreError
from hostler.frozen import dataclass
from hostler.records import project as projects
from hostler.records.rows import display_name
from hostler.records.run import tracked
from hostler.records.run.log import RunKey
from hostler.records.series import metrics
from hostler.records.series.metrics import FragmentCache
from hostler.records.series.points import Point
from hostler.records.sweep import sweeps
from hostler.spec.job import Job
from hostler.store import Store
from hostler.trackers import base
from hostler.trackers.base import Closing, Opening
from hostler.trackers.feed import Feed, FeederPython
from hostler.trackers.feed_folder import CLOSED, CLOSING, FAILED, OPEN, OPENING, FeedFolder, FeedState

LOOK = 0.5  # seconds between two looks
LOST = 5.0  # seconds that a tool is waited for whose server has not answered once
AGAIN = 5.0  # before a store that did not answer is asked again

Say = Callable[[str], None]


@dataclass(frozen=True)
class Subject:
    """The attempt that is shown."""

    store: Store
    job: Job
    key: RunKey
    attempt: int
    params: Mapping[str, Any]
    started: float
    hide: Callable[[str], str] = str  # covers what nobody may read
    patience: float = 60.0  # seconds that an attempt before it may take to deliver the rest


class Feeds:
    """Started once, given points, closed once. No method but `close` waits for anything."""

    def __init__(
        self, subject: Subject, folder: Path, interpreters: Sequence[FeederPython], say: Say
    ) -> None:
        self._s, self._folder, self._interpreters, self._say = subject, folder, interpreters, say
        self._lock = threading.Lock()
        self._waiting: list[Point] = []  # not given to the tools yet
        self._seen: set[base.Held] = set()  # of attempts before this one
        self._feeds: list[Feed] = []
        self._known: dict[str, FeedState] = {}
        self._closing = Closing()
        self._patience = 0.0
        self._given_up = False
        self._announced = False
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, name="hostler-trackers", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def take(self, points: Sequence[Point]) -> None:
        with self._lock:
            self._waiting += points

    def urls(self) -> dict[str, str]:
        """The run's URL in each tool."""
        known = {feed.kind: self._known.get(feed.kind, FeedState()).url for feed in self._feeds}
        return {feed.kind: self._s.hide(known[feed.kind]) or self._files_url(feed) for feed in self._feeds}

    def close(self, closing: Closing, patience: float) -> None:
        """The attempt is over: the tools get the rest, and so many seconds to deliver it."""
        self._closing, self._patience = closing, patience
        self._over.set()
        self._thread.join()

    def announce(self) -> None:
        """The attempt is about to be over: whoever has the run next waits until its tools have the rest."""
        self._announced = True
        self._record_open()

    def abandon(self) -> None:
        """Kill every process of the tools; repeating it is harmless."""
        self._given_up = True
        announced, self._announced = self._announced, False
        self._over.set()
        for feed in self._feeds:
            feed.end()
        if announced:  # what was delivered to the end is closed by now, and stays so
            self._record_open()

    def _record_open(self) -> None:
        for feed in self._feeds:
            if self._known.get(feed.kind, FeedState()).state in (OPENING, OPEN):
                try:
                    tracked.write(self._s.store, self._s.key.run, self._record(feed, feed.desk.told()))
                except StoreError:
                    continue  # the next waits, or shows a point twice

    def _work(self) -> None:
        try:
            if self._begin():
                while not self._over.wait(LOOK):
                    self._look()
                if not self._given_up:
                    self._finish()
        except (HostlerError, OSError) as error:
            self._say(f"trackers: {error}")
        finally:
            for feed in self._feeds:
                feed.end()

    def _begin(self) -> bool:
        """Open the tools with their history; False if the attempt ends before the store answers."""
        while True:
            try:
                waited = self._wait_for_the_one_before()
                openings, history = self._openings(), self._history()
                break
            except StoreError:
                if self._over.wait(AGAIN):
                    return False
        if waited and self._over.is_set() and not self._closing.state:
            return False  # another attempt follows, and shows what counts of this one
        self._seen = {(name, point.step) for point in history for name in point.values}
        for opening in openings:
            feed = Feed(FeedFolder(Path(opening.folder)), opening)
            self._feeds.append(feed)
            feed.begin(self._interpreters)
            feed.add(history)
        return True

    def _wait_for_the_one_before(self) -> bool:
        """Whether it had to be waited for."""
        s, begun, waited = self._s, time.monotonic(), False
        while s.attempt > 1 and time.monotonic() - begun < s.patience and not self._given_up:
            if all(one.state != CLOSING for one in tracked.read(s.store, s.key.run, before=s.attempt)):
                return waited
            waited = True
            time.sleep(LOOK)
        return waited

    def _openings(self) -> list[Opening]:
        s = self._s
        tags = sweeps.tags(s.store, s.job, lambda line: None)
        common = Opening(
            kind="",
            id=base.run_id(sweeps.submission(s.store, s.key.sweep), s.key.run),
            run=s.key.run,
            name=display_name(s.job, s.key.index),
            sweep=s.key.sweep,
            project=projects.name(s.store) or s.key.sweep,
            attempt=s.attempt,
            folder="",
            config=dict(s.params),
            tags=tuple(dict.fromkeys([*tags[""], *tags.get(s.key.run, ())])),
            notes=s.job.notes,
            started=s.started,
        )
        return [
            replace(
                common,
                kind=tracker.kind,
                options=dict(tracker.options),
                folder=str(self._folder / tracker.kind),
            )
            for tracker in s.job.trackers
        ]

    def _history(self) -> list[Point]:
        """Points of earlier attempts that still count."""
        s = self._s
        if s.attempt == 1:
            return []
        fragments = FragmentCache().update(s.store, s.key.run)
        earlier = [fragment for fragment in fragments if fragment.attempt < s.attempt or not fragment.points]
        return metrics.chain(earlier, s.attempt)

    def _look(self) -> None:
        self._pass_on()
        for feed in self._feeds:
            try:
                told = feed.told()
                self._keep(feed)
                self._note(feed, told)
            except StoreError:
                continue  # with the next look

    def _pass_on(self) -> None:
        with self._lock:
            points, self._waiting = self._waiting, []
        fresh = base.without(points, self._seen)
        for feed in self._feeds:
            feed.add(fresh)

    def _note(self, feed: Feed, told: FeedState) -> None:
        """Into the run's log and the store, where there is something new."""
        known = self._known.get(feed.kind, FeedState())
        if (told.state, told.url, told.error) == (known.state, known.url, known.error):
            return
        self._known[feed.kind] = told
        if told.state in (OPEN, CLOSED) and known.state == OPENING:
            self._say(f"{feed.kind}: {told.note or told.url or self._files_url(feed)}")
        elif told.state == FAILED:
            why = told.error.removeprefix(f"{feed.kind}: ")
            self._say(f"{feed.kind}: {why}; the run goes on; hostler export sends it there later")
        tracked.write(self._s.store, self._s.key.run, self._record(feed, told))

    def _is_worth(self, feed: Feed, waited: float) -> bool:
        """Whether it is waited for still: less where nothing has answered so far."""
        state = feed.told()
        lost = state.state == OPENING and state.error
        return waited < (min(LOST, self._patience) if lost else self._patience)

    def _record(self, feed: Feed, told: FeedState) -> tracked.Tracked:
        url, error = self._s.hide(told.url) or self._files_url(feed), self._s.hide(told.error)
        state = CLOSING if self._announced and told.state in (OPENING, OPEN) else told.state
        return tracked.Tracked(feed.kind, feed.opening.id, self._s.attempt, state, url, error, told.sent)

    def _files_url(self, feed: Feed) -> str:
        return tracked.files_url(self._s.store, self._s.key.run, self._s.attempt, feed.kind)

    def _keep(self, feed: Feed) -> None:
        """Finished files go into the store; once the first are there, those of attempts before go."""
        first = not feed.sent
        for name, path in feed.files():
            tracked.upload(self._s.store, self._s.key.run, self._s.attempt, feed.kind, name, path)
            feed.sent.add(name)
        if first and feed.sent:
            tracked.remove_before(self._s.store, self._s.key.run, self._s.attempt, feed.kind)

    def _finish(self) -> None:
        self._pass_on()
        for feed in self._feeds:
            feed.close(self._closing)
        begun = time.monotonic()
        while any(feed.running and self._is_worth(feed, time.monotonic() - begun) for feed in self._feeds):
            time.sleep(0.05)
        for feed in self._feeds:
            late = feed.running
            feed.end()
            state = feed.told()
            if late and state.state != CLOSED:
                state = replace(
                    state, state=FAILED, error=state.error or f"it did not finish within {self._patience:g} s"
                )
            self._keep(feed)
            if feed.sent:  # an attempt that was frozen may have left some since
                tracked.remove_before(self._s.store, self._s.key.run, self._s.attempt, feed.kind)
            self._note(feed, state)  # last: what is recorded as closed has its files in the store
