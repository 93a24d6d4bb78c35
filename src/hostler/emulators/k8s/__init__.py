"""A stand-in for Kubernetes: an API on a loopback port, Jobs by the real rules, containers as real processes.

`with Cluster(folder) as cluster:` is all of it; see docs/kubernetes-stand-in.md.

cluster.py    starts the stand-in on a loopback port
world.py      everything it holds, under one lock
storage.py    objects and their versions
control.py    actions beyond the API, for tests
resources.py  the kinds of objects
pace.py       how long things take
moment.py     times as the API writes them
api/          requests and answers
rules/        checks and defaults of manifests
controllers/  Jobs, scheduling, deletion
node/         kubelets and containers
"""

from hostler.emulators.k8s.cluster import Cluster
from hostler.emulators.k8s.pace import Pace

__all__ = ["Cluster", "Pace"]
