"""The end of a worker's attempt: decides what the exit of its process means, and has it delivered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from hostler.attempt.delivery import Delivery
from hostler.attempt.saver import Saver
from hostler.attempt.uploader import Uploader
from hostler.records.checkpoint.checkpoints import Checkpoint
from hostler.records.run import handoff
from hostler.records.run.entries import Outcome
from hostler.records.run.handoff import Handoff
from hostler.records.run.log import PRUNE, RUNG
from hostler.records.series.points import Point
from hostler.records.sweep import sweeps
from hostler.spec import states, tracking
from hostler.spec.job import Job
from hostler.spec.params import flatten
from hostler.spec.tracking import Tracking
from hostler.trackers.base import Closing
from hostler.trackers.feed import Interpreter
from hostler.trackers.feeds import Feeds, Subject
from hostler.worker.machine import Machine
from hostler.worker.run import conclude
from hostler.worker.run.conclude import Conclusion
from hostler.worker.run.exit import Exit
from hostler.worker.run.failure import Verdict, classify
from hostler.worker.run.kinds import DISK_FULL, DONE, MEMORY
from hostler.worker.run.watch import Watchman


class Ending:
    def __init__(
        self,
        machine: Machine,
        job: Job,
        delivery: Delivery,
        rate: float | None = None,
    ) -> None:
        """`rate`: what its part of the machine costs an hour."""
        self._m, self._job, self._delivery, self._state = machine, job, delivery, delivery.state
        self._folder, self._uploader, self._status = delivery.folder, delivery.uploader, delivery.status
        self._began, self._rate = machine.clock(), rate
        self.ran: dict[str, Any] = {}  # of an attempt of a moment: what it ran on, and used
        self.outcome = ""
        self._ended = ""  # the state that the run has for good
        self.again = False  # another attempt may begin at once
        self.judge: Callable[[Verdict], Verdict] = lambda verdict: (
            verdict
        )  # in view of others, where there are some
        self.others: Callable[[], float] = lambda: 0.0  # what their machines have cost in this attempt

    def after(self, exit: Exit, watchman: Watchman, saver: Saver) -> None:
        """The process has exited."""
        if self._status.stop in (RUNG, PRUNE) and not watchman.asked:  # it had gone before it was told
            self._status.stop = None
        finished = handoff.read(self._folder.finished)
        self._status.deliver(self._uploader.flush)
        self._status.deliver(self._tag)
        verdict = classify(
            exit,
            self._uploader.tail.decode("utf-8", "replace"),
            stop=self._status.stop if watchman.asked else None,
            killed_for=watchman.killed_for,
            finished=finished is not None,
            left=handoff.read(self._folder.left),
        )
        verdict = self.judge(verdict)
        trusted = exit.code is not None and exit.code < 128 and verdict.kind not in (MEMORY, DISK_FULL)
        result = None
        if verdict.kind == DONE:
            result = {"summary": finished or {}, "metrics": self._uploader.totals, "code": exit.code or 0}
        self._delivery.keep(trusted=trusted, done=result is not None, result=result)
        self.conclude(verdict, exit, progress=saver.commits > 0, result=result)

    def _tag(self) -> None:
        """The tags that the script gave its run."""
        joined = handoff.read(self._folder.joined) or {}
        key = self._delivery.attempt.key
        known = sweeps.tags(self._m.store, self._job, self._m.say) if joined.get("tags") else {}
        new = [tag for tag in joined.get("tags", ()) if tag not in {*known[""], *known.get(key.run, ())}]
        if new:
            sweeps.tag(self._m.store, key.sweep, key.run, new, [])

    def conclude(
        self,
        verdict: Verdict,
        exit: Exit | None = None,
        *,
        progress: bool = False,
        result: dict[str, Any] | None = None,
    ) -> None:
        what = conclude.conclude(verdict, self._status.stop, progress, self._state, self._job)
        self._write(what, exit, result)

    def decline(self, verdict: Verdict) -> None:
        """This machine won't do, and there are others."""
        self._write(conclude.decline(verdict, self._state, self._job), None, None)

    def give_back(self, why: str) -> None:
        """Nothing was done, and nothing is wrong with it."""
        self._write(Conclusion(Outcome(states.QUEUED, why), why), None, None)

    def sent_back(self, why: str) -> None:
        """A process that others share would not have it: nothing is wrong, and what it had saved is kept."""
        self._delivery.keep(trusted=True)
        self.give_back(why)

    def had_finished(self, checkpoint: Checkpoint) -> None:
        """An attempt before us finished and died before it could say so: say it, start nothing."""
        result = checkpoint.record.get("result") or {}
        self._uploader.note(f"attempt {checkpoint.place.attempt} had already finished: no process is started")
        self._uploader.flush()
        self._delivery.attempt.close(
            replace(
                self._filled(Outcome(DONE), 0.0),
                metrics=result.get("metrics", {}),
                result=result.get("summary"),
                exit=result.get("code", 0),
                step=checkpoint.record.get("metric_step"),
            )
        )
        self.outcome = DONE

    def price(self, seconds: float) -> float | None:
        """Cost of the run, this attempt with so many seconds; None where no price was ever known."""
        others = self.others()
        if self._rate is None and not self._state.cost and not others:
            return None
        return round(self._state.cost + (self._rate or 0.0) * seconds / 3600 + others, 6)

    def _write(self, what: Conclusion, exit: Exit | None, result: dict[str, Any] | None) -> None:
        if what.say:
            self._uploader.note(what.say)
        seconds = self._m.clock() - self._began
        outcome = replace(
            self._filled(what.outcome, seconds),
            exit=(exit.code if exit.signal is None else -exit.signal) if exit else None,
            result=(result or {}).get("summary"),
            more={**self.ran, **self._chosen()},
        )
        self._delivery.close(outcome)
        if outcome.ends:
            self._ended = self.outcome = outcome.state
        else:
            self.again = outcome.state == states.QUEUED
            self.outcome = f"released ({outcome.why})"

    def _chosen(self) -> dict[str, Any]:
        """Notes the script made of its run, and the parameters that it chose itself."""
        joined = handoff.read(self._folder.joined) or {}
        own = self._own(joined)
        if joined.get("defaults"):
            held = joined["defaults"]
            self._status.deliver(lambda: self._m.ledger.note(self._m.store, self._job.command, held))
        noted = {"notes": notes} if (notes := joined.get("notes")) else {}
        return {**noted, **({"config": own} if own else {})}

    def _own(self, joined: Mapping[str, Any]) -> dict[str, Any]:
        """Parameters that the script chose itself."""
        given = flatten(self._job.params(self._delivery.attempt.key.index))
        own = {name: value for name, value in (joined.get("params") or {}).items() if name not in given}
        for name, value in (handoff.read(self._folder.chosen) or {}).items():
            if given.get(name) is None:
                own[name] = value
        return {name: self._uploader.hide(v) if isinstance(v, str) else v for name, v in own.items()}

    def closing(self, now: float) -> Closing:
        """End of the attempt, as tracking tools are told of it."""
        joined = handoff.read(self._folder.joined) or {}
        return Closing(
            state=self._ended,
            config=self._own(joined),
            tags=tuple(joined.get("tags", ())),
            summary=handoff.read(self._folder.finished) or {},
            ended=now,
        )

    def _filled(self, outcome: Outcome, seconds: float) -> Outcome:
        """The outcome with what is known of the run and of this attempt, which took so many seconds."""
        filled = self._delivery.filled(outcome, seconds)
        return replace(filled, code=self._job.source.mark, cost=self.price(seconds))


# A run shown in tracking tools while it runs: in those that its sweep names, else in those that its script
# asks for. Nothing a tool does reaches the run.


EARLY = 10_000  # points that are remembered for tools that a script may ask for

About = Callable[[tuple[Tracking, ...]], Subject]  # of an attempt: what is to be shown in these


class Showing:
    def __init__(self, folder: Handoff, uploader: Uploader, about: About) -> None:
        self._folder, self._uploader, self._about = folder, uploader, about
        self._feeds: Feeds | None = None
        self._early: list[Point] = []  # seen before it is known whether the script asks for any
        self._heeded = False
        self.interpreters: tuple[Interpreter, ...] = ()  # that may feed them
        uploader.shown = self._remember

    def show(self, trackers: tuple[Tracking, ...]) -> None:
        """From a thread, and processes of their own."""
        folder = self._folder.folder / "trackers"
        self._feeds = Feeds(self._about(trackers), folder, self.interpreters, self._uploader.note)
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
