"""Tasks of SkyPilot. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hostler.spec.formats.machines import Machines
from hostler.spec.formats.tasks.carried import Carried, table, whole_number

_CLOUDS = {"gcp": "gce", "kubernetes": "kubernetes", "k8s": "kubernetes"}


def read(given: Mapping[str, Any], where: str) -> Machines:
    made = Carried(where)
    made.left(given, ("name", "run", "setup", "envs", "secrets", "resources", "num_nodes", "workdir"))
    if given.get("workdir") not in (None, "."):
        made.notes.append(f"workdir: {given['workdir']}: put {where} there; hostler packs its own folder")
    made.variables(given.get("envs"))
    made.variables(dict.fromkeys(table(given, "secrets")))
    asked = _chosen(made, table(given, "resources"))
    known = ("accelerators", "cpus", "memory", "use_spot", "disk_size", "cloud", "infra", "region", "zone")
    made.left(asked, (*known, "job_recovery"), "resources.")
    _retries(made, asked.get("job_recovery"))
    infra = _infra(asked)
    if infra[0] not in _CLOUDS:
        made.notes.append(f"resources: {infra[0]} is not a platform of hostler's: the fleet is on Google's")
    made.fleet["backend"] = _CLOUDS.get(infra[0], "gce")
    zone = asked.get("zone") or asked.get("region") or next((one for one in infra[1:2] if one != "*"), None)
    if made.fleet["backend"] == "gce":
        made.fleet |= {"zones": [str(zone)]} if zone and infra[0] == "gcp" else {}
        made.fleet |= {"spot": bool(asked["use_spot"])} if "use_spot" in asked else {}
        made.fleet |= (
            {"disk": f"{whole_number(asked['disk_size'])}GB"} if whole_number(asked.get("disk_size")) else {}
        )
        made.fleet |= {"cpus": str(asked["cpus"])} if asked.get("cpus") else {}
        made.fleet |= {"memory": _memory(asked["memory"])} if asked.get("memory") else {}
    else:
        made.resources |= {"cpus": cpus} if (cpus := whole_number(str(asked.get("cpus")).rstrip("+"))) else {}
        made.resources |= {"memory": _memory(asked["memory"]).rstrip("+")} if asked.get("memory") else {}
        of_vms = ("use_spot", "disk_size")
        made.notes += [f"resources.{key}: not carried over" for key in of_vms if asked.get(key) is not None]
    if infra[0] != "gcp":
        places = [key for key in ("region", "zone") if asked.get(key)]
        made.notes += [f"resources.{key}: not carried over" for key in places]
    _accelerators(made, asked.get("accelerators"))
    made.nodes(given.get("num_nodes"))
    made.script(str(given.get("run") or ""), str(given.get("setup") or ""))
    return made.machines("SkyPilot", given.get("name"))


def _chosen(made: Carried, asked: Mapping[str, Any]) -> Mapping[str, Any]:
    """What is asked for, with the first of several alternatives that is on a platform of hostler's; GPUs are
    those of all of them there."""
    key = "any_of" if "any_of" in asked else "ordered"
    given = asked.get(key)
    offered = [one for one in given if isinstance(one, Mapping)] if isinstance(given, list) else []
    if not offered:
        return asked
    common = {name: value for name, value in asked.items() if name != key}
    whole = [{**common, **one} for one in offered]
    first = next((one for one in whole if _platform(one) in _CLOUDS), whole[0])
    there = [one for one in whole if _platform(one) == _platform(first)]
    gpus = [wish for one in there for wish in _wishes(one.get("accelerators"))]
    same = _without_gpus(first)
    for alternative, one in zip(offered, whole, strict=True):
        if one not in there or _without_gpus(one) != same:
            said = ", ".join(f"{name}: {value}" for name, value in alternative.items())
            made.notes.append(f"resources.{key}: {said}: not carried over")
    return {**same, "accelerators": list(dict.fromkeys(gpus))} if gpus else same


def _without_gpus(asked: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in asked.items() if name != "accelerators"}


def _infra(asked: Mapping[str, Any]) -> list[str]:
    """The platform, its region and zone: `gcp/us-central1/us-central1-a`."""
    return str(asked.get("infra") or asked.get("cloud") or "gcp").lower().split("/")


def _platform(asked: Mapping[str, Any]) -> str:
    return _infra(asked)[0]


def _retries(made: Carried, given: Any) -> None:
    """How often a task that fails by itself is tried again; one that is preempted always is."""
    count = whole_number(given.get("max_restarts_on_errors")) if isinstance(given, Mapping) else None
    made.project |= {"retries": count} if count is not None else {}


def _accelerators(made: Carried, given: Any) -> None:
    """`A100:4`, `{A100: 4}`, `[A100:1, L4:1]`; `:1` or `24GB` names no model."""
    wishes = _wishes(given)
    matches = [re.fullmatch(r"([A-Za-z][\w-]*)?:?([0-9]{1,6})?", wish) for wish in wishes]
    made.notes += [
        f"{one}: not carried over" for one, known in zip(wishes, matches, strict=True) if not known
    ]
    named = [f"{match[1].upper()}:{match[2] or 1}" for match in matches if match and match[1]]
    counts = [int(match[2] or 1) for match in matches if match]
    if counts:
        made.resources["gpus"] = max(counts)
    if made.fleet["backend"] == "gce" and named:
        made.fleet["gpu"] = named[0] if len(named) == 1 else named
    elif named:
        made.notes.append(f"{named[0]}: pods are given any GPU: choose by `node_selector`")


def _wishes(given: Any) -> list[str]:
    if isinstance(given, Mapping):
        return [f"{name}:{count}" for name, count in given.items()]
    return [str(one) for one in given] if isinstance(given, list) else [] if given is None else [str(given)]


def _memory(value: Any) -> str:
    """SkyPilot's `32+` is in gigabytes."""
    match = re.fullmatch(r"(\d+)(\+?)", str(value))
    return f"{match[1]}GB{match[2]}" if match else str(value)
