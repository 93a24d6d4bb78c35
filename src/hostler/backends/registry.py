"""A backend by its name; each is imported on use."""

from __future__ import annotations

import difflib
from importlib import import_module

from hostler.backends.base import Backend
from hostler.errors import UsageError
from hostler.spec.project import Fleet

BACKENDS = {
    "local": "hostler.backends.local:LocalBackend",
    "ssh": "hostler.backends.ssh:SshBackend",
    "slurm": "hostler.backends.slurm.backend:SlurmBackend",
    "gce": "hostler.backends.gce.backend:GceBackend",
    "kubernetes": "hostler.backends.kubernetes.backend:KubernetesBackend",
}


def backend_of(fleet: Fleet) -> Backend:
    """The backend of a fleet. Slurm is another one where it is reached by a login node."""
    if fleet.backend == "slurm" and fleet.options.get("login"):
        from hostler.backends.slurm.login import LoginBackend

        return LoginBackend(fleet)
    return backend(fleet.backend)


def backend(name: str) -> Backend:
    if name not in BACKENDS:
        near = difflib.get_close_matches(name, BACKENDS, n=1)
        raise UsageError(f"there is no backend {name!r}", hint=f"did you mean {near[0]}?" if near else "")
    module, _, kind = BACKENDS[name].partition(":")
    made: Backend = getattr(import_module(module), kind)()
    return made
