"""The cluster's API, in hostler's words: plain dictionaries in and out. The only importer of lightkube.

A refusal is a `KubeRefusal`, which says what to do; a question that the cluster did not answer is asked again
a few times, and then CloudUnavailable.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, TypeVar

from hostler import env
from hostler.backends import answer_form
from hostler.backends.answer_form import either, rows, table, text, texts, whole
from hostler.backends.kubernetes import config, refusals
from hostler.backends.kubernetes.config import KubeConfig
from hostler.errors import CloudError, CloudUnavailable, MachineError
from hostler.frozen import dataclass
from hostler.spec.project import Fleet

TRIES = 3
PATIENCE = 10.0  # seconds for one answer
PROXY = "a proxy in between"
KINDS = {  # kind → its group, how it is written in paths, whether it is in a namespace
    "Job": ("batch", "jobs", True),
    "Pod": ("", "pods", True),
    "Secret": ("", "secrets", True),
    "Event": ("", "events", True),
    "Node": ("", "nodes", False),
    "Namespace": ("", "namespaces", False),
    "SelfSubjectAccessReview": ("authorization.k8s.io", "selfsubjectaccessreviews", False),
}

FORMS: Mapping[str, answer_form.Form] = {
    **dict.fromkeys(("metadata", "labels", "annotations", "spec", "state", "allocatable"), table),
    **dict.fromkeys(("waiting", "terminated", "running", "persistentVolumeClaim"), table),
    **dict.fromkeys(("conditions", "containerStatuses", "initContainerStatuses", "volumes"), rows),
    **dict.fromkeys(("name", "claimName", "nodeName"), text),
    "completions": whole,
    "succeeded": either(whole, texts),  # how many, and of `uncountedTerminatedPods` which
    "status": either(table, text),  # of a thing, and of a condition
}

Body = dict[str, Any]
T = TypeVar("T")


class KubeRefusal(CloudError):
    """The cluster said no."""

    def __init__(self, status: int, reason: str, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.status, self.reason = status, reason


@dataclass(frozen=True)
class KubeClient:
    """`kind` is as Kubernetes writes it: Job, Pod, Secret…; all in one namespace unless said otherwise."""

    api: Any
    kinds: Mapping[str, Any]
    namespace: str
    context: str
    server: str
    pause: Callable[[float], None] = field(default=time.sleep, repr=False)

    def create(self, body: Body) -> Body:
        made = self.kinds[body["kind"]].from_dict(body)
        return self._ask(lambda: _formed(self.api.create(made, namespace=self.namespace)), once=True)

    def find(self, kind: str, name: str) -> Body | None:
        try:
            return self._ask(lambda: _formed(self.api.get(self.kinds[kind], name, **self._place(kind))))
        except KubeRefusal as error:
            if error.status == 404:
                return None
            raise

    def list(
        self, kind: str, labels: Mapping[str, str] | None = None, fields: Mapping[str, str] | None = None
    ) -> Sequence[Body]:
        """`labels`: a value of '*' is any."""
        from lightkube.operators import exists

        asked = {key: exists() if value == "*" else value for key, value in (labels or {}).items()}
        return self._listed(kind, self._place(kind), labels=asked or None, fields=dict(fields or {}) or None)

    def everywhere(self, kind: str) -> Sequence[Body]:
        """In all namespaces; few may ask for that."""
        return self._listed(kind, {"namespace": "*"})

    def patch(self, kind: str, name: str, body: Body) -> Body:
        from lightkube.types import PatchType

        asked = {"namespace": self.namespace, "patch_type": PatchType.MERGE}
        return self._ask(lambda: _formed(self.api.patch(self.kinds[kind], name, body, **asked)))

    def delete(self, kind: str, name: str, *, now: bool = False) -> None:
        """With all that it has made; what is gone already is as good as deleted."""
        from lightkube.types import CascadeType

        try:
            self._ask(
                lambda: self.api.delete(
                    self.kinds[kind],
                    name,
                    namespace=self.namespace,
                    cascade=CascadeType.FOREGROUND if kind == "Job" else CascadeType.BACKGROUND,
                    grace_period=0 if now else None,
                )
            )
        except KubeRefusal as error:
            if error.status != 404:
                raise

    def log(self, pod: str, container: str) -> str:
        """Output of a container so far; '' if it has not begun, or is gone."""
        try:
            lines = lambda: list(self.api.log(pod, namespace=self.namespace, container=container))  # noqa: E731
            return "".join(self._ask(lines))
        except KubeRefusal as error:
            if error.status in (400, 404):
                return ""
            raise

    def may(self, verb: str, group: str, resource: str) -> bool:
        """Whether whoever asks may do this here."""
        kind, _, inner = resource.partition("/")
        asked = {
            "namespace": self.namespace,
            "verb": verb,
            "group": group,
            "resource": kind,
            "subresource": inner,
        }
        kind_of = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
        body = {**kind_of, "metadata": {}, "spec": {"resourceAttributes": asked}}
        review = self.kinds["SelfSubjectAccessReview"].from_dict(body)
        record = self._ask(lambda: _formed(self.api.create(review)))
        return bool((record.get("status") or {}).get("allowed"))

    def _place(self, kind: str) -> Body:
        return {"namespace": self.namespace} if KINDS[kind][2] else {}

    def _listed(self, kind: str, place: Body, **chosen: Any) -> Sequence[Body]:
        found: Sequence[Body] = self._ask(
            lambda: [_formed(one) for one in self.api.list(self.kinds[kind], **place, **chosen)]
        )
        return found

    def _ask(self, ask: Callable[[], T], *, once: bool = False) -> T:
        import httpx2
        from lightkube.core.exceptions import ApiError, ConfigError

        for number in reversed(range(TRIES)):
            try:
                return ask()
            except ApiError as error:
                status = int(error.status.code or 0)
                if (status != 429 and status < 500) or not number:
                    raise _refused(error.status, self.namespace) from None
            except httpx2.HTTPStatusError as error:  # not in the API's own form: a proxy's page
                status = error.response.status_code
                if status != 429 and status < 500:
                    said = f"{status} {error.response.reason_phrase}, from {PROXY}"
                    message, hint = refusals.read(status, "", said, self.namespace)
                    raise KubeRefusal(status, "", message, hint) from None
                if not number or once:
                    raise unanswered(self.server, self.context, f"{status}, from {PROXY}") from None
            except httpx2.HTTPError as error:
                if not number or (once and not isinstance(error, httpx2.ConnectError)):
                    raise unanswered(self.server, self.context, str(error)) from None
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):  # 200, and no object
                if not number or once:
                    said = f"what answers is not the API of Kubernetes; perhaps {PROXY}"
                    raise unanswered(self.server, self.context, said) from None
            except (ConfigError, OSError) as error:  # a login program that is not there, or fails
                raise CloudError(
                    f"context {self.context}: {error}", hint=f"kubectl --context {self.context} get pods"
                ) from None
            self.pause(0.5 * 2.0 ** (TRIES - number))
        raise AssertionError("the last try returns or raises")


def connect(fleet: Fleet) -> KubeClient:
    """The client of a fleet's cluster."""
    kube_config = config.load(env.kubeconfigs(), fleet.options.get("context"))
    api, kinds = _opened(kube_config)
    namespace = str(fleet.options.get("namespace") or kube_config.namespace)
    return KubeClient(api, kinds, namespace, kube_config.context, kube_config.server)


