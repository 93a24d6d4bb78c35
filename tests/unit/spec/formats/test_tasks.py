"""Tasks and job scripts of other tools: what becomes of them, and that their secrets stay behind."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hostler.errors import SpecError
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
        assert any(note.startswith(f"run_config.{key}: secrets cannot be parameters") for note in made.notes)
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


def test_words_of_a_launch_config_keep_their_quotes() -> None:
    made = launch(entry_point="python t.py", args="--name 'two words'")
    assert made.project["command"] == ["python", "t.py", "--name", "two words"]
    with pytest.raises(SpecError, match="a quote is not closed"):
        launch(entry_point="python t.py", args="--name 'two")


@pytest.mark.parametrize(
    ("gpu", "named", "count"),
    [
        ("24GB", "L4:1", 1),
        ("A100:80GB:2", "A100-80GB:2", 2),
        ("A100", "A100:1", 1),
        ("nvidia:A100,H100:40GB..:1..2", ["A100:1", "A100-80GB:1", "H100:1"], 1),
        ({"name": ["A100", "H100"], "count": "1..2"}, ["A100:1", "H100:1"], 1),
        ({"memory": "16GB..24GB", "count": 4}, ["T4:4", "P100:4", "V100:4", "L4:4"], 4),
        ("H200:8", "H200:8", 8),
        ("48GB", None, 1),
        (2, None, 2),
        (0, None, None),
    ],
)
def test_gpus_of_dstack_are_those_of_the_fleet(gpu: Any, named: Any, count: int | None) -> None:
    made = tasks.read({"type": "task", "commands": ["python t.py"], "resources": {"gpu": gpu}}, "d.yaml")
    [fleet] = made.project["fleets"].values()
    assert fleet.get("gpu") == named and made.project.get("resources", {}).get("gpus") == count
    if named is None and count:
        assert any("name one as `gpu` of the fleet" in note for note in made.notes)


def composed(**service: Any) -> Machines:
    return tasks.read({"services": {"t": service}}, "compose.yaml")


def test_service_with_an_entrypoint_alone_has_a_command() -> None:
    assert composed(entrypoint=["python", "t.py"]).project["command"] == ["python", "t.py"]
    both = composed(entrypoint="python t.py", command=["--lr", "1"])
    assert both.project["command"] == ["python", "t.py", "--lr", "1"]


def test_all_that_a_service_is_given_is_carried_over_or_named() -> None:
    gpus = {"capabilities": ["gpu"], "count": "all"}
    resources = {"limits": {"cpus": "2", "memory": "4G"}, "reservations": {"cpus": "1", "devices": [gpus]}}
    made = composed(command="python t.py", deploy={"replicas": 3, "resources": resources})
    assert made.project["resources"] == {"gpus": 1}
    for line in (
        "t.deploy.replicas: not carried over",
        "t.deploy.resources.limits.cpus: not carried over",
        "t.deploy.resources.limits.memory: not carried over",
        "t.deploy.resources.reservations.cpus: not carried over",
        "all GPUs: a run is given one: write their number into `resources`",
    ):
        assert line in made.notes


def test_machines_of_skypilot_on_pods_are_named() -> None:
    asked = {"infra": "k8s", "cpus": 4, "memory": "16+", "use_spot": True, "region": "x"}
    made = tasks.read({"run": "python t.py", "resources": asked}, "sky.yaml")
    assert made.project["resources"] == {"cpus": 4, "memory": "16GB"}
    for key in ("use_spot", "region"):
        assert f"resources.{key}: not carried over" in made.notes


@pytest.mark.parametrize(
    ("option", "gpus", "note"),
    [
        ("--gres=tmpdir:100", None, "#SBATCH --gres=tmpdir:100: not carried over"),
        ("--gres=gpu:2,tmpdir:100", 2, "#SBATCH --gres=tmpdir:100: not carried over"),
        ("--gres=gpu", 1, ""),
        ("--gres=gpu:a100:4", 4, "gpu:a100:4: the number of GPUs is carried over"),
        ("--gpus=2", 2, ""),
        ("--gpus-per-node=v100:1", 1, "v100:1: the number"),
        ("--time=UNLIMITED", None, "#SBATCH --time=UNLIMITED: no time is asked for"),
    ],
)
def test_lines_of_a_job_script_mean_what_slurm_means(option: str, gpus: int | None, note: str) -> None:
    made = array_script.read(f"#SBATCH {option}\npython t.py\n", "a.sh")
    assert made.project.get("resources", {}).get("gpus") == gpus
    assert made.project["fleets"]["cluster"] == {"backend": "slurm"}
    assert any(one.startswith(note) for one in made.notes) if note else not made.notes


SKY_TORCHRUN = """MASTER=$(echo "$SKYPILOT_NODE_IPS" | head -n1)
export NODES="$SKYPILOT_NUM_NODES"
torchrun --nnodes=$NODES --nproc_per_node $SKYPILOT_NUM_GPUS_PER_NODE \\
  --node-rank=${SKYPILOT_NODE_RANK} --master_addr="$MASTER" --master_port=8008 \\
  train.py --lr 0.1
