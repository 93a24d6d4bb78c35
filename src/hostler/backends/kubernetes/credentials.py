"""Credentials of this machine for pods: a key file here becomes a variable there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from hostler.errors import CloudError

FILE, KEY = "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT_KEY"
_WAYS = "a service account's key, or `service_account` with Workload Identity, or `secret` with the key in it"


def portable(variables: Mapping[str, str]) -> dict[str, str]:
    found = dict(variables)
    path = found.pop(FILE, "")
    if not path:
        return found
    try:
        text = Path(path).expanduser().read_text()
        kind = json.loads(text).get("type")
    except (OSError, ValueError, AttributeError) as error:
        raise CloudError(f"{FILE}: {path} cannot be read: {error}", hint=_WAYS) from None
    if kind != "service_account":
        raise CloudError(f"{FILE}: {path} is a person's login, which pods cannot use", hint=f"use {_WAYS}")
    return {**found, KEY: text}
