"""`hostler import` of other launchers' files: what comes out is planned, and run where it can be here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

import hostler
from cli_world import World
from hostler.backends.project_file import load_project

TRAIN = """
import json, os, sys
seen = int(os.environ.get("SLURM_ARRAY_TASK_ID", 0))
print(json.dumps({"step": 1, "score": len(sys.argv), "seen": seen}))
print(os.environ.get("FLAVOUR"), sys.argv[1:])
"""
SKY = """
name: finetune
workdir: .
num_nodes: 2
resources:
  infra: gcp/us-central1
  accelerators: {L4: 1}
  cpus: 8+
  memory: 32+
  use_spot: true
  disk_size: 200
  ports: 8080
envs: {FLAVOUR: sweet, API_KEY: sk-live-4f9a8b7c6d5e4f3a2b1c}
file_mounts: {/data: s3://somewhere}
setup: pip install -r requirements.txt
run: python train.py --nodes 2
"""
DSTACK = """
type: task
name: tune
python: "3.11"
env: [FLAVOUR=sour, HF_TOKEN]
commands: [pip install -r requirements.txt, python train.py --deep]
nodes: 2
spot_policy: auto
max_duration: 3h
resources: {gpu: {name: A100, count: 1, memory: 40GB}, cpu: 8.., memory: 32GB.., disk: 100GB, shm_size: 8GB}
"""
PYTORCHJOB = """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: mnist, namespace: vision}
spec:
  runPolicy: {cleanPodPolicy: None}
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      template:
        spec:
          hostNetwork: true
          nodeSelector: {pool: gpus}
          containers:
            - name: pytorch
              image: ghcr.io/me/mnist:1
              command: [python, train.py, --epochs, "3"]
              env: [{name: FLAVOUR, value: salty}]
              resources: {limits: {nvidia.com/gpu: 1}}
    Worker: {replicas: 3, template: {spec: {containers: [{name: pytorch, image: "ghcr.io/me/mnist:1"}]}}}
"""
TRAINJOB = """
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: llm}
spec:
  runtimeRef: {name: torch-distributed}
  trainer:
    image: ghcr.io/me/llm:2
    numNodes: 2
    numProcPerNode: 4
    command: [python, train.py]
    args: [--lr, "0.1"]
    resourcesPerNode: {limits: {nvidia.com/gpu: 4}}
"""
COMPOSE = """
services:
  db: {image: "postgres:16"}
  trainer:
    image: python:3.11
    command: python train.py --from compose
    environment: {FLAVOUR: bitter}
    volumes: [".:/work"]
