"""Results of Hydra's own are told from the code and configuration that its jobs need."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from omegaconf import DictConfig, OmegaConf

from hydra_plugins.hostler_launcher import _results

BY_HAND = "hydra:\n  mode: MULTIRUN\n  sweep:\n    dir: logs\n  sweeper:\n    params:\n      lr: 1,2\n"
WRITTEN = """hydra:
  run:
    dir: outputs
  sweep:
    dir: logs
  mode: MULTIRUN
  runtime:
    version: 1.3.2
lr: 1
"""
ALWAYS = ["outputs", "multirun"]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "hostler.yaml").write_text("store: store\n")
    (tmp_path / "exp" / "conf").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "__main__", SimpleNamespace(__file__="exp/train.py"))
    return tmp_path


def config(sweep: str = "multirun", *sources: tuple[str, str]) -> DictConfig:
    found: list[Any] = [{"path": path, "schema": schema, "provider": "main"} for path, schema in sources]
    return OmegaConf.create({"hydra": {"sweep": {"dir": sweep}, "runtime": {"config_sources": found}}})


@pytest.mark.parametrize("text", ["lr: 1,2\n", BY_HAND, "", "- hydra:\n"])
def test_folder_of_a_config_named_multirun_is_code(project: Path, text: str) -> None:
    (project / "exp/conf/multirun.yaml").write_text(text)
    assert sorted(_results(config())) == sorted(ALWAYS)


def test_folder_of_an_earlier_multirun_is_no_code(project: Path) -> None:
    (project / "logs/1").mkdir(parents=True)
    (project / "logs/1/multirun.yaml").write_text(WRITTEN)
    assert sorted(_results(config("logs/2"))) == sorted([*ALWAYS, "logs/1", "logs/2"])


@pytest.mark.parametrize("source", [("exp/conf", "file"), ("exp.conf", "pkg")])
def test_multirun_written_into_the_configuration_leaves_it_code(
    project: Path, source: tuple[str, str]
) -> None:
    (project / "exp/conf/multirun.yaml").write_text(WRITTEN)
    assert sorted(_results(config("exp/conf", source))) == sorted(ALWAYS)


@pytest.mark.parametrize(("sweep", "started"), [("exp", "."), (".", "exp"), ("..", "exp")])
def test_multirun_beside_the_script_leaves_it_code(
    project: Path, monkeypatch: pytest.MonkeyPatch, sweep: str, started: str
) -> None:
    monkeypatch.chdir(project / started)
    script = project / "exp/train.py"
    monkeypatch.setitem(sys.modules, "__main__", SimpleNamespace(__file__=str(script)))
    (project / "exp/multirun.yaml").write_text(WRITTEN)
    own = [] if started == "." else ["exp/outputs", "exp/multirun"]
    found = [name for name in _results(config(sweep)) if name not in own]
    assert sorted(found) == sorted(ALWAYS)


def test_configuration_of_an_earlier_multirun_is_code_when_used_again(project: Path) -> None:
    (project / "logs/1/0/.hydra").mkdir(parents=True)
    (project / "logs/1/multirun.yaml").write_text(WRITTEN)
    assert sorted(_results(config("multirun", ("logs/1/0/.hydra", "file")))) == sorted(ALWAYS)


def test_results_outside_the_project_are_not_named(project: Path) -> None:
    assert sorted(_results(config(str(project.parent / "elsewhere")))) == sorted(ALWAYS)