def unanswered(server: str, context: str, said: str) -> CloudUnavailable:
    return CloudUnavailable(
        f"the cluster of context {context} does not answer at {server}: {said}",
        hint=f"kubectl --context {context} version; check `context` and the network",
    )


def _opened(found: KubeConfig) -> tuple[Any, dict[str, Any]]:
    try:
        import httpx2
        import lightkube
        from lightkube.core.exceptions import ConfigError
    except ModuleNotFoundError as error:
        raise MachineError(
            f"this needs the package {error.name}", hint="pip install 'hostler[kubernetes]'"
        ) from None
    try:
        known = lightkube.KubeConfig.from_dict(found.body)
        api = lightkube.Client(known, timeout=httpx2.Timeout(PATIENCE), field_manager="hostler")
    except (ConfigError, KeyError, AssertionError, OSError, ValueError) as error:
        hint = f"kubectl config view --minify --context {found.context}"
        raise CloudError(f"context {found.context} cannot be used: {error}", hint=hint) from None
    return api, {kind: _class(kind, *where) for kind, where in KINDS.items()}


def _class(kind: str, group: str, plural: str, namespaced: bool) -> Any:
    """A kind whose fields are left as the cluster has them: what a version knows, others need not."""
    from lightkube import generic_resource

    base = (
        generic_resource.GenericNamespacedResource if namespaced else generic_resource.GenericGlobalResource
    )
    return type(kind, (base,), {"_api_info": generic_resource.create_api_info(group, "v1", kind, plural)})


def _formed(thing: Any) -> Body:
    """A thing as data; ValueError if it is not one of Kubernetes."""
    body = thing.to_dict()
    named = isinstance(body, dict) and (body.get("metadata") is None or table(body["metadata"]))
    if not named or not table(body.get("status") or {}) or not answer_form.fits(body, FORMS):
        raise ValueError("not a thing of Kubernetes")
    return dict(body)


def _refused(status: Any, namespace: str) -> KubeRefusal:
    code, reason, said = int(status.code or 0), str(status.reason or ""), str(status.message or "")
    message, hint = refusals.read(code, reason, said, namespace)
    return KubeRefusal(code, reason, message, hint)
