"""The decision what an attempt's end means for its run. Pure.

After a stop request the request's reason decides. Without one the verdict does: done ends the run; a
failure gives it back while its budget lasts. An attempt that saved something new counts against nothing,
but the same error `limits.failures` times in a row ends the run whatever it saved. An error of the script
before any progress ends the run as soon as it is certain to come again (`kinds.tries`), and a run whose
`limits.time` is spent is not given back for an attempt that would be ended at once.
"""

from __future__ import annotations

from dataclasses import replace

from hostler.frozen import dataclass
from hostler.records.run.entries import Outcome
from hostler.records.run.log import CAP, PRUNE, RUNG
from hostler.records.run.state import RunState, Tally, count
from hostler.spec import states
from hostler.spec.job import Job
from hostler.spec.units import counted
from hostler.worker.run.failure import Verdict
from hostler.worker.run.kinds import (
    CUDA_MEMORY,
    DIVERGED,
    MACHINE,
    NOT_FINISHED,
    POLICY,
    REPAIR,
    TIME_LIMIT,
    tries,
)

LOST_MAX = 5  # attempts in a row that were lost without anything saved
TEMPFAIL_MAX = 3  # exits with 75 in a row without anything saved

# reason of a stop request → what becomes of the run
PERSON = "person"
PAUSE = "pause"
PREEMPTED = "preempted"
LEAVING = "leaving"
UNREACHABLE = "unreachable"
STORELESS = "storeless"  # its worker has been without the store for too long
ORPHANED = "orphaned"  # the worker's parent is gone: nobody would restart it
CROWDED = "crowded"  # its machine is nearly out of memory: the others go on
RANK_LOST = "rank-lost"  # others of its gang are gone: none of them can go on

GOING = (PREEMPTED, LEAVING, ORPHANED, CAP, STORELESS)  # the worker itself has to go, and soon

_AFTER_STOP = {
    PERSON: states.STOPPED,
    PAUSE: states.PAUSED,
    CAP: states.PAUSED,
    PREEMPTED: states.QUEUED,
    LEAVING: states.QUEUED,
    UNREACHABLE: states.QUEUED,
    STORELESS: states.QUEUED,
    ORPHANED: states.QUEUED,
    RANK_LOST: states.QUEUED,
    CROWDED: states.QUEUED,
    RUNG: states.PAUSED,
    PRUNE: states.PRUNED,
}

OUT_OF_TIME = "its attempts have spent limits.time"

_COUNTS = {"failures": "failures", "exit75": "tempfail", "lost": "lost"}


@dataclass(frozen=True)
class Conclusion:
    """The outcome that the run's log is told, and a line for the run's own log."""

    outcome: Outcome
    say: str = ""


