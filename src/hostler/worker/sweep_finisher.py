"""The sweep finisher checks sweeps that this worker had runs of, and tells people when one is over.

It looks in a thread of its own, one at a time: a message may take its time.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from hostler import env
from hostler.errors import HostlerError, StoreError
from hostler.records import layout
from hostler.records.body import encode
from hostler.records.run import heartbeats
from hostler.records.series import packing
from hostler.records.sweep import deadline, notices, summary, sweeps
from hostler.records.sweep.notices import NoticeEvent
from hostler.records.sweep.queue import Queue
from hostler.records.sweep.summary import Summary
from hostler.spec.job import Job
from hostler.spec.states import FAILED
from hostler.spec.units import show_number
from hostler.store import Store
from hostler.worker.claim.session_watch import MISSED
from hostler.worker.machine import Machine

FEW = 10  # fewer runs are not worth an object
LOOKS = 20  # in a beat: for so long, workers that leave as well may write what they hold in memory
WAIT = 20.0  # seconds for a server's answer to a message


class LastLook(Protocol):
    """The last look of a worker at its sweeps."""

    def open_sweeps(self) -> set[str]: ...

    def over(self, sweep: str) -> tuple[Job, int] | None:
        """The sweep and the number of entries in all its logs, if every run has ended."""


@dataclass
class OwnSweeps:
    _m: Machine
    _had: dict[str, None] = field(default_factory=dict)
    _due: dict[str, None] = field(default_factory=dict)  # not looked at since a run of it ended here
    _thread: threading.Thread | None = None
    _looked: float = -math.inf

    def had(self, sweep: str) -> None:
        """A run of it is over here."""
        self._had[sweep] = self._due[sweep] = None

    def look(self, running: Collection[str], still_open: Collection[str] = ()) -> None:
        """Look at those that nothing runs of here any more, once in a beat at most. `still_open`: as this
        worker has just seen: they are not over, but may take long, and others need not wait for what is in
        memory here."""
        names = [name for name in self._due if name not in running] if self._due else []
        if not names or (self._thread and self._thread.is_alive()):
            return
        over, now = [name for name in names if name not in still_open], self._m.clock()
        if now - self._looked < self._m.timing.beat or not (over or any(map(self._m.compactor.holds, names))):
            return
        self._looked = now
        for name in over:
            del self._due[name]
        self._thread = threading.Thread(
            target=self._finish, args=(names, over), name="sweep-finisher", daemon=True
        )
        self._thread.start()

    def finish(self, *, capped: bool, seen: LastLook | None = None) -> None:
        """The worker leaves; `capped`: its machines may cost no more, of whatever they had people hear.
        `seen`: its last look a moment ago."""
        if self._thread:
            self._thread.join()
        self._m.compactor.finish(self._m.store, self._m.say)
        still_open = seen.open_sweeps() if seen and not capped else ()
        over = [name for name in (self._had if capped else self._due) if name not in still_open]
        self._finish([], over, capped=capped, seen=seen)

    def _finish(
        self,
        idle: Iterable[str],
        names: Collection[str],
        *,
        capped: bool = False,
        seen: LastLook | None = None,
    ) -> None:
        machine = self._m
        for name in idle:  # whoever finds it over need not read what is in memory here
            self._flush(name)
        finisher = SweepFinisher(
            machine.store,
            machine.say,
            machine.wall,
            flush=self._flush,
            over=seen.over if seen else lambda name: None,
            wait=self._waiting(),
        )
        finisher.look(names, capped=capped)

    def _flush(self, sweep: str) -> None:
        self._m.compactor.flush(self._m.store, sweep, self._m.say)

    def _waiting(self) -> Callable[[], bool]:
        """Waits a moment, for a beat in all, while other workers beat: they may hold ended runs."""
        beat, clock = self._m.timing.beat, self._m.clock
        until = clock() + beat

        def wait() -> bool:
            if clock() >= until or not self._has_others():
                return False
            time.sleep(beat / LOOKS)
            return True

        return wait

    def _has_others(self) -> bool:
        try:
            entries = heartbeats.entries(self._m.store)
        except StoreError:
            return False
        beats = {name: entry.modified for name, entry in entries.items()}
        late = max(beats.values(), default=0.0) - MISSED * self._m.timing.beat
        return any(moment >= late for name, moment in beats.items() if name != self._m.session)


@dataclass(frozen=True)
class SweepFinisher:
    """Packs what is in no segment when the last run of a sweep has ended, and tells people, once.

    The worker that first finds a sweep over creates a record of it, and packs. Each that has an address may
    tell: the log of notices says who does. A sweep that is halted, or whose hours or money are used up, is
    told of as well.
    """

    store: Store
    say: Callable[[str], None]
    wall: Callable[[], float] = time.time
    # Pack what this worker has in memory: no need to read it.
    flush: Callable[[str], None] = lambda sweep: None
    # The sweep and the entries of its logs, if a look a moment ago found it over.
    over: Callable[[str], tuple[Job, int] | None] = lambda name: None
    # Wait a moment for others that may have runs in memory; False if there are none.
    wait: Callable[[], bool] | None = None

    def look(self, names: Iterable[str], *, capped: bool = False) -> None:
        """A worker that has had runs of these sweeps leaves; `capped`: its machines may cost no more. Of a
        few runs that nobody wants to be told of, nothing is asked."""
        for name in names:
            try:
                seen = None if capped else self.over(name)
                job = seen[0] if seen else sweeps.load(self.store, name)
                if job.notify.to or job.count >= FEW:
                    event = self._over(job, seen[1]) if seen else self._event(job, capped=capped)
                    self._tell(job, event)
            except HostlerError as error:
                self.say(f"{name}: {error}")

    def _event(self, job: Job, *, capped: bool) -> NoticeEvent | None:
        if capped:
            version = sweeps.load_spec(self.store, job.name)[1]
            return NoticeEvent(
                f"{job.name}/cap/{version}", "cap", f"{job.name}: the money cap is reached; it is paused"
            )
        found = sweeps.newest(self.store, layout.halts(job.name))
        if found and found[0] % 2:
            kind = "cap" if found[1].get("kind") == deadline.WHY else "failed"
            return NoticeEvent(
                f"{job.name}/halt/{found[0]}", kind, f"{job.name} is halted: {found[1]['why']}"
            )
        queue = Queue(self.store, job)
        if job.chooses or queue.glance(1) or queue.open(whole=True) or queue.entries_when_over is None:
            return None
        return self._over(job, queue.entries_when_over)

    def _over(self, job: Job, count: int) -> NoticeEvent | None:
        """All runs have ended, by so many entries of their logs. Who is the first to find it packs what is
        left; notices decide who tells."""
        if job.chooses:
            return None
        if self.store.put(layout.over(job.name, count), encode({"entries": count}), if_absent=True):
            self.flush(job.name)
            packing.compact(self.store, job, least=FEW, wait=self.wait)
        if not job.notify.to:
            return None
        one = summary.of_sweep(self.store, job.name, self.say)
        kind = FAILED if one.counts.get(FAILED) == one.runs else "finished"
        return NoticeEvent(f"{job.name}/over/{count}", kind, _text(one))

    def _tell(self, job: Job, event: NoticeEvent | None) -> None:
        """Only who has an address may take an event: another worker may have one."""
        notice_event = event if event and event.kind in job.notify.on else None
        if not reachable(job.notify.to):
            if notice_event and job.notify.to:
                self.say(f"{job.name}: no message is sent: {', '.join(job.notify.to)} is not set here")
            return
        now = self.wall()
        local = time.localtime(now)
        lines = notices.settle(self.store, notice_event, job.notify, now, local.tm_hour * 60 + local.tm_min)
        if lines and not send(job.notify.to, "hostler", lines, self.say):
            notices.hold(self.store, lines, job.notify, now)


def _text(one: Summary) -> str:
    counts = ", ".join(f"{count} {state}" for state, count in one.counts.items())
    best = ""
    if one.best is not None and one.value is not None:
        which = f" ({one.best.judged.shown})" if one.best.judged else ""
        best = f"; best {one.best.name} {one.metric}={show_number(one.value)}{which}"
    return f"{one.name} has finished: {counts}{best}"


def reachable(names: Sequence[str]) -> list[str]:
    """The variables that hold an address on this machine."""
    return [name for name in names if env.secret(name)]


def send(names: Sequence[str], title: str, lines: Sequence[str], say: Callable[[str], None]) -> bool:
    """Send a message to the addresses in these variables; whether any service took it. An address is a
    secret: its variable's name is said, never the address."""
    took = False
    for name in reachable(names):
        problem = _send(str(env.secret(name)), title, "\n".join(lines))
        took = took or not problem
        if problem:
            say(f"the message to ${name} was not sent: {problem}")
    return took


def _send(address: str, title: str, body: str) -> str:
    """Send by Apprise where it is installed, else as a web hook; returns the problem, '' if it was sent."""
    try:
        import apprise
    except ModuleNotFoundError:
        return _post(address, title, body)
    service = apprise.Apprise()
    if not service.add(address):
        return "Apprise does not understand its address"
    return "" if service.notify(body=body, title=title) else "the service refused it"


def _post(address: str, title: str, body: str) -> str:
    if not address.startswith(("http://", "https://")):
        return "its address needs Apprise (pip install 'hostler[notify]')"
    data = json.dumps({"text": f"{title}\n{body}", "title": title}).encode()
    import urllib.error  # these bring ssl, and few sweeps tell anybody
    import urllib.request

    request = urllib.request.Request(address, data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=WAIT):
            return ""
    except urllib.error.HTTPError as error:
        return f"the server answered {error.code}"
    except (OSError, ValueError) as error:
        return type(error).__name__
