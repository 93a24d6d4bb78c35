"""Preconditions of a request: parsed from either API, held against the object that is there now.

Generation 0 means that no object may be there. A condition that is not known is refused, never ignored.
"""

from __future__ import annotations

from collections.abc import Mapping

from hostler.emulators.gcs.message import Refusal, bad_request, condition_failed, not_modified, unsupported
from hostler.emulators.gcs.objects import Object
from hostler.frozen import dataclass

_JSON = {
    "GenerationMatch": "generation",
    "GenerationNotMatch": "not_generation",
    "MetagenerationMatch": "metageneration",
    "MetagenerationNotMatch": "not_metageneration",
}
_XML = {"generation-match": "generation", "metageneration-match": "metageneration"}


@dataclass(frozen=True)
class Conditions:
    generation: int | None = None
    not_generation: int | None = None
    metageneration: int | None = None
    not_metageneration: int | None = None

    def check(self, found: Object | None, *, reading: bool = False) -> None:
        """Refusal unless they hold; ask under the lock that also guards the write."""
        generation = found.generation if found else 0
        metageneration = found.metageneration if found else 0
        if self.generation not in (None, generation) or self.metageneration not in (None, metageneration):
            raise condition_failed()
        if self.not_generation == generation or self.not_metageneration == metageneration:
            raise not_modified() if reading else condition_failed()


def from_query(query: Mapping[str, str], prefix: str = "if") -> Conditions:
    """`prefix` is "ifSource" for the source of a copy."""
    found: dict[str, int] = {}
    for name, value in query.items():
        if not name.startswith(prefix) or (prefix == "if" and name.startswith("ifSource")):
            continue
        if name[len(prefix) :] not in _JSON:
            raise unsupported(f"the condition {name}")
        found[_JSON[name[len(prefix) :]]] = _number(value)
    return Conditions(**found)


def from_headers(headers: Mapping[str, str]) -> Conditions:
    found: dict[str, int] = {}
    for name, value in headers.items():
        if name.startswith("x-goog-copy-source-") or name in ("if-modified-since", "if-unmodified-since"):
            raise unsupported(f"the condition {name}")
        if name.startswith("x-goog-if-"):
            if name.removeprefix("x-goog-if-") not in _XML:
                raise unsupported(f"the condition {name}")
            found[_XML[name.removeprefix("x-goog-if-")]] = _number(value)
    return Conditions(**found)


def check_tags(headers: Mapping[str, str], found: Object | None, etag: str, *, reading: bool) -> None:
    """If-Match and If-None-Match of HTTP itself."""
    wanted, unwanted = headers.get("if-match"), headers.get("if-none-match")
    if wanted is not None and (found is None or not _among(etag, wanted)):
        raise condition_failed()
    if unwanted is not None and found is not None and _among(etag, unwanted):
        raise not_modified() if reading else condition_failed()


def _among(etag: str, given: str) -> bool:
    tags = {tag.strip().removeprefix("W/").strip('"') for tag in given.split(",")}
    return "*" in tags or etag.strip('"') in tags


def _number(value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise _not_a_number(value) from None


def _not_a_number(value: str) -> Refusal:
    return bad_request(f"{value!r} is not a generation")
