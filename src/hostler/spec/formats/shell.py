"""Shell scripts of other tools, as far as they are a list of simple commands. Pure; nothing is ever run.

A script with loops, conditions, functions or documents inside it is not taken apart.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

_CONTROL = re.compile(r"(if|for|while|until|case|select|function)\b|\w+\s*\(\)|.*<<|[{(]")
_SET = re.compile(r"(?:export\s+)?([A-Za-z_]\w*)=(.*)")
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_FILE = r"(?:'[^']*'|\"[^\"]*\"|\S+)"
_OUTPUT = re.compile(rf"\s*(?:2>&1|&>>?\s*{_FILE}|[12]?>>?\s*{_FILE}|\|\s*tee\s.*|&\s*$)")
_GIVEN = re.compile(
    r"""([A-Za-z_]\w*=(?:'[^']*'|"(?:\\.|[^"\\])*"|\$\([^)]*\)|`[^`]*`|\\.|[^\s'"`\\])*)(?:\s+|$)"""
)


def commands(text: str) -> list[str] | None:
    """Its commands in order, without comments; None if it has more than commands."""
    lines = text.replace("\r\n", "\n").replace("\\\n", " ").splitlines()
    plain = [line.strip() for line in lines if line.strip() and not line.strip().startswith("#")]
    if any(_CONTROL.match(line) for line in plain):
        return None
    return [one for line in plain for one in split(line)]


def split(line: str) -> list[str]:
    """The commands of a line that follow each other (`&&`, `;`); quotes hold theirs together."""
    found, quote, rest = [""], "", line
    while rest:
        one = rest[0]
        if quote:
            quote = "" if one == quote else quote
        elif one in "'\"":
            quote = one
        elif rest.startswith("&&") or one == ";":
            found.append("")
            rest = rest[2 if one == "&" else 1 :]
            continue
        elif one == "#" and found[-1].endswith((" ", "\t")):
            break
        found[-1] += one
        rest = rest[1:]
    return [part.strip() for part in found if part.strip()]


def apart(command: str) -> list[str]:
    """The assignments of a command, one by one, then the rest: `A=1 B=2 program`, `export A=1 B=2`."""
    exports = re.match(r"(?:export|env)\s+(?=\w+=)", command)
    found, rest = list[str](), command[exports.end() :] if exports else command
    while match := _GIVEN.match(rest):
        found.append(match[1])
        rest = rest[match.end() :]
    return [*found, rest] if rest else found


def words(command: str) -> list[str]:
    """As a shell would split it; [] where it would not."""
    try:
        return shlex.split(command)
    except ValueError:
        return []


def assignment(command: str) -> tuple[str, str] | None:
    """`NAME=value` or `export NAME=value`, the value as it would be without variables."""
    match = _SET.fullmatch(command)
    if not match:
        return None
    value = words(match[2])
    return (match[1], value[0] if value else "") if len(value) <= 1 else None


def filled(text: str, known: Mapping[str, str]) -> str:
    """With the variables that are known; others stay as they are."""
    return _VARIABLE.sub(lambda found: known.get(found[1] or found[2], found[0]), text)


def unknown(text: str) -> list[str]:
    """Names of the variables in it."""
    return [match[1] or match[2] for match in _VARIABLE.finditer(text)]


def is_plain(command: str) -> bool:
    """Whether it needs no shell: no variable, no pipe, nothing that is run to know a word."""
    try:
        signs = list(shlex.shlex(command, posix=False, punctuation_chars=True))
    except ValueError:
        return False
    return (
        not unknown(command)
        and not is_computed(command)
        and not any(set(sign) <= set("();<>|&") for sign in signs)
    )


def is_computed(text: str) -> bool:
    """Whether a command is run to know it: `$(date)`."""
    return "$(" in text or "`" in text


def without_output(command: str) -> str:
    """The command alone: where its output goes, and that it is in the background, is not part of it."""
    return _OUTPUT.sub("", command).removeprefix("nohup ").strip()
