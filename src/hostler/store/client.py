"""obstore's client for a bucket: which kind, how patient, and where; used by `bucket.py` alone.

Credentials and endpoints are read from the environment by the driver itself (AWS_*, GOOGLE_*, AZURE_*).
Only STORAGE_EMULATOR_HOST, which Google's clients honour and the driver does not, is looked at here. The
driver's own repetitions are kept few and short: the loop around them is `retry.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any

from obstore.store import AzureStore, GCSStore, S3Store

from hostler import env
from hostler.errors import UsageError

KINDS: dict[str, Any] = {"s3": S3Store, "gs": GCSStore, "az": AzureStore}


@dataclass(frozen=True)
class Address:
    """scheme://bucket/prefix"""

    scheme: str
    bucket: str
    prefix: str

    def __str__(self) -> str:
        return f"{self.scheme}://{self.bucket}/{self.prefix}".rstrip("/")


def address_of(url: str) -> Address:
    scheme, _, rest = url.partition("://")
    bucket, _, prefix = rest.partition("/")
    if scheme not in KINDS or not bucket:
        raise UsageError(f"{url!r} names no bucket", "like s3://bucket/prefix")
    return Address(scheme, bucket, prefix.strip("/"))


class Clients:
    """Made at first use. Each keeps its token, so a new pair is how a worthless token is replaced."""

    def __init__(self, address: Address, bound: float) -> None:
        self._address = address
        self._bound = bound

    @cached_property
    def quick(self) -> Any:
        """For small requests: a silent server is given up on within the bound."""
        share = self._bound / 2
        return _client(self._address, {"timeout": timedelta(seconds=share)}, share)

    @cached_property
    def bulk(self) -> Any:
        """For large ones: as long as bytes move, there is time."""
        options = {"timeout": timedelta(days=7), "read_timeout": timedelta(seconds=120)}
        return _client(self._address, options, max(self._bound, 60.0))


def _client(address: Address, options: dict[str, Any], bound: float) -> Any:
    connect = timedelta(seconds=min(5.0, max(bound / 2, 0.1)))
    return KINDS[address.scheme](
        address.bucket,
        prefix=address.prefix or None,
        client_options={"allow_http": True, "connect_timeout": connect, **options},
        retry_config={
            "max_retries": 2,
            "retry_timeout": timedelta(seconds=bound),
            "backoff": {
                "init_backoff": timedelta(milliseconds=50),
                "max_backoff": timedelta(seconds=2),
                "base": 2,
            },
        },
        **_emulated(address.scheme),
    )


def _emulated(scheme: str) -> dict[str, Any]:
    """An emulator takes any token, unless a metadata server beside it gives out true ones."""
    host = env.gcs_emulator() if scheme == "gs" else None
    if not host:
        return {}
    endpoint = host if "://" in host else f"http://{host}"
    token = {} if env.metadata_server() else {"bearer_token": "emulator"}
    return {"base_url": endpoint, **token}
