"""Fleets for `hostler init`: written into a new hostler.yaml, or added to an old one, comments kept."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import yaml

from hostler.backends.fleet_files import Section, discovered, section
from hostler.backends.project_file import load_project, parse_project
from hostler.backends.registry import BACKENDS
from hostler.errors import HostlerError, MachineError, UsageError
from hostler.spec.files import yaml12

HEAD = "fleets:                               # hostler sweep --on NAME; hostler doctor checks them\n"
OFFERED = "# Found on this machine. To use one, remove the # before its lines and before `fleets:`.\n"


def wanted(names: Sequence[str]) -> list[Section]:
    """Sections of the platforms that a person named, filled in with what is found here."""
    return [section(name, discovered(name)) for name in names]


def offered() -> list[Section]:
    """Sections of the platforms that this machine can use."""
    discoveries = {name: discovered(name) for name in BACKENDS}
    return [section(name, discovery) for name, discovery in discoveries.items() if discovery]


def block(sections: Sequence[Section], *, active: bool) -> str:
    """The `fleets:` of a new file; one that is only offered is a comment. Pure."""
    if not sections:
        return ""
    text = HEAD + "".join(one.text for one in sections)
    if active:
        return "\n" + text
    return "\n" + OFFERED + "".join(f"# {line}\n" for line in text.splitlines())


def added(text: str, new: Section) -> str | None:
    """A hostler.yaml with one more fleet; None if it cannot be added without touching other lines. Pure."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    if node is None:
        return f"{_whole(text)}{HEAD}{new.text}"
    if not isinstance(node, yaml.MappingNode) or node.flow_style:
        return None
    lines = text.splitlines(keepends=True)
    for key, value in node.value:
        if key.value == "fleets":
            empty = isinstance(value, yaml.ScalarNode) and value.value == ""
            block_style = isinstance(value, yaml.MappingNode) and not value.flow_style
            if not (empty or block_style) or (value.start_mark.line == key.start_mark.line and block_style):
                return None
            indent = value.start_mark.column if block_style else 2
            here = key.start_mark.line + 1
            own = [" " * (indent - 2) + line if indent >= 2 else line[2 - indent :] for line in new.lines]
            return "".join([*lines[:here], *(f"{line}\n" for line in own), *lines[here:]])
    return f"{_whole(text)}\n{HEAD}{new.text}"


def add(path: Path, sections: Sequence[Section]) -> list[Section]:
    """Add fleets to a file; returns those that a person must add. A fleet of that name is refused."""
    fleets = load_project(path).fleets
    for one in sections:
        if one.fleet in fleets:
            raise UsageError(
                f"{path.name} already has a fleet named {one.fleet}", hint="edit it, or rename it first"
            )
    try:
        before = path.read_text(encoding="utf-8")
        text, left = before, []
        for one in sections:
            after = added(text, one) if path.suffix != ".json" else None
            if after is None or not _adds_only(text, after, one.fleet, path):
                left.append(one)
            else:
                text = after
        if text != before:
            _replace(path, text)
    except OSError as error:
        raise MachineError(f"{path}: {error.strerror}", hint="check its rights") from error
    return left


def _adds_only(before: str, after: str, fleet: str, path: Path) -> bool:
    """Whether hostler reads all that it read before, and this fleet."""
    try:
        parse_project(yaml12.load(after, path.name), path.parent)
        old, new = (yaml12.load(text, path.name).value or {} for text in (before, after))
    except HostlerError:
        return False
    fleets = dict(new.pop("fleets", {}))
    return bool(fleets.pop(fleet, None)) and {**new, "fleets": fleets} == {
        **old,
        "fleets": old.get("fleets") or {},
    }


def _replace(path: Path, text: str) -> None:
    """Write a file whole or not at all, through a link if it is one."""
    place = path.resolve()
    beside = place.with_name(f".{place.name}.new")
    beside.write_text(text, encoding="utf-8")
    beside.chmod(place.stat().st_mode & 0o777)
    os.replace(beside, place)


def _whole(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"
