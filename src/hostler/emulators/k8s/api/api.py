"""The API: one method for each verb, from a call to what goes back."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from hostler.emulators.k8s.api import podlogs, selectors, tables
from hostler.emulators.k8s.api.changing import Changes
from hostler.emulators.k8s.api.message import Answer, Call, Stream, as_json
from hostler.emulators.k8s.api.refusal import Refusal, bad_request, not_found
from hostler.emulators.k8s.api.selectors import Test
from hostler.emulators.k8s.controllers import deletion, eviction
from hostler.emulators.k8s.resources import JOBS, REVIEWS, Resource, named
from hostler.emulators.k8s.rules.access import Access, Ask
from hostler.emulators.k8s.rules.admission import admit
from hostler.emulators.k8s.storage import Change, Obj
from hostler.emulators.k8s.world import World

Reply = Answer | Stream


class Api:
    def __init__(self, world: World, access: Access) -> None:
        self._world, self._access = world, access
        self._changes = Changes(world)

    def answer(self, call: Call) -> Reply:
        """Raises Refusal."""
        with self._world.lock:
            ask = Ask(call.verb, call.resource, call.namespace, call.name, call.sub)
            self._access.check(call.user, ask)
            if call.verb == "watch":
                return self._watch(call)
            if call.sub == "log":
                return podlogs.answer(self._world, self._named(call), call)
            act: Callable[[Call], Reply] = getattr(self, f"_{call.verb}")
            return act(call)

    def _get(self, call: Call) -> Reply:
        return tables.shown(call, self._named(call))

    def _list(self, call: Call) -> Reply:
        test, storage = selectors.chosen(call.query), self._world.storage
        rows = [record for record in storage.all(call.resource, call.namespace) if test(record)]
        start, limit = call.number("continue") or 0, call.number("limit") or 0
        page = rows[start : start + limit] if limit else rows[start:]
        meta: dict[str, Any] = {"resourceVersion": str(storage.version)}
        if start + len(page) < len(rows):
            meta |= {"continue": str(start + len(page)), "remainingItemCount": len(rows) - start - len(page)}
        kind = {"kind": f"{call.resource.kind}List", "apiVersion": call.resource.api_version}
        return tables.shown(call, {**kind, "metadata": meta, "items": page})

    def _watch(self, call: Call) -> Reply:
        test = selectors.chosen(call.query)
        asked = call.query.get("resourceVersion", "")
        if asked and not asked.isdigit():
            raise bad_request(f"invalid resource version {asked!r}")
        call.number("timeoutSeconds")
        return Stream(watch(self._world, call, test, tables.wanted(call)))

    def _create(self, call: Call) -> Reply:
        if call.resource == REVIEWS:
            return as_json(review(self._access, call.user, call.read()), 201)
        if call.sub == "eviction":
            return as_json(eviction.evict(self._world, self._named(call), call.read()), 201)
        if call.sub:
            raise bad_request(f"the stand-in does not create {call.resource.plural}/{call.sub}")
        made = admit(self._world, call.resource, call.read(), call.namespace)
        if call.query.get("dryRun"):
            return as_json(made, 201)
        return as_json(self._world.storage.put(made), 201)

    def _update(self, call: Call) -> Reply:
        return as_json(self._changes.replace(call, self._named(call), call.read()))

    def _patch(self, call: Call) -> Reply:
        old = self._world.storage.find(call.resource, call.namespace, call.name)
        thing, made = self._changes.patch(call, old)
        return as_json(thing, 201 if made else 200)

    def _delete(self, call: Call) -> Reply:
        thing = self._named(call)
        values = call.read()
        _check(thing, values.get("preconditions") or {})
        if call.query.get("dryRun"):
            return as_json(thing)
        options = _options(call, values)
        last = deletion.delete(self._world, thing, options)
        warning = deletion.PRESERVED if call.resource == JOBS and not options.propagation else ""
        gone = self._world.storage.find(call.resource, call.namespace, call.name) is None
        if not gone or call.resource.plural == "pods":
            return as_json(last, warning=warning)
        details = {"name": call.name, "group": call.resource.group, "kind": call.resource.plural}
        details |= {"uid": last["metadata"]["uid"]}
        status = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": details,
        }
        return as_json(status, warning=warning)

    def _deletecollection(self, call: Call) -> Reply:
        test, options = selectors.chosen(call.query), _options(call, call.read())
        rows = [record for record in self._world.storage.all(call.resource, call.namespace) if test(record)]
        items = [deletion.delete(self._world, record, options) for record in rows]
        kind = {"kind": f"{call.resource.kind}List", "apiVersion": call.resource.api_version}
        meta = {"resourceVersion": str(self._world.storage.version)}
        return as_json({**kind, "metadata": meta, "items": items})

    def _named(self, call: Call) -> Obj:
        record = self._world.storage.find(call.resource, call.namespace, call.name)
        if record is None:
            raise not_found(call.resource, call.name)
        return record


def _options(call: Call, given: Mapping[str, Any]) -> deletion.Options:
    grace = call.number("gracePeriodSeconds", given.get("gracePeriodSeconds"))
    policy = call.query.get("propagationPolicy") or given.get("propagationPolicy") or ""
    if given.get("orphanDependents") is not None and not policy:
        policy = deletion.ORPHAN if given["orphanDependents"] else deletion.BACKGROUND
    if policy not in ("", deletion.BACKGROUND, deletion.FOREGROUND, deletion.ORPHAN):
        raise bad_request(f"invalid propagationPolicy {policy!r}")
    return deletion.Options(grace, policy)


def _check(thing: Obj, wanted: Mapping[str, Any]) -> None:
    meta = thing["metadata"]
    for key in ("uid", "resourceVersion"):
        if wanted.get(key) and wanted[key] != meta[key]:
            word = "UID" if key == "uid" else "ResourceVersion"
            text = f"{word} in precondition: {wanted[key]}, {word} in object meta: {meta[key]}"
            text = f"Precondition failed: {text}"
            raise Refusal(409, "Conflict", text)


# SelfSubjectAccessReview: whether the asker may do a thing.


def review(access: Access, user: str, given: Obj) -> dict[str, Any]:
    asked = (given.get("spec") or {}).get("resourceAttributes")
    if not isinstance(asked, dict):
        raise bad_request("spec.resourceAttributes: Required value: the stand-in reviews resources only")
    group, plural = asked.get("group", ""), asked.get("resource", "")
    resource = named(group, asked.get("version") or "v1", plural) or Resource(group, plural, plural)
    words = {key: asked.get(key, "") for key in ("namespace", "name")}
    ask = Ask(asked.get("verb", ""), resource, sub=asked.get("subresource", ""), **words)
    head = {"kind": REVIEWS.kind, "apiVersion": REVIEWS.api_version, "metadata": {}, "spec": given["spec"]}
    return {**head, "status": {"allowed": access.allows(user, ask)}}


# A watch: every change of the objects that were asked for, as lines of JSON, until the client has enough.


_PULSE = 1.0  # seconds between two looks whether the cluster still is there


Show = Callable[[Obj], Obj]  # the form in which a client wants an object


def watch(world: World, call: Call, test: Test, show: Show) -> Iterator[bytes]:
    until = time.monotonic() + (call.number("timeoutSeconds") or 1800)
    asked = call.query.get("resourceVersion", "")
    with world.lock:
        if asked in ("", "0"):
            since = world.storage.version
            first = [record for record in world.storage.all(call.resource, call.namespace) if test(record)]
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
    """The event that this client gets for a change; empty if the change does not concern it."""
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
