"""Keys of fleets of pods."""

from __future__ import annotations

from typing import Any, Literal

from hostler.spec.files.parse import AnyCount, FleetKeys, Loose, Seconds, Text, Texts, Volumes


class KubernetesKeys(FleetKeys):
    counted = True

    backend: Literal["kubernetes"]
    context: Text | None = None
    namespace: Text | None = None
    image: Text | None = None
    pull: Literal["Always", "IfNotPresent", "Never"] | None = None
    pull_secret: Texts | None = None
    gpus: AnyCount | None = None
    gpu_resource: Text | None = None
    node_selector: dict[str, Loose] | None = None
    tolerations: list[dict[str, Any]] | None = None
    spot: bool | Text | None = None
    volumes: Volumes = None
    service_account: Text | None = None
    secret: Text | None = None
    user: AnyCount | None = None
    queue: Text | None = None
    deadline: Seconds | None = None


KEYS = KubernetesKeys
