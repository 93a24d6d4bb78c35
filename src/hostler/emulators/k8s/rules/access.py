"""Access rights: the administrator may do all a test does not forbid, a service account what Roles allow."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

from hostler.emulators.k8s.api.refusal import forbidden, unauthorized
from hostler.emulators.k8s.resources import BINDINGS, ROLES, Resource
from hostler.emulators.k8s.storage import Storage

ADMIN = "stand-in"
_ACCOUNT = "system:serviceaccount:"


@dataclass(frozen=True)
class Ask:
    verb: str
    resource: Resource
    namespace: str = ""
    name: str = ""
    sub: str = ""


@dataclass
class Access:
    storage: Storage
    tokens: dict[str, str] = field(default_factory=dict)  # token -> user
    refused: set[tuple[str, str, str]] = field(
        default_factory=set
    )  # verb, resource, namespace; * and "" for all

    def issue(self, user: str) -> str:
        token = secrets.token_urlsafe(24)
        self.tokens[token] = user
        return token

    def user(self, headers: Mapping[str, str]) -> str:
        kind, _, token = headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or token not in self.tokens:
            raise unauthorized()
        return self.tokens[token]

    def check(self, user: str, ask: Ask) -> None:
        if not self.allows(user, ask):
            raise forbidden(user, ask.verb, ask.resource, ask.namespace, ask.name, ask.sub)

    def allows(self, user: str, ask: Ask) -> bool:
        if ask.resource.plural == "selfsubjectaccessreviews":
            return True
        if any(_refuses(rule, ask) for rule in self.refused):
            return False
        return not user.startswith(_ACCOUNT) or self._granted(user.removeprefix(_ACCOUNT), ask)

    def _granted(self, account: str, ask: Ask) -> bool:
        namespace, _, name = account.partition(":")
        for binding in self.storage.all(BINDINGS, ask.namespace) if ask.namespace else ():
            bound = any(
                (subject.get("kind"), subject.get("namespace"), subject.get("name"))
                == ("ServiceAccount", namespace, name)
                for subject in binding.get("subjects") or []
            )
            role = self.storage.find(ROLES, ask.namespace, binding["roleRef"]["name"])
            if bound and role is not None and any(_permits(rule, ask) for rule in role.get("rules") or []):
                return True
        return False


def _permits(rule: Mapping[str, list[str]], ask: Ask) -> bool:
    plural = f"{ask.resource.plural}/{ask.sub}" if ask.sub else ask.resource.plural
    names = rule.get("resourceNames") or []
    return (
        _has(rule.get("verbs"), ask.verb)
        and _has(rule.get("apiGroups"), ask.resource.group)
        and _has(rule.get("resources"), plural)
        and (not names or ask.name in names)
    )


def _has(given: list[str] | None, word: str) -> bool:
    return word in (given or []) or "*" in (given or [])


def _refuses(rule: tuple[str, str, str], ask: Ask) -> bool:
    verb, resource, namespace = rule
    plural = f"{ask.resource.plural}/{ask.sub}" if ask.sub else ask.resource.plural
    return verb in ("*", ask.verb) and resource in ("*", plural) and namespace in ("", ask.namespace)
