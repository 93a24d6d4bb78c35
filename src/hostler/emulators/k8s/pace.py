"""Durations on the stand-in, in real seconds; `scale` is for the seconds that manifests name."""

from __future__ import annotations

from hostler.frozen import dataclass


@dataclass(frozen=True)
class Pace:
    """The defaults are a test's; `real()` is a cluster's."""

    scale: float = 1.0  # deadlines, grace and time to live of manifests pass so many times as fast
    start: float = 0.02  # from being bound to a node to the first container
    backoff: float = 0.1  # before the first replacement of a failed pod; doubles
    backoff_max: float = 2.0
    restart: float = 0.1  # before a container starts again in its pod; doubles
    pull: float = 0.3  # between two tries to pull an image
    node_gone: float = 0.2  # from the loss of a node to the end of its object
    collect: float = 0.2  # from there to the end of its pods

    @staticmethod
    def real() -> Pace:
        return Pace(
            start=1.0,
            backoff=10.0,
            backoff_max=600.0,
            restart=10.0,
            pull=10.0,
            node_gone=60.0,
            collect=40.0,
        )

    def seconds(self, declared: float) -> float:
        """Real duration of a manifest's seconds."""
        return declared / self.scale
