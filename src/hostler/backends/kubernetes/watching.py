"""The launch of a fleet, watched until its first workers run: why they don't, and a bounded wait.

Whoever watches may go away at any moment: the Job goes on. A launch that comes to nothing is removed again,
with the reason, so that nothing waits at somebody's cost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hostler import settings
from hostler.backends import cloud
from hostler.backends.base import Undone
from hostler.backends.cloud import GiveUp, KeepWaiting, Ready
from hostler.backends.kubernetes import reasons, removal
from hostler.backends.kubernetes.client import KubeClient, KubeRefusal
from hostler.backends.kubernetes.manifest import BRING, WORKER, Manifest
from hostler.backends.kubernetes.names import name_of
from hostler.backends.kubernetes.reasons import GONE, RUNS, STARTS, WAITS, PodReason

LOOK = 0.5

Body = Mapping[str, Any]


@dataclass(frozen=True)
class JobView:
    """A launch as one look found it."""

    pods: Sequence[PodReason]
    job: PodReason | None = None  # why pods are missing
    missing: int = 0  # so many are not made
    failed: str = ""  # the Job itself, and why
    finished: bool = False
    queued: bool = False  # held back by its queue


def decide(
    view: JobView, need: int, waited: float, *, patience: float, starting: float, settled: float
) -> Ready | GiveUp | KeepWaiting:
    """How the launch goes on. `need`: so many workers are of use, fewer are not. Who has a node
    already is given longer: images may be large. Pure."""
    if view.failed:
        return GiveUp(view.failed)
    running = sum(pod.state == RUNS for pod in view.pods)
    if view.finished or view.queued or running >= need:
        return Ready()
    living = [pod for pod in view.pods if pod.state != GONE]
    stuck = [*view.pods, *([view.job] if view.job and len(living) < need else [])]
    for reason in stuck:
        if reason.never or (reason.failing and waited >= settled):
            return GiveUp(_bare(reason.words), reason.hint)
    if any(pod_reason.state == STARTS for pod_reason in stuck):
        patience = max(patience, starting)
    if waited < patience:
        return KeepWaiting()
    waiting = [pod_reason for pod_reason in stuck if pod_reason.state == WAITS] or stuck
    count = f"{running} of {need} workers run" if running else "none of its workers runs"
    why = _bare(waiting[0].words) if waiting else "its pods are not made"
    return GiveUp(f"{count} after {patience:g} s: {why}", waiting[0].hint if waiting else "", later=True)


@dataclass
class JobWatch:
    client: KubeClient
    made: Manifest
    need: int
    pause: Callable[[float], None]
    clock: Callable[[], float]
    say: Callable[[str], None]
    ran: float = 0.0  # seconds that its workers ran, all together
    told: str = ""  # why its workers wait, as it was said last

    def until_ready(self) -> None:
        cloud.watch(self._decide, self._taken_down, clock=self.clock, pause=self.pause, every=LOOK)

    def _decide(self, waited: float) -> Ready | GiveUp | KeepWaiting:
        timing, view = settings.timing(), self.look()
        done = decide(
            view,
            self.need,
            waited,
            patience=timing.machines,
            starting=timing.report,
            settled=timing.stockout,
        )
        if isinstance(done, Ready):
            self._tell(view)
        if isinstance(done, KeepWaiting):
            self.ran += LOOK * sum(pod.state == RUNS for pod in view.pods)
            waiting = [*view.pods, *([view.job] if view.job and view.job.failing else [])]
            news = next((reason.words for reason in waiting if reason.state == WAITS), "")
            if news and news != self.told:
                self.told = news
                self.say(f"{self.made.name} {news}")
        return done

    def look(self) -> JobView:
        job = self.client.find(removal.JOB, self.made.name)
        if job is None:
            return JobView((), failed="its Job was deleted by someone")
        if reasons.is_finished(job) or reasons.failure(job):
            return JobView((), failed=self._failure(job), finished=True)
        pods = self._pods()
        pod_reasons = said_of(self.client, pods)
        queued = bool((job.get("spec") or {}).get("suspend"))
        missing = missing_pods(job, sum(reason.state != GONE for reason in pod_reasons))
        why = reasons.of_job(job, self._events()) if missing else None
        return JobView(pod_reasons, why, missing, queued=queued)

    def _pods(self) -> Sequence[Body]:
        return self.client.list(removal.POD, self.made.owned)

    def _events(self) -> Sequence[Body]:
        return events_of(self.client, self.made.name)

    def _failure(self, job: Body) -> str:
        why = reasons.failure(job)
        return f"{why}\n{self._last_words()}".rstrip() if why else ""

    def _last_words(self) -> str:
        """Last lines of the last pod that printed something."""
        for pod in reversed(self._pods()):
            text = "".join(self.client.log(name_of(pod), container) for container in (BRING, WORKER))
            if lines := cloud.last_lines(text):
                return lines
        return ""

    def _tell(self, view: JobView) -> None:
        waiting = [pod for pod in view.pods if pod.state == WAITS]
        if view.queued:
            self.say(f"{self.made.name} waits in its queue; hostler status shows it")
        elif waiting:
            self.say(f"{len(waiting)} of {len(view.pods)} workers {_bare(with_hint(waiting[0]), 'wait')}")
        elif view.job and view.job.failing:
            of = len(view.pods) + view.missing
            self.say(f"{view.missing} of {of} workers {_bare(with_hint(view.job), 'wait')}")

    def _taken_down(self, done: GiveUp) -> Undone:
        """After all of the launch is deleted; what it failed of is what is told."""
        last = "" if "\n" in done.why else self._last_words()
        generation = self.made.owned[cloud.GENERATION]
        found = [one for one in removal.things(self.client, self.made.owner) if one.generation == generation]
        removal.remove(self.client, found)
        head, _, rest = done.why.partition("\n")
        words = "\n".join(filter(None, [f"{self.made.name}: {head}; it was taken down", rest, last]))
        return Undone(words, done.hint, seconds=self.ran, later=done.later)


def said_of(client: KubeClient, pods: Sequence[Body]) -> list[PodReason]:
    """States of pods; where a GPU is short, also whether any node has one at all, and where a volume is not
    bound, why."""
    pod_reasons = _with_claims(client, pods, [reasons.of_pod(pod) for pod in pods])
    short = [reasons.wants_gpu(reason.words) if reason.state == WAITS else "" for reason in pod_reasons]
    if not any(short):
        return pod_reasons
    try:
        nodes: Sequence[Body] | None = client.list("Node")
    except KubeRefusal:
        nodes = None
    return [
        _with_driver(pod_reason, gpu, nodes) if gpu else pod_reason
        for pod_reason, gpu in zip(pod_reasons, short, strict=True)
    ]


def _with_driver(said: PodReason, gpu: str, nodes: Sequence[Body] | None) -> PodReason:
    hint = reasons.no_driver(gpu, nodes)
    return replace(said, hint=hint) if hint else said


def _with_claims(client: KubeClient, pods: Sequence[Body], found: Sequence[PodReason]) -> list[PodReason]:
    """Words of pods that wait for their volumes, with what was said last of each claim, asked once."""
    unbound = [reason.state == WAITS and reasons.is_unbound(reason.words) for reason in found]
    claims = {
        claim for pod, waits in zip(pods, unbound, strict=True) if waits for claim in reasons.claims(pod)
    }
    told = {claim: reasons.of_claim(events_of(client, claim)) for claim in sorted(claims)}
    why = "; ".join(f"claim {claim}: {words}" for claim, words in told.items() if words)
    return [
        replace(pod_reason, words=f"{pod_reason.words}; {why}") if waits and why else pod_reason
        for pod_reason, waits in zip(found, unbound, strict=True)
    ]


def with_hint(said: PodReason) -> str:
    """Its words, and what to do, where nobody else says that."""
    return f"{said.words}; {said.hint}" if said.hint else said.words


def missing_pods(job: Body, there: int) -> int:
    """How many pods of a Job are not made, of those that have not left for good."""
    if reasons.is_finished(job) or (job.get("metadata") or {}).get("deletionTimestamp"):
        return 0
    status, size = job.get("status") or {}, int((job.get("spec") or {}).get("completions") or 0)
    remaining = size - int(status.get("succeeded") or 0) - _count(str(status.get("failedIndexes") or ""))
    return max(0, remaining - there)


def _count(indexes: str) -> int:
    """How many `0,2-4` are."""
    spans = [part.split("-") for part in indexes.split(",") if part]
    return sum(int(span[-1]) - int(span[0]) + 1 for span in spans)


def events_of(client: KubeClient, name: str) -> Sequence[Body]:
    """Newest last; none where they may not be seen."""
    try:
        found = client.list("Event", fields={"involvedObject.name": name})
    except KubeRefusal:
        return []
    return sorted(found, key=lambda one: str(one.get("lastTimestamp") or one.get("eventTime") or ""))


def _bare(words: str, instead: str = "") -> str:
    return f"{instead}: {words.removeprefix('waits: ')}".removeprefix(": ")
