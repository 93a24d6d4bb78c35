"""An attempt shown in tracking tools while it runs: in those of its sweep, else those its script asks for.

Nothing a tool does reaches the run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hostler.records.run import handoff
from hostler.records.series.points import Point
from hostler.spec import tracking
from hostler.spec.tracking import Tracking
from hostler.trackers.base import Closing
from hostler.trackers.feed import FeederPython
from hostler.trackers.feeds import Feeds, Subject
from hostler.worker.run.local_attempt import LocalAttempt

EARLY = 10_000  # points that are remembered for tools that a script may ask for


class TrackerFeed:
    def __init__(self, local: LocalAttempt) -> None:
        self._local, self._folder, self._uploader = local, local.folder, local.uploader
        self._feeds: Feeds | None = None
        self._early: list[Point] = []  # seen before it is known whether the script asks for any
        self._heeded = False
        self.interpreters: Callable[[], tuple[FeederPython, ...]] = tuple  # that may feed them
        self._uploader.shown = self._remember

    def show(self, trackers: tuple[Tracking, ...]) -> None:
        """From a thread, and processes of their own."""
        folder = self._folder.folder / "trackers"
        self._feeds = Feeds(self._subject(trackers), folder, self.interpreters(), self._uploader.note)
        self._feeds.take(self._early)
        self._uploader.shown = self._feeds.take
        self._feeds.start()

    def heed(self) -> None:
        """Start the trackers that the script itself asks for, where its sweep names none."""
        if self._heeded or not self._folder.joined.exists():
            return
        self._heeded = True
        asked = (handoff.read(self._folder.joined) or {}).get("trackers")
        if self._feeds is None:
            self._uploader.shown = lambda points: None
            if asked:
                self.show(tracking.from_json(asked))
            self._early.clear()
        elif asked:
            self._uploader.note("trackers that the script asks for are ignored: its sweep names others")

    def facts(self) -> dict[str, dict[str, str]]:
        """Where it is seen; nothing where it is not shown."""
        return {"trackers": self._feeds.urls()} if self._feeds else {}

    @property
    def begun(self) -> bool:
        return self._feeds is not None

    def announce(self) -> None:
        """The attempt is about to be over."""
        if self._feeds:
            self._feeds.announce()

    def close(self, closing: Closing, patience: float) -> None:
        """Tools get the rest, and are waited for so long."""
        if self._feeds:
            self._feeds.close(closing, patience)

    def abandon(self) -> None:
        if self._feeds:
            self._feeds.abandon()

    def _remember(self, points: list[Point]) -> None:
        if len(self._early) < EARLY:
            self._early += points

    def _subject(self, trackers: tuple[Tracking, ...]) -> Subject:
        """Facts of this attempt for these tools."""
        machine, attempt = self._local.machine, self._local.attempt
        return Subject(
            machine.store,
            replace(self._local.job, trackers=trackers),
            attempt.key,
            attempt.number,
            self._local.inputs.params,
            machine.wall(),
            self._uploader.hide,
            machine.timing.tracker,
        )
