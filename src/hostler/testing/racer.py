"""A contender in a race of processes for the same keys: prints the numbers it won."""

from __future__ import annotations

import json
import sys

from hostler.store import Store, open_store


def contend(store: Store, folder: str, rounds: int, name: str) -> list[int]:
    """Try to create folder/0, folder/1, … with bytes that only this contender writes."""
    return [n for n in range(rounds) if store.put(f"{folder}/{n}", body(name, n), if_absent=True)]


def body(name: str, n: int) -> bytes:
    return f"{name} {n}".encode()


if __name__ == "__main__":
    url, folder, rounds, name = sys.argv[1:]
    print(json.dumps(contend(open_store(url), folder, int(rounds), name)))
