"""The notebook to begin from, executed as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

import servers
from seen_world import gallery

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "view_results.ipynb"


def test_every_cell_runs_and_shows_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat = servers.library("nbformat")
    nbclient = servers.library("nbclient")
    source = Path(__file__).parents[2] / "src"
    seen = gallery(tmp_path / "store")
    monkeypatch.setenv("PYTHONPATH", str(source))
    monkeypatch.setenv("HOSTLER_STORE", seen.url)
    monkeypatch.setenv("SWEEP", "cifar-grid")
    book = nbformat.read(NOTEBOOK, as_version=4)
    client = nbclient.NotebookClient(book, timeout=120, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    shown = [out.data for cell in book.cells for out in cell.get("outputs", []) if "data" in out]
    assert sum("image/png" in data for data in shown) == 5
    assert any("cifar-grid/0" in str(data.get("text/html", "")) for data in shown)
    assert (tmp_path / "trend.svg").read_text().startswith("<?xml")


def test_the_notebook_is_kept_without_outputs() -> None:
    nbformat = servers.library("nbformat")
    book = nbformat.read(NOTEBOOK, as_version=4)
    assert not any(cell.get("outputs") for cell in book.cells)
