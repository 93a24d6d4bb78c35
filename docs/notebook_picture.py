"""Photograph of a notebook: a sweep's live table and a plot, from a real kernel, as Jupyter shows them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from photographs import save_page

FILE = "images/notebook.png"
WIDE = 860
CELLS = (
    "import hostler\n\n"
    'sweep = hostler.sweep("python train.py", {"lr": [0.003, 0.03, 0.3], "batch": [4, 16]},\n'
    '                      metric="loss", goal="min", name="cells")\nsweep',
    'sweep.wait()\nsweep.plot("results", by="lr")',
    "print(sweep.run(0).logs(tail=2))",
)
UNTIL = "import threading\n[one.join(60) for one in threading.enumerate() if one.name == 'hostler-table'];"


def photograph(folder: Path, browser: Any, path: Path) -> None:
    """Execute the cells in a folder, and save what a person sees after the last."""
    place = folder / "notebook.html"
    place.write_text(_shown(folder))
    page = browser.new_page(viewport={"width": WIDE, "height": 400}, device_scale_factor=1.5)
    page.route(
        "**/*", lambda route: route.abort() if route.request.url.startswith("http") else route.continue_()
    )
    page.goto(place.as_uri())
    page.set_viewport_size({"width": WIDE, "height": page.evaluate("document.body.scrollHeight")})
    save_page(page, path)


def _shown(folder: Path) -> str:
    """The executed notebook as a page, by Jupyter's own template."""
    import nbformat
    from nbclient import NotebookClient
    from nbconvert import HTMLExporter

    cells = [nbformat.v4.new_code_cell(text) for text in (*CELLS, UNTIL)]
    book = nbformat.v4.new_notebook(cells=cells)
    environ = {**os.environ, "PYTHONWARNINGS": "ignore"}
    client = NotebookClient(book, timeout=600, resources={"metadata": {"path": str(folder)}})
    client.execute(env=environ)
    book.cells.pop()  # which only waited for the last update of the table
    text, _ = HTMLExporter(template_name="lab").from_notebook_node(book)
    return str(text)
