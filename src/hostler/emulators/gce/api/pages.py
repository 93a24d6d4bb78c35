"""Listings: filtered, in order, in pages; of one place, or of all places at once."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from hostler.emulators.gce.api.filters import chosen
from hostler.emulators.gce.api.links import link
from hostler.emulators.gce.api.refusal import invalid

PAGE = 500


def page(
    items: Sequence[dict[str, Any]], query: Mapping[str, str], *, key: str = "items"
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The part of an answer with the items, and the items alone."""
    rows = _ordered(chosen(items, query.get("filter")), query.get("orderBy", ""))
    begin, count = _begin(query), _count(query)
    here = rows[begin : begin + count]
    more = {"nextPageToken": _token(begin + count)} if begin + count < len(rows) else {}
    return {**({key: here} if here else {}), **more}, here


def listing(
    kind: str, path: str, items: Sequence[dict[str, Any]], query: Mapping[str, str]
) -> dict[str, Any]:
    return {"kind": kind, "id": path, "selfLink": link(path), **page(items, query)[0]}


def aggregated(
    kind: str, path: str, key: str, by_place: Mapping[str, Sequence[dict[str, Any]]], query: Mapping[str, str]
) -> dict[str, Any]:
    """By place. An empty place has a warning, as Google gives it."""
    flat = [(place, item) for place, items in by_place.items() for item in items]
    places = {id(item): place for place, item in flat}
    whole, here = page([item for _, item in flat], query)
    answer: dict[str, Any] = {"kind": kind, "id": path, "selfLink": link(path), "items": {}}
    for place in by_place:
        rows = [item for item in here if places[id(item)] == place]
        answer["items"][place] = {key: rows} if rows else {"warning": _nothing(place)}
    return answer | {name: value for name, value in whole.items() if name == "nextPageToken"}


def _nothing(place: str) -> dict[str, Any]:
    text = f"There are no results for scope '{place}' on this page."
    return {"code": "NO_RESULTS_ON_PAGE", "message": text, "data": [{"key": "scope", "value": place}]}


def _ordered(items: list[dict[str, Any]], order: str) -> list[dict[str, Any]]:
    if order in ("", "name"):
        return sorted(items, key=lambda item: str(item.get("name", "")))
    if order == "creationTimestamp desc":
        return sorted(items, key=lambda item: str(item.get("creationTimestamp", "")), reverse=True)
    raise invalid("orderBy", order, "Only `name` and `creationTimestamp desc` are known.")


def _count(query: Mapping[str, str]) -> int:
    asked = query.get("maxResults", str(PAGE))
    if not asked.isdigit() or int(asked) > PAGE:
        raise invalid("maxResults", asked, f"Acceptable values are 0 to {PAGE}, inclusive.")
    return int(asked) or PAGE


def _begin(query: Mapping[str, str]) -> int:
    token = query.get("pageToken")
    if not token:
        return 0
    try:
        return int(base64.urlsafe_b64decode(token.encode()).decode().removeprefix("from:"))
    except ValueError:
        raise invalid("pageToken", token) from None


def _token(begin: int) -> str:
    return base64.urlsafe_b64encode(f"from:{begin}".encode()).decode()
