"""Bytes under keys, in a folder or a bucket. Knows no word of the domain above it."""

from hostler.store.base import Blob, Entry, NotFound, Store
from hostler.store.registry import open_store

__all__ = ["Blob", "Entry", "NotFound", "Store", "open_store"]
