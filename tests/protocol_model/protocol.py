"""The machine that the search walks through: workers, person and environment over one store."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from protocol_model import properties
from protocol_model.environment import environment_steps, person_steps
from protocol_model.machine import worker_steps
from protocol_model.rules import Rules
from protocol_model.world import Case, State, Step, World, first_state


@dataclass(frozen=True)
class ProtocolMachine:
    world: World
    rules: Rules = field(default_factory=Rules)

    def start(self) -> State:
        return first_state(self.world)

    def steps(self, state: State) -> Iterator[Step]:
        case = Case(self.world, self.rules)
        for i, actor in enumerate(state.actors):
            if actor.person:
                yield from person_steps(case, state, i)
            elif actor.up == "up":
                yield from worker_steps(case, state, i)
        yield from environment_steps(case, state)

    def broken(self, state: State) -> str:
        return properties.broken(Case(self.world, self.rules), state)

    def ended(self, state: State) -> bool:
        return properties.ended(state)

    def out_of_bounds(self, state: State) -> bool:
        return properties.out_of_bounds(Case(self.world, self.rules), state)
