"""A string prefix in a server that lists by whole path segments: pure over strings.

The segment above the prefix is listed, from just before the prefix on: so that neither what comes
before nor what comes after costs a request. The caller filters; nothing here may lose a key.
"""

from __future__ import annotations

import re

_ALPHABET = "".join(
    sorted("+,-./=@_" + "0123456789" + "ABCDEFGHIJKLMNOPQRSTUVWXYZ" + "abcdefghijklmnopqrstuvwxyz")
)
_LONG = 64
_FOREIGN = re.compile(r"[^A-Za-z0-9._=+,@/-]")


def server_folder(prefix: str) -> str | None:
    """The whole segments of a prefix, as the server takes them."""
    return prefix.rpartition("/")[0] or None


def offset_for(prefix: str, after: str) -> str:
    """A legal key that no wanted key comes before or equals; '' for none."""
    foreign = _FOREIGN.search(after)
    given = after[: foreign.start()] if foreign else after
    return max(given.rstrip("/"), _just_before(prefix))


def past(key: str, prefix: str) -> bool:
    """Whether keys in name order can no longer start with the prefix."""
    return key[: len(prefix)] > prefix


def _just_before(prefix: str) -> str:
    if not prefix or prefix.endswith("/"):
        return ""
    at = _ALPHABET.find(prefix[-1])
    return prefix[:-1] + _ALPHABET[at - 1] + "z" * _LONG if at > 0 else ""
