"""The error of a search space, and the key it is at."""

from __future__ import annotations

from hostler.errors import SpecError

Path = tuple[str | int, ...]


class Fault(SpecError):
    """A SpecError that knows its place below `parameters`; whoever has the file adds its line."""

    def __init__(self, path: Path, message: str, hint: str = "") -> None:
        shown = dotted(path)
        super().__init__(f"{shown}: {message}" if shown else message, hint)
        self.path = path
        self.said = message


def dotted(path: Path) -> str:
    """('a', 0, 'b') as a[0].b."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".")
