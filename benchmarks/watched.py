"""A store that counts the claims that somebody else has won."""

from __future__ import annotations

from dataclasses import dataclass, field

from hostler.store import Store


@dataclass
class Watched:
    inner: Store
    lost: int = 0
    url: str = field(init=False)

    def __post_init__(self) -> None:
        self.url = self.inner.url

    def __getattr__(self, name: str) -> object:
        return getattr(self.inner, name)

    def put(self, key: str, data: bytes, *, if_absent: bool = False) -> bool:
        done = self.inner.put(key, data, if_absent=if_absent)
        self.lost += not done
        return done
