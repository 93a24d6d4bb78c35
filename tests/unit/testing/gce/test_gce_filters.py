"""Filters of listings."""

from __future__ import annotations

from typing import Any

import pytest

from hostler.emulators.gce.api.filters import chosen
from hostler.emulators.gce.api.refusal import Refusal

ITEMS: list[dict[str, Any]] = [
    {"name": "a-1", "labels": {"fleet": "x", "n": "1"}, "status": "RUNNING", "size": 10, "on": True},
    {"name": "a-2", "labels": {"fleet": "y"}, "status": "RUNNING", "size": 20, "tags": ["p", "q"]},
    {"name": "b-1", "status": "TERMINATED", "size": 3, "note": "two words"},
]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", "a-1 a-2 b-1"),
        ("labels.fleet=x", "a-1"),
        ("labels.fleet = x", "a-1"),
        ('labels.fleet="x"', "a-1"),
        ("labels.fleet:*", "a-1 a-2"),
        ("labels.fleet!=x", "a-2 b-1"),
        ("name=a-*", "a-1 a-2"),
        ("name eq a-.", "a-1 a-2"),
        ("name eq 'a'", ""),
        ("name ne a-.", "b-1"),
        ("name:1", "a-1 b-1"),
        ("status=running", "a-1 a-2"),
        ("status=RUNNING AND labels.fleet=y", "a-2"),
        ("status=RUNNING labels.fleet=y", "a-2"),
        ("(labels.fleet=x) (labels.n=1)", "a-1"),
        ("labels.fleet=x OR name=b-1", "a-1 b-1"),
        ("status=RUNNING AND (labels.fleet=x OR labels.fleet=z)", "a-1"),
        ("NOT status=RUNNING", "b-1"),
        ("size>5", "a-1 a-2"),
        ("size<=10", "a-1 b-1"),
        ("on=true", "a-1"),
        ("tags=q", "a-2"),
        ("note='two words'", "b-1"),
    ],
)
def test_a_filter_chooses(text: str, names: str) -> None:
    assert [item["name"] for item in chosen(ITEMS, text)] == names.split()


@pytest.mark.parametrize(
    "text", ["name", "name=", "=x", "(name=x", "name=x)", "name eq '['", "name == x", "AND"]
)
def test_a_filter_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(Refusal, match="filter"):
        chosen(ITEMS, text)
