"""The end of a pod on its node: SIGTERM, the grace period, SIGKILL; because it is deleted, or too old."""

from __future__ import annotations

import signal

from hostler.emulators.k8s import moment
from hostler.emulators.k8s.node.sandbox import Sandbox, Verdict
from hostler.emulators.k8s.storage import Obj
from hostler.emulators.k8s.world import World


def begin(world: World, pod: Obj, sandbox: Sandbox) -> float | None:
    """Ask the pod to end if it has to; else when it will have to."""
    meta, spec = pod["metadata"], pod["spec"]
    if meta.get("deletionTimestamp"):
        grace = meta.get("deletionGracePeriodSeconds") or 0
        _shorten(world, sandbox, grace)
        return None
    limit = spec.get("activeDeadlineSeconds")
    if limit is None or sandbox.deadline is not None:
        return None
    started = moment.seconds(pod["status"].get("startTime") or moment.stamp(world.clock()))
    due = started + world.pace.seconds(limit)
    if world.clock() < due:
        return due
    ask(
        world,
        pod,
        sandbox,
        Verdict("DeadlineExceeded", "Pod was active on the node longer than the specified deadline"),
    )
    return None


def ask(
    world: World, pod: Obj, sandbox: Sandbox, verdict: Verdict | None = None, grace: float | None = None
) -> None:
    """SIGTERM now, SIGKILL after the grace period."""
    sandbox.verdict = sandbox.verdict or verdict
    given = pod["spec"].get("terminationGracePeriodSeconds", 30) if grace is None else grace
    _shorten(world, sandbox, given)


def proceed(world: World, pod: Obj, sandbox: Sandbox) -> tuple[float | None, str]:
    """When to look again, and the phase if nothing of it runs any more."""
    if sandbox.living():
        if world.clock() < (sandbox.deadline or 0.0):
            return sandbox.deadline, ""
        sandbox.kill()
        return None, ""
    return None, _phase(pod, sandbox)


def _phase(pod: Obj, sandbox: Sandbox) -> str:
    if sandbox.verdict is not None:
        return "Failed"
    runs = [sandbox.last(container["name"]) for container in pod["spec"]["containers"]]
    fine = all(run is not None and not run.code and not run.error for run in runs)
    return "Succeeded" if fine else "Failed"


def _shorten(world: World, sandbox: Sandbox, grace: float) -> None:
    until = world.clock() + world.pace.seconds(grace)
    if sandbox.deadline is None:
        sandbox.send(signal.SIGTERM)
        sandbox.deadline = until
    elif until < sandbox.deadline and grace == 0:
        sandbox.deadline = until
