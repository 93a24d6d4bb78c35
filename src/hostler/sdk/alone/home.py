"""A run started by hand: the script's own process claims it, sends its heartbeats and ends it.

The store's trouble never ends a training: what it does not take stays in the local folder, and the next start
or reader on this machine delivers it.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hostler import env
from hostler.attempt.delivery import Delivery, holds
from hostler.attempt.heartbeat import Heartbeat
from hostler.attempt.status import AttemptStatus
from hostler.attempt.uploader import Uploader
from hostler.errors import Fenced, HostlerError, MachineError
from hostler.records.interest import Interest
from hostler.records.run import handoff, holder
from hostler.records.run.attempt import claim
from hostler.records.run.entries import Claim, Lost, Outcome
from hostler.records.run.handoff import Handoff
from hostler.records.series.metrics import MetricWriter
from hostler.records.series.points import Point
from hostler.sdk.alone.choose import Chosen
from hostler.sdk.home import DIVERGED as RAN_AWAY
from hostler.sdk.home import FAILED as BROKE
from hostler.sdk.home import Left
from hostler.settings import Timing
from hostler.spec.names import slug
from hostler.spec.states import DIVERGED, DONE, FAILED, PAUSED, QUEUED, STOPPED
from hostler.store import Store

if TYPE_CHECKING:
    from hostler.attempt.usage import UseMetrics
    from hostler.spec.job import Checkpointing, Job
    from hostler.trackers.feeds import Feeds

FIRST = 0.2  # seconds before a thread first does its work: a run that is over by then needs none
LAST_TRIES = 30.0  # seconds that the end of a run waits for a store that does not answer
CUT_SHORT = ("MemoryError", "OSError: [Errno 28]", "OSError: [Errno 122]")  # errors that leave half a file


class AloneHome:
    def __init__(
        self, delivery: Delivery, background: Background, timing: Timing, say: Callable[[str], None]
    ) -> None:
        self._delivery, self._background, self._timing, self._say = delivery, background, timing, say
        self._begun = time.monotonic()
        self._forked = False
        self._feeds: Feeds | None = None  # tracking tools
        attempt = delivery.attempt
        self.folder = delivery.folder
        self.run, self.sweep, self.attempt = attempt.key.run, attempt.key.sweep, attempt.number

    def show(self, job: Job) -> None:
        """In tracking tools: from a thread, and processes of their own."""
        from hostler.trackers import feed  # most scripts have none
        from hostler.trackers.feeds import Feeds, Subject

        attempt, store, patience = self._delivery.attempt, self._delivery.store, self._timing.tracker
        params = job.params(attempt.key.index)
        subject = Subject(store, job, attempt.key, attempt.number, params, time.time(), patience=patience)
        able = feed.interpreters(sys.executable, env.inherited())
        self._feeds = Feeds(subject, self.folder.folder / "trackers", able, self._say)
        self._delivery.uploader.shown = self._feeds.take
        self._feeds.start()

    def stop_reason(self) -> str | None:
        status = self._delivery.status
        return status.stop or ("taken over" if status.fenced else None)

    def finish(self, summary: Mapping[str, Any]) -> None:
        self._end(Outcome(DONE, exit=0, result=dict(summary)))

    def leave(self, left: Left) -> None:
        why = left.reason or left.how
        if left.how == BROKE:
            failure = {"kind": "error", "message": left.message, "traceback": left.traceback}
            whole = not any(left.message.startswith(text) for text in CUT_SHORT)
            self._end(Outcome(FAILED, why, failure, exit=1), trusted=whole)
        elif left.how == RAN_AWAY:
            self._end(Outcome(DIVERGED, RAN_AWAY, {"kind": RAN_AWAY, "message": left.message}, exit=1))
        elif left.reason == "person":
            self._end(Outcome(STOPPED, why))
        else:
            then = PAUSED if left.reason in ("pause", "cap") else QUEUED
            self._end(Outcome(then, why, progress=True))

    def disown(self) -> None:
        self._forked = True

    def _filled(self, outcome: Outcome) -> Outcome:
        """Asked for once all points are counted."""
        config = {"config": chosen} if (chosen := handoff.read(self.folder.chosen)) else {}
        trackers = {"trackers": self._feeds.urls()} if self._feeds else {}
        filled = self._delivery.filled(outcome, time.monotonic() - self._begun)
        return replace(filled, more={**config, **trackers, **self._delivery.left})

    def _end(self, outcome: Outcome, *, trusted: bool = True) -> None:
        """Everything into the store, the end last; what it does not take is left for the next start.
        `trusted`: nothing that the script wrote was cut short."""
        self._background.halt()
        delivery, deliver = self._delivery, self._delivery.status.deliver
        if delivery.status.fenced:
            self._abandon()
            self._say(f"{self.run} was taken over or stopped: this process writes nothing more to it")
            return
        try:
            deliver(delivery.uploader.flush)
            self._background.make_saver()
            delivery.keep(trusted=trusted, done=outcome.state == DONE)
            self._announce()
            delivery.close(self._filled(outcome))
            deliver(self._background.heartbeat.silence)
            self._show_the_end(outcome)
            self._pack()
        except Fenced:
            self._abandon()
            self._say(f"{self.run} was taken over or stopped: this process writes nothing more to it")
        except (HostlerError, OSError) as error:
            self._abandon()
            self._say(
                f"{self.run} could not be delivered to {delivery.store.url} ({error}): its files are in "
                f"{self.folder.folder}; the next start of this script on this machine or the next "
                f"hostler status delivers them"
            )
            return
        shutil.rmtree(self.folder.folder, ignore_errors=True)

    def _pack(self) -> None:
        try:
            self._delivery.uploader.pack()
        except (HostlerError, OSError):
            return  # its points are there all the same

    def _show_the_end(self, outcome: Outcome) -> None:
        if self._feeds is not None:
            from hostler.trackers.base import Closing  # as above

            chosen = handoff.read(self.folder.chosen) or {}
            state = outcome.state if outcome.ends else ""
            closing = Closing(state, config=chosen, summary=outcome.result or {}, ended=time.time())
            self._feeds.close(closing, self._timing.tracker)

    def _announce(self) -> None:
        if self._feeds is not None:
            self._feeds.announce()

    def _abandon(self) -> None:
        if self._feeds is not None:
            self._feeds.abandon()


def settle_in(
    store: Store, chosen: Chosen, timing: Timing, policy: Checkpointing, *, say: Callable[[str], None]
) -> AloneHome | None:
    """Claim the chosen run and bring its newest checkpoint here; None if another was faster."""
    session = f"{slug(env.host() or 'host', 32)}-{os.urandom(6).hex()}"
    key = chosen.log.key
    first = not chosen.log.head
    number = chosen.log.head + 1
    folder = _make(f"{key.run}-{number}-{session[-6:]}", chosen.job.params(0), say)
    me = holder.me()
    note = {"store": store.url, "sweep": key.sweep, "run": key.run, "attempt": number, "holder": me}
    handoff.write(folder.script, note)
    facts = {
        "host": env.host(),
        "holder": me,
        "folder": str(folder.folder),
        "command": [sys.executable, *sys.argv],
        "python": sys.version.split()[0],
    }
    after = None if first else _answer(store, chosen, timing, say)
    attempt = claim(store, chosen.log, timing.lease, time.monotonic, Claim(session, after, facts=facts))
    if attempt is None:
        shutil.rmtree(folder.folder, ignore_errors=True)
        return None
    interest, writer = Interest(), MetricWriter(store, key.run, attempt.number)
    uploader = Uploader(folder.metrics, writer, timing, time.monotonic, time.time, interest)
    status = AttemptStatus(attempt, timing, time.monotonic, lambda line: None, patience=LAST_TRIES)
    by = chosen.job.looked_at
    delivery = Delivery(store, attempt, folder, uploader, status, attempt.state, objectives=by)
    if not first:
        delivery.restore(say)
    background = Background(delivery, session, policy, timing, interest, say=say)
    background.start()
    return AloneHome(delivery, background, timing, say)


class Background:
    """Two threads of a run by hand: one beats, one brings points and checkpoints to the store. The training
    never waits for them."""

    def __init__(
        self,
        delivery: Delivery,
        session: str,
        policy: Checkpointing,
        timing: Timing,
        interest: Interest,
        *,
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._delivery, self._policy, self._timing = delivery, policy, timing
        self._say, self._clock = say, clock
        facts = {"by_hand": True, "only": [delivery.attempt.key.sweep]}
        self.heartbeat = Heartbeat(
            delivery.store, session, timing, facts, clock, interest, self._tell_trouble
        )
        self.heartbeat.hold(delivery)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="hostler-delivery", daemon=True)
        self._said: set[str] = set()  # what was wrong with the store
        self._ticked = clock()
        self._use: UseMetrics | None = None  # made by the thread: a run that is over before needs none
        self._ran_since = float("-inf")  # this process was stopped, or starved, before
        if delivery.restored:
            self.make_saver()

    def start(self) -> None:
        """The first beat may come a moment late: a claim without one is a heartbeat that stands still."""
        self.heartbeat.start(FIRST)
        self._thread.start()

    def halt(self) -> None:
        """No thread does anything after this."""
        self._over.set()
        self.heartbeat.stop()
        self._thread.join()

    def make_saver(self) -> None:
        """Make the saver if there is something to save."""
        delivery = self._delivery
        if delivery.saver is None and (delivery.restored or holds(delivery.folder.checkpoint)):
            from hostler.attempt import script_saver  # a run that only logs needs nothing of it

            delivery.saver = script_saver.living(
                delivery, self._policy, self._timing, steady=self._steady, say=self._say
            )

    def _loop(self) -> None:
        every = min(0.5, self._timing.flush)
        wait = min(FIRST, every)
        while not self._over.wait(wait) and not self._delivery.status.fenced:
            wait = every
            if self._clock() - self._ticked >= self._timing.settle:
                self._ran_since = self._clock()
            self._try(self._tick)
            self._ticked = self._clock()

    def _steady(self) -> bool:
        """Whether this process has run without a break for long enough: a write that it was stopped in goes
        on only now."""
        return self._clock() - self._ran_since >= self._timing.settle

    def _tick(self) -> None:
        self._delivery.uploader.tick()
        self.make_saver()
        if self._delivery.saver:
            self._delivery.saver.tick()
        self._measure()  # last: a driver that is slow to answer keeps nothing back

    def _measure(self) -> None:
        """CPU, memory and GPU use of this process, as a worker measures those of its runs."""
        from hostler.attempt import usage  # not before the training has begun

        if self._use is None:
            spent = usage.own_use().cpu_seconds
            self._use = usage.UseMetrics(self._clock, self._timing.usage, spent)
        if self._use.due:
            uploader = self._delivery.uploader
            uploader.add(Point(uploader.steps, time.time(), self._use.of(usage.own_use())))

    def _try(self, act: Callable[[], None]) -> None:
        try:
            act()
        except Fenced:
            self._delivery.fence()
        except Exception as error:  # the store's trouble, or the disk's: said once, and tried again
            self._tell_trouble(error)

    def _tell_trouble(self, error: Exception) -> None:
        if str(error) not in self._said:
            self._said.add(str(error))
            self._say(f"{self._delivery.store.url}: {error}; the training goes on, and delivery is retried")


def _make(name: str, params: Mapping[str, Any], say: Callable[[str], None]) -> Handoff:
    """The run's folder on this machine, in the cache, or where temporary files are if that cannot be used."""
    trouble: OSError | None = None
    for base in env.script_dirs():
        folder = Handoff(base / name)
        try:
            folder.make(params)
        except OSError as error:
            trouble = trouble or error
            continue
        if trouble:
            say(
                f"{env.cache_dir()} cannot be used ({trouble.strerror}): the run's files are in {base.parent}"
            )
        return folder
    raise MachineError(
        f"no folder can hold the run's files: {trouble}", hint=f"set {env.CACHE} to a folder with room"
    )


def _answer(store: Store, chosen: Chosen, timing: Timing, say: Callable[[str], None]) -> Lost | None:
    """The claim's answer for a dead attempt, given once its files are in the store."""
    if chosen.lost is None:
        return None
    from hostler.attempt import dead_script  # only where there was an attempt before

    return dead_script.answer(store, chosen.log, chosen.lost, timing, chosen.job.checkpoint, say)
