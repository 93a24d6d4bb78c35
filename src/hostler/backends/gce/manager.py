"""Secrets of launches in Google's Secret Manager: one secret for each name, made anew for each launch.

They carry the labels of the fleet's VMs, so that what is left of it can be listed, and a time at which Google
itself deletes them, should everybody be dead. VMs read them with their own account; their template says only
which they are. No value is ever part of a message.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from hostler import env
from hostler.backends import cloud
from hostler.backends.base import Thing
from hostler.backends.gce import names
from hostler.backends.gce.client import Body, GceClient, GceRefusal
from hostler.backends.gce.names import GceOwner
from hostler.backends.gce.template import rfc3339
from hostler.backends.metadata import Token
from hostler.errors import CloudError, MissingError, UsageError
from hostler.frozen import dataclass

GOOGLE = "https://secretmanager.googleapis.com"
API = "/v1"
SERVICE = "Secret Manager"
KIND = "secret"
WHERE = "manager:"  # how the place of a launch's secrets begins, for its workers
PAGE = 500
LONGEST = 64 * 1024  # bytes of one value: Secret Manager takes no more
_GONE = "the secrets of this launch are gone from Secret Manager"


@dataclass(frozen=True)
class SecretVault:
    """The vault of one fleet. `client` speaks with Secret Manager."""

    client: GceClient
    owner: GceOwner

    def place(self, launch: str, names: Sequence[str]) -> str:
        return f"{WHERE}{self.client.project}/{self._prefix(launch)}:{','.join(sorted(names))}"

    def put(self, launch: str, values: Mapping[str, str], until: float) -> None:
        for name, value in values.items():
            self._put(f"{self._prefix(launch)}{name}", cloud.number_of(launch), name, value.encode(), until)

    def remove(self, launch: str, names: Sequence[str]) -> None:
        for name in names:
            discard(self.client, f"secrets/{self._prefix(launch)}{name}")

    def things(self, *, everywhere: bool = False) -> Iterator[Thing]:
        """Secrets of this fleet, or of all fleets."""
        own = self.owner.labels
        for body in self._listed():
            labels, name = names.labels_of(body), names.last(str(body["name"]))
            if labels == own or (everywhere and labels[cloud.PROJECT] == own[cloud.PROJECT]):
                whose = labels[cloud.PROJECT], labels[cloud.FLEET], labels[cloud.STORE]
                generation, ours = _label(body, cloud.GENERATION), labels[cloud.STORE] == own[cloud.STORE]
                yield Thing(KIND, name, f"secrets/{name}", *whose, generation, ours=ours)

    def _listed(self) -> Iterator[Body]:
        token = ""
        while True:
            more = {"pageToken": token} if token else {}
            try:
                page = self.client.get("secrets", filter=f"name:{cloud.PREFIX}", pageSize=PAGE, **more)
            except GceRefusal as error:
                raise in_words(error, self.client.project) from None
            yield from page.get("secrets") or ()
            token = page.get("nextPageToken") or ""
            if not token:
                return

    def _prefix(self, launch: str) -> str:
        return f"{self.owner.name(cloud.number_of(launch))}-{self.owner.labels[cloud.STORE]}-"

    def _put(self, name: str, number: str, variable: str, value: bytes, until: float) -> None:
        if len(value) > LONGEST:
            raise UsageError(
                f"{variable} has {len(value)} bytes: Secret Manager takes {LONGEST}",
                "put it into a file of its own among the data, or shorten it",
            )
        body = {
            "replication": {"automatic": {}},
            "labels": {**self.owner.labels, cloud.GENERATION: number},
            "expireTime": rfc3339(until),
        }
        try:
            self._make(name, body)
            payload = {"data": base64.b64encode(value).decode(), "dataCrc32c": str(crc32c(value))}
            self.client.ask_again("POST", f"secrets/{name}:addVersion", {"payload": payload})
        except GceRefusal as error:
            raise in_words(error, self.client.project) from None

    def _make(self, name: str, body: Body) -> None:
        """Make a secret; an existing one is this launch's: an answer was lost, or the launch is repeated."""
        try:
            self.client.ask_again("POST", "secrets", body, secretId=name)
        except GceRefusal as error:
            if error.status != 409:
                raise


def client_for(compute: GceClient) -> GceClient:
    """Secret Manager as the one who asks Compute Engine reaches it; an emulator answers for both."""
    parts = urlsplit(compute.endpoint)
    emulated = (parts.hostname or "") in ("127.0.0.1", "localhost", "::1")
    endpoint = f"{parts.scheme}://{parts.netloc}" if emulated else GOOGLE
    return replace(compute, endpoint=endpoint, api=API, service=SERVICE)


def read(where: str) -> dict[str, str]:
    """On a VM: the values that a place names, each under its variable."""
    client, found = _followed(where)
    return {variable: _read(client, path) for variable, path in found.items()}


def forget(where: str) -> None:
    """On a VM: they are not needed any more. An account that may not delete them leaves it to their time."""
    client, found = _followed(where)
    for path in found.values():
        try:
            discard(client, path)
        except CloudError:
            return


def discard(client: GceClient, path: str) -> bool:
    """Whether it was there."""
    try:
        client.ask_again("DELETE", path)
    except GceRefusal as error:
        if error.status == 404:
            return False
        raise in_words(error, client.project) from None
    return True


def in_words(error: GceRefusal, project: str) -> CloudError:
    """Error for a refusal, with what to do."""
    if error.code in ("SERVICE_DISABLED", "accessNotConfigured"):
        return CloudError(
            f"the Secret Manager API is not enabled in {project}",
            f"gcloud services enable secretmanager.googleapis.com --project {project}; "
            "or leave `secret_manager` out: the store keeps them then",
        )
    if error.status == 403:
        return CloudError(
            f"{SERVICE}: the account may not do that: {error.said}",
            "docs/gce.md lists the permissions: admin for your own account, accessor for the VMs' account",
        )
    return CloudError(f"{SERVICE}: {error.message}", error.hint)


def crc32c(data: bytes) -> int:
    """The sum by which Google knows that a value has arrived as it was sent."""
    total, table = 0xFFFFFFFF, tuple(map(_crc_row, range(256)))
    for byte in data:
        total = table[(total ^ byte) & 0xFF] ^ (total >> 8)
    return total ^ 0xFFFFFFFF


def _crc_row(n: int) -> int:
    for _ in range(8):
        n = (n >> 1) ^ (0x82F63B78 if n & 1 else 0)
    return n


def _followed(where: str) -> tuple[GceClient, dict[str, str]]:
    place, _, variables = where.rpartition(":")
    project, _, prefix = place.partition("/")
    compute = GceClient(project, env.cloud_endpoint() or GOOGLE, Token())
    return client_for(compute), {name: f"secrets/{prefix}{name}" for name in variables.split(",") if name}


def _read(client: GceClient, path: str) -> str:
    try:
        payload = client.get(f"{path}/versions/latest:access")["payload"]
    except GceRefusal as error:
        if error.status == 404:
            raise MissingError(
                f"{_GONE}: {path}", "hostler down and hostler up start machines that have them"
            ) from None
        raise in_words(error, client.project) from None
    try:
        value = base64.b64decode(payload["data"], validate=True)
        if int(payload.get("dataCrc32c") or crc32c(value)) != crc32c(value):
            raise ValueError(path)
        return value.decode()
    except (KeyError, ValueError, binascii.Error):
        raise CloudError(f"{SERVICE}: {path} has arrived damaged", "run the same command again") from None


def _label(body: Mapping[str, Any], name: str) -> str:
    return str((body.get("labels") or {}).get(name, ""))
