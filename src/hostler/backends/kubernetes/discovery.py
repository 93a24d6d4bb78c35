"""Finds a cluster for `hostler init`: the current context of the kubeconfig."""

from __future__ import annotations

from hostler import env
from hostler.backends.fleet_files import Discovery
from hostler.backends.kubernetes import config
from hostler.errors import HostlerError


def discover() -> Discovery | None:
    try:
        kube_config = config.load(env.kubeconfigs(), None)
    except HostlerError:
        return None
    values = {"context": kube_config.context, "namespace": kube_config.namespace}
    return Discovery(f"a kubeconfig, context {kube_config.context}", values)
