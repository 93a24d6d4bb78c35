"""Changes of an object that is there: replaced or patched, and checked for what may not change."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from hostler.emulators.k8s.api import patching
from hostler.emulators.k8s.api.message import Call
from hostler.emulators.k8s.api.patching import key_of, strategic
from hostler.emulators.k8s.api.refusal import (
    Cause,
    Refusal,
    bad_request,
    conflict,
    conflicting_fields,
    invalid,
    not_found,
)
from hostler.emulators.k8s.controllers import deletion
from hostler.emulators.k8s.rules import defaults, jobrules, rules, schema
from hostler.emulators.k8s.rules.admission import admit
from hostler.emulators.k8s.storage import Obj
from hostler.emulators.k8s.world import World

_KEPT = ("uid", "creationTimestamp", "name", "namespace", "deletionTimestamp", "deletionGracePeriodSeconds")
_APPLY = "apply-patch"


class Changes:
    def __init__(self, world: World) -> None:
        self._world = world
        self._applied: dict[str, dict[str, Obj]] = {}  # uid -> manager -> what it applied last

    def replace(self, call: Call, old: Obj, given: Obj) -> Obj:
        version = (given.get("metadata") or {}).get("resourceVersion")
        if version and version != old["metadata"]["resourceVersion"]:
            raise conflict(call.resource, call.name)
        return self._store(call, old, given)

    def patch(self, call: Call, old: Obj | None) -> tuple[Obj, bool]:
        """The object, and whether it is new."""
        kind = call.headers.get("content-type", "").partition(";")[0]
        if _APPLY in kind:
            return self._apply(call, old)
        if old is None:
            raise not_found(call.resource, call.name)
        patch = _read(call.body)
        if isinstance(patch, list) != ("json-patch" in kind):
            raise bad_request(f"a patch of type {kind} does not have this form")
        if "json-patch" in kind:
            fresh = patching.operations(old, patch)
        elif "strategic" in kind:
            fresh = patching.strategic(old, patch)
        elif "merge-patch" in kind:
            fresh = patching.merge(old, patch)
        else:
            text = f"the body of the request was in an unknown format - accepted media types include: {kind}"
            raise Refusal(415, "UnsupportedMediaType", text)
        if not isinstance(fresh, dict):
            raise bad_request("the patch does not leave an object")
        return self.replace(call, old, fresh), False

    def _apply(self, call: Call, old: Obj | None) -> tuple[Obj, bool]:
        manager, wanted = call.query.get("fieldManager", ""), _read(call.body)
        if not manager:
            raise bad_request(
                'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required '
                "for apply patch"
            )
        if not isinstance(wanted, dict):
            raise bad_request("the applied configuration is not an object")
        wanted.setdefault("metadata", {}).setdefault("name", call.name)
        if old is None:
            made = admit(self._world, call.resource, wanted, call.namespace)
            if not call.query.get("dryRun"):
                self._world.storage.put(made)
                self._applied[made["metadata"]["uid"]] = {manager: wanted}
            return made, True
        known = self._applied.setdefault(old["metadata"]["uid"], {})
        found = conflicts(known, manager, wanted)
        if found and not call.flag("force"):
            raise conflicting_fields(found, call.resource.api_version)
        others = [thing for who, thing in known.items() if who != manager]
        fresh = apply(old, known.get(manager), wanted, others)
        stored = self._store(call, old, fresh)
        if not call.query.get("dryRun"):
            known[manager] = wanted
        return stored, False

    def _store(self, call: Call, old: Obj, given: Obj) -> Obj:
        fresh = self._prepared(call, old, given)
        causes = rules.check(fresh) + _unchangeable(old, fresh)
        causes += rules.labels(fresh["metadata"].get("labels"), "metadata.labels")
        if causes:
            raise invalid(call.resource, call.name, causes)
        if call.query.get("dryRun"):
            return fresh
        stored = self._world.storage.put(fresh)
        return deletion.settle(self._world, stored)

    def _prepared(self, call: Call, old: Obj, given: Obj) -> Obj:
        """With what a client cannot change as it was; the status only by its own subresource."""
        fresh = copy.deepcopy(given)
        fresh["apiVersion"], fresh["kind"] = old["apiVersion"], old["kind"]
        meta = fresh.setdefault("metadata", {})
        for word in (*_KEPT, "generation"):
            meta.pop(word, None)
            if word in old["metadata"]:
                meta[word] = old["metadata"][word]
        schema.check(call.resource, {key: value for key, value in fresh.items() if key != "status"})
        if call.sub == "status":
            return {**old, "status": fresh.get("status", {}), "metadata": {**old["metadata"]}}
        causes = rules.early(fresh)
        if causes:
            raise invalid(call.resource, call.name, causes)
        defaults.fill(fresh)
        fresh.pop("status", None)
        if "status" in old:
            fresh["status"] = old["status"]
        if "generation" in meta and fresh.get("spec") != old.get("spec"):
            meta["generation"] += 1
        return fresh


def _read(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        pass  # YAML, as server-side apply may be
    try:
        return yaml.safe_load(body)
    except yaml.YAMLError as error:
        raise bad_request(f"error decoding YAML: {error}") from None


def _unchangeable(old: Obj, new: Obj) -> list[Cause]:
    if old["kind"] == "Job":
        return jobrules.unchangeable(old, new)
    if old["kind"] == "Pod":
        return _pod(old, new)
    if old["kind"] in ("Secret", "ConfigMap") and old.get("immutable") and old.get("data") != new.get("data"):
        return [Cause("data", "Forbidden: field is immutable when `immutable` is set", "FieldValueForbidden")]
    return []


def _pod(old: Obj, new: Obj) -> list[Cause]:
    def rest(pod: Obj) -> Obj:
        spec = copy.deepcopy(pod["spec"])
        for one in [*spec["containers"], *(spec.get("initContainers") or [])]:
            one.pop("image", None)
        return {
            key: value for key, value in spec.items() if key not in ("tolerations", "activeDeadlineSeconds")
        }

    if rest(old) == rest(new):
        return []
    text = (
        "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
        "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to "
        "existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was "
        "previously negative)"
    )
    return [Cause("spec", text, "FieldValueForbidden")]


# Server-side apply: what a manager applied before and leaves out now goes; where two differ is a conflict.
#
# Pure over what each manager has applied.


Path = tuple[str, ...]
_IDENTITY = {("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace")}


def conflicts(applied: Mapping[str, Obj], manager: str, wanted: Obj) -> list[tuple[str, str]]:
    """(manager, field) of what others applied with another value."""
    mine = dict(leaves(wanted))
    found = []
    for other, theirs in applied.items():
        if other == manager:
            continue
        for path, value in leaves(theirs):
            if path in mine and mine[path] != value and path not in _IDENTITY:
                found.append((other, "." + ".".join(path)))
    return found


def apply(current: Obj, before: Obj | None, wanted: Obj, others: list[Obj]) -> Obj:
    """The object with what is wanted, without what this manager alone had wanted before."""
    record = copy.deepcopy(current)
    kept = {path for one in [wanted, *others] for path, _ in leaves(one)}
    for path, _ in leaves(before or {}):
        if path not in kept and path not in _IDENTITY:
            _drop(record, list(path))
    merged: Obj = strategic(record, wanted)
    return merged


def leaves(thing: Any, at: Path = (), field: str = "") -> Iterator[tuple[Path, Any]]:
    """Every value with its path; entries of named lists by their names."""
    if isinstance(thing, dict) and thing:
        for key, value in thing.items():
            yield from leaves(value, (*at, key), key)
    elif isinstance(thing, list) and (key := key_of(field, thing)):
        for one in thing:
            yield from leaves(one, (*at, f"{key}={one[key]}"))
    elif at:
        yield at, thing


def _drop(thing: Any, path: list[str]) -> None:
    """Take one value out, and the parts of named lists that have nothing but their name left."""
    part, rest = path[0], path[1:]
    if isinstance(thing, list):
        key, _, name = part.partition("=")
        for one in [one for one in thing if str(one.get(key)) == name]:
            if rest:
                _drop(one, rest)
            if set(one) <= {key}:
                thing.remove(one)
    elif isinstance(thing, dict) and part in thing:
        if rest and isinstance(thing[part], dict | list):
            _drop(thing[part], rest)
            if thing[part] in ({}, []):
                del thing[part]
        elif not rest:
            del thing[part]
