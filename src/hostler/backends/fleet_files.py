"""Sections for `fleets:` of hostler.yaml, from a platform's `fleet.yaml` and what its `discovery.py` finds.

`fleet.yaml` is a whole hostler.yaml with comments, ready but for the user's own names. The fleet that its
`fleet:` names is the section; found values take the place of its examples, comments stay.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from hostler.backends import registry
from hostler.errors import UsageError
from hostler.frozen import dataclass

FILL_IN = "FILL IN"


@dataclass(frozen=True)
class Discovery:
    """A platform that this machine can use: how one knows, and values for keys of its fleet."""

    found: str
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Section:
    """A fleet for hostler.yaml: lines as they stand below `fleets:`, two spaces in."""

    fleet: str
    lines: tuple[str, ...]
    store: str  # an example of one that its workers reach
    found: str = ""  # empty: nothing of it was found here, the values are examples

    @property
    def text(self) -> str:
        return "".join(f"{line}\n" for line in self.lines)

    @property
    def to_fill_in(self) -> list[str]:
        """Keys whose values are still examples."""
        return [line.split(":")[0].strip() for line in self.lines if FILL_IN in line]


def discovered(name: str) -> Discovery | None:
    """The facts that a platform finds on this machine; None if nothing, or if it cannot tell."""
    module = registry.part(name, "discovery")
    discovery: Discovery | None = module.discover() if module else None
    return discovery


def example(name: str) -> str:
    """The whole example file of a platform."""
    try:
        return Path(registry.data_file(name, "fleet.yaml")).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UsageError(f"backend {name} has no example of a fleet", hint="docs/hostler-yaml.md") from None


def section(name: str, found: Discovery | None) -> Section:
    """The fleet of a platform's example, with found values in place of its own. Pure but for the file."""
    text = example(name)
    whole = yaml.safe_load(text)
    fleet = whole["fleet"]
    lines = text.splitlines()
    first = next(n for n, line in enumerate(lines) if re.match(rf"  {re.escape(fleet)}:", line))
    after = range(first + 1, len(lines))
    last = next((n for n in after if not lines[n].startswith("    ")), len(lines))
    told = [line for line in lines if line.startswith("# ")]
    own = [_filled(line, found.values if found else {}) for line in lines[first:last]]
    above = [f"  {line}" for line in told]
    return Section(fleet, (*above, *own), whole["store"], found.found if found else "")


_LINE = re.compile(r"(?P<head> {4}(?:# )?(?P<key>\w+): .*?)(?P<comment>\s+#.*)?")


def _filled(line: str, values: Mapping[str, Any]) -> str:
    match = _LINE.fullmatch(line)
    if match is None or match["key"] not in values:
        return line
    head = f"    {match['key']}: {_flow(values[match['key']])}"
    comment = re.sub(rf"# {FILL_IN}:? ?", "# ", match["comment"] or "").rstrip(" #")
    gap = len(match["head"]) + len(comment) - len(comment.lstrip())  # where the comment stood
    return f"{head:{gap}}{comment.lstrip()}" if len(head) < gap else f"{head}  {comment.lstrip()}".rstrip()


def _flow(value: Any) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=10_000)
    return text.removesuffix("\n").removesuffix("\n...").strip()
