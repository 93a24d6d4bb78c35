"""Files that a script made or changed in its working folder: told by a look before it and one after.

A look reads names, sizes, times and links, never a byte, and does not enter caches. A link counts only if it
leads to a file in the folder: data and caches are elsewhere. What is at the top of the folder is kept whole,
the smallest first, or not at all.
"""

from __future__ import annotations

import glob
import json
import os
import re
from collections.abc import Collection, Sequence
from pathlib import Path

from hostler.frozen import dataclass
from hostler.spec.units import counted, show_size

CACHES = frozenset(
    {
        "__pycache__",
        ".git",
        ".hostler",
        ".cache",
        ".venv",
        ".tox",
        ".nox",
        ".eggs",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        ".hypothesis",
        ".ipynb_checkpoints",
        "node_modules",
        ".DS_Store",
    }
)
MARKS = frozenset({"CACHEDIR.TAG", "pyvenv.cfg"})  # a folder with one of these is a cache, whatever its name
COMPILED = (".pyc", ".pyo")

Look = dict[str, tuple[int, int] | str]  # name → size and mtime in ns; target of a link


@dataclass(frozen=True)
class Made:
    """A file that is new or was changed; `path` is the file itself, where the name is a link to it."""

    name: str  # from the working folder on
    path: Path
    size: int
    is_link: bool = False


def look(folder: Path) -> Look:
    """All files and links of the folder but those of caches."""
    found: Look = {}
    pending = [""]
    while pending:
        prefix = pending.pop()
        try:
            with os.scandir(f"{folder}/{prefix}") as rows:
                entries = list(rows)
        except OSError:  # gone meanwhile, or shut by the script itself
            continue
        if prefix and not MARKS.isdisjoint(entry.name for entry in entries):
            continue
        for entry in entries:
            if entry.name in CACHES:
                continue
            if entry.is_dir(follow_symlinks=False):
                pending.append(f"{prefix}{entry.name}/")
            elif not entry.name.endswith(COMPILED) and (facts := _facts(entry)):
                found[prefix + entry.name] = facts
    return found


def is_free(folder: Path, name: str) -> bool:
    """Whether a file of this name can be put into a folder that is there, by itself and not by a link."""
    path = folder / name
    inside = os.path.realpath(path.parent) == os.path.join(
        os.path.realpath(folder), *path.parts[len(folder.parts) : -1]
    )
    return inside and path.parent.is_dir() and not os.path.lexists(path)


def note(found: Look, folder: Path, name: str) -> None:
    """Add a file of the folder to a look at it."""
    try:
        facts = os.lstat(folder / name)
    except OSError:
        return
    found[name] = facts.st_size, facts.st_mtime_ns


def _facts(entry: os.DirEntry[str]) -> tuple[int, int] | str:
    """'' of what is neither a file nor a link, or gone."""
    try:
        if entry.is_symlink():
            return os.readlink(entry.path)
        if entry.is_file(follow_symlinks=False):
            facts = entry.stat(follow_symlinks=False)
            return facts.st_size, facts.st_mtime_ns
    except OSError:
        pass
    return ""


def made(before: Look, folder: Path) -> list[Made]:
    """Files that are not as they were in that look, by name; links after files."""
    names = sorted(name for name, facts in look(folder).items() if before.get(name) != facts)
    if not names:
        return []
    real = os.path.realpath(folder)
    mades = [one for name in names if (one := _made(real, name)) is not None]
    return sorted(mades, key=lambda one: one.is_link)


def _made(root: str, name: str) -> Made | None:
    path = f"{root}/{name}"
    target = os.path.realpath(path)
    if not target.startswith(f"{root}/") or not os.path.isfile(target):
        return None
    is_link = os.path.islink(path)
    return Made(name, Path(target), 0 if is_link else os.path.getsize(target), is_link)


@dataclass(frozen=True)
class FileGroup:
    """Files below one name at the top of the working folder; a folder's ends in '/'."""

    name: str
    files: tuple[Made, ...]

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)

    def __str__(self) -> str:
        count = len(self.files)
        return f"{shown(self.name)} ({counted(count, 'file')}, {_in_words(self.size)})"


def choose(made: Sequence[Made], room: float) -> tuple[list[Made], list[FileGroup]]:
    """Files that fit into so many bytes, and the groups that do not."""
    below: dict[str, list[Made]] = {}
    for file in made:
        top, slash, _ = file.name.partition("/")
        below.setdefault(top + slash, []).append(file)
    kept: list[Made] = []
    groups: list[FileGroup] = []
    for group in sorted(
        (FileGroup(name, tuple(files)) for name, files in below.items()), key=lambda g: g.size
    ):
        if group.size <= max(room, 0):
            room -= group.size
            kept += group.files
        else:
            groups.append(group)
    return sorted(kept, key=lambda file: file.is_link), groups


def not_kept(groups: Collection[FileGroup], limit: float, *, hurried: bool = False) -> list[str]:
    """The line that says what was not kept, and how it would be. `hurried`: for want of time alone."""
    if not groups:
        return []
    named, verb = ", ".join(map(str, groups)), "is" if len(groups) == 1 else "are"
    if hurried:
        return [f"not kept: {named} could not be sent before the worker had to leave"]
    names = ", ".join(_entry(group.name) for group in groups)
    over = f"{verb} over the limit of {_in_words(int(limit))}"
    return [f"not kept: {named} {over}; add  outputs: [{names}]  or  outputs: none  to hostler.yaml"]


def shown(name: str) -> str:
    """A name as it can be printed on one line."""
    plain = name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return plain if plain.isprintable() else repr(name)


def _entry(name: str) -> str:
    """A path as an entry of `outputs:`, which are patterns."""
    return name if re.fullmatch(r"[\w./-]+", name) else json.dumps(glob.escape(shown(name)))


def _in_words(size: int) -> str:
    return re.sub(r"(?<=\d)(?=[A-Za-z])", " ", show_size(size))
