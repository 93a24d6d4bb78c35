"""Tasks and job scripts of other launchers, from the file to what is written of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fuzz_harness import ODD_BYTES, Target, bent, damaged_text
from hypothesis import strategies as st

from hostler.cli.begin import import_file

REPLICA = {
    "replicas": 3,
    "template": {
        "spec": {
            "nodeSelector": {"pool": "gpus"},
            "tolerations": [{"key": "gpu", "operator": "Exists"}],
            "containers": [
                {
                    "name": "pytorch",
                    "image": "ghcr.io/me/mnist:1",
                    "command": ["python", "train.py", "--epochs", "3"],
                    "env": [
                        {"name": "FLAVOUR", "value": "salty"},
                        {"name": "T", "valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}},
                    ],
                    "resources": {"limits": {"nvidia.com/gpu": 1, "cpu": "500m", "memory": "4Gi"}},
                }
            ],
        }
    },
}
TASKS: tuple[dict[str, Any], ...] = (
    {
        "name": "finetune",
        "workdir": ".",
        "num_nodes": 2,
        "resources": {
            "cpus": "8+",
            "memory": "32+",
            "use_spot": True,
            "disk_size": 200,
            "job_recovery": {"max_restarts_on_errors": 3},
            "any_of": [
                {"infra": "gcp/us-central1", "accelerators": {"L4": 1}},
                {"cloud": "aws", "accelerators": ["A100:8", "24GB"]},
                {"infra": "k8s", "accelerators": "H100:1"},
            ],
        },
        "envs": {"FLAVOUR": "sweet", "API_KEY": "sk-live-4f9a8b7c6d5e4f3a2b1c"},
        "secrets": {"TOKEN": None},
        "setup": "conda create -n env -y\nconda activate env\npip install -r requirements.txt",
        "run": "torchrun --nnodes=$SKYPILOT_NUM_NODES --node_rank $SKYPILOT_NODE_RANK train.py --lr 0.1",
    },
    {
        "type": "task",
        "name": "tune",
        "env": ["FLAVOUR=sour", "HF_TOKEN"],
        "commands": ["pip install -r requirements.txt", "cd sub && python train.py --deep"],
        "nodes": 2,
        "spot_policy": "auto",
        "max_duration": "3h",
        "resources": {
            "gpu": {"name": ["A100", "H100"], "count": "1..2", "memory": "40GB.."},
            "cpu": "8..",
            "memory": "32GB..64GB",
            "disk": {"size": "100GB"},
        },
    },
    {
        "kind": "PyTorchJob",
        "metadata": {"name": "mnist", "namespace": "vision"},
        "spec": {
            "nprocPerNode": "2",
            "elasticPolicy": {"minReplicas": 1, "maxRestarts": 3},
            "pytorchReplicaSpecs": {"Master": REPLICA, "Worker": REPLICA},
        },
    },
    {
        "kind": "TrainJob",
        "metadata": {"name": "llm"},
        "spec": {
            "trainer": {
                "image": "ghcr.io/me/llm:2",
                "numNodes": 2,
                "numProcPerNode": "auto",
                "command": ["bash", "-c"],
                "args": ["torchrun --nproc_per_node 4 train.py --batch $(BATCH)"],
                "env": [{"name": "BATCH", "value": "3"}],
                "resourcesPerNode": {"requests": {"cpu": 4}, "limits": {"nvidia.com/gpu": 4}},
            }
        },
    },
    {
        "services": {
            "db": {"image": "postgres:16"},
            "trainer": {
                "entrypoint": "python train.py",
                "command": ["--from", "compose", "--lr", "${LR:-0.1}", "$$HOME"],
                "environment": {"FLAVOUR": "bitter", "EMPTY": None},
                "deploy": {
                    "replicas": 3,
                    "resources": {
                        "limits": {"cpus": "2", "memory": "4G"},
                        "reservations": {"devices": [{"capabilities": ["gpu"], "count": "all"}]},
                    },
                },
            },
        },
        "networks": {"inner": {}},
    },
    {
        "job": "me/vision/job-train:v3",
        "project": "vision",
        "resource": "kubernetes",
        "resource_args": {"kubernetes": {"namespace": "n", "backoffLimit": 0}},
        "docker": {"docker_image": "x"},
        "overrides": {
            "entry_point": ["python", "train.py"],
            "args": "--name 'two words'",
            "run_config": {"lr": 0.1, "layers": [8, 8], "inner": {"token": "hf_a1B2a1B2a1B2a1B2a1B2a1B2"}},
            "env": {"A": "b"},
        },
    },
)
ARRAYS = (
    """#!/bin/bash
#SBATCH --job-name=grid
#SBATCH -p gpu -A lab --qos="high"
#SBATCH --array=1-7:3,12%2   # some of them
#SBATCH --time=1-02:30
#SBATCH --mem=4G --cpus-per-task=2 --nodes=2 --ntasks 4
#SBATCH --gres=gpu:a100:4,tmpdir:100(x)
#SBATCH --mail-type=END
module load cuda
srun python train.py --seed ${SLURM_ARRAY_TASK_ID} --token hf_a1B2a1B2a1B2a1B2a1B2a1B2
""",
    """#!/bin/bash
#SBATCH --gpus-per-node=v100:1 --time UNLIMITED
#SBATCH -a0-99
export WANDB_API_KEY=0123456789abcdef0123456789abcdef01234567
cd sub || exit 1
for lr in 0.1 0.2; do python train.py --lr $lr --n "$SLURM_ARRAY_TASK_ID"; done
""",
)


OPTIONS = (
    *("--array=0-9:3,12%4", "--time=1-02:30:00", "--mem=4G", "--cpus-per-task=2", "--nodes=2", "--ntasks=1"),
    *("--gres=gpu:a100:4,tmpdir:100(x)", "--gpus=2", "-p gpu", "--qos='a b'", "-J x"),
)


@st.composite
def _script(draw: st.DrawFn) -> str:
    """A job script with some options, of which one has another value; or one that is damaged anywhere."""
    if draw(st.booleans()):
        return draw(damaged_text(*ARRAYS))
    *options, odd = draw(st.lists(st.sampled_from(OPTIONS), min_size=1, max_size=4, unique=True))
    value = draw(st.sampled_from(ODD_TEXTS) | damaged_text(odd.partition("=")[2]))
    lines = [f"#SBATCH {one}" for one in (*options, f"{odd.partition('=')[0]}={value}")]
    return "\n".join([*lines, "python train.py $SLURM_ARRAY_TASK_ID", ""])


ODD_TEXTS = (*(text.decode("utf-8", "replace") for text in ODD_BYTES), "²", "٣", "1-²", "1-3%²", "0-99999999")


def _imported(name: str, text: str, folder: Path) -> list[str]:
    path = folder / name
    path.write_text(text, "utf-8", "surrogatepass")
    return [one.text for one in import_file.with_sweep(import_file.imported(path))]


TARGETS = (
    Target(
        "tasks",
        "tasks of SkyPilot, dstack, Kubeflow, docker-compose and W&B launch",
        lambda: bent(TASKS),
        lambda value, folder: _imported("task.json", json.dumps(value, default=str), folder),
    ),
    Target(
        "tasks-text",
        "the same, by text",
        lambda: damaged_text(*map(json.dumps, TASKS)),
        lambda text, folder: _imported("task.yaml", text, folder),
    ),
    Target(
        "array-script",
        "job scripts of Slurm",
        _script,
        lambda text, folder: _imported("job.sh", text, folder),
    ),
)
