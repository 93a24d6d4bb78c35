"""A launch's history of machines as a file: a JSON line for each event, times since the launch.

The first line holds `format` and `scale`: how many of the trace's seconds passed in one of the workers' (an
emulated platform's clock may run faster). What the store and the settings know is in workers' seconds.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeVar

from hostler.errors import SpecError
from hostler.frozen import dataclass
from hostler.simulate.stock import Outage

FORMAT = 1
_HINT = "docs/simulate.md shows the form of a trace"
T = TypeVar("T")


@dataclass(frozen=True)
class MachineStart:
    """Machine number `vm` cost money from `at` on; its worker took `boots` seconds more, if it ever began."""

    vm: int
    at: float
    boots: float | None = None
    zone: str = ""


@dataclass(frozen=True)
class MachineLoss:
    """It was taken away: told at `at`, or not at all, and off at `gone`."""

    vm: int
    at: float
    gone: float
    notice: bool = True


@dataclass(frozen=True)
class Leave:
    """It left by itself at `at`, having nothing to do, and was off at `gone`."""

    vm: int
    at: float
    gone: float


@dataclass(frozen=True)
class Trace:
    scale: float = 1.0
    starts: tuple[MachineStart, ...] = ()
    losses: tuple[MachineLoss, ...] = ()
    leaves: tuple[Leave, ...] = ()
    outages: tuple[Outage, ...] = ()


def of_teams(trace: Trace, nodes: int) -> Trace:
    """The same for machines that go together: so many are one, lost with any of them, ready with the last."""
    if nodes == 1:
        return trace
    return replace(
        trace,
        starts=tuple(
            replace(machine_start, vm=machine_start.vm // nodes)
            for machine_start in trace.starts
            if machine_start.vm % nodes == nodes - 1
        ),
        losses=tuple(replace(loss, vm=loss.vm // nodes) for loss in trace.losses),
        leaves=tuple(replace(leaf, vm=leaf.vm // nodes) for leaf in trace.leaves),
    )


def strangers(trace: Trace, zones: Collection[str], machines: int) -> Iterator[str]:
    """Warn of zones and machines in the trace that no fleet has."""
    for zone in dict.fromkeys(outage.zone for outage in trace.outages):
        if zone not in (*zones, "*"):
            yield f"the trace has a stockout of {zone}, which no simulated fleet uses: it has no effect"
    last = max((loss.vm for loss in trace.losses), default=0)
    if last >= machines:
        yield f"the trace takes VM {last} away, but no simulated fleet has so many: it has no effect"


def write(trace: Trace, path: Path) -> None:
    lines: list[dict[str, Any]] = [{"format": FORMAT, "scale": trace.scale}]
    lines += [{"kind": "start", **asdict(machine_start)} for machine_start in trace.starts]
    lines += [{"kind": "loss", **asdict(loss)} for loss in trace.losses]
    lines += [{"kind": "leave", **asdict(leaf)} for leaf in trace.leaves]
    lines += [{"kind": "stockout", **_plain(asdict(outage))} for outage in trace.outages]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")


def read(path: Path) -> Trace:
    """Read a trace; SpecError names the line that is wrong."""
    found: dict[type, list[Any]] = {MachineStart: [], MachineLoss: [], Leave: [], Outage: []}
    scale = 1.0
    for where, line in _lines(path):
        if "format" in line:
            if line["format"] != FORMAT:
                raise SpecError(f"format {line['format']} is not {FORMAT}", _HINT, where=where)
            scale = _taken(line, where, lambda one: _number(one, "scale", 1.0))
            if not scale:
                raise SpecError("scale is 0", _HINT, where=where)
            continue
        made = _taken(line, where, _entry)
        found[type(made)].append(made)
    if not any(found.values()):
        raise SpecError(f"{path}: the trace has no events", _HINT)
    starts, losses, leaves = (sorted(found[kind], key=_when) for kind in (MachineStart, MachineLoss, Leave))
    return Trace(scale, tuple(starts), tuple(losses), tuple(leaves), tuple(found[Outage]))


def _lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        said = error.strerror if isinstance(error, OSError) else "it is not a text file"
        raise SpecError(f"{path}: {said}", _HINT) from None
    for n, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise SpecError("not a line of a trace", _HINT, where=f"{path}:{n}")
        yield f"{path}:{n}", found


def _taken(line: Mapping[str, Any], where: str, make: Callable[[Mapping[str, Any]], T]) -> T:
    try:
        return make(line)
    except (KeyError, ValueError) as error:
        text = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)
        raise SpecError(text, _HINT, where=where) from None


def _entry(line: Mapping[str, Any]) -> MachineStart | MachineLoss | Leave | Outage:
    kind = line["kind"]
    if kind == "stockout":
        begins = _number(line, "begins")
        ends = math.inf if line.get("ends") is None else _number(line, "ends")
        if ends <= begins:
            raise ValueError("the stockout ends before it begins")
        return Outage(str(line["zone"]), begins, ends)
    if kind not in ("start", "loss", "leave"):
        raise ValueError(f"{kind!r} is not start, loss, leave or stockout")
    vm, at = line["vm"], _number(line, "at")
    if isinstance(vm, bool) or not isinstance(vm, int) or vm < 0:
        raise ValueError(f"vm: {vm!r} is not the number of a machine (0, 1, 2, …)")
    if kind == "start":
        boots = _number(line, "boots") if line.get("boots") is not None else None
        return MachineStart(vm, at, boots, str(line.get("zone", "")))
    gone = _number(line, "gone", at)
    if gone < at:
        raise ValueError("`gone` is earlier than `at`")
    return (
        Leave(vm, at, gone) if kind == "leave" else MachineLoss(vm, at, gone, bool(line.get("notice", True)))
    )


def _number(line: Mapping[str, Any], name: str, default: float | None = None) -> float:
    value = line.get(name, default) if default is not None else line[name]
    if value is None and default is not None:
        return default
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
        raise ValueError(
            f"{name}: {value!r} is not a number {'above zero' if name == 'scale' else 'of seconds'}"
        )
    return float(value)


def _when(one: MachineStart | MachineLoss | Leave) -> float:
    return one.at


def _plain(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: None if value == math.inf else value for name, value in record.items()}
