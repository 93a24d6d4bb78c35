"""The Job controller: counts ends, judges failures, replaces pods index by index, concludes."""

from __future__ import annotations

from dataclasses import dataclass

from hostler.testing.k8s import conditions, deletion, events, indexes, jobpods, moment, policy
from hostler.testing.k8s.admission import admit
from hostler.testing.k8s.refusal import Refusal
from hostler.testing.k8s.resources import JOBS, PODS
from hostler.testing.k8s.storage import Obj
from hostler.testing.k8s.world import Memory, World

BY = "job-controller"
_RETRY = 0.3  # seconds until a pod that could not be created is tried again
_ALL = -1  # the whole Job's back-off


@dataclass(frozen=True)
class Outcome:
    """How a Job ends."""

    success: bool
    reason: str
    message: str


REACHED = Outcome(True, "CompletionsReached", "Reached expected number of succeeded pods")


def sync(world: World) -> float | None:
    """When to look again at the latest."""
    pods = world.storage.all(PODS)
    dues = [_job(world, job, jobpods.owned(job, pods)) for job in world.storage.all(JOBS)]
    _release_orphans(world)
    return min((due for due in dues if due is not None), default=None)


def finished(job: Obj) -> bool:
    return conditions.holds(job, "Complete") or conditions.holds(job, "Failed")


def _job(world: World, job: Obj, pods: list[Obj]) -> float | None:
    if finished(job) or job["metadata"].get("deletionTimestamp"):
        for pod in pods:
            deletion.release(world, pod, jobpods.TRACKED)
        return _expire(world, job)
    memory = world.memories.setdefault(job["metadata"]["uid"], Memory())
    fresh: Obj = {**job, "status": {**job.get("status", {})}}
    fresh["status"]["conditions"] = [dict(one) for one in fresh["status"].get("conditions") or []]
    outcome = _count(world, fresh, pods, memory)
    _suspension(world, fresh, job, memory)
    outcome = _known(fresh) or outcome or _judge(world, fresh, pods, memory)
    due = None
    if outcome:
        _conclude(world, fresh, pods, outcome)
    else:
        due = _manage(world, fresh, pods, memory)
    _report(world, fresh, jobpods.owned(job, world.storage.all(PODS)))
    if not fresh["status"]["conditions"]:
        del fresh["status"]["conditions"]
    world.storage.put(fresh)
    for pod in pods:
        if jobpods.to_count(job, pod):
            deletion.release(world, pod, jobpods.TRACKED)
    return _earliest(due, _deadline(world, fresh, memory))


def _count(world: World, job: Obj, pods: list[Obj], memory: Memory) -> Outcome | None:
    """Take the ends of pods into the status; the outcome if one of them decides the Job."""
    spec, status = job["spec"], job["status"]
    done, failed = indexes.parse(status.get("completedIndexes", "")), _failed(job)
    outcome = None
    for pod in (one for one in pods if jobpods.to_count(job, one)):
        index = jobpods.index_of(pod)
        if pod["status"]["phase"] == "Succeeded":
            done.add(index)
            status["succeeded"] = status.get("succeeded", 0) + 1
            memory.failures.pop(_ALL, None)
            continue
        judged = policy.judge(spec.get("podFailurePolicy"), pod)
        memory.failed_at[index] = memory.failed_at[_ALL] = world.clock()
        if judged.action == policy.IGNORE:
            memory.ignored[index] = memory.ignored.get(index, 0) + 1
            continue
        status["failed"] = status.get("failed", 0) + 1
        for one in {index, _ALL}:
            memory.failures[one] = memory.failures.get(one, 0) + 1
        limit = spec.get("backoffLimitPerIndex")
        if judged.action == policy.FAIL_INDEX or (limit is not None and memory.failures[index] > limit):
            failed.add(index)
        if judged.action == policy.FAIL_JOB:
            outcome = outcome or Outcome(False, "PodFailurePolicy", judged.message)
    if _indexed(job):
        within = {index for index in done if 0 <= index < spec["completions"]}
        status |= {"completedIndexes": indexes.write(within), "succeeded": len(within)}
        if not within:
            del status["completedIndexes"]
    if spec.get("backoffLimitPerIndex") is not None:
        status["failedIndexes"] = indexes.write(failed - done)
    return outcome


