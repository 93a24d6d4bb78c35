"""Operations: what was asked for and is not done yet, or how it came out.

A request that changes something answers with one, PENDING; then it is RUNNING, and in the end DONE, with the
error in it if there was one. The same `requestId` gives the same operation, and nothing is done twice.
"""

from __future__ import annotations

import itertools
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hostler.emulators.gce.agenda import Agenda
from hostler.emulators.gce.api.links import Scope, link
from hostler.emulators.gce.api.refusal import Failure, not_found
from hostler.emulators.gce.clock import stamp
from hostler.emulators.gce.pace import Pace

WAIT = 120.0  # seconds; Google's `wait` promises no more

Finish = Callable[[Failure | None], None]
Work = Callable[[Finish], None]


def at_once(act: Callable[[], None]) -> Work:
    """Work that is over when its time has come."""

    def work(finish: Finish) -> None:
        act()
        finish(None)

    return work


@dataclass
class Operation:
    scope: Scope
    body: dict[str, Any]
    done: threading.Event = field(default_factory=threading.Event)

    def finish(self, failure: Failure | None = None) -> None:
        if self.done.is_set():
            return
        self.body |= {"status": "DONE", "progress": 100, "endTime": stamp()}
        self.body |= failure.body() if failure else {}
        self.done.set()


class Operations:
    """The caller holds the world's lock, but in `wait`."""

    def __init__(self, agenda: Agenda, pace: Pace) -> None:
        self._agenda, self._pace = agenda, pace
        self._all: dict[str, Operation] = {}
        self._asked: dict[str, Operation] = {}
        self._ids = itertools.count(int(time.time() * 1e9))

    def identity(self) -> str:
        """A number no other resource has."""
        return str(next(self._ids))

    def start(
        self,
        scope: Scope,
        kind: str,
        target: str,
        target_id: str,
        work: Work,
        *,
        user: str = "",
        delay: float = 0.0,
    ) -> Operation:
        """`work` begins after `delay` (a plain operation's time if 0) and says when it is over, and how."""
        made = self._make(scope, kind, target, target_id, user)
        self._agenda.after(0, lambda: self._running(made))
        self._agenda.after(delay or self._pace.operation, lambda: work(made.finish))
        return made

    def note(self, scope: Scope, kind: str, target: str, target_id: str) -> None:
        """Something the platform did by itself: `compute.instances.preempted`."""
        self._make(scope, kind, target, target_id, "system").finish()

    def note_deleted(self, scope: Scope, target: str, target_id: str, user: str) -> None:
        """A machine that its group has deleted; once, however often that is asked for."""
        known = (
            (operation.body["operationType"], operation.body["targetId"]) for operation in self._all.values()
        )
        if ("delete", target_id) not in known:
            self._make(scope, "delete", target, target_id, user).finish()

    def asked(self, request_id: str) -> Operation | None:
        return self._asked.get(request_id)

    def remember(self, request_id: str, made: Operation) -> None:
        self._asked[request_id] = made

    def get(self, scope: Scope, name: str) -> Operation:
        operation = self._all.get(name)
        if operation is None or operation.scope != scope:
            raise not_found(scope.of("operations", name))
        return operation

    def of(self, scope: Scope | None = None) -> list[Operation]:
        return [operation for operation in self._all.values() if scope is None or operation.scope == scope]

    def delete(self, scope: Scope, name: str) -> None:
        self.get(scope, name)
        del self._all[name]

    def _running(self, made: Operation) -> None:
        if not made.done.is_set():
            made.body |= {"status": "RUNNING", "startTime": stamp()}

    def _make(self, scope: Scope, kind: str, target: str, target_id: str, user: str) -> Operation:
        system = user == "system"
        name = f"{'systemevent' if system else 'operation'}-{int(time.time() * 1000)}-{secrets.token_hex(8)}"
        body = {
            "kind": "compute#operation",
            "id": self.identity(),
            "name": name,
            "operationType": kind,
            "status": "PENDING",
            "progress": 0,
            "user": user or "someone@example.com",
            "insertTime": stamp(),
            "targetLink": link(target),
            "targetId": target_id,
            "selfLink": link(scope.of("operations", name)),
            **scope.fields(),
        }
        return self._all.setdefault(name, Operation(scope, body))
