"""The end of a worker's attempt: decides what the exit of its process means, and has it delivered."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from hostler.attempt.delivery import kept_states
from hostler.records.checkpoint.checkpoints import Checkpoint
from hostler.records.run import handoff
from hostler.records.run.entries import Outcome
from hostler.records.run.log import PRUNE, RUNG
from hostler.records.sweep import gpu_company, sweeps
from hostler.spec import states
from hostler.spec.params import flatten
from hostler.trackers.base import Closing
from hostler.worker.gang.leader import Leader
from hostler.worker.run import conclude, larger_gpu, option_forms, run_folders
from hostler.worker.run.conclude import Conclusion
from hostler.worker.run.exit import Exit
from hostler.worker.run.failure import TEMPFAIL_CODE, Verdict, classify
from hostler.worker.run.kinds import CUDA_MEMORY, DISK_FULL, DONE, EXIT_CODE, MEMORY, USAGE
from hostler.worker.run.local_attempt import LocalAttempt
from hostler.worker.run.watch import Watchman

LASTED = 60.0  # seconds after which the use of a GPU means something
TOLD_BY_SHELL = 128  # and a signal: the exit code of a shell whose child was killed by it


class Ending:
    def __init__(self, local: LocalAttempt, leader: Leader | None = None) -> None:
        """`leader`: of a run of several processes; it judges in view of the others."""
        self._local, self._leader = local, leader
        self._machine, self._job, self._state = local.machine, local.job, local.state
        self._delivery, self._folder = local.delivery, local.folder
        self._uploader, self._status = local.uploader, local.status
        self.outcome = ""
        self._ended = ""  # the state that the run has for good
        self.kind = ""  # of the end of its process
        self.again = False  # another attempt may begin at once

    def after(self, exit: Exit, watchman: Watchman) -> None:
        """The process has exited."""
        if self._status.stop in (RUNG, PRUNE) and not watchman.asked:  # it had gone before it was told
            self._status.stop = None
        finished = _covered(handoff.read(self._folder.finished), self._uploader.hide)
        self._status.deliver(self._uploader.flush)
        self._status.deliver(self._tag)
        verdict = classify(
            exit,
            self._uploader.tail.decode("utf-8", "replace"),
            stop=self._status.stop if watchman.asked else None,
            killed_for=watchman.killed_for,
            finished=finished is not None,
            left=handoff.read(self._folder.left),
            in_project=partial(run_folders.in_project, self._machine.cache),
        )
        if self._leader:
            verdict = self._leader.judge(verdict)
        trusted = _left_whole(exit, watchman) and verdict.kind not in (MEMORY, DISK_FULL)
        if self._status.stop is None and self._wants_other_form(exit, verdict):
            self.sent_back("style")
            return
        result = None
        if verdict.kind == DONE:
            result = {"summary": finished or {}, "code": exit.code or 0, **self._delivery.result}
        killed = exit.code is None or exit.code > TOLD_BY_SHELL
        alive = 0.0 if killed else self._delivery.last_sign
        self._delivery.keep(trusted=trusted, done=result is not None, result=result, alive=alive)
        self.conclude(verdict, exit, result=result)

    def _wants_other_form(self, exit: Exit, verdict: Verdict) -> bool:
        """Whether the script refused the form of a parameter; other forms are then written for the sweep."""
        if exit.code not in (1, 2) or verdict.kind not in (USAGE, EXIT_CODE):
            return False
        text = self._uploader.tail.decode("utf-8", "replace")
        return self._status.deliver(lambda: option_forms.learn(self._local, text))

    def _tag(self) -> None:
        """The tags that the script gave its run."""
        joined = handoff.read(self._folder.joined) or {}
        key = self._delivery.attempt.key
        known = sweeps.tags(self._machine.store, self._job, self._machine.say) if joined.get("tags") else {}
        new = [tag for tag in joined.get("tags", ()) if tag not in {*known[""], *known.get(key.run, ())}]
        if new:
            sweeps.tag(self._machine.store, key.sweep, key.run, new, [])

    def conclude(
        self, verdict: Verdict, exit: Exit | None = None, *, result: dict[str, Any] | None = None
    ) -> None:
        """The attempt ends with this verdict."""
        self.kind = verdict.kind
        saver = self._delivery.saver
        progress = saver is not None and saver.commits > 0
        conclusion = conclude.conclude(
            verdict,
            self._status.stop,
            progress,
            self._state,
            self._job,
            moved=self._moved,
            seconds=self._local.cost.seconds,
            outgrew=self._outgrew(verdict),
        )
        self._write(conclusion, exit, result)

    def _outgrew(self, verdict: Verdict) -> int:
        """Bytes of the GPU that was too small for this run, where it may get a larger one; else 0."""
        local, size = self._local, int(self._local.gpu.get("memory", 0))
        if verdict.kind != CUDA_MEMORY or not size or self._leader or "together" in local.ran:
            return 0
        store, key, launch = self._machine.store, self._delivery.attempt.key, local.launch
        return self._status.deliver(
            lambda: larger_gpu.too_small(store, self._job, key, local.placement, size, launch)
        )

    @property
    def _moved(self) -> bool:
        """Whether the run has come further than to its first error: it logged a point or went on from a
        checkpoint, an earlier attempt ended otherwise, or it shared a process and goes alone next."""
        state = self._state
        otherwise = state.reopened is None and state.attempts > 1 + state.tally.failures
        restored = self._delivery.restored is not None
        return self._uploader.measured or restored or otherwise or "together" in self._local.ran

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
        self._uploader.note("an earlier attempt had already finished: no process is started")
        self._delivery.close(
            replace(
                self._filled(Outcome(DONE), 0.0),
                metrics=result.get("metrics", {}),
                kept=kept_states(result.get("kept")) or None,
                why=str(result.get("why") or "") or None,
                result=result.get("summary"),
                exit=result.get("code", 0),
                step=checkpoint.record.get("metric_step"),
            )
        )
        self.outcome = DONE

    def price(self, seconds: float) -> float | None:
        """Cost of the run, this attempt with so many seconds; None where no price was ever known."""
        cost, others = self._local.cost, self._leader.cost if self._leader else 0.0
        if cost.rate is None and not self._state.cost and not others:
            return None
        return round(self._state.cost + (cost.amount if seconds else 0.0) + others, 6)

    def _write(self, what: Conclusion, exit: Exit | None, result: dict[str, Any] | None) -> None:
        if what.say:
            self._uploader.note(what.say)
        seconds = self._local.cost.seconds
        read = {"recognised": names} if (names := self._uploader.recognised) else {}
        gpu = self._gpu()
        if what.outcome.state == DONE and gpu and seconds >= LASTED and (line := gpu_company.of_run(gpu)):
            self._uploader.note(line)
        outcome = replace(
            self._filled(what.outcome, seconds),
            exit=(exit.code if exit.signal is None else -exit.signal) if exit else None,
            result=(result or {}).get("summary"),
            more={**self._local.ran, **_named("gpu", gpu), **read, **self._phases(), **self._rest()},
        )
        self._delivery.close(outcome)
        if outcome.ends:
            self._ended = self.outcome = outcome.state
        else:
            self.again = outcome.state == states.QUEUED
            self.outcome = f"released ({outcome.why})"

    def _gpu(self) -> dict[str, Any]:
        """The GPU that the attempt had, the use of it, and its steps in a second."""
        local = self._local
        if not local.gpu:
            return {}
        restored = self._delivery.restored
        first = int(restored.record.get("metric_step") or 0) if restored else 0
        steps, lasted = self._uploader.steps - first, local.cost.phases()["train"]
        rate = {"rate": round(steps / lasted, 4)} if steps > 0 and lasted > 0 else {}
        return {**local.gpu, **rate}

    def _rest(self) -> dict[str, Any]:
        """The script's own words, and what could not be delivered."""
        return {**self._chosen(), **self._delivery.left}

    def _phases(self) -> dict[str, Any]:
        """How the attempt's time went, where time costs; `from`: when its checkpoint was written."""
        if self._local.cost.rate is None:
            return {}
        restored = self._delivery.restored
        known = restored.record.get("at") if restored else None
        begun = {"from": known} if isinstance(known, (int, float)) else {}
        return {"phases": {**self._local.cost.phases(), **begun}}

    def _chosen(self) -> dict[str, Any]:
        """Notes the script made of its run, and the parameters that it chose itself."""
        joined = handoff.read(self._folder.joined) or {}
        own = self._own(joined)
        if joined.get("defaults"):
            held = joined["defaults"]
            self._status.deliver(
                lambda: self._machine.ledger.note(self._machine.store, self._job.command, held)
            )
        noted = {"notes": notes} if (notes := joined.get("notes")) else {}
        return {**noted, **({"config": own} if own else {})}

    def _own(self, joined: Mapping[str, Any]) -> dict[str, Any]:
        """Parameters that the script chose itself."""
        values = flatten(self._job.params(self._delivery.attempt.key.index))
        own = {name: value for name, value in (joined.get("params") or {}).items() if name not in values}
        for name, value in (handoff.read(self._folder.chosen) or {}).items():
            if values.get(name) is None:
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


def _named(name: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: facts} if facts else {}


def _covered(told: Any, hide: Callable[[str], str]) -> Any:
    """The script's own words of its end, without secret values."""
    if isinstance(told, dict):
        return {key: _covered(value, hide) for key, value in told.items()}
    if isinstance(told, list):
        return [_covered(value, hide) for value in told]
    return hide(told) if isinstance(told, str) else told


def _left_whole(exit: Exit, watchman: Watchman) -> bool:
    """Whether what the process wrote is whole: it left as it meant to. One that fails may do so in the middle
    of a save; one that was asked to leave has saved before, whatever its code. 128 + n is a signal that
    killed it, told by a shell in between; but a script may save on our SIGTERM and leave with the code of
    that, or raise a KeyboardInterrupt, of which Python dies once everything was left."""
    if exit.code in (128 + signal.SIGTERM, 128 + signal.SIGINT) or exit.signal == signal.SIGINT:
        return watchman.has_signalled
    return exit.code in (0, TEMPFAIL_CODE) or (exit.code is not None and exit.code < 128 and watchman.asked)
