"""Tasks of dstack. Pure.

Their GPUs are `A100:80GB:2`, `24GB`, `nvidia:16GB..24GB:1..2`, or a table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hostler.frozen import dataclass
from hostler.spec.formats.machines import Machines
from hostler.spec.formats.tasks.carried import Carried, table

# Models that a fleet can name, with the gigabytes of each.
MODELS = {"P4": 8, "T4": 16, "P100": 16, "V100": 16, "L4": 24, "A100": 40, "A100-80GB": 80, "H100": 80}
_VENDORS = ("nvidia", "amd", "google", "intel", "tenstorrent")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([MGT])B", re.IGNORECASE)
_RANGE = re.compile(r"([0-9]{0,6})(?:(\.\.)([0-9]{0,6}))?")

_SPOT = {"spot": True, "on-demand": False, "auto": "prefer"}


def read(given: Mapping[str, Any], where: str) -> Machines:
    made = Carried(where)
    made.left(given, ("type", "name", "env", "commands", "resources", "nodes", "spot_policy", "max_duration"))
    made.variables(given.get("env"))
    made.fleet["backend"] = "gce"
    if (policy := str(given.get("spot_policy"))) in _SPOT:
        made.fleet["spot"] = _SPOT[policy]
    asked = table(given, "resources")
    made.left(asked, ("gpu", "cpu", "memory", "disk"), "resources.")
    for key, ours in (("cpu", "cpus"), ("memory", "memory")):
        if asked.get(key):
            made.fleet[ours] = _least(asked[key])
    disk = asked.get("disk")
    if size := re.match(r"\d+", str(disk.get("size") if isinstance(disk, Mapping) else disk or "")):
        made.fleet["disk"] = f"{size[0]}GB"
    if asked.get("gpu") is not None:
        wish = gpus(asked["gpu"])
        made.notes += wish.notes
        made.resources |= {"gpus": wish.count} if wish.count else {}
        named = [f"{model}:{wish.count}" for model in wish.models if wish.count]
        made.fleet |= {"gpu": named[0] if len(named) == 1 else named} if named else {}
        if wish.count and not named and not wish.notes:
            made.notes.append("resources.gpu: no model is named: name one as `gpu` of the fleet")
    made.nodes(given.get("nodes"))
    if given.get("max_duration") not in (None, "off"):
        made.project["limits"] = {"time": given["max_duration"]}
    commands = given.get("commands")
    made.script(
        "\n".join(str(command) for command in commands) if isinstance(commands, list) else str(commands or "")
    )
    return made.machines("dstack", given.get("name"))


def _least(value: Any) -> str:
    """`8..` or `16GB..64GB` as at least the first."""
    first, dots, _ = str(value).partition("..")
    return f"{first}+" if dots else first


@dataclass(frozen=True)
class GpuWish:
    """`models` are any of them; empty where none is known that fits."""

    models: tuple[str, ...] = ()
    count: int = 1
    notes: tuple[str, ...] = ()


def gpus(given: Any) -> GpuWish:
    """The GPUs that a `gpu:` of dstack asks for."""
    if isinstance(given, Mapping):
        parts = [str(given.get("memory") or ""), str(given.get("count") or "")]
        names = given.get("name")
        named = [str(name) for name in names] if isinstance(names, list) else str(names or "").split(",")
        others = tuple(
            f"resources.gpu.{key}: not carried over"
            for key in given
            if key not in ("name", "count", "memory", "vendor")
        )
        return _wish(named, parts, others)
    parts = [part.strip() for part in str(given).split(":")]
    plain = [part for part in parts if _SIZE.search(part) or _RANGE.fullmatch(part)]
    return _wish([word for part in parts if part not in plain for word in part.split(",")], plain)


def _wish(named: list[str], parts: list[str], notes: tuple[str, ...] = ()) -> GpuWish:
    names = [one.strip().upper() for one in named if one.strip() and one.strip().lower() not in _VENDORS]
    memory = next((part for part in parts if _SIZE.search(part)), "")
    counts = [match for part in parts if part and (match := _RANGE.fullmatch(part))]
    count = int(counts[0][1] or 1) if counts else 1
    if counts and counts[0][2]:
        notes = (*notes, f"resources.gpu: {counts[0][0]} of them: {count} are asked for")
    if not memory:
        return GpuWish(tuple(names), count, notes)
    least, most = _sizes(memory)
    found = [
        model
        for model, size in MODELS.items()
        if least <= size <= most and (not names or model in names or model.partition("-")[0] in names)
    ]
    found += [name for name in names if name not in {model.partition("-")[0] for model in MODELS}]
    if not found:
        kind = f"{', '.join(names)} with {memory}" if names else memory
        notes = (
            *notes,
            f"resources.gpu: {kind}: no GPU is known that has it: name one as `gpu` of the fleet",
        )
    return GpuWish(tuple(dict.fromkeys(found)), count, notes)


def _sizes(text: str) -> tuple[float, float]:
    """Gigabytes, at least and at most, of `24GB`, `16GB..24GB`, `40GB..` or `..24GB`."""
    first, dots, last = text.partition("..")
    least = _gigabytes(first) or 0.0
    if not dots:
        return least, least
    return least, _gigabytes(last) or float("inf")


def _gigabytes(text: str) -> float:
    match = _SIZE.search(text)
    return float(match[1]) * {"M": 0.001, "G": 1, "T": 1000}[match[2].upper()] if match else 0.0
