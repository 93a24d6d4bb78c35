"""Finds machines for `hostler init`: the hosts that ~/.ssh/config names."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from hostler.backends.fleet_files import Discovery

MOST = 16  # hosts in one section
DEEPEST = 8  # files that include one another


def discover() -> Discovery | None:
    names = list(dict.fromkeys(hosts(Path.home() / ".ssh" / "config")))[:MOST]
    if not names:
        return None
    return Discovery(f"~/.ssh/config, {', '.join(names)}", {"hosts": names})


def hosts(path: Path, depth: int = 0) -> Iterator[str]:
    """Hosts by name, without patterns and without accounts that are git's alone."""
    names: list[str] = []
    user = ""
    for key, words in _lines(path):
        if key in ("host", "match"):
            yield from names if user != "git" else ()
            plain = [word for word in words if not set(word) & set("*?!")]
            names, user = (plain if key == "host" else []), ""
        elif key == "user" and words:
            user = words[0]
        elif key == "include" and depth < DEEPEST:
            for word in words:
                for inner in _included(word):
                    yield from hosts(inner, depth + 1)
    yield from names if user != "git" else ()


def _lines(path: Path) -> Iterator[tuple[str, list[str]]]:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    for line in text.splitlines():
        try:
            words = shlex.split(line.replace("=", " ", 1), comments=True)
        except ValueError:
            continue
        if words:
            yield words[0].lower(), words[1:]


def _included(word: str) -> list[Path]:
    """Files of an Include, which may be a pattern and is relative to ~/.ssh."""
    place = Path(word).expanduser()
    base = Path(place.anchor) if place.is_absolute() else Path.home() / ".ssh"
    try:
        return sorted(base.glob(str(place.relative_to(place.anchor) if place.is_absolute() else place)))
    except (OSError, ValueError, NotImplementedError):
        return []
