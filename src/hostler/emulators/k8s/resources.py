"""The kinds of object that the stand-in serves, and the words of each.

A row here is all a new kind needs to be stored, listed, watched and found by clients.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from hostler.frozen import dataclass

_ALL = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_RBAC = "rbac.authorization.k8s.io"


@dataclass(frozen=True)
class Resource:
    group: str
    plural: str
    kind: str
    namespaced: bool = True
    short: tuple[str, ...] = ()
    subresources: Mapping[str, str] = field(default_factory=dict, hash=False)  # name -> kind
    verbs: tuple[str, ...] = _ALL
    version: str = "v1"

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def singular(self) -> str:
        return self.kind.lower()

    @property
    def full(self) -> str:
        """As error messages name it: jobs.batch."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def full_kind(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind


NAMESPACES = Resource("", "namespaces", "Namespace", False, ("ns",))
NODES = Resource("", "nodes", "Node", False, ("no",), {"status": "Node"})
PODS = Resource(
    "",
    "pods",
    "Pod",
    short=("po",),
    subresources={"log": "Pod", "status": "Pod", "eviction": "Eviction"},
)
SERVICES = Resource("", "services", "Service", short=("svc",))
SECRETS = Resource("", "secrets", "Secret")
CONFIG_MAPS = Resource("", "configmaps", "ConfigMap", short=("cm",))
ACCOUNTS = Resource("", "serviceaccounts", "ServiceAccount", short=("sa",))
CLAIMS = Resource("", "persistentvolumeclaims", "PersistentVolumeClaim", short=("pvc",))
QUOTAS = Resource("", "resourcequotas", "ResourceQuota", short=("quota",))
EVENTS = Resource("", "events", "Event", short=("ev",))
JOBS = Resource("batch", "jobs", "Job", subresources={"status": "Job"})
ROLES = Resource(_RBAC, "roles", "Role")
BINDINGS = Resource(_RBAC, "rolebindings", "RoleBinding")
REVIEWS = Resource(
    "authorization.k8s.io", "selfsubjectaccessreviews", "SelfSubjectAccessReview", False, verbs=("create",)
)

RESOURCES = (
    *(NAMESPACES, NODES, PODS, SERVICES, SECRETS, CONFIG_MAPS, ACCOUNTS, CLAIMS, QUOTAS, EVENTS),
    *(JOBS, ROLES, BINDINGS, REVIEWS),
)
GROUPS = tuple(dict.fromkeys(one.group for one in RESOURCES if one.group))


def named(group: str, version: str, plural: str) -> Resource | None:
    wanted = (group, version, plural)
    return next(
        (resource for resource in RESOURCES if (resource.group, resource.version, resource.plural) == wanted),
        None,
    )


def of(thing: Mapping[str, Any]) -> Resource:
    """The resource of an object, by what the object says of itself."""
    kind, version = thing["kind"], thing["apiVersion"]
    return next(
        resource for resource in RESOURCES if (resource.kind, resource.api_version) == (kind, version)
    )
