"""The store as the place of a launch's secrets: an object under a prefix that has rights of its own.

For machines that are told things which others may read, where nothing better is configured. It goes when the
launch is found gone (`records/launch/launches.py`), whoever finds that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hostler.records import layout
from hostler.records.body import encode
from hostler.records.launch import launches
from hostler.store import Store


@dataclass(frozen=True)
class ObjectVault:
    store: Store

    def place(self, launch: str, names: Sequence[str]) -> str:
        return f"store:{_key(launch)}"

    def put(self, launch: str, values: Mapping[str, str], until: float) -> None:
        self.store.put(_key(launch), encode({"secrets": dict(values)}))

    def remove(self, launch: str, names: Sequence[str]) -> None:
        self.store.delete(_key(launch))


def _key(launch: str) -> str:
    return layout.secrets(*(launches.named(launch) or (launch, 1)))
