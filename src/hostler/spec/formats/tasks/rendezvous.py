"""Options by which torchrun's nodes find each other, in scripts of other platforms. Pure.

There a script passes on variables of the platform: how many nodes there are, which of them this is, and where
the first one listens. hostler tells torchrun all of it by torchrun's own variables, so these options go, and
with them assignments that serve nothing else.
"""

from __future__ import annotations

import re

PLATFORMS = re.compile(r"\$\{?((?:SKYPILOT|DSTACK|PET)_\w+)")
_TORCHRUN = re.compile(r"\btorchrun\b|\btorch\.distributed\.(?:run|launch)\b")
_NAMES = (
    "nnodes|node[-_]rank|nproc[-_]per[-_]node|master[-_]addr|master[-_]port|rdzv[-_](?:id|backend|endpoint)"
)
_VALUE = r"""(?:"[^"]*"|'[^']*'|\$\([^()]*\)|[^\s"';&|])+"""
_OPTION = re.compile(rf"\s+--(?P<name>{_NAMES})(?:=|\s+){_VALUE}")
_ASSIGNMENT = re.compile(
    rf"(?m)^[ \t]*(?:export[ \t]+)?(?P<name>[A-Za-z_]\w*)=(?P<value>{_VALUE})[ \t]*(?:\n|\Z)"
)


def without(text: str) -> tuple[str, list[str]]:
    """The script with a torchrun that leaves its nodes to hostler, and the names of the options that went;
    the script as it was if no torchrun of it gets a variable of another platform's."""
    lines = re.sub(r"[ \t]*\\\n[ \t]*", " ", text).split("\n")
    named = _from_platform(text)
    gone: list[str] = []
    for n, line in enumerate(lines):
        if _TORCHRUN.search(line) and any(_speaks(found[0], named) for found in _OPTION.finditer(line)):
            gone += [found["name"].replace("-", "_") for found in _OPTION.finditer(line)]
            lines[n] = _OPTION.sub("", line)
    return (_without_unused("\n".join(lines), named), gone) if gone else (text, [])


def _from_platform(text: str) -> list[str]:
    """Variables of the script that it makes of the platform's."""
    named: list[str] = []
    for found in _ASSIGNMENT.finditer(text):
        if _speaks(found["value"], named):
            named.append(found["name"])
    return named


def _speaks(text: str, named: list[str]) -> bool:
    return bool(PLATFORMS.search(text)) or any(_uses(text, name) for name in named)


def _uses(text: str, name: str) -> bool:
    return bool(re.search(rf"\$\{{?{name}\b", text))


def _without_unused(text: str, named: list[str]) -> str:
    for name in reversed(named):
        if not _uses(text, name):
            text = _ASSIGNMENT.sub(lambda found: "" if found["name"] == name else found[0], text)  # noqa: B023
    return text