networks: {inner: {}}
"""
LAUNCH = {
    "job": "me/vision/job-train:v3",
    "project": "vision",
    "resource": "local-process",
    "resource_args": {"local-process": {"niceness": 3}},
    "overrides": {
        "entry_point": ["python", "train.py"],
        "args": [],
        "run_config": {"lr": 0.1, "layers": [8, 8]},
    },
    "queue": "mine",
}
ARRAY = """#!/bin/bash
#SBATCH --job-name=grid
#SBATCH -p gpu
#SBATCH --array=1-7:3%2   # three of them
#SBATCH --time=1-02:30
#SBATCH --mem=4G --cpus-per-task=2
#SBATCH --mail-type=END
module load cuda
srun python train.py --seed ${SLURM_ARRAY_TASK_ID}
"""


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path)
    made.write("train.py", TRAIN)
    made.write("requirements.txt", "")
    return made


def brought(world: World, name: str, text: str) -> tuple[dict, str]:
    """The written project, and what was said."""
    world.write(name, text)
    done = world.run("import", name, "-y")
    assert done.code == 0, done.err
    return yaml.safe_load((world.folder / "hostler.yaml").read_text()), done.out + done.err


def test_skypilot_task_is_a_fleet_of_spot_machines_and_a_command(world: World) -> None:
    made, said = brought(world, "sky.yaml", SKY)
    assert made["command"] == ["python", "train.py", "--nodes", "2"] and made["env"] == {"FLAVOUR": "sweet"}
    fleet = made["fleets"]["finetune"]
    assert fleet == {"backend": "gce", "zones": ["us-central1"], "spot": True, "disk": "200GB", "cpus": "8+",
                     "memory": "32GB+", "gpu": "L4:1"}  # fmt: skip
    assert made["resources"] == {"gpus": 1, "nodes": 2} and made["secrets"] == ["API_KEY"]
    for line in ("resources.ports: not carried over", "file_mounts: not carried over", "API_KEY: its value"):
        assert line in said
    assert "sk-live" not in said + (world.folder / "hostler.yaml").read_text()
    assert "--nodes 2" in planned(world, "API_KEY")


def planned(world: World, *secrets: str) -> str:
    """The plan of one run of the imported command here; a fleet elsewhere is parsed, and wants a bucket."""
    project = load_project(world.folder / "hostler.yaml")
    assert project.fleets and "name a bucket" in world.run("import", project_file(world), "-").err
    made = yaml.safe_load((world.folder / "hostler.yaml").read_text())
    world.write("hostler.yaml", yaml.safe_dump({**made, "fleet": "x", "fleets": {"x": {"backend": "local"}}}))
    world.env |= dict.fromkeys(secrets, "x")
    world.write("one.yaml", "parameters: {lr: [1]}\n")
    done = world.run("plan", "one.yaml")
    assert done.code == 0, done.err
    return done.out


def project_file(world: World) -> str:
    """The file that was imported."""
    return next(name for name in ("sky.yaml", "dstack.yaml", "job.yaml") if (world.folder / name).exists())


def test_dstack_task_is_planned_with_its_limits(world: World) -> None:
    made, said = brought(world, "dstack.yaml", DSTACK)
    assert made["command"] == ["python", "train.py", "--deep"] and made["limits"] == {"time": "3h"}
    assert made["fleets"]["tune"] == {"backend": "gce", "spot": "prefer", "cpus": "8+", "memory": "32GB+",
                                      "disk": "100GB", "gpu": "A100:1"}  # fmt: skip
    assert made["secrets"] == ["HF_TOKEN"] and made["env"] == {"FLAVOUR": "sour"}
    for line in ("python: not", "resources.shm_size: not"):
        assert line in said
    assert "train.py" in planned(world, "HF_TOKEN")


@pytest.mark.parametrize(
    ("text", "nodes", "lines"),
    [
        (
            PYTORCHJOB,
            4,
            ["spec.runPolicy: not", "template.spec.hostNetwork: not", "hostler chooses who leads"],
        ),
        (TRAINJOB, 2, ["spec.runtimeRef: not carried over"]),
    ],
)
def test_kubeflow_job_is_pods_of_one_run(world: World, text: str, nodes: int, lines: list[str]) -> None:
    made, said = brought(world, "job.yaml", text)
    [fleet] = made["fleets"].values()
    assert fleet["backend"] == "kubernetes" and fleet["image"].startswith("ghcr.io/me/")
    assert made["resources"]["nodes"] == nodes and made["command"][:2] == ["python", "train.py"]
    assert all(line in said for line in lines)
    assert "train.py" in planned(world)


POD = """kind: PyTorchJob
spec:
  nprocPerNode: "2"
  elasticPolicy: {minReplicas: 1, maxRestarts: 3}
  pytorchReplicaSpecs:
    Worker:
      replicas: 3
      template:
        spec:
          containers:
            - {image: "me/x:1", command: [torchrun, train.py], workingDir: /w,
               resources: {requests: {cpu: 500m, rdma/ib: 1}, limits: {memory: 16Gi}}}
