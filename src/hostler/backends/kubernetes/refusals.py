"""Refusals of the cluster's API in plain words, and what to do. Pure.

The texts are the API server's own. Of a right that is missing, the rule that would give it is named.
"""

from __future__ import annotations

import re

from hostler.backends.kubernetes import rbac

ROLE = "hostler up FLEET --role WHO prints a Role and its binding; have them applied"
_FORBIDDEN = re.compile(
    r'cannot (?P<verb>\w+) resource "(?P<resource>[\w/.-]+)" in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<namespace>[^"]*)")?'
)
_KNOWN = (
    (
        r'namespaces? "(?P<what>[^"]+)" not found',
        "no namespace named {what}",
        "kubectl create namespace {what}",
    ),
    (
        r"is being terminated",
        "the namespace is being deleted",
        "name another `namespace`, or wait until it is gone and create it again",
    ),
    (
        r"exceeded quota: (?P<what>.+)",
        "the namespace's quota is used up: {what}",
        "lower `workers` or `resources`, or have the quota raised (kubectl describe quota)",
    ),
    (
        r"violates PodSecurity (?P<what>.+)",
        "the namespace's policy does not allow such pods: {what}",
        "`user: 1000` in the fleet runs them as an ordinary user; hostPath volumes need another namespace",
    ),
    (
        r"admission webhook \"(?P<what>[^\"]+)\" denied the request:?(?P<why>.*)",
        "a policy of the cluster ({what}) refused it:{why}",
        "ask the people who run the cluster",
    ),
)


def read(status: int, reason: str, said: str, namespace: str) -> tuple[str, str]:
    """(message, hint) for a refusal."""
    if status == 401:
        return (
            "the cluster does not know you (401)",
            "log in again: your kubeconfig's credentials are no longer valid",
        )
    known = _by_text(said)
    if known:
        return known
    if status == 403:
        return _forbidden(said, namespace)
    if status == 422 or reason == "Invalid":
        return (
            f"the cluster does not accept it: {said}",
            "check the fleet's keys; --dry-run shows the manifest",
        )
    if status == 429 or status >= 500:
        return f"the cluster asks to wait: {said or status}", "run the same command again in a while"
    return f"the cluster refused: {said or status}", ""


def missing(verb: str, resource: str, namespace: str) -> tuple[str, str]:
    """(message, hint) for a right that is not there."""
    rule = rbac.rule_for(verb, resource)
    what = "read the logs of pods" if resource == "pods/log" else f"{verb} {resource}"
    return f"you may not {what} in namespace {namespace}", f"its Role lacks {rule}; {ROLE}"


def _forbidden(said: str, namespace: str) -> tuple[str, str]:
    match = _FORBIDDEN.search(said)
    if not match:
        return f"the cluster does not allow it: {said}", ROLE
    return missing(match["verb"], match["resource"], match["namespace"] or namespace)


def _by_text(said: str) -> tuple[str, str] | None:
    for pattern, message, hint in _KNOWN:
        match = re.search(pattern, said, re.DOTALL)
        if match:
            return message.format(**match.groupdict()), hint.format(**match.groupdict())
    return None
