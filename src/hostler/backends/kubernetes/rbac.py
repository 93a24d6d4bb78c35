"""Rights that hostler needs in a namespace, as a Role and its binding: no more than is used. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from hostler.errors import UsageError
from hostler.frozen import dataclass

NAME = "hostler"
_API = "rbac.authorization.k8s.io"


@dataclass(frozen=True)
class AccessRule:
    group: str
    resource: str
    verbs: tuple[str, ...]

    @property
    def body(self) -> dict[str, Any]:
        return {"apiGroups": [self.group], "resources": [self.resource], "verbs": list(self.verbs)}


RULES = (
    AccessRule("batch", "jobs", ("create", "get", "list", "patch", "delete")),
    AccessRule("", "pods", ("get", "list", "delete")),
    AccessRule("", "pods/log", ("get",)),
    AccessRule(
        "", "secrets", ("create", "delete")
    ),  # by name: get, list and patch would show those of others
    AccessRule("", "events", ("list",)),
)
OF_PODS = AccessRule("", "pods", ("list",))  # of the pods' own account: how an earlier one ended
BY_HAND = AccessRule(
    "", "pods/exec", ("create", "get")
)  # hostler ssh, by kubectl: newer ones open it by a GET


def needs() -> Iterator[tuple[str, str, str]]:
    """(verb, group, resource) of all that is asked for."""
    for rule in RULES:
        for verb in rule.verbs:
            yield verb, rule.group, rule.resource


def rule_for(verb: str, resource: str) -> str:
    """The rule that allows this, on one line."""
    access_rule = next((rule for rule in (*RULES, BY_HAND) if rule.resource == resource), None)
    group = access_rule.group if access_rule else ""
    return f'{{apiGroups: ["{group}"], resources: ["{resource}"], verbs: ["{verb}"]}}'


def role(namespace: str, who: str, pods: str = "default") -> list[dict[str, Any]]:
    """Two Roles, each with its RoleBinding: for a person, and for the service account of the `pods`. `who` is
    a user, group:NAME or serviceaccount:[NAMESPACE/]NAME."""
    return [
        *_bound(NAME, namespace, (*RULES, BY_HAND), _subject(who, namespace)),
        *_bound(f"{NAME}-pods", namespace, (OF_PODS,), _subject(f"serviceaccount:{pods}", namespace)),
    ]


def _bound(
    name: str, namespace: str, rules: Sequence[AccessRule], subject: dict[str, str]
) -> Iterator[dict[str, Any]]:
    head = {"metadata": {"name": name, **({"namespace": namespace} if namespace else {})}}
    yield {"apiVersion": f"{_API}/v1", "kind": "Role", **head, "rules": [rule.body for rule in rules]}
    ref = {"apiGroup": _API, "kind": "Role", "name": name}
    yield {
        "apiVersion": f"{_API}/v1",
        "kind": "RoleBinding",
        **head,
        "subjects": [subject],
        "roleRef": ref,
    }


def _subject(who: str, namespace: str) -> dict[str, str]:
    kind, colon, name = who.partition(":")
    if colon and kind.lower() == "serviceaccount" and name:
        space, slash, own = name.rpartition("/")
        return {
            "kind": "ServiceAccount",
            "name": own,
            "namespace": space if slash else namespace or "default",
        }
    if colon and kind.lower() == "group" and name:
        return {"kind": "Group", "name": name, "apiGroup": _API}
    if not who.strip():
        raise UsageError(
            "--role needs the name of a person or account", hint="kubectl auth whoami says who you are"
        )
    return {"kind": "User", "name": who, "apiGroup": _API}
