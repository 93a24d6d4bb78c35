"""Three kinds of patch, as pure functions: JSON patch, merge patch, and the strategic one."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from hostler.emulators.k8s.api.refusal import Refusal, bad_request

# Lists of these fields are merged entry by entry, by the first of the keys that their entries have.
KEYS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("containers", "initContainers", "ephemeralContainers", "env", "volumes"), ("name",)),
    **dict.fromkeys(("imagePullSecrets", "secrets", "volumeDevices"), ("name",)),
    "volumeMounts": ("mountPath",),
    "ports": ("containerPort", "port"),
    "conditions": ("type",),
    "ownerReferences": ("uid",),
    "hostAliases": ("ip",),
    "topologySpreadConstraints": ("topologyKey",),
}
_SETS = ("finalizers",)
_DIRECTIVE = "$"
_REJECTED = "the server rejected our request due to an error in our request"


def merge(target: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    found = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = merge(found.get(key), value)
    return found


def strategic(target: Any, patch: Any, field: str = "") -> Any:
    """As merge, but lists of named things are merged by name."""
    if isinstance(patch, list):
        return _lists(target if isinstance(target, list) else [], patch, field)
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    if patch.get("$patch") == "replace":
        return {key: value for key, value in patch.items() if key != "$patch"}
    found = dict(target) if isinstance(target, dict) else {}
    kept = patch.get("$retainKeys")
    if kept is not None:
        found = {key: value for key, value in found.items() if key in kept}
    for key, value in patch.items():
        if key.startswith("$deleteFromPrimitiveList/"):
            name = key.partition("/")[2]
            found[name] = [one for one in found.get(name) or [] if one not in value]
        elif key.startswith(_DIRECTIVE):
            continue
        elif value is None:
            found.pop(key, None)
        else:
            found[key] = strategic(found.get(key), value, key)
    return found


def key_of(field: str, entries: Sequence[Any]) -> str:
    """By what the entries of a list are told apart; nothing if the list is replaced as a whole."""
    for key in KEYS.get(field, ()):
        if entries and all(
            isinstance(entry, dict) and (key in entry or "$patch" in entry) for entry in entries
        ):
            return key
    return ""


def operations(target: Any, patch: Sequence[Mapping[str, Any]]) -> Any:
    """RFC 6902: add, remove, replace, test, copy, move."""
    document = copy.deepcopy(target)
    for record in patch:
        _operate(document, record)
    return document


def _lists(target: list[Any], patch: list[Any], field: str) -> list[Any]:
    if field in _SETS:
        return [*target, *(one for one in patch if one not in target)]
    key = key_of(field, [*target, *patch])
    if not key:
        return [copy.deepcopy(one) for one in patch if not (isinstance(one, dict) and "$patch" in one)]
    if any(one.get("$patch") == "replace" for one in patch):
        return [one for one in patch if "$patch" not in one]
    found = {one[key]: one for one in target}
    for one in patch:
        if one.get("$patch") == "delete":
            found.pop(one.get(key), None)
        else:
            found[one[key]] = strategic(found.get(one[key]), one)
    return list(found.values())


def _operate(document: Any, one: Mapping[str, Any]) -> None:
    what, parts = one.get("op"), _parts(str(one.get("path", "")))
    if what in ("copy", "move"):
        parent, last = _walk(document, _parts(str(one["from"])))
        value = copy.deepcopy(parent[last])
        if what == "move":
            del parent[last]
    else:
        value = copy.deepcopy(one.get("value"))
    parent, last = _walk(document, parts)
    try:
        if what == "remove":
            del parent[last]
        elif what == "test" and parent[last] != value:
            raise Refusal(422, "Invalid", f"{_REJECTED}: testing {one['path']} failed")
        elif what in ("add", "copy", "move") and isinstance(parent, list):
            parent.insert(len(parent) if last == "-" else int(last), value)
        elif what in ("add", "replace", "copy", "move"):
            parent[last] = value
    except (KeyError, IndexError):
        raise Refusal(422, "Invalid", _REJECTED) from None


def _parts(path: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]


def _walk(document: Any, parts: list[str]) -> tuple[Any, Any]:
    at = document
    try:
        for part in parts[:-1]:
            at = at[int(part)] if isinstance(at, list) else at[part]
    except (KeyError, IndexError, ValueError):
        raise bad_request(f"the path /{'/'.join(parts)} does not exist") from None
    last: Any = parts[-1] if parts else ""
    return at, int(last) if isinstance(at, list) and last != "-" else last
