"""Files that people and other tools wrote: projects, sweeps, foreign formats, scripts, kubeconfigs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fuzz_harness import Target, bent, damaged, damaged_text

from hostler.backends.gce import prices
from hostler.backends.kubernetes import config
from hostler.backends.project_file import load_project, load_sweep
from hostler.spec.files.yaml12 import Document
from hostler.spec.formats import (
    burst,
    cloudl_folder,
    list_text,
    machines,
    startup,
    stateful_set,
    submit_script,
    withheld,
)
from hostler.spec.formats.reading import as_ours
from hostler.spec.parsers.declarations import declarations
from hostler.spec.project import default_project
from hostler.spec.space import parse

PROJECT = b"""name: cifar
command: python train.py
resume: --resume {checkpoint_dir}/last.pt
python: {requirements: requirements.txt}
store: s3://my-bucket/cifar
metric: {name: val/accuracy, goal: max}
resources: {gpus: 1, memory: 16GB, cpus: 2}
limits: {time: 6h, hang: 30m, failures: 3}
checkpoint: {every: 5m, keep: 2}
retries: 2
outputs: [results/]
data: {images: s3://b/x, words: {from: ../d, at: data/w}}
env: {A: b, C: "1"}
secrets: [TOKEN]
setup: |
  pip install x
  make
style: {amp: flag, lr: '='}
fleets:
  desk: {backend: local, workers: 2}
  farm: {backend: ssh, hosts: [n1, user@n2:22], workers: 2}
  queue: {backend: slurm, partition: gpu, time: 1h, workers: 4}
  burst: {backend: gce, machine: n1-standard-4, zones: [us-central1-a], workers: 3, spot: true, gpu: T4}
  pods: {backend: kubernetes, namespace: a, workers: 2, image: "python:3.11", volumes: {/data: claim}}
"""
SWEEP = b"""name: grid
command: python train.py
method: random
budget: {runs: 20, cost: 5, hours: 3}
metric: {name: acc, goal: max}
parallel: 3
parameters: &p
  lr: {min: 0.001, max: 0.1, log: true}
  width: [64, 128]
  depth: {start: 1, step: 2, count: 3}
  seed: {values: [1, 2], when: width > 64}
  both: {expr: width * 2}
  text: "range(3)"
prune: {after: 3, keep: 0.5}
repeat: 2
"""
FOREIGN: tuple[Any, ...] = (
    {
        "program": "train.py",
        "method": "bayes",
        "metric": {"name": "loss", "goal": "minimize"},
        "parameters": {
            "lr": {"distribution": "log_uniform_values", "min": 1e-4, "max": 0.1},
            "n": {"values": [1, 2]},
        },
        "early_terminate": {"type": "hyperband", "min_iter": 3},
        "command": ["${env}", "python", "${program}", "${args}"],
        "run_cap": 10,
    },
    {
        "iterations": 4,
        "hyperparameters": [
            {"lr": {"method": "step", "data": [1, 2]}, "w": [0.1, 0.5], "k": {"method": "list", "data": [1]}},
            {"lr": 3},
        ],
        "helper": "how to",
    },
    {
        "job_details": {"name": "grid", "script": "train.py"},
        "LIST first": [{"lr": [0.1, 0.2]}, {"wd": "np.logspace(-3, -1, 3)"}],
        "width": [1, 2],
        "ZIP both": {"a": [1, 2], "b": [3, 4]},
    },
)
MACHINES: tuple[Any, ...] = (
    {"provider": "gcp", "machine_type": "n1-standard-4", "workers": 3, "image": "x", "gpu": {"type": "T4"}},
    {"project_id": "p", "zone": "us-central1-a", "worker_count": 3, "bucket": "b", "n_gpus": 1},
    [{"name": "m", "machineType": "zones/z/machineTypes/n1-standard-1", "disks": [{"sizeGb": "20"}]}],
)
STATEFUL = """apiVersion: v1
kind: Service
metadata: {name: w}
---
apiVersion: apps/v1
kind: StatefulSet
spec:
  replicas: {{ worker_count }}
  template:
    spec:
      nodeSelector: {a: b}
      tolerations: [{key: gpu, operator: Exists}]
      containers:
      - name: w
        image: {{ image }}
        command: ["/bin/bash", "-c"]
        args: ["pip install -r requirements.txt; python train.py --batch $(BATCH)"]
        env: [{name: BATCH, value: "3"}, {name: T, valueFrom: {secretKeyRef: {name: a, key: b}}}]
        resources: {limits: {nvidia.com/gpu: 1, memory: 4Gi}}
        volumeMounts: [{name: v, mountPath: /data}]
      volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]
