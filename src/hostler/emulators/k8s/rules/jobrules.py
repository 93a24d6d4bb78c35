"""An API server's rules for a Job's spec. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hostler.emulators.k8s.api.refusal import Cause
from hostler.emulators.k8s.rules.wrong import among, invalid, required, unsupported
from hostler.emulators.k8s.storage import Obj

_COUNTS = (
    *("parallelism", "completions", "backoffLimit", "backoffLimitPerIndex", "maxFailedIndexes"),
    *("activeDeadlineSeconds", "ttlSecondsAfterFinished"),
)
_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_RESTARTS = 'valid values: "OnFailure", "Never"'
_MOST = 100_000


def early(spec: Mapping[str, Any]) -> list[Cause]:
    """Mistakes that the defaults would hide."""
    template = spec.get("template") or {}
    if not isinstance(template.get("spec"), dict):
        return [required("spec.template.spec.containers")]
    return []


def check(job: Obj) -> list[Cause]:
    spec = job["spec"]
    found = [
        invalid(f"spec.{word}", spec[word], "must be greater than or equal to 0")
        for word in _COUNTS
        if isinstance(spec.get(word), int) and spec[word] < 0
    ]
    policy = spec["template"]["spec"].get("restartPolicy")
    if policy == "Always":
        found.append(required("spec.template.spec.restartPolicy", _RESTARTS))
    elif policy not in ("OnFailure", "Never"):
        found.append(unsupported("spec.template.spec.restartPolicy", policy, ("Never", "OnFailure")))
    found += among("spec.completionMode", spec["completionMode"], ("NonIndexed", "Indexed"))
    found += among(
        "spec.podReplacementPolicy", spec["podReplacementPolicy"], ("Failed", "TerminatingOrFailed")
    )
    return found + _indexed(job) + _limits(spec, policy) + _failure_policy(spec, policy)


def _indexed(job: Obj) -> list[Cause]:
    spec, name = job["spec"], job["metadata"]["name"]
    if spec["completionMode"] != "Indexed":
        return []
    if spec.get("completions") is None:
        return [required("spec.completions", "when completion mode is Indexed")]
    found = []
    if spec["completions"] and len(f"{name}-{spec['completions'] - 1}") > 63:
        why = "will not able to create pod with invalid DNS label: must be no more than 63 characters"
        found.append(invalid("metadata.name", name, why))
    if spec["parallelism"] > _MOST:
        why = f"must be less than or equal to {_MOST} when completion mode is Indexed"
        found.append(invalid("spec.parallelism", spec["parallelism"], why))
    return found


def _limits(spec: Mapping[str, Any], policy: object) -> list[Cause]:
    found, per_index, most = [], spec.get("backoffLimitPerIndex"), spec.get("maxFailedIndexes")
    if per_index is not None and spec["completionMode"] != "Indexed":
        why = "when backoff limit per index is used, completion mode must be Indexed"
        found.append(invalid("spec.backoffLimitPerIndex", per_index, why))
    if per_index is not None and policy != "Never":
        why = 'only "Never" is supported when backoffLimitPerIndex is specified'
        found.append(invalid("spec.template.spec.restartPolicy", policy, why))
    if most is not None and per_index is None:
        found.append(required("spec.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    if most is not None and isinstance(spec.get("completions"), int) and most > spec["completions"]:
        found.append(invalid("spec.maxFailedIndexes", most, "must be less than or equal to completions"))
    return found


def _failure_policy(spec: Mapping[str, Any], policy: object) -> list[Cause]:
    if spec.get("podFailurePolicy") is None:
        return []
    found = []
    if policy != "Never":
        why = 'only "Never" is supported when podFailurePolicy is specified'
        found.append(invalid("spec.template.spec.restartPolicy", policy, why))
    if spec["podReplacementPolicy"] != "Failed":
        found.append(unsupported("spec.podReplacementPolicy", spec["podReplacementPolicy"], ("Failed",)))
    for number, rule in enumerate(spec["podFailurePolicy"].get("rules") or []):
        found += _rule(spec, rule, f"spec.podFailurePolicy.rules[{number}]")
    return found


def _rule(spec: Mapping[str, Any], rule: Mapping[str, Any], at: str) -> list[Cause]:
    found = among(f"{at}.action", rule.get("action", ""), _ACTIONS)
    if rule.get("action") == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
        why = "requires the backoffLimitPerIndex to be set"
        found.append(invalid(f"{at}.action", "FailIndex", why))
    exits, states = rule.get("onExitCodes"), rule.get("onPodConditions")
    if bool(exits) == bool(states):
        why = "specifying one of OnExitCodes and OnPodConditions is required"
        both = "specifying both OnExitCodes and OnPodConditions is not supported"
        found.append(invalid(at, rule.get("action"), both if exits else why))
    for number, pattern in enumerate(states or []):
        known = ("False", "True", "Unknown")
        found += among(f"{at}.onPodConditions[{number}].status", pattern.get("status"), known)
    return found + (_exits(spec, exits, f"{at}.onExitCodes") if exits else [])


def _exits(spec: Mapping[str, Any], exits: Mapping[str, Any], at: str) -> list[Cause]:
    values = exits.get("values") or []
    found = among(f"{at}.operator", exits.get("operator", ""), ("In", "NotIn"))
    if not values:
        found.append(invalid(f"{at}.values", values, "at least one value is required"))
    if values != sorted(set(values)):
        found.append(invalid(f"{at}.values", values, "must be ordered, without duplicates"))
    if exits.get("operator") == "In" and 0 in values:
        index = values.index(0)
        found.append(invalid(f"{at}.values[{index}]", 0, "must not be 0 for the In operator"))
    pod = spec["template"]["spec"]
    names = [one.get("name") for one in [*(pod.get("initContainers") or []), *(pod.get("containers") or [])]]
    if exits.get("containerName") and exits["containerName"] not in names:
        why = "must be one of the container or initContainer names in the pod template"
        found.append(invalid(f"{at}.containerName", exits["containerName"], why))
    return found


_FIXED = (
    *("template", "selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex"),
    *("manualSelector", "podReplacementPolicy", "managedBy", "successPolicy"),
)


def unchangeable(old: Obj, new: Obj) -> list[Cause]:
    """Fields that a change of a Job may not change, and does."""
    before, after, found = old["spec"], new["spec"], []
    for word in _FIXED:
        if word == "template" and _may_move(old):
            before, after = _without_places(before), _without_places(after)
        if before.get(word) != after.get(word):
            found.append(_immutable(word, after.get(word)))
    counts = (after.get("completions"), after.get("parallelism"))
    elastic = after.get("completionMode") == "Indexed" and counts[0] == counts[1]
    if before.get("completions") != after.get("completions") and not elastic:
        found.append(_immutable("completions", after.get("completions")))
    return found


def _immutable(word: str, value: object) -> Cause:
    kinds = {"template": "core.PodTemplateSpec{...}", "podFailurePolicy": "core.PodFailurePolicy{...}"}
    if word in kinds:
        return Cause(f"spec.{word}", f"Invalid value: {kinds[word]}: field is immutable")
    return invalid(f"spec.{word}", value, "field is immutable")


def _may_move(job: Obj) -> bool:
    """A suspended Job that never ran may still be told where to run."""
    return bool(job["spec"].get("suspend")) and "startTime" not in job.get("status", {})


def _without_places(spec: Mapping[str, Any]) -> dict[str, Any]:
    words = ("nodeSelector", "tolerations", "affinity", "schedulingGates")
    template = spec["template"]
    pod = {key: value for key, value in template["spec"].items() if key not in words}
    return {**spec, "template": {"spec": pod}}
