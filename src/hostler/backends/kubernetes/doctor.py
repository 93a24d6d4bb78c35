"""Checks of Kubernetes for `hostler doctor`: the chosen cluster, and the way into pods."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence

from hostler import env
from hostler.backends.doctor import NONE, OK, WARN, Check, only_for
from hostler.backends.kubernetes import config
from hostler.errors import HostlerError
from hostler.spec.project import Fleet

EXTRA = "pods"  # what hostler[kubernetes] is installed for


def checks(fleets: Sequence[Fleet], store: str) -> Iterator[Check]:
    yield from check(any(fleet.backend == "kubernetes" for fleet in fleets))


def check(asked: bool) -> Iterator[Check]:
    """A fleet may choose another context, and is asked itself: nothing is missed here then."""
    if not asked and not any(path.is_file() for path in env.kubeconfigs()):
        yield Check(NONE, "kubernetes", f"no kubeconfig; {only_for('fleets of `backend: kubernetes`')}")
        return
    try:
        kube_config = config.load(env.kubeconfigs(), None)
    except HostlerError as error:
        yield Check(NONE if asked else WARN, "kubernetes", error.message, error.hint)
        return
    where = f"context {kube_config.context} at {kube_config.server}, namespace {kube_config.namespace}"
    if shutil.which("kubectl") is None:
        yield Check(
            OK, "kubernetes", f"{where}; kubectl is not installed: only `hostler ssh` into pods needs it"
        )
    else:
        yield Check(OK, "kubernetes", where)
