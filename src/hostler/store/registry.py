"""A store by its URL; drivers are imported on use."""

from __future__ import annotations

from hostler.store.base import Store


def open_store(url: str) -> Store:
    raise NotImplementedError
