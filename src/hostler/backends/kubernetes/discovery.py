"""Finds a cluster for `hostler init`: the current context of the kubeconfig."""

from __future__ import annotations

from hostler import env
from hostler.backends.fleet_files import Discovery
from hostler.backends.kubernetes import config
from hostler.errors import HostlerError


def discover() -> Discovery | None:
    try:
        found = config.load(env.kubeconfigs(), None)
    except HostlerError:
        return None
    values = {"context": found.context, "namespace": found.namespace}
    return Discovery(f"a kubeconfig, context {found.context}", values)
