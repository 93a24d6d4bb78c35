"""A request to the API, as its handler gets it, and the operation that most are answered with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hostler.emulators.gce.api.links import Scope
from hostler.emulators.gce.api.operations import Work
from hostler.emulators.gce.world import World
from hostler.frozen import dataclass


@dataclass(frozen=True)
class Call:
    method: str  # as in Google's document: instances.insert
    scope: Scope
    name: str
    query: Mapping[str, str]
    body: Mapping[str, Any]

    @property
    def verb(self) -> str:
        return self.method.rpartition(".")[2]

    def flag(self, name: str) -> bool:
        return self.query.get(name, "").lower() == "true"


def begin(
    world: World, call: Call, target: str, target_id: str, work: Work, *, delay: float = 0.0
) -> dict[str, Any]:
    """The operation of a call. Its answer stays as it was when it was given."""
    kind = call.verb
    made = world.operations.start(call.scope, kind, target, target_id, work, delay=delay)
    if call.query.get("requestId"):
        world.operations.remember(call.query["requestId"], made)
    return dict(made.body)
