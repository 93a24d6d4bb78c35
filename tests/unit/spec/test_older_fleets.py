"""Fleets of a `hostler.yaml` of 0.1, each key that version had: they mean today what they meant then.

`read.json` is what hostler 0.1.0 itself made of the file; keys that it left empty are left out.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hostler.backends.project_file import load_project

OLDER = Path(__file__).parents[2] / "golden" / "older_fleets"
READ = json.loads((OLDER / "read.json").read_text())


def plain(value: Any) -> Any:
    """As JSON has it."""
    if dataclasses.is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(name): plain(held) for name, held in value.items()}
    return [plain(one) for one in value] if isinstance(value, list | tuple) else value


def kept(then: Any, now: Any) -> Any:
    """What is there now of what was there then."""
    if isinstance(then, dict) and isinstance(now, dict):
        return {name: kept(value, now.get(name)) for name, value in then.items()}
    if isinstance(then, list) and isinstance(now, list) and len(then) == len(now):
        return [kept(one, other) for one, other in zip(then, now, strict=True)]
    return now


@pytest.mark.parametrize("name", READ)
def test_fleet_of_an_older_version_means_the_same(name: str) -> None:
    fleets = load_project(OLDER / "hostler.yaml").fleets
    assert set(fleets) == set(READ)
    assert kept(READ[name], plain(fleets[name])) == READ[name]
