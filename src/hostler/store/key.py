"""Checks the form of a key, the same in every store.

Parts are [A-Za-z0-9._=+,@-], never '.' or '..', and never begin like a temporary file of the folder
store: so a key can neither leave its store nor be hidden from a listing.
"""

from __future__ import annotations

import re

from hostler.errors import StoreError

TEMPORARY = ".tmp-"

_PART = r"(?!\.{1,2}(?:/|\Z))(?!\.tmp-)[A-Za-z0-9._=+,@-]+"
_KEY = re.compile(rf"{_PART}(?:/{_PART})*")


def may_begin_a_key(prefix: str) -> bool:
    """Whether a key can start with it: its folders must be legal, so that none leads out of the store."""
    folders, slash, _ = prefix.rpartition("/")
    return not slash or _KEY.fullmatch(folders) is not None


def check_key(key: str) -> str:
    """The key itself; StoreError if it is not a key."""
    if not _KEY.fullmatch(key):
        raise StoreError(
            f"{key!r} is not a key", "parts of letters, digits and ._=+,@- with '/' between them"
        )
    return key
