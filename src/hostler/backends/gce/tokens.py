"""The way into a Google project: a VM's own account, a person's by google-auth, or none for an emulator."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from hostler import env
from hostler.backends.gce.client import GOOGLE, GceClient
from hostler.backends.metadata import Token
from hostler.errors import CloudError, MachineError
from hostler.spec.project import Fleet

SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_PROJECT = re.compile(r"[a-z0-9][a-z0-9.:-]*")
_LOGIN = "gcloud auth application-default login, or GOOGLE_APPLICATION_CREDENTIALS=key.json"


def client_of(fleet: Fleet) -> GceClient:
    """Compute Engine as a person at this machine reaches it."""
    endpoint, given = env.cloud_endpoint(), fleet.options.get("project")
    if endpoint and is_loopback(endpoint):
        token = Token() if env.metadata_server() else str
        return GceClient(_project(fleet, given or env.cloud_project()), endpoint, token)
    found, default = _default()
    return GceClient(
        _project(fleet, given or env.cloud_project() or default), endpoint or GOOGLE, _bearer(found)
    )


def client_without_project(google: str, api: str, service: str, under: str) -> GceClient:
    """A service of Google's that belongs to no project; an emulator answers for it, too."""
    endpoint = env.cloud_endpoint()
    if endpoint and is_loopback(endpoint):
        parts = urlsplit(endpoint)
        token = Token() if env.metadata_server() else str
        return GceClient("", f"{parts.scheme}://{parts.netloc}", token, api=api, service=service, under=under)
    return GceClient("", google, _bearer(_default()[0]), api=api, service=service, under=under)


def is_loopback(endpoint: str) -> bool:
    """An emulator on this machine wants none of a person's credentials, and is shown none."""
    return (urlsplit(endpoint).hostname or "") in ("127.0.0.1", "localhost", "::1")


def _project(fleet: Fleet, found: str | None) -> str:
    if not found:
        raise CloudError(
            f"fleet {fleet.name}: the Google Cloud project is not known",
            "set `project` of the fleet, or GOOGLE_CLOUD_PROJECT",
        )
    if not _PROJECT.fullmatch(str(found)):
        raise CloudError(
            f"fleet {fleet.name}: {str(found)!r} is not the id of a Google Cloud project",
            "`project` is its id, not its name: like my-project-123 (gcloud projects list)",
        )
    return str(found)


def _default() -> tuple[Any, str | None]:
    try:
        import google.auth
        from google.auth.exceptions import DefaultCredentialsError
    except ModuleNotFoundError:
        raise MachineError(
            "Compute Engine needs the package google-auth", "pip install 'hostler[gce]'"
        ) from None
    try:
        found = google.auth.default(scopes=[SCOPE])
    except DefaultCredentialsError as error:
        text = str(error).splitlines()[0]
        raise CloudError(f"Google credentials were not found on this machine: {text}", _LOGIN) from None
    return found[0], found[1]


def _bearer(credentials: Any) -> Callable[[], str]:
    def token() -> str:
        from google.auth.exceptions import GoogleAuthError
        from google.auth.transport.requests import Request

        try:
            if not credentials.valid:
                credentials.refresh(Request())
        except GoogleAuthError as error:
            raise CloudError(f"Google does not accept the credentials: {error}", _LOGIN) from None
        return str(credentials.token)

    return token
