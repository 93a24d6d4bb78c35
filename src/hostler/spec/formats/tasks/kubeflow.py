"""PyTorchJobs and TrainJobs of Kubeflow. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hostler.errors import SpecError
from hostler.spec.formats import stateful_set
from hostler.spec.formats.machines import Machines
from hostler.spec.formats.tasks.carried import Carried, table, whole_number


def read(given: Mapping[str, Any], where: str) -> Machines:
    made = Carried(where)
    spec, kind = table(given, "spec"), str(given["kind"])
    if kind == "TrainJob":
        trainer = table(spec, "trainer")
        made.left(spec, ("trainer",), "spec.")
        carried = ("image", "command", "args", "env", "numNodes", "numProcPerNode", "resourcesPerNode")
        made.left(trainer, carried, "spec.trainer.")
        container = {**trainer, "resources": table(trainer, "resourcesPerNode")}
        pod, nodes = dict[str, Any](), trainer.get("numNodes")
        _processes(made, trainer.get("numProcPerNode"))
    else:
        replicas = table(spec, "pytorchReplicaSpecs")
        made.left(spec, ("pytorchReplicaSpecs", "elasticPolicy", "nprocPerNode"), "spec.")
        _processes(made, spec.get("nprocPerNode"))
        groups = [replica for replica in replicas.values() if isinstance(replica, Mapping)]
        pod = dict(table(table(groups[0], "template"), "spec")) if groups else {}
        containers = pod.get("containers")
        container = containers[0] if isinstance(containers, list) and containers else {}
        nodes = sum(whole_number(group.get("replicas", 1)) or 0 for group in groups)
        of_pod = ("containers", "nodeSelector", "tolerations", "serviceAccountName", "restartPolicy")
        made.left(pod, of_pod, "template.spec.")
        of_container = ("name", "image", "imagePullPolicy", "command", "args", "env", "resources")
        made.left(container if isinstance(container, Mapping) else {}, of_container, "container.")
        if len(groups) > 1:
            made.notes.append("all replicas run the command of the first: hostler chooses who leads")
    if not isinstance(container, Mapping) or not container:
        raise SpecError(f"its {kind} has no container", "name the file of the workers", where=where)
    env, secrets, notes = stateful_set.environment(container, where)
    made.project["env"], made.secrets, made.notes = env, [*secrets], [*made.notes, *notes]
    made.begun(stateful_set.begun(container, env, where))
    made.fleet = {"backend": "kubernetes", **stateful_set.fleet_of(pod, container)}
    if gpus := made.fleet.get("gpus"):
        made.resources["gpus"] = gpus
    _amounts(made, table(container, "resources"))
    metadata = table(given, "metadata")
    made.fleet |= {"namespace": str(metadata["namespace"])} if metadata.get("namespace") else {}
    made.nodes(nodes)
    _elastic(made, table(spec, "elasticPolicy"))
    return made.machines(f"Kubeflow {kind}", metadata.get("name"))


def _processes(made: Carried, given: Any) -> None:
    """Processes of a node; `auto`, `cpu` and `gpu` leave it to the launcher."""
    procs = whole_number(given)
    if procs and procs > 1:
        made.resources["procs_per_node"] = procs
    elif given is not None and procs is None:
        made.notes.append(f"{given} processes of a node: not carried over: the launcher decides")


def _amounts(made: Carried, given: Mapping[str, Any]) -> None:
    """CPUs and memory of a container, as a run asks for them."""
    asked = {**table(given, "requests"), **table(given, "limits")}
    for key, value in asked.items():
        cpus = re.fullmatch(r"([0-9]{1,6}(?:\.[0-9]{1,6})?)(m?)", str(value))
        if key == "cpu" and cpus:
            count = float(cpus[1]) / (1000 if cpus[2] else 1)
            made.resources["cpus"] = int(count) if count.is_integer() else count
        elif key == "memory" and re.fullmatch(r"\d+(?:[KMGT]i?)?", str(value)):
            made.resources["memory"] = (
                f"{value}B" if isinstance(value, str) and value[-1:].isalpha() else value
            )
        elif key != "nvidia.com/gpu":
            made.notes.append(f"resources.{key}: not carried over")


def _elastic(made: Carried, given: Mapping[str, Any]) -> None:
    """How few nodes may train together."""
    fewest, most = whole_number(given.get("minReplicas")), made.resources.get("nodes", 1)
    if fewest and fewest < most:
        made.resources["min_nodes"] = fewest
    made.left(given, ("minReplicas", "maxReplicas"), "spec.elasticPolicy.")
