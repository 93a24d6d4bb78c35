"""What tests track: an object with a state and nothing else."""

from __future__ import annotations

from typing import Any


class Thing:
    def __init__(self, **state: Any) -> None:
        self.state = state

    def state_dict(self) -> dict[str, Any]:
        return self.state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.state = state
