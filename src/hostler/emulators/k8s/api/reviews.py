"""SelfSubjectAccessReview: whether the asker may do a thing."""

from __future__ import annotations

from typing import Any

from hostler.emulators.k8s.api.refusal import bad_request
from hostler.emulators.k8s.resources import REVIEWS, Resource, named
from hostler.emulators.k8s.rules.access import Access, Ask
from hostler.emulators.k8s.storage import Obj


def review(access: Access, user: str, given: Obj) -> dict[str, Any]:
    asked = (given.get("spec") or {}).get("resourceAttributes")
    if not isinstance(asked, dict):
        raise bad_request("spec.resourceAttributes: Required value: the stand-in reviews resources only")
    group, plural = asked.get("group", ""), asked.get("resource", "")
    resource = named(group, asked.get("version") or "v1", plural) or Resource(group, plural, plural)
    words = {key: asked.get(key, "") for key in ("namespace", "name")}
    ask = Ask(asked.get("verb", ""), resource, sub=asked.get("subresource", ""), **words)
    head = {"kind": REVIEWS.kind, "apiVersion": REVIEWS.api_version, "metadata": {}, "spec": given["spec"]}
    return {**head, "status": {"allowed": access.allows(user, ask)}}
