"""The API: one method for each verb, from a call to what goes back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hostler.emulators.k8s.api import podlogs, reviews, selectors, tables, watching
from hostler.emulators.k8s.api.changing import Changes
from hostler.emulators.k8s.api.message import Answer, Call, Stream, as_json
from hostler.emulators.k8s.api.refusal import Refusal, bad_request, not_found
from hostler.emulators.k8s.controllers import deletion, eviction
from hostler.emulators.k8s.resources import JOBS, REVIEWS
from hostler.emulators.k8s.rules.access import Access, Ask
from hostler.emulators.k8s.rules.admission import admit
from hostler.emulators.k8s.storage import Obj
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
        found = [one for one in storage.all(call.resource, call.namespace) if test(one)]
        start, limit = call.number("continue") or 0, call.number("limit") or 0
        page = found[start : start + limit] if limit else found[start:]
        meta: dict[str, Any] = {"resourceVersion": str(storage.version)}
        if start + len(page) < len(found):
            meta |= {"continue": str(start + len(page)), "remainingItemCount": len(found) - start - len(page)}
        kind = {"kind": f"{call.resource.kind}List", "apiVersion": call.resource.api_version}
        return tables.shown(call, {**kind, "metadata": meta, "items": page})

    def _watch(self, call: Call) -> Reply:
        test = selectors.chosen(call.query)
        asked = call.query.get("resourceVersion", "")
        if asked and not asked.isdigit():
            raise bad_request(f"invalid resource version {asked!r}")
        call.number("timeoutSeconds")
        return Stream(watching.watch(self._world, call, test, tables.wanted(call)))

    def _create(self, call: Call) -> Reply:
        if call.resource == REVIEWS:
            return as_json(reviews.review(self._access, call.user, call.read()), 201)
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
        given = call.read()
        _check(thing, given.get("preconditions") or {})
        if call.query.get("dryRun"):
            return as_json(thing)
        options = _options(call, given)
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
        found = [one for one in self._world.storage.all(call.resource, call.namespace) if test(one)]
        items = [deletion.delete(self._world, one, options) for one in found]
        kind = {"kind": f"{call.resource.kind}List", "apiVersion": call.resource.api_version}
        meta = {"resourceVersion": str(self._world.storage.version)}
        return as_json({**kind, "metadata": meta, "items": items})

    def _named(self, call: Call) -> Obj:
        found = self._world.storage.find(call.resource, call.namespace, call.name)
        if found is None:
            raise not_found(call.resource, call.name)
        return found


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
            said = f"{word} in precondition: {wanted[key]}, {word} in object meta: {meta[key]}"
            said = f"Precondition failed: {said}"
            raise Refusal(409, "Conflict", said)
