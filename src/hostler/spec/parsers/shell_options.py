"""Options of a shell script: the letters of `getopts`, and the `--name)` arms of a `case`. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from hostler.spec.parsers.option import ONE_VALUE, Option
from hostler.spec.style import Form

_GETOPTS = re.compile(r"""\bgetopts\s+["']?:?([A-Za-z0-9:]+)["']?\s+\w+""")
_ARM = re.compile(
    r"^[ \t(]*((?:--?[A-Za-z][\w-]*(?:=\*)?)(?:[ \t]*\|[ \t]*--?[A-Za-z][\w-]*(?:=\*)?)*)\)(.*?);;",
    re.M | re.S,
)
_TAKES = re.compile(r"\$\{?2|\bshift\s+2\b")


def options(text: str, shown: str) -> Iterator[Option]:
    text = re.sub(r"^\s*#.*$", "", text, flags=re.M)
    letters = {match[1] for match in _GETOPTS.finditer(text)}
    if len(letters) == 1:
        yield from _letters(letters.pop(), text, shown)
    elif not letters:
        yield from _arms(text, shown)


def _letters(letters: str, text: str, shown: str) -> Iterator[Option]:
    for letter, colon in re.findall(r"([A-Za-z0-9])(:?)", letters):
        bare = Option((f"-{letter}",), letter, Form(option=f"-{letter}"), where=shown)
        yield _valued(bare, _body(letter, text)) if colon else _flag(bare)


def _arms(text: str, shown: str) -> Iterator[Option]:
    for match in _ARM.finditer(text):
        names = [name.strip() for name in match[1].split("|")]
        tied = all(name.endswith("=*") for name in names)
        plain = sorted((n.removesuffix("=*") for n in names), key=lambda name: not name.startswith("--"))
        form = Form(option=plain[0], assign="equals" if tied else "")
        bare = Option(tuple(plain), plain[0].lstrip("-").replace("-", "_"), form, where=shown)
        if tied or _TAKES.search(match[2]):
            yield _valued(bare, match[2])
        elif "shift" in match[2] or "=" in match[2]:
            yield _flag(bare)


def _body(letter: str, text: str) -> str:
    arm = re.search(rf"^[ \t(]*{letter}\)(.*?);;", text, re.M | re.S)
    return arm[1] if arm else ""


def _valued(bare: Option, arm: str) -> Option:
    """An option with a value; a list is repeated where the arm appends, joined where it splits at commas."""
    lists = "repeat" if re.search(r"\w\+=\(", arm) else "comma" if re.search(r"IFS=['\"]?,|//,/", arm) else ""
    form = replace(bare.form, booleans="value", lists=lists)
    return replace(
        bare,
        form=form,
        accepts=ONE_VALUE | ({"repeat"} if lists == "repeat" else set()),
        how="with one value",
    )


def _flag(bare: Option) -> Option:
    form = replace(bare.form, booleans="bare", true=(bare.form.option,), false=())
    return replace(bare, form=form, accepts=frozenset({"bare"}), how="as a flag")
