"""Machines in files of other tools, as keys of hostler.yaml; SpecError for a value that none has. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from hostler.errors import SpecError
from hostler.frozen import dataclass
from hostler.spec.formats import startup, stateful_set
from hostler.spec.names import slug

Read = Callable[[str], "str | None"]  # a file beside it, by its name


@dataclass(frozen=True)
class Machines:
    """`project` is a part of hostler.yaml, `parameters` are a sweep's; files with secrets are hidden."""

    tool: str
    project: dict[str, Any]
    notes: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()  # files beside it, by name
    hides_itself: bool = False
    parameters: dict[str, Any] = field(default_factory=dict)


def is_it(value: Any) -> bool:
    return isinstance(value, Mapping) and (_is_cloudl(value) or _is_gke(value))


def recognise(value: Any, where: str = "", beside: Read = lambda name: None) -> Machines | None:
    """`where` is the file, for what is wrong in it."""
    if not is_it(value):
        return None
    return _cloudl(value, where) if _is_cloudl(value) else _gke(value, where, beside)


def _is_cloudl(value: Mapping[str, Any]) -> bool:
    return "zones" in value and any(key in value for key in ("sourceImage", "preemptible", "name_prefix"))


def _is_gke(value: Mapping[str, Any]) -> bool:
    return "cloud_storage_bucket_name" in value and "worker_count" in value


def _cloudl(given: Mapping[str, Any], where: str) -> Machines:
    """A fleet on Google Compute Engine."""
    zones = [given["zones"]] if isinstance(given["zones"], str) else given["zones"]
    if not isinstance(zones, list) or not zones or not all(zone and isinstance(zone, str) for zone in zones):
        raise _wrong(given, "zones", "not a list of zones", 'for example ["us-central1-a"]', where)
    fleet: dict[str, Any] = {"backend": "gce", "zones": list(zones)}
    if given.get("gpu"):
        model = str(given["gpu"]).lower().removeprefix("nvidia-").removeprefix("tesla-")
        fleet["gpu"] = f"{model.upper()}:{_count(given, 'gpu_count', where) or 1}"
    if cpus := _count(given, "cpu_count", where):
        fleet["machine"] = f"n1-standard-{cpus}"
    image = str(given.get("sourceImage") or "")
    if image and not _OLD.search(image):
        fleet["image"] = image
    if disk := _count(given, "diskSizeGb", where):
        fleet["disk"] = f"{disk}GB"
    if given.get("preemptible") is not None:
        fleet["spot"] = _switch(given, "preemptible", where)
    name = slug(str(given.get("name_prefix") or "gce"))
    notes = [f"{key}: not carried over" for key in given if key not in _CLOUDL]
    if image and "image" not in fleet:
        notes.append(f"image: {image} has no Python 3.10, which workers need: they get one that has it")
    return Machines("clouDL", {"fleets": {name: fleet}}, tuple(notes))


def _count(given: Mapping[str, Any], key: str, where: str) -> int:
    """A number of things, which may be written as text; 0 where none is given."""
    value = given.get(key)
    if value in (None, ""):
        return 0
    if isinstance(value, bool) or not re.fullmatch(r"[0-9]{1,9}", str(value)):
        raise _wrong(given, key, "not a whole number", "for example 4", where)
    return int(value)


def _switch(given: Mapping[str, Any], key: str, where: str) -> bool:
    found = {"true": True, "false": False}.get(str(given[key]).lower())
    if found is None:
        raise _wrong(given, key, "neither true nor false", "true or false", where)
    return found


def _wrong(given: Mapping[str, Any], key: str, said: str, hint: str, where: str) -> SpecError:
    return SpecError(f"{key}: {given[key]!r} is {said}", hint, where=where)


_OLD = re.compile(
    r"debian-(?:8|9|10|11)\b|ubuntu-(?:minimal-|os-)?(?:14|16|18|20)\d\d|-v20(?:1\d|2[01])\d{4}"
)
_CLOUDL = (
    *("zones", "gpu", "gpu_count", "cpu_count", "sourceImage", "diskSizeGb", "preemptible"),
    "name_prefix",
)
_GKE = ("local_batch_size", "worker_count", "cloud_storage_bucket_name", "cloud_storage_upload_folder")


def _gke(given: Mapping[str, Any], where: str, beside: Read) -> Machines:
    """A store, and runs of several workers on Kubernetes; their number stands in one place."""
    folder = str(given.get("cloud_storage_upload_folder") or "").strip("/")
    key = "cloud_storage_bucket_name"
    bucket = given[key].removeprefix("gs://").strip("/") if isinstance(given[key], str) else ""
    if not bucket:
        raise _wrong(given, key, "not the name of a bucket", "for example my-bucket", where)
    workers = _count(given, "worker_count", where)
    if not workers:
        raise _wrong(given, "worker_count", "not a number of workers", "for example 4", where)
    notes = [f"{key}: not carried over" for key in given if key not in _GKE]
    found = next(((name, text) for name in stateful_set.NAMES if (text := beside(name)) is not None), None)
    pods = stateful_set.read(found[1], found[0], given) if found else stateful_set.Pods()
    command, flag = _without_flag(pods.command, "local_batch_size")
    notes += pods.notes
    if not found:
        notes.append(f"{stateful_set.NAMES[0]} is not beside it: name the `command`")
    if "image" not in pods.fleet:
        notes.append(
            "image: one with TensorFlow; hostler image build --docker makes one of your requirements"
        )
    if command[:2] == ["bash", "-c"] and "local_batch_size" in given:
        notes.append("local_batch_size: the command is a shell's, which does not hand it on: edit it")
    hidden = [found[0]] if found and startup.holds_secrets(found[1]) else []
    project: dict[str, Any] = {"store": f"gs://{bucket}/{folder}".rstrip("/"), "distributed": "tensorflow"}
    project |= {"command": command} if command else {}
    project |= {"setup": ["bash", "-c", "; ".join(["set -e", *pods.setup])]} if pods.setup else {}
    project |= {"python": {"requirements": pods.requirements}} if pods.requirements else {}
    project |= {"env": pods.env} if pods.env else {}
    project |= {"secrets": list(pods.secrets)} if pods.secrets else {}
    fleet = {"backend": "kubernetes", "image": "tensorflow/tensorflow:latest", **pods.fleet}
    project |= {"resources": {"nodes": workers}, "fleet": "gke", "fleets": {"gke": fleet}}
    size = {flag: given["local_batch_size"]} if "local_batch_size" in given else {}
    return Machines("TensorFlow on GKE", project, tuple(notes), tuple(hidden), parameters=size)


def _without_flag(command: Sequence[str], name: str) -> tuple[list[str], str]:
    """A command without an option that is a parameter from now on, and how that is spelled there."""
    words, spelled = list[str](), name
    rest = list(command)
    while rest:
        word = rest.pop(0)
        flag, equals, _ = word.partition("=")
        if word.startswith("--") and flag.removeprefix("--").replace("-", "_") == name:
            spelled = flag.removeprefix("--")
            if not equals and rest:
                rest.pop(0)
        else:
            words.append(word)
    return words, spelled
