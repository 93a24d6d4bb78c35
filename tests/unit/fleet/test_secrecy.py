"""A spec that would show a secret is refused before it is written."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hostler.backends.project_file import load_sweep
from hostler.errors import UsageError
from hostler.fleet.snapshot import secrecy
from hostler.fleet.sweep import draft_sweep
from hostler.spec.job import Job
from hostler.spec.project import default_project

JOB = Job(name="grid", command=("python", "train.py"), secrets=("TOKEN",))


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "hush-hush")


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"command": ("python", "train.py", "--token=hush-hush")}, "`command`"),
        ({"setup": ("bash", "-c", "wandb login hush-hush")}, "`setup`"),
        ({"resume": ("--key", "hush-hush")}, "`resume`"),
        ({"env": {"OTHER": "x:hush-hush"}}, "`env`"),
        ({"runs": ({"lr": 1, "key": "hush-hush"},)}, "the parameters"),
        ({"runs": ({"nested": {"key": ["hush-hush"]}},)}, "the parameters"),
        ({"tags": ("hush-hush",)}, "`tags`"),
        ({"title": "of hush-hush"}, "its name"),
    ],
)
def test_a_value_in_a_spec_is_refused_with_its_place(change: dict[str, Any], where: str) -> None:
    with pytest.raises(UsageError) as error:
        secrecy.check(replace(JOB, **change))
    assert f"the value of TOKEN stands in {where}" in str(error.value) and "hush" not in str(error.value)


@pytest.mark.parametrize(
    "parameters", [{"key": ["x", 'hüsh"hush']}, {"a": {"value": {"b": [{"c": 'of hüsh"hush'}]}}}]
)
def test_a_value_in_the_parameters_of_a_sweep_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parameters: dict[str, Any]
) -> None:
    monkeypatch.setenv("TOKEN", 'hüsh"hush')
    (tmp_path / "sweep.yaml").write_text(json.dumps({"parameters": parameters}))
    project = replace(default_project(tmp_path), command=("python", "train.py"), secrets=("TOKEN",))
    with pytest.raises(UsageError, match="the value of TOKEN stands in the parameters"):
        draft_sweep(load_sweep(tmp_path / "sweep.yaml", project))


def test_secret_in_code_is_refused_and_hidden_in_diffs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "hush-hush-hush")
    files = [("train.py", 9), (".env", 20), ("gone", 3)]
    (tmp_path / "train.py").write_text("print(1)\n")
    (tmp_path / ".env").write_text("TOKEN=hush-hush-hush\n")
    with pytest.raises(UsageError, match=r"TOKEN stands in \.env.*\.hostlerignore"):
        secrecy.check_code(["TOKEN"], tmp_path, files)
    assert secrecy.covered(["TOKEN"], "-t = 'hush-hush-hush'") == "-t = '***'"
    monkeypatch.setenv("TOKEN", "print")
    secrecy.check_code(["TOKEN"], tmp_path, files)


def test_a_name_under_env_is_no_secret_any_more() -> None:
    with pytest.raises(UsageError, match="TOKEN is under `env:` and a secret"):
        secrecy.check(replace(JOB, env={"TOKEN": "plain"}))
    with pytest.raises(UsageError, match="GIT is under `env:`"):
        secrecy.check(replace(JOB, env={"GIT": "plain"}), "GIT")


def test_names_and_short_values_may_stand_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    secrecy.check(replace(JOB, command=("bash", "-c", 'python train.py --token "$TOKEN"')))
    monkeypatch.setenv("TOKEN", "train")
    secrecy.check(JOB)
    monkeypatch.delenv("TOKEN")
    secrecy.check(replace(JOB, env={"A": ""}))