"""


def test_torchrun_of_another_platform_is_told_its_nodes_by_hostler() -> None:
    made = tasks.read({"run": SKY_TORCHRUN, "num_nodes": 2, "setup": "pip install -r r.txt"}, "sky.yaml")
    assert made.project["command"] == ["torchrun", "train.py", "--lr", "0.1"]
    assert "setup" not in made.project and made.project["python"] == {"requirements": "r.txt"}
    options = "--nnodes, --nproc_per_node, --node_rank, --master_addr, --master_port"
    assert (
        made.notes.count(f"torchrun {options}: not carried over: hostler tells it the nodes of the run") == 1
    )
    assert not any("SKYPILOT" in note for note in made.notes)


def test_variable_of_a_platform_that_a_script_needs_is_named() -> None:
    text = "N=$SKYPILOT_NUM_NODES\ntorchrun --nnodes=$N train.py --nodes $N\n"
    made = tasks.read({"run": text, "num_nodes": 2}, "sky.yaml")
    assert made.project["command"][2].endswith("torchrun train.py --nodes $N")
    assert any(note.startswith("$SKYPILOT_NUM_NODES: not set here") for note in made.notes)
    own = {"run": "torchrun --standalone --nproc_per_node=2 train.py", "resources": {}}
    kept = tasks.read(own, "sky.yaml")
    assert kept.project["command"] == ["torchrun", "--standalone", "--nproc_per_node=2", "train.py"]


def test_alternatives_of_one_platform_are_any_of_their_gpus() -> None:
    alternatives = [{"accelerators": "A100:8"}, {"accelerators": {"H100": 8}}]
    resources = {"infra": "gcp", "use_spot": True, "any_of": alternatives}
    made = tasks.read({"run": "python t.py", "resources": resources}, "sky.yaml")
    [fleet] = made.project["fleets"].values()
    assert fleet["gpu"] == ["A100:8", "H100:8"] and fleet["spot"] is True
    assert not any("any_of" in note for note in made.notes)


def test_alternative_of_another_platform_is_said() -> None:
    ordered = [{"infra": "aws", "accelerators": "H100:8"}, {"infra": "gcp", "accelerators": "L4:1"}]
    recovery = {"strategy": "FAILOVER", "max_restarts_on_errors": 3}
    resources = {"ordered": ordered, "job_recovery": recovery}
    made = tasks.read({"run": "python t.py", "resources": resources}, "sky.yaml")
    [fleet] = made.project["fleets"].values()
    assert fleet["gpu"] == "L4:1" and made.project["retries"] == 3
    assert "resources.ordered: infra: aws, accelerators: H100:8: not carried over" in made.notes


@pytest.mark.parametrize("given", [3, {"infra": "gcp"}, [], ["L4:1"], None])
def test_alternatives_of_another_form_are_not_carried_over(given: Any) -> None:
    made = tasks.read({"run": "python t.py", "resources": {"any_of": given}}, "sky.yaml")
    assert "resources.any_of: not carried over" in made.notes
