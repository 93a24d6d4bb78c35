"""A watch: every change of the objects that were asked for, as lines of JSON, until the client has enough."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator

from hostler.emulators.k8s.api.message import Call
from hostler.emulators.k8s.api.refusal import Refusal
from hostler.emulators.k8s.api.selectors import Test
from hostler.emulators.k8s.storage import Change, Obj
from hostler.emulators.k8s.world import World

_PULSE = 1.0  # seconds between two looks whether the cluster still is there


Show = Callable[[Obj], Obj]  # the form in which a client wants an object


def watch(world: World, call: Call, test: Test, show: Show) -> Iterator[bytes]:
    until = time.monotonic() + (call.number("timeoutSeconds") or 1800)
    asked = call.query.get("resourceVersion", "")
    with world.lock:
        if asked in ("", "0"):
            since = world.storage.version
            first = [one for one in world.storage.all(call.resource, call.namespace) if test(one)]
        else:
            since, first = int(asked), []
    for one in first:
        yield _line("ADDED", show(one))
    while time.monotonic() < until and not world.closed:
        try:
            changes = _next(world, since, min(_PULSE, until - time.monotonic()))
        except Refusal as refusal:
            yield _line("ERROR", refusal.body())
            return
        for change in changes:
            since = change.version
            if line := _told(change, call, test, show):
                yield line


def _next(world: World, since: int, wait: float) -> list[Change]:
    with world.storage.changed:
        if world.storage.version <= since:
            world.storage.changed.wait(wait)
        return world.storage.since(since)


def _told(change: Change, call: Call, test: Test, show: Show) -> bytes:
    """What this client hears of a change; nothing if it does not concern it."""
    if change.resource != call.resource:
        return b""
    thing = change.new or change.old or {}
    if call.namespace and thing["metadata"].get("namespace") != call.namespace:
        return b""
    before = change.old is not None and test(change.old)
    after = change.new is not None and test(change.new)
    if not before and not after:
        return b""
    kind = "MODIFIED" if before and after else "ADDED" if after else "DELETED"
    return _line(kind, show(thing))


def _line(kind: str, thing: Obj) -> bytes:
    return json.dumps({"type": kind, "object": thing}).encode() + b"\n"
