"""Machines in files of other tools, as keys of hostler.yaml."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hostler.spec.names import slug


@dataclass(frozen=True)
class Machines:
    """`project` is a part of hostler.yaml; what holds secrets stays out of snapshots."""

    tool: str
    project: dict[str, Any]
    notes: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()  # files beside it, by name
    hides_itself: bool = False


def recognise(value: Any) -> Machines | None:
    if not isinstance(value, Mapping):
        return None
    if "zones" in value and any(key in value for key in ("sourceImage", "preemptible", "name_prefix")):
        return _cloudl(value)
    if "cloud_storage_bucket_name" in value and "worker_count" in value:
        return _gke(value)
    return None


def _cloudl(given: Mapping[str, Any]) -> Machines:
    """One fleet on Google Compute Engine."""
    zones = given["zones"]
    fleet: dict[str, Any] = {"backend": "gce", "zones": [zones] if isinstance(zones, str) else list(zones)}
    if given.get("gpu"):
        model = str(given["gpu"]).lower().removeprefix("nvidia-").removeprefix("tesla-")
        fleet["gpu"] = f"{model.upper()}:{given.get('gpu_count') or 1}"
    if given.get("cpu_count"):
        fleet["machine"] = f"n1-standard-{given['cpu_count']}"
    image = str(given.get("sourceImage") or "")
    if image and not _OLD.search(image):
        fleet["image"] = image
    if given.get("diskSizeGb"):
        fleet["disk"] = f"{given['diskSizeGb']}GB"
    if "preemptible" in given:
        fleet["spot"] = bool(given["preemptible"])
    name = slug(str(given.get("name_prefix") or "gce"))
    notes = [f"{key}: not carried over" for key in given if key not in _CLOUDL]
    if image and "image" not in fleet:
        notes.append(
            f"image: {image} has no Python 3.10, which workers need: left out, they get one that has"
        )
    return Machines("clouDL", {"fleets": {name: fleet}}, tuple(notes))


_OLD = re.compile(
    r"debian-(?:8|9|10|11)\b|ubuntu-(?:minimal-|os-)?(?:14|16|18|20)\d\d|-v20(?:1\d|2[01])\d{4}"
)
_CLOUDL = (
    *("zones", "gpu", "gpu_count", "cpu_count", "sourceImage", "diskSizeGb", "preemptible"),
    "name_prefix",
)
_GKE = ("local_batch_size", "worker_count", "cloud_storage_bucket_name", "cloud_storage_upload_folder")


def _gke(given: Mapping[str, Any]) -> Machines:
    """A store, and runs of several workers on Kubernetes; their number stands in one place."""
    folder = str(given.get("cloud_storage_upload_folder") or "").strip("/")
    store = f"gs://{given['cloud_storage_bucket_name']}/{folder}".rstrip("/")
    notes = [f"{key}: not carried over" for key in given if key not in _GKE]
    if "local_batch_size" in given:
        notes.append(f"local_batch_size={given['local_batch_size']}: a parameter of the script")
    notes.append("image: one with TensorFlow; hostler image build --docker makes one of your requirements")
    fleet = {"backend": "kubernetes", "image": "tensorflow/tensorflow:latest"}
    project = {
        "store": store,
        "distributed": "tensorflow",
        "resources": {"nodes": given["worker_count"]},
        "fleet": "gke",
        "fleets": {"gke": fleet},
    }
    return Machines("TensorFlow on GKE", project, tuple(notes))
