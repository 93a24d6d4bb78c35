"""Tasks and job scripts of other tools: what becomes of them, and that no secret of theirs is carried over."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hostler.spec.formats import array_script, tasks
from hostler.spec.formats.machines import Machines

TOKEN = "hf_" + "a1B2" * 6


def shown(made: Machines) -> str:
    return json.dumps([made.project, made.parameters, made.notes])


def launch(**overrides: Any) -> Machines:
    return tasks.read({"resource": "local-process", "overrides": overrides}, "launch.json")


def test_secret_in_a_run_config_is_no_parameter() -> None:
    inner = {"depth": 2, "token": TOKEN}
    made = launch(run_config={"lr": 0.1, "api_key": "sk-live-abc", "x": TOKEN, "model": inner, "l": [TOKEN]})
    assert made.parameters == {"lr": 0.1, "model": [{"depth": 2}]}
    assert TOKEN not in shown(made) and "sk-live" not in shown(made) and made.hides_itself
    for key in ("api_key", "x", "model.token", "l"):
        assert any(note.startswith(f"run_config.{key}: a secret is no parameter") for note in made.notes)
    assert not launch(run_config={"lr": 0.1}).hides_itself


def test_secret_in_the_one_command_of_a_job_script_is_a_variable() -> None:
    text = f"#SBATCH --array=1-2\nmodule load cuda\npython t.py --token {TOKEN} --s $SLURM_ARRAY_TASK_ID\n"
    made = array_script.read(text, "a.sh")
    assert made.project["command"] == ["bash", "-c", 'python t.py --token "$TOKEN" --s {task}']
    assert made.project["secrets"] == ["TOKEN"] and TOKEN not in shown(made) and made.hides_itself
    assert any(note.startswith("TOKEN: its value is not carried over") for note in made.notes)


def test_job_script_with_a_secret_is_hidden_and_run_without_it() -> None:
    text = "#SBATCH --array=1-2\nexport WANDB_API_KEY=0123456789abcdef0123\npython t.py ${LR}\n"
    made = array_script.read(text, "a.sh")
    assert made.hides_itself and "0123456789abcdef" not in shown(made)
    assert made.project["command"][:4] == ["env", "SLURM_ARRAY_TASK_ID={task}", "bash", "-c"]
    assert 'export WANDB_API_KEY="$WANDB_API_KEY"' in made.project["command"][4]
    assert made.project["secrets"] == ["WANDB_API_KEY"]
    own = array_script.read(text.replace("LR", "task"), "a.sh")
    assert "command" not in own.project and any("name the `command`" in note for note in own.notes)
    plain = array_script.read("#SBATCH --mem=1G\ncd x\npython t.py\n", "a.sh")
    assert plain.project["command"] == ["bash", "a.sh"] and not plain.hides_itself


@pytest.mark.parametrize("kind", ["envs", "run"])
def test_task_file_with_a_secret_is_hidden(kind: str) -> None:
    given = {"run": f"python t.py --token {TOKEN}"} if kind == "run" else {"envs": {"PLAIN": TOKEN}}
    made = tasks.read({"run": "python t.py", "resources": {}, **given}, "sky.yaml")
    assert made.hides_itself and TOKEN not in shown(made) and made.project["secrets"]
