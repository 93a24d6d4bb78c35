"""Machines in files of other tools, as keys of hostler.yaml; SpecError for a value that none has. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hostler.errors import SpecError
from hostler.spec.names import slug


@dataclass(frozen=True)
class Machines:
    """`project` is a part of hostler.yaml; what holds secrets stays out of snapshots."""

    tool: str
    project: dict[str, Any]
    notes: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()  # files beside it, by name
    hides_itself: bool = False


def is_it(value: Any) -> bool:
    return isinstance(value, Mapping) and (_is_cloudl(value) or _is_gke(value))


def recognise(value: Any, where: str = "") -> Machines | None:
    """`where` is the file, for what is wrong in it."""
    if not is_it(value):
        return None
    return _cloudl(value, where) if _is_cloudl(value) else _gke(value, where)


def _is_cloudl(value: Mapping[str, Any]) -> bool:
    return "zones" in value and any(key in value for key in ("sourceImage", "preemptible", "name_prefix"))


def _is_gke(value: Mapping[str, Any]) -> bool:
    return "cloud_storage_bucket_name" in value and "worker_count" in value


def _cloudl(given: Mapping[str, Any], where: str) -> Machines:
    """A fleet on Google Compute Engine."""
    zones = [given["zones"]] if isinstance(given["zones"], str) else given["zones"]
    if not isinstance(zones, list) or not zones or not all(one and isinstance(one, str) for one in zones):
        raise _wrong(given, "zones", "not a list of zones", 'like ["us-central1-a"]', where)
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
        notes.append(
            f"image: {image} has no Python 3.10, which workers need: left out, they get one that has"
        )
    return Machines("clouDL", {"fleets": {name: fleet}}, tuple(notes))


def _count(given: Mapping[str, Any], key: str, where: str) -> int:
    """A number of things, which may be written as text; 0 where none is given."""
    value = given.get(key)
    if value in (None, ""):
        return 0
    if isinstance(value, bool) or not re.fullmatch(r"[0-9]{1,9}", str(value)):
        raise _wrong(given, key, "not a whole number", "like 4", where)
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


def _gke(given: Mapping[str, Any], where: str) -> Machines:
    """A store, and runs of several workers on Kubernetes; their number stands in one place."""
    folder = str(given.get("cloud_storage_upload_folder") or "").strip("/")
    key = "cloud_storage_bucket_name"
    bucket = given[key].removeprefix("gs://").strip("/") if isinstance(given[key], str) else ""
    if not bucket:
        raise _wrong(given, key, "not the name of a bucket", "like my-bucket", where)
    workers = _count(given, "worker_count", where)
    if not workers:
        raise _wrong(given, "worker_count", "not a number of workers", "like 4", where)
    store = f"gs://{bucket}/{folder}".rstrip("/")
    notes = [f"{key}: not carried over" for key in given if key not in _GKE]
    if "local_batch_size" in given:
        notes.append(f"local_batch_size={given['local_batch_size']}: a parameter of the script")
    notes.append("image: one with TensorFlow; hostler image build --docker makes one of your requirements")
    fleet = {"backend": "kubernetes", "image": "tensorflow/tensorflow:latest"}
    project = {
        "store": store,
        "distributed": "tensorflow",
        "resources": {"nodes": workers},
        "fleet": "gke",
        "fleets": {"gke": fleet},
    }
    return Machines("TensorFlow on GKE", project, tuple(notes))
