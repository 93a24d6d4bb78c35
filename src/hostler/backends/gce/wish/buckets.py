"""The location of a bucket, as Cloud Storage tells it. Never needed: '' where it does not."""

from __future__ import annotations

from dataclasses import replace

from hostler import env
from hostler.backends.gce.client import GceClient, GceRefusal
from hostler.backends.gce.tokens import is_loopback
from hostler.errors import CloudUnavailable

GOOGLE = "https://storage.googleapis.com"


def location(compute: GceClient, name: str) -> str:
    """`US`, `EUROPE-WEST4`; asked with the rights of whoever asks Compute Engine. An emulated platform asks
    an emulated storage alone."""
    emulated = is_loopback(compute.endpoint)
    endpoint = env.gcs_emulator() if emulated else GOOGLE
    if not endpoint:
        return ""
    client = replace(
        compute, endpoint=endpoint, api="/storage/v1", under="b", service="Cloud Storage", patience=0.0
    )
    try:
        return str(client.get(name, fields="location").get("location", ""))
    except (GceRefusal, CloudUnavailable):
        return ""
