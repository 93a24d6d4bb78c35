"""Functions of a real notebook's cells, swept by `hostler.sweep` in its kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import servers
from hostler.records.rows import Row, rows
from hostler.records.sweep import sweeps
from hostler.store import Store, open_store

nbformat = servers.later("nbformat")
nbclient = servers.later("nbclient")
servers.library("cloudpickle")

SOURCE = Path(__file__).parents[2] / "src"
HELPERS = """import math
import hostler
from beside import SHIFT
OFFSET = 10
def root(x):
    return math.sqrt(x)
"""
TRAIN = """class Net:
    def __init__(self, width):
        self.width = width

def train(lr, width=1):
    net = Net(width)
    if lr > 3:
        return root(1 / (lr - 4))
    return {"score": OFFSET + SHIFT + root(lr) * net.width}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOSTLER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(SOURCE))
    monkeypatch.delenv("HOSTLER_STORE", raising=False)
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "beside.py").write_text("SHIFT = 100\n")
    return tmp_path / "work"


def execute(folder: Path, *cells: str) -> list[str]:
    """What each cell printed, in order."""
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells])
    resources = {"metadata": {"path": str(folder)}}
    nbclient.NotebookClient(book, timeout=280, resources=resources).execute()
    return ["".join(out.get("text", "") for out in cell.outputs) for cell in book.cells]


def found(folder: Path, name: str) -> tuple[Store, list[Row]]:
    store = open_store(str(folder / ".hostler"))
    return store, rows(store, [name])


def test_function_of_a_cell_is_swept_and_errors_show_the_cell(folder: Path) -> None:
    call = "hostler.sweep(train, {'lr': [1, 4, 9]}, metric='score', name='cells', retries=0)"
    said = execute(folder, HELPERS, TRAIN, f"{call}.wait(240)", f"print(len({call}.rows()))")
    line = "hostler: train is not in a file: cloudpickle sends it, with what it uses"
    assert said[2].count(line) == 1 and line not in said[3], "said once"
    assert said[3].strip() == "3"
    store, (first, broken, other) = found(folder, "cells")
    assert (first.state, first.metrics["score"], other.state) == ("done", 111.0, "done")
    failure: dict[str, Any] = broken.failure or {}
    shown = "Cell In[2], line 8: return root(1 / (lr - 4))"
    assert failure["message"].startswith(f"ZeroDivisionError: division by zero ({shown}, no retries)")
    text = failure["traceback"].splitlines()
    assert text[1].strip() == "Cell In[2], line 8, in train"
    assert text[2].strip() == "return root(1 / (lr - 4))"
    job = sweeps.load(store, "cells")
    assert job.source.function and len(job.source.function) == 64


def test_lambda_and_closure_of_cells_are_swept(folder: Path) -> None:
    made = "def make(n):\n    def inner(lr):\n        return lr * n\n    return inner\n"
    said = execute(
        folder,
        f"import hostler\n{made}",
        "one = hostler.sweep(lambda lr: lr + 1, {'lr': [1, 2]}, metric='m', name='one')",
        "two = hostler.sweep(make(5), {'lr': [1, 2]}, metric='m', name='two')",
        "print([row.metrics['m'] for s in (one, two) for row in s.wait(240).rows()])",
    )
    assert said[3].strip() == "[2.0, 3.0, 5.0, 10.0]"


def test_unpicklable_function_submits_nothing(folder: Path) -> None:
    said = execute(
        folder,
        "import sqlite3, hostler, hostler.errors\ndb = sqlite3.connect(':memory:')\n"
        "def train(lr):\n    return db",
        "try:\n    hostler.sweep(train, {'lr': [1]})\n"
        "except hostler.errors.UsageError as error:\n    print(error)",
    )
    expected = "train uses `db`, a sqlite3.Connection, which cannot be pickled (make it inside the function)"
    assert said[1].strip() == expected
    assert not (folder / ".hostler").exists()
