"""Tracebacks drawn by rich and IPython, rewritten as Python itself prints them. Pure.

rich draws a box and folds long paths at its border; a parser's complaint in a box becomes an `Error: ` line.
IPython prints the source around each line, and names a cell of a notebook where Python names a file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hostler.frozen import dataclass

HEADER = "Traceback (most recent call last):"

_GROUP = re.compile(r"\s*(?:[|+] )?(?:\+ )?Exception Group " + re.escape(HEADER))
_MARGIN = re.compile(r"\s*(?:\| ?|\+(?=[-+]))")
_TOP = re.compile(r"[╭┌+][─-]+(?: (?P<title>[^─]+?) [─-]+)?[╮┐+]")
_BOTTOM = re.compile(r"[╰└+][─-]+[╯┘+]")
_INNER = "╭┌╰└│|+"  # a box in the box: local variables
_RICH_FRAME = re.compile(r"(?P<file>.+):(?P<line>\d+)(?: in (?P<name>.+))?")
_AT_LINE = re.compile(r":\d+$")
_RICH_CODE = re.compile(r"[❱>]\s*\d+\s?(?P<code>.*)")
_IPYTHON = re.compile(r"(?P<kind>[A-Za-z_][\w.]*) +Traceback \(most recent call last\)")
_IPYTHON_FRAME = re.compile(
    r"(?P<cell>Cell In ?\[\d+\]), line (?P<at>\d+)(?:, in (?P<within>.+))?"
    r"|Input (?P<input>In ?\[\d+\]), in <cell line: (?P<row>\d+)>.*"
    r"|File (?P<file>.+?):(?P<line>\d+)(?:, in (?P<name>.+))?"
)
_IPYTHON_CODE = re.compile(r"-+> ?\d+ ?(?P<code>.*)")


@dataclass(frozen=True)
class _Box:
    title: str
    lines: tuple[str, ...]  # without the border
    width: int
    end: int  # the line after it


def plain(lines: Sequence[str]) -> list[str]:
    """The lines of a log, each drawn traceback in them as Python prints one."""
    made: list[str] = []
    lines, at = _ungrouped(lines), 0
    while at < len(lines):
        if _TOP.fullmatch(lines[at]) and (box := _box(lines, at)):
            at = _add_box(made, lines, box)
        elif (ipython := _IPYTHON.fullmatch(lines[at])) and (found := _ipython(lines, at, ipython["kind"])):
            made += found[0]
            at = found[1]
        else:
            made.append(lines[at])
            at += 1
    return made


def _ungrouped(lines: Sequence[str]) -> Sequence[str]:
    """The lines, those of an exception group without the margin that Python draws beside them."""
    if not any(_GROUP.fullmatch(line) for line in lines):
        return lines
    made, inside = list[str](), False
    for line in lines:
        if _GROUP.fullmatch(line):
            made.append(HEADER)
            inside = True
        elif inside and (margin := _MARGIN.match(line)):
            made += [] if margin[0].strip() == "+" else [line[margin.end() :]]
        else:
            made.append(line)
            inside = False
    return made


def _box(lines: Sequence[str], at: int) -> _Box | None:
    top = _TOP.fullmatch(lines[at])
    end = next((n for n in range(at + 1, len(lines)) if _BOTTOM.fullmatch(lines[n])), None)
    if top is None or end is None or not all(line[:1] in "│|" and line for line in lines[at + 1 : end]):
        return None
    return _Box(
        top["title"] or "", tuple(line[2:-1] for line in lines[at + 1 : end]), len(lines[at]), end + 1
    )


def _add_box(made: list[str], lines: Sequence[str], box: _Box) -> int:
    """Append what the box says; returns the line that comes next."""
    if box.title == "Error":
        made.append("Error: " + " ".join(" ".join(box.lines).split()))
        return box.end
    if box.title != HEADER.rstrip(":"):
        made += box.lines
        return box.end
    made += [HEADER, *_rich_frames(box)]
    end = box.end
    if end < len(lines) and _TOP.fullmatch(lines[end]) and (syntax := _box(lines, end)):
        made += _rich_frames(syntax)  # the line that does not compile
        end = syntax.end
    if end < len(lines):
        made.append(lines[end])
        end += 1
        while end < len(lines) and _wraps(lines[end - 1], lines[end], box.width):
            made[-1] += f" {lines[end]}"
            end += 1
    return end


def _rich_frames(box: _Box) -> list[str]:
    """Frames of a box. A place that is longer than a line goes on in the next one."""
    made, place, folded = list[str](), "", False
    for line in (*box.lines, ""):
        text = line.rstrip()
        if text[:1] and text[0] not in " ❱" + _INNER:
            is_apart = not folded or (text.startswith("in ") and _AT_LINE.search(place))
            place += f" {text}" if place and is_apart else text
            folded = len(text) >= box.width - 4
            continue
        made += _rich_frame(place)
        place = ""
        if made and (code := _RICH_CODE.match(text)):
            made.append(f"    {code['code'].replace('│', ' ').strip()}")
        elif (bare := _RICH_FRAME.fullmatch(text.strip())) and not bare["name"]:
            made += _rich_frame(text.strip())
    return made


def _rich_frame(place: str) -> list[str]:
    frame = _RICH_FRAME.fullmatch(place)
    if frame is None:
        return []
    within = f", in {frame['name']}" if frame["name"] else ""
    return [f'  File "{frame["file"]}", line {frame["line"]}{within}']


def _wraps(line: str, after: str, width: int) -> bool:
    """Whether the next line is the rest of this one: its first word would not have fitted."""
    words = after.split()
    return bool(words) and not after[0].isspace() and len(line) + 1 + len(words[0]) > width


def _ipython(lines: Sequence[str], at: int, kind: str) -> tuple[list[str], int] | None:
    made = [HEADER]
    for n in range(at + 1, len(lines)):
        line = lines[n]
        if line == kind or line.startswith(f"{kind}: "):
            return [*made, line], n + 1
        if frame := _IPYTHON_FRAME.fullmatch(line):
            made.append(_ipython_frame(frame))
        elif code := _IPYTHON_CODE.match(line):
            made.append(f"    {code['code'].strip()}")
    return None


def _ipython_frame(frame: re.Match[str]) -> str:
    if frame["file"]:
        within = f", in {frame['name']}" if frame["name"] else ""
        return f'  File "{frame["file"]}", line {frame["line"]}{within}'
    within = f", in {frame['within']}" if frame["within"] else ""
    return f"  {frame['cell'] or 'Cell ' + frame['input']}, line {frame['at'] or frame['row']}{within}"
