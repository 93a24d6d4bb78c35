"""podFailurePolicy: which rule, in order, a failed pod meets, and what a real controller says of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hostler.emulators.k8s.storage import Obj
from hostler.frozen import dataclass

FAIL_JOB, FAIL_INDEX, IGNORE, COUNT = "FailJob", "FailIndex", "Ignore", "Count"


@dataclass(frozen=True)
class Judged:
    action: str
    message: str = ""


def judge(rules: Mapping[str, Any] | None, pod: Obj) -> Judged:
    """Count if no rule fits."""
    for number, rule in enumerate((rules or {}).get("rules") or []):
        why = _exit(rule["onExitCodes"], pod) if rule.get("onExitCodes") else ""
        why = why or _condition(rule.get("onPodConditions") or [], pod)
        if why:
            return Judged(rule["action"], f"{why} matching {rule['action']} rule at index {number}")
    return Judged(COUNT)


def _exit(rule: Mapping[str, Any], pod: Obj) -> str:
    status, meta = pod.get("status", {}), pod["metadata"]
    ran = [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]
    for one in ran:
        code = (one.get("state", {}).get("terminated") or {}).get("exitCode", 0)
        named = rule.get("containerName") in (None, one["name"])
        if named and code and (code in rule["values"]) == (rule["operator"] == "In"):
            where = f"pod {meta['namespace']}/{meta['name']}"
            return f"Container {one['name']} for {where} failed with exit code {code}"
    return ""


def _condition(patterns: list[Mapping[str, Any]], pod: Obj) -> str:
    meta = pod["metadata"]
    for pattern in patterns:
        for condition in pod.get("status", {}).get("conditions") or []:
            if condition["type"] == pattern["type"] and condition["status"] == pattern.get("status", "True"):
                return f"Pod {meta['namespace']}/{meta['name']} has condition {condition['type']}"
    return ""
