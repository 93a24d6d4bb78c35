"""Notebooks as scripts, and the live table of a sweep, with real kernels."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import servers
from hostler.records.checkpoint import outputs
from hostler.records.rows import rows
from hostler.store import open_store

nbformat = servers.later("nbformat")
nbclient = servers.later("nbclient")

SOURCE = Path(__file__).parents[2] / "src"
TRAIN = """import json
for step in range(3):
    print(json.dumps({"step": step, "acc": lr * step}))
if lr > 5:
    raise ValueError("too high")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOSTLER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(SOURCE))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")  # python
    monkeypatch.delenv("HOSTLER_STORE", raising=False)
    work = tmp_path / "work"
    work.mkdir()
    first = nbformat.v4.new_code_cell("lr = 0.5\nname = 'x'", metadata={"tags": ["parameters"]})
    book = nbformat.v4.new_notebook(cells=[first, nbformat.v4.new_code_cell(TRAIN)])
    nbformat.write(book, work / "train.ipynb")
    nbformat.write(nbformat.v4.new_notebook(cells=book.cells[1:]), work / "plain.ipynb")
    return work


def hostler(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hostler", *words]
    return subprocess.run(command, cwd=folder, env=os.environ, capture_output=True, text=True, timeout=280)


def test_notebook_runs_with_parameters_and_keeps_its_outputs(folder: Path, tmp_path: Path) -> None:
    done = hostler(folder, "run", "train.ipynb", "--lr", "2")
    assert done.returncode == 0, done.stderr
    assert '{"step": 2, "acc": 4}' in done.stdout and "IPKernelApp" not in done.stdout + done.stderr
    store = open_store(str(folder / ".hostler"))
    (row,) = rows(store)
    assert (row.state, row.metrics["acc"], row.params["lr"]) == ("done", 4.0, 2)
    found = outputs.newest(store, row.id)
    assert found is not None
    outputs.fetch(store, row.id, found[1], tmp_path / "left")
    book = nbformat.read(tmp_path / "left" / "train.ipynb", as_version=4)
    assert book.cells[1].source == "lr = 2" and book.cells[2].outputs[0].text.count("acc") == 3

    failed = hostler(folder, "run", "train.ipynb", "--lr", "7")
    assert failed.returncode == 1 and "ValueError: too high" in failed.stdout + failed.stderr


@pytest.mark.parametrize(
    ("leaves", "state"), [("sys.exit()", "done"), ("raise SystemExit('no data')", "failed")]
)
def test_cell_that_exits_ends_the_notebook_as_a_script(folder: Path, leaves: str, state: str) -> None:
    cells = [f"import sys\nprint('begun')\n{leaves}", "raise ValueError('after the end')"]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbformat.write(book, folder / "leaves.ipynb")
    done = hostler(folder, "run", "leaves.ipynb")
    (row,) = rows(open_store(str(folder / ".hostler")))
    assert row.state == state, done.stdout + done.stderr
    assert "after the end" not in done.stdout + done.stderr
    assert ("no data" in done.stderr + done.stdout) is (state == "failed")


def test_notebook_of_a_kernel_that_is_missing_fails_once(folder: Path) -> None:
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1")])
    book.metadata.kernelspec = {"name": "ir", "display_name": "R", "language": "R"}
    nbformat.write(book, folder / "r.ipynb")
    done = hostler(folder, "run", "r.ipynb")
    said = done.stdout + done.stderr
    assert "hostler: r.ipynb wants the kernel ir, which is not installed here" in said
    assert "Traceback" not in said
    (row,) = rows(open_store(str(folder / ".hostler")))
    assert (row.state, row.attempt) == ("failed", 1)


def test_notebook_is_the_command_of_a_sweep(folder: Path) -> None:
    head = "name: books\ncommand: train.ipynb\nmetric: {name: acc, goal: max}\nretries: 0\n"
    (folder / "wrong.yaml").write_text(f"{head}parameters: {{lrr: [1, 3]}}\n")
    wrong = hostler(folder, "sweep", "-y", "wrong.yaml")
    assert wrong.returncode == 2 and "train.ipynb has no 'lrr'" in wrong.stderr, wrong.stderr
    assert not (folder / ".hostler" / "sweeps").exists(), "nothing was submitted"
    (folder / "sweep.yaml").write_text(f"{head}parameters: {{lr: [1, 3]}}\n")
    done = hostler(folder, "sweep", "-y", "--wait", "sweep.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert [row.metrics["acc"] for row in rows(open_store(str(folder / ".hostler")))] == [2.0, 6.0]


def test_notebook_that_takes_no_such_parameter_is_refused(folder: Path) -> None:
    (folder / "broken.ipynb").write_text("{}")
    for words, said in {
        ("plain.ipynb", "--lr", "1"): "plain.ipynb has no cell tagged `parameters`",
        ("train.ipynb", "--lrr", "1"): "has no 'lrr'",
        ("train.ipynb", "loose"): "'loose' is not a parameter of a notebook",
        ("broken.ipynb",): "broken.ipynb is not a notebook of format 4",
    }.items():
        done = hostler(folder, "run", *words)
        assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr, done.stderr
    assert not (folder / ".hostler" / "sweeps").exists(), "nothing was submitted"


GOES_ON = """import json, sys, time
print(json.dumps({"acc": 1}), flush=True)
time.sleep(600 if sys.argv[-1] == "2" else 0)
"""


def test_live_table_follows_a_sweep_until_it_is_stopped(folder: Path) -> None:
    (folder / "train.py").write_text(GOES_ON)
    cells = [
        "import hostler\nsweep = hostler.sweep('python train.py', {'lr': [1, 2]}, metric='acc', name='live')",
        "sweep",
        "import time\nfrom hostler.analysis.live_table import EVERY\n"
        "while [row.state for row in sweep.rows()] != ['done', 'running']: time.sleep(0.2)\n"
        "time.sleep(2 * EVERY)",
        "print(sweep.run(0).logs(tail=1)); chart = sweep.plot()\nchart",
        "sweep.stop()",
        "import threading\nsweep.wait(200)\n"
        "[t.join(60) for t in threading.enumerate() if t.name == 'hostler-table'];",
    ]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells])
    tables: list[str] = []

    class Client(nbclient.NotebookClient):  # type: ignore[name-defined, misc]
        """Keeps every state that the table was shown in."""

        def process_message(self, msg: Any, cell: Any, cell_index: int) -> Any:
            if msg["header"]["msg_type"] in ("display_data", "update_display_data") and cell_index != 3:
                tables.append(msg["content"]["data"]["text/html"])
            return super().process_message(msg, cell, cell_index)

    Client(book, timeout=280, resources={"metadata": {"path": str(folder)}}).execute()
    assert any("1 running" in html and "1 done" in html for html in tables), tables
    shown = book.cells[1].outputs[0]["data"]["text/html"]
    assert shown == tables[-1] and "1 done" in shown and "1 stopped" in shown and "live/0" in shown, shown
    text, plot = book.cells[3].outputs
    assert '{"acc": 1}' in text["text"]
    picture = base64.b64decode(plot["data"]["image/png"])
    assert picture.startswith(b"\x89PNG") and len(picture) > 5000, len(picture)
    if place := os.environ.get("HOSTLER_KEEP_NOTEBOOK"):
        nbformat.write(book, place)
