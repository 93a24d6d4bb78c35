"""Parameters of notebooks."""

from __future__ import annotations

import pytest

from hostler.errors import UsageError
from hostler.spec import notebook


def test_words_become_values_of_python() -> None:
    words = [
        "--lr",
        "0.1",
        "--n=3",
        "deep=true",
        "--drop-out",
        "-1",
        "--name",
        "a b",
        "--sizes",
        "[1, 2]",
        "--fast",
    ]
    assert notebook.parameters(words) == {
        "lr": 0.1,
        "n": 3,
        "deep": True,
        "drop_out": -1,
        "name": "a b",
        "sizes": [1, 2],
        "fast": True,
    }


@pytest.mark.parametrize("words", [["--import", "1"], ["--a;b", "1"], ["x"], ["--1a", "2"]])
def test_word_that_cannot_be_a_variable_is_refused(words: list[str]) -> None:
    with pytest.raises(UsageError):
        notebook.parameters(words)


def test_values_cannot_be_code_and_replace_an_earlier_cell_of_values() -> None:
    first = {"cell_type": "code", "metadata": {"tags": ["parameters"]}, "source": ["a = 1\n", "b = 2"]}
    book = {"nbformat": 4, "cells": [first]}
    once = notebook.injected(book, {"a": "x'; import os"}, "n.ipynb")
    assert once["cells"][1]["source"] == 'a = "x\'; import os"'
    assert len(notebook.injected(once, {"b": 3}, "n.ipynb")["cells"]) == 2


@pytest.mark.parametrize(
    "word",
    [
        "NaN",
        "1e999",
        "-Infinity",
        "[1, NaN]",
        '{"a": [1e999, "nan"]}',
        "(1e999,)",
        "(1, -1e999)",
        "()",
        "{1e999}",
        "1e999j",
        "{}",
        "nan",
        "[true, null]",
        "0.1",
    ],
)
def test_every_value_can_be_read_by_the_cell(word: str) -> None:
    first = {"cell_type": "code", "metadata": {"tags": ["parameters"]}, "source": "lr = 1"}
    params = notebook.parameters([f"--lr={word}"])
    cell = notebook.injected({"nbformat": 4, "cells": [first]}, params, "n.ipynb")["cells"][1]
    seen: dict[str, object] = {}
    exec(cell["source"], seen)
    assert repr(seen["lr"]) == repr(params["lr"]) and type(seen["lr"]) is type(params["lr"])


@pytest.mark.parametrize("about", [None, [], {"tags": None}, {"tags": "parameters"}])
def test_cell_whose_metadata_is_odd_has_no_tags(about: object) -> None:
    odd = {"cell_type": "code", "metadata": about, "source": "a = 1"}
    tagged = {"cell_type": "code", "metadata": {"tags": ["parameters"]}, "source": "a = 1"}
    cells = notebook.injected({"nbformat": 4, "cells": [odd, tagged]}, {"a": 2}, "n.ipynb")["cells"]
    assert [cell["source"] for cell in cells] == ["a = 1", "a = 1", "a = 2"]
