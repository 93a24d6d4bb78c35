"""An API server's rules for a pod's spec. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hostler.emulators.k8s.api.refusal import Cause
from hostler.emulators.k8s.rules.quantity import amount
from hostler.emulators.k8s.rules.wrong import absent, among, invalid, required, twice

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_VARIABLE = re.compile(r"[^=\x00-\x1f\x7f]+")
_PULLS, _RESTARTS = ("Always", "IfNotPresent", "Never"), ("Always", "OnFailure", "Never")
_DNS = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_EFFECTS, _OPERATORS = ("NoSchedule", "PreferNoSchedule", "NoExecute"), ("Equal", "Exists")


def check(spec: Mapping[str, Any], at: str) -> list[Cause]:
    found = among(f"{at}.restartPolicy", spec.get("restartPolicy"), _RESTARTS)
    found += among(f"{at}.dnsPolicy", spec.get("dnsPolicy"), _DNS)
    grace = spec.get("terminationGracePeriodSeconds")
    if isinstance(grace, int) and grace < 0:
        found.append(
            invalid(f"{at}.terminationGracePeriodSeconds", grace, "must be greater than or equal to 0")
        )
    if not spec.get("containers"):
        found.append(required(f"{at}.containers"))
    volumes = [volume.get("name") for volume in spec.get("volumes") or []]
    found += [
        twice(f"{at}.volumes", one) for one in sorted({str(o) for o in volumes if volumes.count(o) > 1})
    ]
    seen: set[str] = set()
    for group in ("initContainers", "containers"):
        for number, container in enumerate(spec.get(group) or []):
            place = f"{at}.{group}[{number}]"
            found += _container(container, place, volumes)
            if container.get("name") in seen:
                found.append(twice(f"{place}.name", container["name"]))
            seen.add(container.get("name", ""))
    for number, one in enumerate(spec.get("tolerations") or []):
        found += _toleration(one, f"{at}.tolerations[{number}]")
    return found


def _container(container: Mapping[str, Any], at: str, volumes: list[Any]) -> list[Cause]:
    found = among(f"{at}.imagePullPolicy", container.get("imagePullPolicy"), _PULLS)
    name = container.get("name")
    if not name:
        found.append(required(f"{at}.name"))
    elif len(name) > 63 or not _NAME.fullmatch(name):
        found.append(
            invalid(
                f"{at}.name",
                name,
                "a lowercase RFC 1123 label must consist of lower case "
                "alphanumeric characters or '-', and must start and end with an alphanumeric character",
            )
        )
    if not container.get("image"):
        found.append(required(f"{at}.image"))
    elif container["image"] != container["image"].strip():
        found.append(
            invalid(f"{at}.image", container["image"], "must not have leading or trailing whitespace")
        )
    for number, entry in enumerate(container.get("env") or []):
        found += _variable(entry, f"{at}.env[{number}]")
    paths: set[str] = set()
    for number, mount in enumerate(container.get("volumeMounts") or []):
        place = f"{at}.volumeMounts[{number}]"
        if mount.get("name") not in volumes:
            found.append(absent(f"{place}.name", mount.get("name")))
        if mount.get("mountPath") in paths:
            found.append(invalid(f"{place}.mountPath", mount["mountPath"], "must be unique"))
        paths.add(mount.get("mountPath", ""))
    return found + _resources(container.get("resources") or {}, f"{at}.resources")


def _variable(entry: Mapping[str, Any], at: str) -> list[Cause]:
    if not entry.get("name"):
        return [required(f"{at}.name")]
    if not _VARIABLE.fullmatch(entry["name"]):
        return [
            invalid(
                f"{at}.name",
                entry["name"],
                "a valid environment variable name must consist only of "
                "printable ASCII characters other than '='",
            )
        ]
    if entry.get("value") and entry.get("valueFrom"):
        return [invalid(f"{at}.valueFrom", "", "may not be specified when `value` is not empty")]
    return []


def _resources(given: Mapping[str, Any], at: str) -> list[Cause]:
    found = []
    amounts: dict[str, dict[str, Any]] = {"limits": {}, "requests": {}}
    for side, known in amounts.items():
        for kind, value in (given.get(side) or {}).items():
            try:
                known[kind] = amount(value)
            except ValueError:
                found.append(invalid(f"{at}.{side}[{kind}]", value, _QUANTITY))
                continue
            if "/" in kind and known[kind] != int(known[kind]):
                found.append(invalid(f"{at}.{side}[{kind}]", value, "must be an integer"))
    for kind, wanted in amounts["requests"].items():
        most = amounts["limits"].get(kind)
        if "/" in kind and most is None:
            found.append(
                required(f"{at}.limits[{kind}]", "Limit must be set for non overcommitable resources")
            )
        elif "/" in kind and wanted != most:
            why = f"must be equal to {kind} limit of {given['limits'][kind]}"
            found.append(invalid(f"{at}.requests", str(given["requests"][kind]), why))
        elif most is not None and wanted > most:
            why = f"must be less than or equal to {kind} limit of {given['limits'][kind]}"
            found.append(invalid(f"{at}.requests", str(given["requests"][kind]), why))
    return found


def _toleration(one: Mapping[str, Any], at: str) -> list[Cause]:
    found = among(f"{at}.effect", one.get("effect") or None, _EFFECTS)
    found += among(f"{at}.operator", one.get("operator") or None, _OPERATORS)
    if not one.get("key") and one.get("operator") != "Exists":
        why = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        found.append(invalid(f"{at}.operator", one.get("operator"), why))
    if one.get("operator") == "Exists" and one.get("value"):
        why = "value must be empty when `operator` is 'Exists'"
        found.append(invalid(f"{at}.operator", one["value"], why))
    return found
