"""Compares two runs of one script, to the bit. Pure."""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping, Sequence

from hostler.drill.evidence import Curve, Evidence
from hostler.frozen import dataclass

OWN = "system/"  # what the worker measures, different each time


@dataclass(frozen=True)
class Difference:
    """`what` is metric, file or line; `name` which; `step` the first at which a metric differs."""

    what: str
    name: str
    detail: str
    step: int | None = None


def compare(one: Evidence, other: Evidence) -> list[Difference]:
    """All differences. What is printed counts only where no metric could be read from it."""
    differences = [*_metrics(one.curves, other.curves), *_files(one.files, other.files)]
    if not _names(one.curves):
        differences += _lines(one.lines, other.lines)
    return differences


def without(differences: Sequence[Difference], control: Sequence[Difference]) -> list[Difference]:
    """Differences whose subject is the same in two undisturbed runs."""
    noisy = {(d.what, d.name) for d in control}
    return [d for d in differences if (d.what, d.name) not in noisy]


def _names(curves: Mapping[str, Curve]) -> list[str]:
    return sorted(name for name in curves if not name.startswith(OWN))


def _metrics(one: Mapping[str, Curve], other: Mapping[str, Curve]) -> list[Difference]:
    differences = []
    for name in dict.fromkeys([*_names(one), *_names(other)]):
        step, detail = _curve(one.get(name, {}), other.get(name, {}))
        if step is not None:
            differences.append(Difference("metric", name, detail, step))
    return differences


def _curve(one: Curve, other: Curve) -> tuple[int | None, str]:
    for step in sorted({*one, *other}):
        if step not in other:
            return step, "is missing"
        if step not in one:
            return step, "was not in the undisturbed run"
        if _bits(one[step]) != _bits(other[step]):
            return step, f"is {other[step]!r}, undisturbed {one[step]!r}"
    return None, ""


def _bits(value: float) -> bytes:
    return b"nan" if value != value else struct.pack("<d", value)


def _files(one: Mapping[str, Mapping[str, str]], other: Mapping[str, Mapping[str, str]]) -> list[Difference]:
    differences = []
    for name in sorted({*one, *other}):
        if name not in other:
            differences.append(Difference("file", name, "is missing"))
        elif name not in one:
            differences.append(Difference("file", name, "was not left by the undisturbed run"))
        elif one[name] != other[name]:
            differences.append(Difference("file", name, _part(one[name], other[name])))
    return differences


def _part(one: Mapping[str, str], other: Mapping[str, str]) -> str:
    differing = [key for key in sorted({*one, *other}) if one.get(key) != other.get(key)]
    if differing == [""]:
        return "differs"
    shown = ", ".join(differing[:5]) + (", …" if len(differing) > 5 else "")
    return f"differs in {len(differing)} of {len({*one, *other})} parts: {shown}"


def _lines(one: Sequence[str], other: Collection[str]) -> list[Difference]:
    """A line of the undisturbed run that the other never printed. Its own further lines do not count:
    it may say that it goes on."""
    printed = set(other)
    return [
        Difference("line", line, "was never printed")
        for line in dict.fromkeys(one)
        if line not in printed and any(letter.isdigit() for letter in line)
    ]
