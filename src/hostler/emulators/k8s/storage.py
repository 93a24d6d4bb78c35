"""The objects, each with its version, and what happened to them: all that a client sees.

A stored object is never changed in place: whoever changes one puts a copy. Versions grow by one with each
change of anything. The caller holds `lock`.
"""

from __future__ import annotations

import copy
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from hostler.emulators.k8s import resources
from hostler.emulators.k8s.api.refusal import too_old
from hostler.emulators.k8s.resources import Resource
from hostler.frozen import dataclass

Obj = dict[str, Any]
Key = tuple[Resource, str, str]


@dataclass(frozen=True)
class Change:
    version: int
    resource: Resource
    old: Obj | None
    new: Obj | None


class Storage:
    def __init__(self, history: int = 5000) -> None:
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.version = 1
        self._objects: dict[Key, Obj] = {}
        self._changes: deque[Change] = deque()
        self._history = history
        self._oldest = 1  # changes after this version are still known

    def find(self, resource: Resource, namespace: str, name: str) -> Obj | None:
        return self._objects.get((resource, namespace, name))

    def all(self, resource: Resource, namespace: str = "") -> list[Obj]:
        """In the order of their names; of all namespaces if none is given."""
        found = [
            (key, thing)
            for key, thing in self._objects.items()
            if key[0] == resource and namespace in ("", key[1])
        ]
        return [thing for _, thing in sorted(found, key=lambda one: one[0][1:])]

    def everything(self) -> Iterator[Obj]:
        yield from list(self._objects.values())

    def put(self, thing: Obj) -> Obj:
        """Store it, as a new version if it differs from what is there."""
        key = key_of(thing)
        old = self._objects.get(key)
        if old is not None and _same(old, thing):
            return old
        thing["metadata"]["resourceVersion"] = str(self.version + 1)
        self._objects[key] = thing
        self._record(key[0], old, thing)
        return thing

    def change(self, thing: Obj, act: Callable[[Obj], None]) -> Obj:
        """A copy of what is there now, changed by `act`, is put; nothing if it is gone."""
        current = self._objects.get(key_of(thing))
        if current is None or current["metadata"]["uid"] != thing["metadata"]["uid"]:
            return thing
        fresh = copy.deepcopy(current)
        act(fresh)
        return self.put(fresh)

    def remove(self, thing: Obj) -> Obj:
        key = key_of(thing)
        old = self._objects.pop(key, None)
        if old is None:
            return thing
        last = copy.deepcopy(old)
        last["metadata"]["resourceVersion"] = str(self.version + 1)
        self._record(key[0], last, None)
        return last

    def since(self, version: int) -> list[Change]:
        """Changes after that version; refused if they are not known any more."""
        if version < self._oldest:
            raise too_old(version, self._oldest)
        changes: list[Change] = []
        for change in reversed(self._changes):
            if change.version <= version:
                break
            changes.append(change)
        return changes[::-1]

    def forget(self) -> None:
        """As a compaction: nobody learns any more what has happened before now."""
        self._changes.clear()
        self._oldest = self.version
        self.changed.notify_all()

    def _record(self, resource: Resource, old: Obj | None, new: Obj | None) -> None:
        self.version += 1
        self._changes.append(Change(self.version, resource, old, new))
        while len(self._changes) > self._history:
            self._oldest = self._changes.popleft().version
        self.changed.notify_all()


def key_of(thing: Obj) -> Key:
    meta = thing["metadata"]
    return resources.of(thing), meta.get("namespace", ""), meta["name"]


def _same(old: Obj, new: Obj) -> bool:
    def bare(thing: Obj) -> Obj:
        meta = {key: value for key, value in thing["metadata"].items() if key != "resourceVersion"}
        return {**thing, "metadata": meta}

    return bare(old) == bare(new)
