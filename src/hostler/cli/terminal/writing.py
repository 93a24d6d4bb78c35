"""Writes files of a project; those that are there, and say something else, only if a person agrees."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hostler.cli.terminal.ask import ask
from hostler.errors import MachineError, UsageError


def write(texts: Mapping[Path, str], *, yes: bool) -> list[Path]:
    """All of them or none: those that were written; one that is there and the same is not."""
    fresh = {path: text for path, text in texts.items() if _there(path) != text.encode()}
    if taken := [path for path, text in fresh.items() if not _keeps(path, text)]:
        _agree(taken, yes=yes)
    for path, text in fresh.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise MachineError(f"{path}: {error.strerror}") from None
    return list(fresh)


def _there(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _keeps(path: Path, text: str) -> bool:
    """Whether nothing is lost: there is no such file, or all that it says stands first in the new one."""
    old = _there(path)
    return not path.exists() or (old is not None and text.encode().startswith(old))


def _agree(taken: list[Path], *, yes: bool) -> None:
    names = ", ".join(map(str, taken))
    said = f"{names} {'is' if len(taken) == 1 else 'are'} there already"
    refused = UsageError(said, "nothing was written; name another file, - for the screen, or -y to overwrite")
    try:
        agreed = ask(f"{said}, and not the same. Overwrite?", yes=yes)
    except UsageError:
        raise refused from None
    if not agreed:
        raise refused