def conclude(
    verdict: Verdict,
    stop: str | None,
    progress: bool,
    state: RunState,
    job: Job,
    *,
    moved: bool = False,
    seconds: float = 0.0,
    outgrew: int = 0,
) -> Conclusion:
    """`progress`: it saved something new. `moved`: it logged a point, or did not begin anew. `seconds`: that
    the attempt took. `outgrew`: bytes of the GPU that was too small, where it may get a larger one."""
    if verdict.kind == "done":
        return Conclusion(Outcome(states.DONE))
    if verdict.kind == DIVERGED:
        failure = {"kind": DIVERGED, "message": verdict.message, "advice": POLICY[DIVERGED].advice}
        ended = Outcome(states.DIVERGED, DIVERGED, failure, progress=progress, signature=verdict.signature)
        return Conclusion(ended, f"diverged: {verdict.message}")
    if stop is not None:
        to = _AFTER_STOP.get(stop, states.PAUSED)  # a later version's: keep the place
        text = "" if verdict.kind == NOT_FINISHED else f"; it ended with {verdict.message}"
        return Conclusion(Outcome(to, stop, progress=progress), f"{to}: {states.stop_reason(stop)}{text}")
    message = _said(verdict)
    failure = {
        "kind": verdict.kind,
        "message": message,
        "traceback": verdict.traceback,
        "advice": POLICY[verdict.kind].advice,
    }
    outcome = Outcome(states.FAILED, verdict.kind, failure, progress=progress)
    if verdict.kind == CUDA_MEMORY and state.outgrew:
        message = _said(verdict, "on a larger GPU, too")
        return Conclusion(replace(outcome, failure={**failure, "message": message}), message)
    if verdict.kind == CUDA_MEMORY and outgrew and not is_out_of_time(state, job, seconds):
        outcome = replace(outcome, state=states.QUEUED, outgrew=outgrew)
        return Conclusion(outcome, f"{message}: will be tried once on a GPU with more than {_gb(outgrew)}")
    against = _COUNTS.get(POLICY[verdict.kind].retry)
    if against is not None:
        # Leaving with 75 or being killed is no error: however often it comes, it is not "the same error".
        signature = verdict.signature if against == "failures" else ""
        outcome = replace(outcome, counts=against, suspect=against == "failures", signature=signature)
        tally = count(state.tally, outcome.record())
        over, sure = exhausted(tally, job), not (progress or moved) and certain(verdict, tally, job)
        if not over and not sure and is_out_of_time(state, job, seconds):
            over, failure["advice"] = OUT_OF_TIME, POLICY[TIME_LIMIT].advice
        if not over and not sure:
            return Conclusion(replace(outcome, state=states.QUEUED), f"{message}: will be tried again")
        if sure:
            over = "the same error twice before any progress" if tally.same_error > 1 else ""
            failure["advice"] = REPAIR
        message = _said(verdict, over)
        outcome = replace(outcome, failure={**failure, "message": message})
    return Conclusion(replace(outcome, signature=verdict.signature), message)


def is_out_of_time(state: RunState, job: Job, seconds: float = 0.0) -> bool:
    """Whether the attempts of a run, with one more of so many seconds, have spent `limits.time`."""
    return job.limits.time is not None and state.seconds + seconds >= job.limits.time


def _gb(size: int) -> str:
    return f"{size / 1e9:.3g} GB"


def certain(verdict: Verdict, tally: Tally, job: Job) -> bool:
    """Whether this error, before any progress, would come again. A person's own `retries` are kept where it
    takes a second try to know."""
    needed = tries(verdict.kind, verdict.error, verdict.message, verdict.traceback)
    if needed is None or (needed > 1 and job.retries_given):
        return False
    return tally.same_error >= needed and tally.failures >= needed


def _said(verdict: Verdict, over: str = "") -> str:
    """The message, where in the user's files it came from, and why the run is not tried again."""
    notes = ", ".join(filter(None, (verdict.where, over)))
    return f"{verdict.message} ({notes})" if notes else verdict.message


def decline(verdict: Verdict, state: RunState, job: Job) -> Conclusion:
    """This machine won't do and there are others: the run is theirs, and counts as lost here."""
    failure = {"kind": MACHINE, "message": verdict.message, "advice": POLICY[MACHINE].advice}
    outcome = Outcome(states.FAILED, MACHINE, failure, progress=False, counts="lost")
    if exhausted(count(state.tally, outcome.record()), job):
        return Conclusion(outcome, verdict.message)
    return Conclusion(replace(outcome, state=states.QUEUED), f"{verdict.message}: left to other machines")


def exhausted(tally: Tally, job: Job) -> str:
    """Why the run may not be tried again; '' if it may."""
    if tally.failures > job.retries:
        return (
            f"failed {counted(tally.failures, 'time')} without saving anything new"
            if tally.failures > 1
            else "no retries"
        )
    if tally.tempfail > TEMPFAIL_MAX:
        return (
            f"no progress: exited {counted(tally.tempfail, 'time')} with code 75 without saving anything new"
        )
    if tally.lost > LOST_MAX:
        return f"no progress: lost {counted(tally.lost, 'time')} without saving anything new"
    if tally.same_error >= max(job.limits.failures, job.retries + 1):
        return f"the same error {counted(tally.same_error, 'time')} in a row"
    return ""
