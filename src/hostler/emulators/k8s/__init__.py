"""A stand-in for Kubernetes: an API on a loopback port, Jobs by the real rules, containers as real processes.

`with Cluster(folder) as cluster:` is all of it; see docs/kubernetes-stand-in.md.
"""

from hostler.emulators.k8s.cluster import Cluster
from hostler.emulators.k8s.pace import Pace

__all__ = ["Cluster", "Pace"]
