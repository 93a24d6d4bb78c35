"""docs/coming-from.md, block by block: other tools' files are imported or planned as the page says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from hostler.cli import here
from hostler.cli.main import cli
from hostler.spec.files.yaml12 import load
from hostler.spec.formats import submit_script

PAGE = (Path(__file__).parents[2] / "docs" / "coming-from.md").read_text()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("")
    here.project.cache_clear()
    yield tmp_path
    here.project.cache_clear()


def blocks(title: str) -> list[str]:
    """Code blocks of a section, in order."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found, title
    return re.findall(r"^```\w*\n(.*?)^```", found[1], re.MULTILINE | re.DOTALL)


def written(text: str) -> str:
    """Write a block to the file that its first line names."""
    name = re.match(r"# (\S+)\n", text)
    assert name
    Path(name[1]).write_text(text)
    return name[1]


def typed(*words: str) -> str:
    result = CliRunner().invoke(cli, list(words), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def value(text: str) -> Any:
    return load(text, "block.yaml").value


def test_burst_script_is_imported_as_shown() -> None:
    train, startup, ours = blocks("Burst training")
    assert (written(train), written(startup)) == ("train.sh", "startup.sh")
    typed("import", "train.sh")
    assert value(Path("hostler.yaml").read_text()) == value(ours)


def test_cluster_settings_and_pods_are_imported_as_shown() -> None:
    settings, pods, ours, sweep = blocks("TensorFlow on GKE")
    assert (written(settings), written(pods)) == ("settings.yaml", "stateful-set.yaml")
    typed("import", "settings.yaml")
    assert value(Path("hostler.yaml").read_text()) == value(ours)
    assert value(Path("sweep.yaml").read_text())["parameters"] == value(sweep)["parameters"]
    assert " 1 " in typed("plan", "--on", "local", "--store", "here", "sweep.yaml")


@pytest.mark.parametrize(
    ("title", "name", "runs"),
    [("clouDL", "hyperparameters.json", "6 runs"), ("experiment-starter", "job.yaml", "36 runs")],
)
def test_search_has_as_many_runs_as_the_page_says(title: str, name: str, runs: str) -> None:
    Path("hostler.yaml").write_text("command: python train.py\n")
    Path(name).write_text(blocks(title)[0])
    assert runs in typed("plan", "--store", "here", name)


def test_sweep_file_of_wandb_is_planned_as_it_is() -> None:
    Path("sweep.yaml").write_text(blocks("W&B sweeps")[0])
    said = typed("plan", "--store", "here", "sweep.yaml")
    assert "50" in said and "tpe" in said


def test_submit_script_keeps_the_lines_before_its_program() -> None:
    found = submit_script.find(blocks("experiment-starter")[1])
    assert found is not None and found.ends_there
    assert "python train.py $1" not in found.text and found.text.endswith('exec "$@"\n')
    assert "conda activate dev" in found.text and "#SBATCH --partition=killable" in found.text
