"""The Job controller: counts ends, judges failures, replaces pods index by index, concludes."""

from __future__ import annotations

from hostler.emulators.k8s import moment
from hostler.emulators.k8s.api.refusal import Refusal
from hostler.emulators.k8s.controllers import conditions, deletion, events, jobpods, jobtally
from hostler.emulators.k8s.controllers.jobtally import Outcome
from hostler.emulators.k8s.resources import JOBS, PODS
from hostler.emulators.k8s.rules.admission import admit
from hostler.emulators.k8s.storage import Obj
from hostler.emulators.k8s.world import Memory, World

BY = "job-controller"
_RETRY = 0.3  # seconds until a pod that could not be created is tried again


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
    fresh["status"]["conditions"] = [dict(condition) for condition in fresh["status"].get("conditions") or []]
    now, pace = world.clock(), world.pace
    outcome = jobtally.count(fresh, pods, memory, now)
    _suspension(world, fresh, job, memory)
    outcome = jobtally.known(fresh) or outcome or jobtally.judge(fresh, pods, memory, pace, now)
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
    return _earliest(due, jobtally.deadline(fresh, memory, pace))


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
    if jobtally.indexed(job):
        beyond = [pod for pod in working if jobpods.index_of(pod) >= spec["completions"]]
        working = [pod for pod in working if pod not in beyond]
        for pod in beyond:
            _let_go(world, job, pod)
    for pod in sorted(working, key=jobpods.index_of, reverse=True)[: max(len(working) - wanted, 0)]:
        _let_go(world, job, pod)
    if spec["suspend"]:
        return None
    leaving = [pod for pod in pods if jobpods.going(pod) and not jobpods.over(pod)]
    held = leaving if spec["podReplacementPolicy"] == "Failed" else []
    free = wanted - len(working) - len(held)
    return _create(world, job, memory, jobtally.missing(job, working + held, free), free)


def _create(world: World, job: Obj, memory: Memory, missing: list[int], free: int) -> float | None:
    now, due = world.clock(), None
    for index in missing:
        if free <= 0:
            break
        ready = max(jobtally.backed_off(job, memory, world.pace, index), memory.uncreatable + _RETRY)
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
            text = f"Error creating: {refusal.message}"
            events.record(world, job, events.WARNING, "FailedCreate", text, BY)
            return now + _RETRY
        name = world.storage.put(made)["metadata"]["name"]
        events.record(world, job, events.NORMAL, "SuccessfulCreate", f"Created pod: {name}", BY)
    return due


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


def _let_go(world: World, job: Obj, pod: Obj) -> None:
    """A pod that is one too many is not counted as failed."""
    _remove(world, job, deletion.release(world, pod, jobpods.TRACKED))


def _remove(world: World, job: Obj, pod: Obj) -> None:
    deletion.delete(world, pod, deletion.Options(propagation=deletion.BACKGROUND))
    text = f"Deleted pod: {pod['metadata']['name']}"
    events.record(world, job, events.NORMAL, "SuccessfulDelete", text, BY)


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
        owners = [
            reference["uid"]
            for reference in pod["metadata"].get("ownerReferences", [])
            if reference.get("controller")
        ]
        if not any(owner in living for owner in owners):
            deletion.release(world, pod, jobpods.TRACKED)
    for uid in [memory for memory in world.memories if memory not in living]:
        del world.memories[uid]


def _earliest(one: float | None, other: float | None) -> float | None:
    return min((due for due in (one, other) if due is not None), default=None)
