from __future__ import annotations

import json
import math

import pytest

from hostler.cli.terminal.output import print_json, row_json
from hostler.records.rows import Row


def test_what_is_no_number_in_json_is_text(capsys: pytest.CaptureFixture[str]) -> None:
    print_json([{"a": math.nan, "b": [math.inf]}, {"c": 1.5}])
    out = capsys.readouterr().out
    assert json.loads(out) == [{"a": "nan", "b": ["inf"]}, {"c": 1.5}]
    assert len(out.splitlines()) == 2


def test_an_empty_list_is_a_list(capsys: pytest.CaptureFixture[str]) -> None:
    print_json([])
    assert json.loads(capsys.readouterr().out) == []


def test_a_row_shows_no_session() -> None:
    shown = row_json(Row("i", "n", "s", 0, "done", {"lr": 1}, session="w"))
    assert shown["params"] == {"lr": 1} and "session" not in shown
