"""When the last run of a sweep has ended: what is in no segment is packed, and people are told, once.

The worker that first finds a sweep over creates a record of it, and packs. Each that has an address may tell:
the log of notices says who does. A sweep that is halted, or whose hours or money are used up, is told of as
well.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hostler.errors import HostlerError
from hostler.records import layout
from hostler.records.body import encode
from hostler.records.series import packing
from hostler.records.sweep import deadline, notices, summary, sweeps
from hostler.records.sweep.notices import Event
from hostler.records.sweep.queue import Queue
from hostler.records.sweep.summary import Summary
from hostler.spec.job import Job
from hostler.spec.states import FAILED
from hostler.store import Store
from hostler.worker import notifier

FEW = 10  # fewer runs are not worth an object


@dataclass(frozen=True)
class Closer:
    store: Store
    say: Callable[[str], None]
    wall: Callable[[], float] = time.time

    def look(self, names: Iterable[str], *, capped: bool = False) -> None:
        """A worker that has had runs of these sweeps leaves; `capped`: its machines may cost no more. Of a
        few runs that nobody wants to be told of, nothing is asked."""
        for name in names:
            try:
                job = sweeps.load(self.store, name)
                if job.notify.to or job.count >= FEW:
                    self._tell(job, self._event(job, capped=capped))
            except HostlerError as error:
                self.say(f"{name}: {error}")

    def _event(self, job: Job, *, capped: bool) -> Event | None:
        if capped:
            version = sweeps.load_spec(self.store, job.name)[1]
            return Event(
                f"{job.name}/cap/{version}", "cap", f"{job.name}: the money cap is reached; it is paused"
            )
        found = sweeps.newest(self.store, layout.halts(job.name))
        if found and found[0] % 2:
            kind = "cap" if found[1].get("kind") == deadline.WHY else "failed"
            return Event(f"{job.name}/halt/{found[0]}", kind, f"{job.name} is halted: {found[1]['why']}")
        return self._over(job)

    def _over(self, job: Job) -> Event | None:
        """All runs have ended. Who is the first to find it packs what is left; notices decide who tells."""
        if job.chooses or Queue(self.store, job).glance(1) or Queue(self.store, job).open(whole=True):
            return None
        count = sum(packing.heads(self.store, job.name).values())
        if self.store.put(layout.over(job.name, count), encode({"entries": count}), if_absent=True):
            packing.compact(self.store, job, least=FEW)
        if not job.notify.to:
            return None
        one = summary.of_sweep(self.store, job.name, self.say)
        kind = FAILED if one.counts.get(FAILED) == one.runs else "finished"
        return Event(f"{job.name}/over/{count}", kind, _text(one))

    def _tell(self, job: Job, event: Event | None) -> None:
        """Only who has an address may take an event: another worker may have one."""
        wanted = event if event and event.kind in job.notify.on else None
        if not notifier.reachable(job.notify.to):
            if wanted and job.notify.to:
                self.say(f"nobody is told: {', '.join(job.notify.to)} is not set here")
            return
        now = self.wall()
        local = time.localtime(now)
        lines = notices.settle(self.store, wanted, job.notify, now, local.tm_hour * 60 + local.tm_min)
        if lines and not notifier.send(job.notify.to, "hostler", lines, self.say):
            notices.hold(self.store, lines, job.notify, now)


def _text(one: Summary) -> str:
    counts = ", ".join(f"{count} {state}" for state, count in one.counts.items())
    best = ""
    if one.best is not None and one.value is not None:
        best = f"; best {one.best.name} {one.metric}={one.value:.6g}"
    return f"{one.name} has finished: {counts}{best}"