"""
BURST = """#!/bin/bash
NAME=burst-$(date +%s)
ZONE="us-central1-a"
gcloud compute instances create $NAME --zone=$ZONE --machine-type n1-standard-8 \\
  --accelerator type=nvidia-tesla-t4,count=1 --metadata-from-file startup-script=start.sh \\
  --metadata "model=x,token=hunter2" --preemptible --boot-disk-size 200GB
gcloud compute ssh $NAME --command "cd x && python train.py --lr 0.1"
"""
STARTUP = """#!/bin/bash
set -e
export TOKEN=abcdefghijklmnop WANDB_API_KEY='0123456789abcdef0123456789abcdef01234567'
git clone https://user:pass@github.com/a/b.git && cd b
pip install -r requirements.txt
if [ -f x ]; then echo "$(cat x)"; fi
cat <<'END' > y
text
END
for i in 1 2 3; do python train.py --n "$i" --out gs://b/x >> log 2>&1; done
python train.py --lr 0.1 --epochs ${EPOCHS:-3}
"""
QUICK = """clouDL p b --cluster 3 configs.json user_startup.sh --hyparams h.json --datapth ../data \\
  --tokenpth t --archive 5
if [ "$1" = x ]; then clouDL_analyze p b --best 3; fi
"""
SCRIPT = b"""import argparse, click
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1, nargs="+")
parser.add_argument("--amp", action="store_true")
parser.add_argument("--no-x", dest="x", action=argparse.BooleanOptionalAction)
sub = parser.add_subparsers()
one = sub.add_parser("one"); one.add_argument("--deep", choices=[1, 2])
@click.command()
@click.option("--width", "-w", multiple=True, is_flag=False, default=3)
def main(width): pass
LIST = [f"{n}" for n in range(3)]
from other import things
args = parser.parse_args()
"""
SHELL = b"""#!/bin/bash
while [ $# -gt 0 ]; do case "$1" in --lr) lr=$2; shift 2;; --amp) amp=1; shift;; *) exit 2;; esac; done
while getopts "a:b" o; do :; done
"""
LISTS = (
    "[i * 2 for i in range(3) if i % 2]",
    "list(np.logspace(-3, -1, 3)) + [10 ** -n for n in range(4)]",
    "sorted({1, 2} | {3})[::-1] * 2",
    "[{'a': x, 'b': [y]} for x, y in zip('ab', range(2))]",
    "np.arange(0, 1, 0.25).round(2).tolist()",
    "[round(2.5, 1), abs(-1), max(1, 2), 'a'.upper(), f'{3}', not True, 1 if 2 > 1 else 3]",
)
KUBE = {
    "current-context": "c",
    "clusters": [{"name": "c", "cluster": {"server": "https://x", "certificate-authority": "ca"}}],
    "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "n"}}],
    "users": [{"name": "u", "user": {"token": "t", "exec": {"command": "x"}}}],
}


def _file(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def _sweep(data: bytes, folder: Path) -> object:
    return load_sweep(_file(folder, "sweep.yaml", data), default_project(folder), commanded=False)


def _foreign(value: Any, folder: Path) -> object:
    document, _ = as_ours(Document("f.json", value, {}), "stem")
    if document.value is value or not isinstance(document.value, dict):
        return None
    given = document.value
    budget = (given.get("budget") or {}).get("runs")
    return parse(given["parameters"], method=given["method"], runs=budget, sections=given.get("sections", ()))


def _foreign_file(data: bytes, folder: Path) -> object:
    return load_sweep(_file(folder, "sweep.json", data), default_project(folder), program=("python", "x"))


def _burst(text: str, folder: Path) -> object:
    return burst.read(text, lambda name: STARTUP) if burst.is_it(text) else None


def _folder_of_cloudl(texts: list[str], folder: Path) -> object:
    given = dict(zip(("user_startup.sh", "quick_start.sh"), texts, strict=True))
    told = {"inside": "sub", "of_project": lambda name: None, "sections": 1, "store": ""}
    return cloudl_folder.read(given, MACHINES[0], "name", **told)


def _script(data: bytes, folder: Path) -> object:
    name = "train.sh" if data.startswith(b"#!") else "train.py"
    _file(folder, name, data)
    return declarations(("bash" if name.endswith("sh") else "python", name, "--lr", "1"), folder, folder)


def _kubeconfig(value: Any, folder: Path) -> object:
    return config.load([_file(folder, "kube", json.dumps(value, default=str).encode())], None)


def _prices(data: bytes, folder: Path) -> object:
    prices.load.cache_clear()
    return prices.load(_file(folder, "prices", data))


def _list(text: str, folder: Path) -> object:
    try:
        return list_text.read(text)
    except ValueError:  # as it says: those who ask name the place
        return None


def _two(strategy: Any) -> Any:
    return strategy(STARTUP).flatmap(lambda one: strategy(QUICK).map(lambda two: [one, two]))


TARGETS = (
    Target(
        "hostler.yaml",
        "a project's file, by all its fleets' keys",
        lambda: damaged([PROJECT]),
        lambda data, folder: load_project(_file(folder, "hostler.yaml", data)),
    ),
    Target("sweep-file", "a sweep's file, with its space", lambda: damaged([SWEEP]), _sweep),
    Target("foreign-values", "W&B, clouDL and starter files, by value", lambda: bent(FOREIGN), _foreign),
    Target(
        "foreign-text",
        "the same, by text",
        lambda: damaged([json.dumps(one).encode() for one in FOREIGN]),
        _foreign_file,
    ),
    Target(
        "foreign-machines",
        "machines of clouDL and of clusters",
        lambda: bent(MACHINES),
        lambda value, folder: machines.recognise(value, "x", lambda name: STARTUP),
    ),
    Target(
        "stateful-set",
        "StatefulSets of Kubernetes",
        lambda: damaged_text(STATEFUL),
        lambda text, folder: stateful_set.read(text, "s.yaml", {"worker_count": 3, "image": "x"}),
    ),
    Target("burst-script", "scripts that make VMs by gcloud", lambda: damaged_text(BURST), _burst),
    Target(
        "startup-script",
        "startup scripts, and secrets in them",
        lambda: damaged_text(STARTUP),
        lambda text, folder: (startup.read(text, "x"), withheld.withhold(text), withheld.doubtful(text)),
    ),
    Target("cloudl-folder", "folders of clouDL", lambda: _two(damaged_text), _folder_of_cloudl),
    Target(
        "submit-script",
        "scripts that submit",
        lambda: damaged_text(SCRIPT.decode(), BURST, "submit(['python', 'x.py'], n=3)\n"),
        lambda text, folder: found.words if (found := submit_script.find(text)) else None,
    ),
    Target(
        "list-text",
        "texts that stand for lists",
        lambda: damaged_text(*LISTS),
        _list,
    ),
    Target("script", "options of a script, from its source", lambda: damaged([SCRIPT, SHELL]), _script),
    Target("kubeconfig", "kubeconfigs", lambda: bent([KUBE]), _kubeconfig),
    Target("prices", "tables of prices", lambda: damaged([prices.OWN.read_bytes()[:3000]]), _prices),
)
