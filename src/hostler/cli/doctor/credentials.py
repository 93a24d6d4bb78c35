"""Credentials for clouds: which are here, by name and place; what is in them is never shown."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from hostler import env
from hostler.backends import registry
from hostler.backends.doctor import NONE, OK, WARN, Check
from hostler.spec.project import Fleet

KINDS = {"service_account": "a service account's key", "authorized_user": "a person's login"}
GOOGLE = ("GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_PATH", "GOOGLE_SERVICE_ACCOUNT_KEY")
AMAZON = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
AMAZON_ROLES = (
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)
AZURE_ACCOUNT = ("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT")
AZURE_KEYS = (
    "AZURE_STORAGE_ACCOUNT_KEY",
    "AZURE_STORAGE_KEY",
    "AZURE_STORAGE_SAS_KEY",
    "AZURE_STORAGE_SAS_TOKEN",
    "AZURE_CLIENT_SECRET",
    "AZURE_FEDERATED_TOKEN_FILE",
)
LOGIN = "gcloud auth application-default login, or GOOGLE_APPLICATION_CREDENTIALS=key.json"


def credentials(fleets: Sequence[Fleet], url: str) -> Iterator[Check]:
    """A line for each cloud; one that the store or a fleet needs is missed."""
    scheme = url.partition("://")[0]
    takers = [
        name
        for name in registry.BACKENDS
        if getattr(registry.part(name, "doctor"), "CREDENTIALS", "") == "google"
    ]
    yield _google(takers, scheme == "gs" or any(fleet.backend in takers for fleet in fleets))
    yield _amazon(scheme == "s3")
    yield _azure(scheme == "az")


def _google(takers: Sequence[str], asked: bool) -> Check:
    named = env.google_key_file()
    if named is not None:
        return _google_file("GOOGLE_APPLICATION_CREDENTIALS names", named)
    set_ = env.named(GOOGLE)
    if set_:
        return Check(OK, "google", f"{', '.join(set_)} is set; its value is not shown")
    if env.gcs_emulator() or env.metadata_server():
        return Check(OK, "google", "an emulator is used (STORAGE_EMULATOR_HOST, GCE_METADATA_HOST)")
    login = env.google_login_file()
    if login.is_file():
        return _google_file("application-default login:", login)
    uses = ["gs://", *(f"`backend: {name}`" for name in takers)]
    return _none("google", " and ".join(uses), LOGIN, asked)


def _google_file(said: str, path: Path) -> Check:
    try:
        body = json.loads(path.read_text())
        kind = body.get("type", "") if isinstance(body, dict) else ""
    except (OSError, ValueError) as error:
        why = "is not there" if isinstance(error, FileNotFoundError) else "cannot be read"
        return Check(WARN, "google", f"{said} {path}, which {why}", LOGIN)
    return Check(OK, "google", f"{said} {path} ({KINDS.get(kind, 'credentials')})")


def _amazon(asked: bool) -> Check:
    found = env.named(AMAZON)
    if len(found) == 1:
        [other] = set(AMAZON) - set(found)
        return Check(WARN, "amazon", f"{found[0]} is set, but {other} is not", "set both, or neither")
    found = found or env.named(AMAZON_ROLES)
    if found:
        return Check(OK, "amazon", f"{' and '.join(found)} set; values are not shown")
    profiles = env.amazon_profiles()
    if profiles.is_file():
        todo = f"export {' and '.join(AMAZON)}: buckets are opened by variables, not by profiles"
        return Check(WARN if asked else NONE, "amazon", f"only profiles in {profiles}", todo)
    return _none("amazon", "s3://", f"export {' and '.join(AMAZON)}", asked)


def _azure(asked: bool) -> Check:
    account, keys = env.named(AZURE_ACCOUNT), env.named(AZURE_KEYS)
    if account and keys:
        return Check(OK, "azure", f"{', '.join([*account, *keys])} set; values are not shown")
    if account or keys:
        missing = AZURE_KEYS[0] if account else AZURE_ACCOUNT[0]
        lone = ", ".join([*account, *keys])
        return Check(WARN if asked else NONE, "azure", f"{lone} set, and no {missing}", f"export {missing}")
    return _none("azure", "az://", f"export {AZURE_ACCOUNT[0]} and {AZURE_KEYS[0]}", asked)


def _none(what: str, use: str, todo: str, asked: bool) -> Check:
    if asked:
        detail = "no credentials, unless this machine has a role of its own"
        return Check(WARN, what, detail, todo)
    return Check(NONE, what, f"no credentials; needed only for {use}")
