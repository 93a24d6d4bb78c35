"""Credentials of this machine for pods: a key file here becomes a variable there, other paths stay here."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from hostler.errors import CloudError

FILE, KEY = "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT_KEY"
FILES = (FILE, "GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_PATH")  # variables that name a key file
_PATH = re.compile(r"(AWS|GOOGLE|AZURE)_\w*(_FILE|_BUNDLE|_DIR|_PATH)")
_WAYS = "a service account's key, or `service_account` with Workload Identity, or `secret` with the key in it"


def is_local(name: str) -> bool:
    """Whether a variable names a path that means nothing in a pod, as AWS_CA_BUNDLE does. Pure."""
    return name not in FILES and _PATH.fullmatch(name) is not None


def portable(variables: Mapping[str, str]) -> dict[str, str]:
    found = {name: value for name, value in variables.items() if name not in FILES}
    name = next((name for name in FILES if variables.get(name)), "")
    if not name:
        return found
    path = variables[name]
    try:
        text = Path(path).expanduser().read_text()
        kind = json.loads(text).get("type")
    except (OSError, ValueError, AttributeError) as error:
        raise CloudError(f"{name}: {path} cannot be read: {error}", hint=_WAYS) from None
    if kind != "service_account":
        raise CloudError(f"{name}: {path} is a person's login, which pods cannot use", hint=f"use {_WAYS}")
    return {**found, KEY: text}
