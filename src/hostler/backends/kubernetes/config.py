"""The chosen cluster: kubeconfig files, and the contexts in them. The standard library and YAML alone."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from hostler.errors import CloudError, UsageError
from hostler.frozen import dataclass
from hostler.spec.nearest import did_you_mean

_LISTS = ("clusters", "contexts", "users")
_FILES = ("certificate-authority", "client-certificate", "client-key", "tokenFile")


@dataclass(frozen=True)
class KubeConfig:
    """`body` is one kubeconfig, all files merged; the first that names a thing has it, as with kubectl."""

    body: dict[str, Any]
    context: str
    namespace: str
    server: str


def load(paths: Sequence[Path], context: str | None) -> KubeConfig:
    """CloudError where there is none; UsageError for a context that is not in it, naming those that are."""
    there = [path for path in paths if path.is_file()]
    if not there:
        names = " or ".join(map(str, paths))
        raise CloudError(
            f"no kubeconfig found: {names}",
            hint="set KUBECONFIG=FILE, or have one written (gcloud container clusters get-credentials NAME)",
        )
    body = _merged([_read(path) for path in there])
    known = {str(one["name"]): one.get("context") or {} for one in body["contexts"]}
    chosen = context or str(body["current-context"] or "")
    if chosen not in known:
        names = ", ".join(known) or "none"
        what = f"no context named {chosen!r}" if chosen else "no context is chosen"
        hint = (
            did_you_mean(chosen, known, f"contexts: {names}")
            if chosen
            else f"`context:` in the fleet: {names}"
        )
        raise UsageError(f"{what} in {', '.join(map(str, there))}", hint=_both(hint, f"contexts: {names}"))
    clusters = {str(cluster["name"]): cluster.get("cluster") or {} for cluster in body["clusters"]}
    found = known[chosen]
    server = str(clusters.get(str(found.get("cluster")), {}).get("server") or "")
    if not server:
        raise CloudError(f"context {chosen} names no cluster", hint=f"kubectl config view --context {chosen}")
    return KubeConfig(
        {**body, "current-context": chosen}, chosen, str(found.get("namespace") or "default"), server
    )


def namespace_of(paths: Sequence[Path], context: str | None) -> str:
    """Namespace of a context, or the one that a cluster has for whoever names none."""
    try:
        return load(paths, context).namespace
    except (CloudError, UsageError):
        return "default"


def _both(hint: str, all_of_them: str) -> str:
    return hint if all_of_them in hint else f"{hint} {all_of_them}"


def _read(path: Path) -> dict[str, Any]:
    try:
        found = yaml.safe_load(path.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        text = str(error).splitlines()[0]
        raise CloudError(f"{path} cannot be read: {text}", hint="kubectl config view shows it") from None
    if not isinstance(found, dict) or not all(_is_list_of(found.get(kind), kind[:-1]) for kind in _LISTS):
        raise CloudError(f"{path} is not a kubeconfig", hint="set KUBECONFIG=FILE to another")
    return _from_root(found, path.absolute().parent)


def _is_list_of(value: Any, key: str) -> bool:
    """Whether it is a list of tables, each with a name and, under this key, a table or nothing."""
    return value is None or (
        isinstance(value, list)
        and all(isinstance(one, dict) and "name" in one and _is_table(one.get(key)) for one in value)
    )


def _is_table(value: Any) -> bool:
    """A file's path in it, if it has one, is a text."""
    if not isinstance(value, dict):
        return value is None
    return all(isinstance(value.get(name) or "", str) for name in _FILES)


def _from_root(found: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Paths in it are meant from where it lies."""
    for kind, key in (("clusters", "cluster"), ("users", "user")):
        for one in found.get(kind) or ():
            inner = one.get(key) or {}
            for name in _FILES:
                if inner.get(name):
                    inner[name] = os.path.join(folder, inner[name])
    return found


def _merged(files: Sequence[dict[str, Any]]) -> dict[str, Any]:
    merged: dict[str, Any] = {"current-context": ""}
    for kind in _LISTS:
        seen: dict[str, Any] = {}
        for one in [entry for file in files for entry in file.get(kind) or ()]:
            seen.setdefault(str(one.get("name")), one)
        merged[kind] = list(seen.values())
    merged["current-context"] = next((f["current-context"] for f in files if f.get("current-context")), "")
    return merged