"""


def test_kubeflow_amounts_are_a_runs_and_others_are_said(world: World) -> None:
    made, said = brought(world, "job.yaml", POD)
    assert made["resources"] == {
        "procs_per_node": 2, "cpus": 0.5, "memory": "16GiB", "nodes": 3, "min_nodes": 1
    }  # fmt: skip
    for line in ("container.workingDir: not", "resources.rdma/ib: not", "elasticPolicy.maxRestarts: not"):
        assert line in said


def test_skypilot_pods_have_cpus_memory_and_installed_packages(world: World) -> None:
    text = "resources: {infra: k8s, cpus: 8+, memory: 64}\nsetup: uv pip install -r requirements.txt\n"
    made, said = brought(world, "sky.yaml", text + "run: |\n  set -e\n  python train.py\n")
    assert made["resources"] == {"cpus": 8, "memory": "64GB"} and "cpus: not" not in said
    assert made["python"] == {"requirements": "requirements.txt"} and "setup" not in made


def test_compose_command_is_filled_in_as_there(world: World) -> None:
    words = "['python', 'train.py', '--lr', '${LR:-0.1}', '--cost', '5$$', '--out', '${OUT}']"
    made, said = brought(world, "compose.yaml", f"services: {{t: {{command: {words}}}}}\n")
    assert made["command"] == ["python", "train.py", "--lr", "0.1", "--cost", "5$", "--out", "${OUT}"]
    assert "${OUT} in the command: not carried over" in said


def test_launch_config_names_its_project_to_wandb(world: World) -> None:
    given = {**LAUNCH, "project": "digits", "entity": "me", "job": "me/digits/job:v1"}
    made, said = brought(world, "launch.json", json.dumps(given))
    assert made["env"] == {"WANDB_PROJECT": "digits", "WANDB_ENTITY": "me"}
    assert "job: not carried over" in said


def test_compose_service_runs_here(world: World) -> None:
    made, said = brought(world, "docker-compose.yaml", COMPOSE)
    assert made["fleets"] == {"trainer": {"backend": "local"}}
    for line in ("service db: not", "trainer.image: not", "trainer.volumes: not", "networks: not"):
        assert line in said
    done = world.run("run")
    assert done.code == 0 and "bitter ['--from', 'compose']" in done.out, done.err


def test_compose_variables_of_the_shell_are_carried_over_or_said(world: World) -> None:
    given = "['LR=${LR:-0.1}', 'COST=5$$', 'HF_TOKEN=${HF_TOKEN}', 'OUT=${HOME}/out']"
    text = f"services: {{t: {{command: python train.py, environment: {given}}}}}\n"
    made, said = brought(world, "compose.yaml", text)
    assert made["env"] == {"LR": "0.1", "COST": "5$"} and made["secrets"] == ["HF_TOKEN"]
    assert "OUT: ${HOME}/out: not carried over" in said and "LR: ${LR:-0.1}: its default" in said


@pytest.mark.parametrize(
    ("setup", "key", "value"),
    [
        ("git clone https://github.com/me/vision\n  cd vision", "git", "https://github.com/me/vision"),
        ("conda activate dev", "python", {"conda_env": "dev"}),
        ("conda create -n new -y\n  conda activate new", "python", None),
    ],
    ids=["git", "conda", "made"],
)
def test_skypilot_setup_brings_code_and_environment(
    world: World, setup: str, key: str, value: object
) -> None:
    made, said = brought(world, "sky.yaml", f"setup: |\n  {setup}\nrun: python train.py\n")
    assert made["command"] == ["python", "train.py"] and made.get(key) == value
    assert ("conda activate new" in said) == (value is None)


def test_launch_config_is_a_sweep_that_runs_here(world: World) -> None:
    made, said = brought(world, "launch.json", json.dumps(LAUNCH))
    assert made["command"] == ["python", "train.py"]
    assert "queue: not carried over" in said and "niceness: not carried over" in said
    done = world.run("sweep", "-y", "--wait", "sweep.yaml")
    assert done.code == 0, done.err
    assert "'0.1'" in world.run("logs", "launch").out


def test_slurm_array_becomes_a_sweep_over_its_tasks(world: World) -> None:
    made, said = brought(world, "grid.sh", ARRAY)
    assert made["command"] == ["python", "train.py", "--seed", "{task}"]
    assert made["fleets"]["gpu"] == {"backend": "slurm", "partition": "gpu", "time": "1590m", "workers": 2,
                                     "header": ["module load cuda"]}  # fmt: skip
    assert made["resources"] == {"cpus": 2, "memory": "4GiB"}
    assert "3 runs there, 3 runs here" in said
    assert "--mail-type: not carried over" in said and "--job-name: hostler sets it itself" in said
    done = world.run("plan", "sweep.yaml")
    assert done.code == 0 and "3 runs" in done.out, done.err


def test_slurm_script_of_many_commands_gets_its_tasks_number(world: World) -> None:
    text = "#!/bin/bash\n#SBATCH --array=4,6\nLR=$((SLURM_ARRAY_TASK_ID * 2))\npython train.py --lr $LR\n"
    made, said = brought(world, "two.sbatch", text)
    assert made["command"] == ["env", "SLURM_ARRAY_TASK_ID={task}", "bash", "two.sbatch"]
    assert "each run runs all of it" in said
    made["fleets"]["cluster"] = {"backend": "local"}
    world.write("hostler.yaml", yaml.safe_dump(made))
    done = world.run("sweep", "-y", "--wait", "sweep.yaml")
    assert done.code == 0, done.err
    frame = hostler.frame(str(world.store), "two")
    assert sorted(frame["seen"]) == [4, 6] and set(frame["state"]) == {"done"}


def test_one_task_among_several_documents_is_taken(world: World) -> None:
    made, said = brought(world, "job.yaml", f"---\nkind: Service\nspec: {{}}\n---{TRAINJOB}")
    assert (
        made["command"][:2] == ["python", "train.py"] and "the document of line 2: not carried over" in said
    )


def test_file_with_a_secret_is_not_uploaded(world: World) -> None:
    brought(world, "sky.yaml", SKY)
    assert "sky.yaml" in (world.folder / ".hostlerignore").read_text()


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("sky.yaml", "resources: {}\nrun: ''\n", "it runs no command"),
        ("compose.yaml", "services: {db: {image: x}}\n", "no service of it has a command"),
        ("job.yaml", "kind: PyTorchJob\nspec: {}\n", "has no container"),
        ("a.sh", "#SBATCH --array=x-y\npython t.py\n", "--array=x-y is not an array"),
        ("b.sh", "#SBATCH --time=soon\npython t.py\n", "--time=soon is not a time"),
        ("c.sh", "#SBATCH --mem=1G\n", "it runs no command"),
        ("e.sh", "#SBATCH --comment=don't\npython t.py\n", "--comment=don't: a quote is not closed"),
        (
            "sky.yaml",
            "name: all\n---\n" + "---\n".join(["resources: {}\nrun: python t.py\n"] * 3),
            "has 3 tasks",
        ),
        ("d.sh", "echo hello\n", "is not a script that hostler knows"),
    ],
)
def test_file_that_trains_nothing_is_one_line_and_writes_nothing(
    world: World, name: str, text: str, said: str
) -> None:
    world.write(name, text)
    done = world.run("import", name, "-y")
    assert done.code == 2 and said in done.err and "Traceback" not in done.err
    assert not (world.folder / "hostler.yaml").exists()
