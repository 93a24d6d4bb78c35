"""Points in time as the API writes them."""

from __future__ import annotations

from datetime import datetime, timezone


def stamp(at: float) -> str:
    return datetime.fromtimestamp(at, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro(at: float) -> str:
    return datetime.fromtimestamp(at, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def seconds(text: str) -> float:
    """Since the epoch, of a stamp of either kind."""
    form = "%Y-%m-%dT%H:%M:%S.%fZ" if "." in text else "%Y-%m-%dT%H:%M:%SZ"
    return datetime.strptime(text[:26].rstrip("Z") + "Z", form).replace(tzinfo=timezone.utc).timestamp()
