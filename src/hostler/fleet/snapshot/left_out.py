"""Files of a project that were left out of its code: by which rule, and what brings them to a run.

A run that misses a file says only its name. Whether the file is in the project, and why it was not sent, is
known where the project is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from hostler import made_files
from hostler.fleet.snapshot.ignore import NEVER, OWN_FILE, for_project, is_taken_back
from hostler.fleet.snapshot.snapshot import read
from hostler.fleet.snapshot.tree import shown
from hostler.frozen import dataclass
from hostler.spec.names import WORK, slug

MISSING = re.compile(
    r"No such file or directory|FileNotFound|does not exist|not found|"
    r"(?:unable|failed|could not|cannot|can't) (?:to )?open",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"""'([^'\n]+)'|"([^"\n]+)"|`([^`\n]+)`""")
_THERE = re.compile(rf"^/.*/runs/[^/]+/[^/]+/(?:root/)?{WORK}/(.+)")  # a file of a run's working folder
_TRIED = 40  # words of a message that may be names


@dataclass(frozen=True)
class LeftOut:
    name: str  # from the project's folder on; a folder's ends in '/'
    why: str
    takes_back: tuple[str, ...]  # lines of .hostlerignore that bring it along; none: no line can


def advice(project: Path, cwd: Callable[[], str], failure: Mapping[str, Any]) -> list[str]:
    """Lines for a person whose run failed for a file that the project has, and its rules leave out. `cwd`:
    the folder of the project that it ran in."""
    message = str(failure.get("message") or "")
    if not MISSING.search(message):
        return []
    outs = (left_out(project, name) for name in _names(cwd(), message))
    first = next(filter(None, outs), None)
    return _lines(first) if first else []


def left_out(project: Path, name: str) -> LeftOut | None:
    """Why a file or folder of the project is not part of its code; None if it is, or does not exist."""
    path = project / name
    if not path.exists():
        return None
    git, real = read(project), Path(os.path.realpath(project))
    rules = for_project(real, git.top, git.tracked_ignored) if git else for_project(real)
    why, back = "", list[str]()
    parts = name.split("/")
    for n in range(1, len(parts) + 1):
        inner = "/".join(parts[:n])
        is_dir = n < len(parts) or path.is_dir()
        if rules.ignores(inner, is_dir):
            why = why or rules.why(inner, is_dir)
            back.append(f"!/{inner}{'/' * is_dir}")
        if is_dir:
            rules = rules.inside(inner, real / inner)
    if not why and _is_made(real, name):
        why, back = "hostler, which made it", [f"!/{name}"]
    if NEVER & set(parts):
        back = []
    return LeftOut(name + "/" * path.is_dir(), why, tuple(back)) if why else None


def _is_made(project: Path, name: str) -> bool:
    path = project / name
    made = path.is_file() and made_files.holds(made_files.known(), path, path.stat().st_size)
    return made and not is_taken_back(project, name)


def _names(cwd: str, message: str) -> Iterator[str]:
    """Names in a message that may be files of the project."""
    quoted = ["".join(match) for match in _QUOTED.findall(message)]
    words = [word.strip(" ,;:()[]'\"`") for word in message.split()]
    for word in [*quoted, *words][:_TRIED]:
        if not word or len(word) > 1000 or "\0" in word:
            continue
        there = _THERE.search(word)
        below = there[1] if there else os.path.join(cwd, word)
        inside = os.path.normpath(below) if below else ""
        if inside not in ("", ".", "..") and not inside.startswith(("../", "/")):
            yield inside


def _lines(found: LeftOut) -> list[str]:
    name, folder = found.name.rstrip("/"), found.name.rstrip("/").rpartition("/")[0]
    place = name if found.name.endswith("/") or not folder else folder
    entry = slug(place.rpartition("/")[2])
    lines = [
        f"{shown(found.name)} is in the project, but was left out of the code by {found.why}",
        f"as data, in hostler.yaml:  data: {{{entry}: {{path: {shown(place)}, at: {shown(place)}}}}}",
    ]
    if found.takes_back:
        lines.append(f"as code, in {OWN_FILE}:  {'   '.join(map(shown, found.takes_back))}")
    return lines
