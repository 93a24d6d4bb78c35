"""The state of a Job: its pods' ends, whether they decide it, and indexes that want a pod.

Decided over the Job, its pods and what the controller remembers; the moment is given. `count` writes into the
status of the Job that it is given, and into the memory.
"""

from __future__ import annotations

from collections.abc import Iterable

from hostler.emulators.k8s.controllers import conditions, jobpods, policy
from hostler.emulators.k8s.pace import Pace
from hostler.emulators.k8s.storage import Obj
from hostler.emulators.k8s.world import Memory
from hostler.frozen import dataclass

ALL = -1  # the whole Job's back-off


@dataclass(frozen=True)
class Outcome:
    """The end of a Job."""

    success: bool
    reason: str
    message: str


REACHED = Outcome(True, "CompletionsReached", "Reached expected number of succeeded pods")


def count(job: Obj, pods: list[Obj], memory: Memory, now: float) -> Outcome | None:
    """Take the ends of pods into the status; the outcome if one of them decides the Job."""
    spec, status = job["spec"], job["status"]
    done, failed = parse(status.get("completedIndexes", "")), _failed(job)
    outcome = None
    for pod in (record for record in pods if jobpods.to_count(job, record)):
        index = jobpods.index_of(pod)
        if pod["status"]["phase"] == "Succeeded":
            done.add(index)
            status["succeeded"] = status.get("succeeded", 0) + 1
            memory.failures.pop(ALL, None)
            continue
        judged = policy.judge(spec.get("podFailurePolicy"), pod)
        memory.failed_at[index] = memory.failed_at[ALL] = now
        if judged.action == policy.IGNORE:
            memory.ignored[index] = memory.ignored.get(index, 0) + 1
            continue
        status["failed"] = status.get("failed", 0) + 1
        for number in {index, ALL}:
            memory.failures[number] = memory.failures.get(number, 0) + 1
        limit = spec.get("backoffLimitPerIndex")
        if judged.action == policy.FAIL_INDEX or (limit is not None and memory.failures[index] > limit):
            failed.add(index)
        if judged.action == policy.FAIL_JOB:
            outcome = outcome or Outcome(False, "PodFailurePolicy", judged.message)
    if indexed(job):
        within = {index for index in done if 0 <= index < spec["completions"]}
        status |= {"completedIndexes": write(within), "succeeded": len(within)}
        if not within:
            del status["completedIndexes"]
    if spec.get("backoffLimitPerIndex") is not None:
        status["failedIndexes"] = write(failed - done)
    return outcome


def judge(job: Obj, pods: list[Obj], memory: Memory, pace: Pace, now: float) -> Outcome | None:
    """The outcome of a Job apart from its rules; None while it goes on."""
    spec, status = job["spec"], job["status"]
    if status.get("failed", 0) > spec["backoffLimit"] or jobpods.restarts(pods) > spec["backoffLimit"]:
        return Outcome(False, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    due = deadline(job, memory, pace)
    if due is not None and now >= due:
        return Outcome(False, "DeadlineExceeded", "Job was active longer than specified deadline")
    failed, most = _failed(job), spec.get("maxFailedIndexes")
    if most is not None and len(failed) > most:
        text = "Job has exceeded the specified maximal number of failed indexes"
        return Outcome(False, "MaxFailedIndexesExceeded", text)
    if spec.get("completions") is not None:
        if failed and status.get("succeeded", 0) + len(failed) >= spec["completions"]:
            return Outcome(False, "FailedIndexes", "Job has failed indexes")
        return REACHED if status.get("succeeded", 0) >= spec["completions"] else None
    working = status.get("active", 0) + status.get("terminating", 0)
    return REACHED if status.get("succeeded", 0) and not working else None


def known(job: Obj) -> Outcome | None:
    """The outcome that is decided already, while pods still end."""
    for kind, success in (("FailureTarget", False), ("SuccessCriteriaMet", True)):
        record = conditions.find(job, kind)
        if record and record["status"] == "True":
            return Outcome(success, record["reason"], record["message"])
    return None


def missing(job: Obj, busy: list[Obj], free: int) -> list[int]:
    """Indexes that want a pod, lowest first; -1 for each pod of a Job without indexes."""
    spec, status = job["spec"], job["status"]
    if indexed(job):
        taken = {jobpods.index_of(pod) for pod in busy} | _failed(job)
        taken |= parse(status.get("completedIndexes", ""))
        return [index for index in range(spec["completions"]) if index not in taken]
    if spec.get("completions") is None:
        return [] if status.get("succeeded", 0) else [-1] * max(free, 0)
    return [-1] * max(min(free, spec["completions"] - status.get("succeeded", 0) - len(busy)), 0)


def backed_off(job: Obj, memory: Memory, pace: Pace, index: int) -> float:
    """The moment from which an index may have its next pod."""
    number = index if job["spec"].get("backoffLimitPerIndex") is not None else ALL
    times = memory.failures.get(number, 0) + (memory.ignored.get(number, 0) if number != ALL else 0)
    if not times or number not in memory.failed_at:
        return 0.0
    return memory.failed_at[number] + min(pace.backoff * 2.0 ** min(times - 1, 30), pace.backoff_max)


def deadline(job: Obj, memory: Memory, pace: Pace) -> float | None:
    limit = job["spec"].get("activeDeadlineSeconds")
    if limit is None or memory.began is None or known(job):
        return None
    return memory.began + pace.seconds(limit)


def _failed(job: Obj) -> set[int]:
    return parse(job["status"].get("failedIndexes", ""))


def indexed(job: Obj) -> bool:
    return bool(job["spec"]["completionMode"] == "Indexed")


# Sets of completion indexes as a Job's status writes them: 0-2,4.


def parse(text: str) -> set[int]:
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def write(indexes: Iterable[int]) -> str:
    ranges: list[list[int]] = []
    for index in sorted(set(indexes)):
        if ranges and ranges[-1][1] == index - 1:
            ranges[-1][1] = index
        else:
            ranges.append([index, index])
    return ",".join(_range(first, last) for first, last in ranges)


def _range(first: int, last: int) -> str:
    if first == last:
        return str(first)
    return f"{first},{last}" if last == first + 1 else f"{first}-{last}"