def _judge(world: World, job: Obj, pods: list[Obj], memory: Memory) -> Outcome | None:
    """What decides a Job beside its rules."""
    spec, status = job["spec"], job["status"]
    if status.get("failed", 0) > spec["backoffLimit"] or jobpods.restarts(pods) > spec["backoffLimit"]:
        return Outcome(False, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    due = _deadline(world, job, memory)
    if due is not None and world.clock() >= due:
        return Outcome(False, "DeadlineExceeded", "Job was active longer than specified deadline")
    failed, most = _failed(job), spec.get("maxFailedIndexes")
    if most is not None and len(failed) > most:
        said = "Job has exceeded the specified maximal number of failed indexes"
        return Outcome(False, "MaxFailedIndexesExceeded", said)
    if spec.get("completions") is not None:
        if failed and status.get("succeeded", 0) + len(failed) >= spec["completions"]:
            return Outcome(False, "FailedIndexes", "Job has failed indexes")
        return REACHED if status.get("succeeded", 0) >= spec["completions"] else None
    working = status.get("active", 0) + status.get("terminating", 0)
    return REACHED if status.get("succeeded", 0) and not working else None


def _known(job: Obj) -> Outcome | None:
    """The outcome that is decided already, while pods still end."""
    for kind, success in (("FailureTarget", False), ("SuccessCriteriaMet", True)):
        found = conditions.find(job, kind)
        if found and found["status"] == "True":
            return Outcome(success, found["reason"], found["message"])
    return None


def _conclude(world: World, job: Obj, pods: list[Obj], outcome: Outcome) -> None:
    now = moment.stamp(world.clock())
    early = "SuccessCriteriaMet" if outcome.success else "FailureTarget"
    conditions.put(job, early, True, now, outcome.reason, outcome.message, probed=True)
    for pod in filter(jobpods.active, pods):
        _remove(world, job, pod)
    if any(not jobpods.over(pod) for pod in jobpods.owned(job, world.storage.all(PODS))):
        return
    kind = "Complete" if outcome.success else "Failed"
    conditions.put(job, kind, True, now, outcome.reason, outcome.message, probed=True)
    if outcome.success:
        job["status"]["completionTime"] = now
        events.record(world, job, events.NORMAL, "Completed", "Job completed", BY)
    else:
        events.record(world, job, events.WARNING, outcome.reason, outcome.message, BY)


def _manage(world: World, job: Obj, pods: list[Obj], memory: Memory) -> float | None:
    """Create what is missing, delete what is too much."""
    spec = job["spec"]
    working = [pod for pod in pods if jobpods.active(pod)]
    wanted = 0 if spec["suspend"] else spec["parallelism"]
    if _indexed(job):
        beyond = [pod for pod in working if jobpods.index_of(pod) >= spec["completions"]]
        working = [pod for pod in working if pod not in beyond]
        for pod in beyond:
            _remove(world, job, pod)
    for pod in sorted(working, key=jobpods.index_of, reverse=True)[: max(len(working) - wanted, 0)]:
        _remove(world, job, pod)
    if spec["suspend"]:
        return None
    leaving = [pod for pod in pods if jobpods.going(pod) and not jobpods.over(pod)]
    held = leaving if spec["podReplacementPolicy"] == "Failed" else []
    free = wanted - len(working) - len(held)
    return _create(world, job, memory, _missing(job, working + held, free), free)


def _missing(job: Obj, busy: list[Obj], free: int) -> list[int]:
    """Indexes that want a pod, lowest first; -1 for each pod of a Job without indexes."""
    spec, status = job["spec"], job["status"]
    if _indexed(job):
        taken = {jobpods.index_of(pod) for pod in busy} | _failed(job)
        taken |= indexes.parse(status.get("completedIndexes", ""))
        return [index for index in range(spec["completions"]) if index not in taken]
    if spec.get("completions") is None:
        return [] if status.get("succeeded", 0) else [-1] * max(free, 0)
    return [-1] * max(min(free, spec["completions"] - status.get("succeeded", 0) - len(busy)), 0)


def _create(world: World, job: Obj, memory: Memory, missing: list[int], free: int) -> float | None:
    now, due = world.clock(), None
    for index in missing:
        if free <= 0:
            break
        ready = max(_backed_off(world, job, memory, index), memory.uncreatable + _RETRY)
        if now < ready:
            due = _earliest(due, ready)
            continue
        free -= 1
        failures, ignored = memory.failures.get(index, 0), memory.ignored.get(index, 0)
        pod = jobpods.make(job, index, world.suffix(), failures, ignored)
        try:
            made = admit(world, PODS, pod)
        except Refusal as refusal:
            memory.uncreatable = now
            said = f"Error creating: {refusal.message}"
            events.record(world, job, events.WARNING, "FailedCreate", said, BY)
            return now + _RETRY
        name = world.storage.put(made)["metadata"]["name"]
        events.record(world, job, events.NORMAL, "SuccessfulCreate", f"Created pod: {name}", BY)
    return due


def _backed_off(world: World, job: Obj, memory: Memory, index: int) -> float:
    """The moment from which an index may have its next pod."""
    one = index if job["spec"].get("backoffLimitPerIndex") is not None else _ALL
    count = memory.failures.get(one, 0) + (memory.ignored.get(one, 0) if one != _ALL else 0)
    if not count or one not in memory.failed_at:
        return 0.0
    return memory.failed_at[one] + min(world.pace.backoff * 2.0 ** min(count - 1, 30), world.pace.backoff_max)


def _suspension(world: World, job: Obj, before: Obj, memory: Memory) -> None:
    now = moment.stamp(world.clock())
    suspended = conditions.holds(job, "Suspended")
    if job["spec"]["suspend"]:
        if not suspended:
            conditions.put(job, "Suspended", True, now, "JobSuspended", "Job suspended", probed=True)
            events.record(world, before, events.NORMAL, "Suspended", "Job suspended", BY)
        job["status"].pop("startTime", None)
        memory.began = None
        return
    if suspended:
        conditions.put(job, "Suspended", False, now, "JobResumed", "Job resumed", probed=True)
        events.record(world, before, events.NORMAL, "Resumed", "Job resumed", BY)
    job["status"].setdefault("startTime", now)
    memory.began = world.clock() if memory.began is None else memory.began


def _report(world: World, job: Obj, pods: list[Obj]) -> None:
    status = job["status"]
    counts = {
        "active": sum(map(jobpods.active, pods)),
        "ready": sum(conditions.holds(pod, "Ready") and jobpods.active(pod) for pod in pods),
        "terminating": sum(jobpods.going(pod) and not jobpods.over(pod) for pod in pods),
    }
    status |= counts
    for name in ("active", "succeeded"):
        if not status.get(name):
            status.pop(name, None)
    status["uncountedTerminatedPods"] = {}


def _remove(world: World, job: Obj, pod: Obj) -> None:
    deletion.delete(world, pod, deletion.Options(propagation=deletion.BACKGROUND))
    said = f"Deleted pod: {pod['metadata']['name']}"
    events.record(world, job, events.NORMAL, "SuccessfulDelete", said, BY)


def _expire(world: World, job: Obj) -> float | None:
    """ttlSecondsAfterFinished."""
    lived = job["spec"].get("ttlSecondsAfterFinished")
    if lived is None or not finished(job) or job["metadata"].get("deletionTimestamp"):
        return None
    memory = world.memories.setdefault(job["metadata"]["uid"], Memory())
    memory.ended = memory.ended or world.clock()
    due = memory.ended + world.pace.seconds(lived)
    if world.clock() < due:
        return due
    deletion.delete(world, job, deletion.Options(propagation=deletion.BACKGROUND))
    return None


def _release_orphans(world: World) -> None:
    """Pods whose Job is gone are counted by nobody."""
    living = {job["metadata"]["uid"] for job in world.storage.all(JOBS)}
    for pod in filter(jobpods.tracked, world.storage.all(PODS)):
        owners = [one["uid"] for one in pod["metadata"].get("ownerReferences", []) if one.get("controller")]
        if not any(owner in living for owner in owners):
            deletion.release(world, pod, jobpods.TRACKED)
    for uid in [one for one in world.memories if one not in living]:
        del world.memories[uid]


def _deadline(world: World, job: Obj, memory: Memory) -> float | None:
    limit = job["spec"].get("activeDeadlineSeconds")
    if limit is None or memory.began is None or _known(job):
        return None
    return memory.began + world.pace.seconds(limit)


def _failed(job: Obj) -> set[int]:
    return indexes.parse(job["status"].get("failedIndexes", ""))


def _indexed(job: Obj) -> bool:
    return bool(job["spec"]["completionMode"] == "Indexed")


def _earliest(one: float | None, other: float | None) -> float | None:
    return min((due for due in (one, other) if due is not None), default=None)
