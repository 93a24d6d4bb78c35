from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from hostler.backends.project_file import load_project
from hostler.cli import here
from hostler.cli.main import cli
from hostler.errors import SpecError
from hostler.spec.files.yaml12 import load
from hostler.spec.formats import stateful_set

SETTINGS = """local_batch_size: 64
worker_count: 4
cloud_storage_bucket_name: lab
cloud_storage_upload_folder: snapshots
"""
PODS = """apiVersion: v1
kind: Service
metadata: {name: trainers}
spec: {clusterIP: None}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: trainer}
spec:
  serviceName: trainers
  replicas: {{ worker_count }}
  template:
    spec:
      nodeSelector: {cloud.google.com/gke-accelerator: nvidia-l4}
      containers:
        - name: trainer
          image: gcr.io/lab/trainer:7
          command: [python, train.py]
          args: ["--local_batch_size={{ local_batch_size }}", --steps, "5000", "--upload=$(FOLDER)"]
          env:
            - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
            - {name: FOLDER, value: up}
            - {name: WANDB_API_KEY, valueFrom: {secretKeyRef: {name: keys, key: wandb}}}
          resources: {limits: {nvidia.com/gpu: 2, memory: 8Gi}}
      volumes: [{name: scratch, emptyDir: {}}]
"""
SHELL = '[bash, -c, "pip install -r requirements.txt && python train.py --local-batch-size 64"]'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "settings.yaml").write_text(SETTINGS)
    (tmp_path / "train.py").write_text("")
    here.project.cache_clear()
    yield tmp_path
    here.project.cache_clear()


def imported(*words: str) -> str:
    result = CliRunner().invoke(cli, ["import", *words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_pods_beside_settings_become_command_fleet_and_parameter(folder: Path) -> None:
    (folder / "stateful-set.yaml").write_text(PODS)
    said = imported("settings.yaml")
    project = load_project(folder / "hostler.yaml")
    text = load((folder / "hostler.yaml").read_text(), "hostler.yaml").value
    assert text["command"] == ["python", "train.py", "--steps", "5000", "--upload=up"]
    assert (project.store, project.resources.nodes, project.distributed) == (
        "gs://lab/snapshots",
        4,
        "tensorflow",
    )
    assert text["secrets"] == ["WANDB_API_KEY"] and text["env"] == {"FOLDER": "up"}
    gke = text["fleets"]["gke"]
    assert (gke["image"], gke["gpus"]) == ("gcr.io/lab/trainer:7", 2)
    assert gke["node_selector"] == {"cloud.google.com/gke-accelerator": "nvidia-l4"}
    sweep = load((folder / "sweep.yaml").read_text(), "sweep.yaml").value
    assert sweep["parameters"] == {"local_batch_size": 64}
    assert "volumes is not carried over" in said and "name the `command`" not in said
    planned = CliRunner().invoke(
        cli, ["plan", "--on", "local", "--store", "here", "sweep.yaml"], catch_exceptions=False
    )
    assert planned.exit_code == 0 and "local_batch_size" in planned.output, planned.output


def test_program_inside_a_shell_is_the_command(folder: Path) -> None:
    text = PODS.replace("[python, train.py]", SHELL)
    (folder / "stateful-set.yaml").write_text("\n".join(x for x in text.splitlines() if "args:" not in x))
    imported("settings.yaml")
    project = load((folder / "hostler.yaml").read_text(), "hostler.yaml").value
    assert project["command"] == ["python", "train.py"]
    assert project["python"] == {"requirements": "requirements.txt"}
    sweep = load((folder / "sweep.yaml").read_text(), "sweep.yaml").value
    assert sweep["parameters"] == {"local-batch-size": 64}


def test_shell_with_a_loop_is_run_whole(folder: Path) -> None:
    script = "[bash, -c, 'until nc -z db 80; do sleep 1; done\n\n            python train.py']"
    text = PODS.replace("[python, train.py]", script)
    (folder / "stateful-set.yaml").write_text("\n".join(x for x in text.splitlines() if "args:" not in x))
    imported("settings.yaml")
    command = load((folder / "hostler.yaml").read_text(), "hostler.yaml").value["command"]
    assert command[:2] == ["bash", "-c"] and "python train.py" in command[2] and "until nc" in command[2]


def test_secret_among_the_arguments_becomes_a_variable(folder: Path) -> None:
    secret = "hf_" + "a1" * 15
    (folder / "stateful-set.yaml").write_text(PODS.replace("--steps,", f"--token, {secret},"))
    said = imported("settings.yaml")
    text = (folder / "hostler.yaml").read_text()
    assert secret not in text + said and "TOKEN" in load(text, "hostler.yaml").value["secrets"]
    assert "local_batch_size: the command is a shell's" in said
    assert (folder / ".hostlerignore").read_text() == "stateful-set.yaml\n"


def test_without_pods_the_command_is_asked_for(folder: Path) -> None:
    assert "stateful-set.yaml is not beside it: name the `command`" in imported("settings.yaml")
    assert "command" not in load((folder / "hostler.yaml").read_text(), "hostler.yaml").value


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kind: Service\n", "it has no StatefulSet"),
        ("kind: StatefulSet\nspec: {template: {spec: {containers: []}}}\n", "no container"),
        ("kind: StatefulSet\nspec: 3\n", "no container"),
        ("replicas: {{ unheard_of }}\n", "settings.yaml has no unheard_of"),
        ("replicas: {{\nunheard_of }}\n", "{{ unheard_of }}: settings.yaml has no unheard_of"),
        ("kind: [\n", "stateful-set.yaml"),
    ],
)
def test_file_without_a_training_is_refused_in_one_line(folder: Path, text: str, said: str) -> None:
    (folder / "stateful-set.yaml").write_text(text)
    with pytest.raises(SpecError, match=said):
        imported("settings.yaml")
    assert not (folder / "hostler.yaml").exists()


def test_secret_in_the_manifest_stays_there() -> None:
    text = PODS.replace("value: up", "value: up}\n            - {name: HF_TOKEN, value: hf_" + "a1" * 15)
    found = stateful_set.read(text, "stateful-set.yaml", load(SETTINGS, "settings.yaml").value)
    assert "HF_TOKEN" in found.secrets and "a1a1" not in str(found)
