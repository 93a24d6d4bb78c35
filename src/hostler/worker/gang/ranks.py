"""The variables by which the processes of one run find each other. Pure.

Every process gets torchrun's (RANK, WORLD_SIZE, MASTER_ADDR …), whatever trains in it; besides, those that
TensorFlow or JAX read. The node's rank is its place in the go; ranks count through the nodes in that order.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from hostler import env
from hostler.records.run.gang import GangNode, GangStart

TENSORFLOW, JAX = "tensorflow", "jax"


def ports_of_node(kind: str, procs: int) -> int:
    """How many ports a node needs: TensorFlow's processes listen all, the others' first alone."""
    return procs if kind == TENSORFLOW else 1


def variables(kind: str, go: GangStart, node: int, procs: int) -> list[dict[str, str]]:
    """Variables of each process of a node."""
    return [_process(kind, go, node, procs, local) for local in range(procs)]


def _process(kind: str, go: GangStart, node: int, procs: int, local: int) -> dict[str, str]:
    first, rank, world = go.nodes[0], node * procs + local, len(go.nodes) * procs
    found = {
        "RANK": str(rank),
        "LOCAL_RANK": str(local),
        "WORLD_SIZE": str(world),
        "LOCAL_WORLD_SIZE": str(procs),
        "GROUP_RANK": str(node),
        "NODE_RANK": str(node),
        "GROUP_WORLD_SIZE": str(len(go.nodes)),
        "MASTER_ADDR": first.address,
        "MASTER_PORT": str(first.ports[0]),
    }
    if kind == TENSORFLOW:
        found["TF_CONFIG"] = _tf_config(go.nodes, rank, procs)
    if kind == JAX:
        found |= {
            "JAX_COORDINATOR_ADDRESS": f"{first.address}:{first.ports[0]}",
            "JAX_NUM_PROCESSES": str(world),
            "JAX_PROCESS_ID": str(rank),
        }
    return {**found, **board(go)}


def _tf_config(nodes: Sequence[GangNode], rank: int, procs: int) -> str:
    workers = [f"{node.address}:{port}" for node in nodes for port in node.ports[:procs]]
    return json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker", "index": rank}})


def board(go: GangStart) -> dict[str, str]:
    """Where ranks on several machines agree; those on one do so in their folder."""
    if len(go.nodes) < 2:
        return {}
    return {env.BOARD: f"{go.nodes[0].address}:{go.board}", env.BOARD_SECRET: go.secret}
