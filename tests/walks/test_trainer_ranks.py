"""The trainer on several ranks of a gang: the weights of a reference that is written down here, to the bit.

Rank r of R takes the examples r, r+R, r+2R, … of each batch; each rank's mean loss weighs as much as it has
examples; gradients are summed.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from gang_world import gang, work_together
from ranked_reference import CONFIG, reference
from small_trainings import same
from worker_world import World

SCRIPT = """
import json, os, signal, sys, time
from pathlib import Path
import torch
torch.set_num_threads(1)
from hostler.train import step
from hostler.trainer import experiment_generator
marks, rank = Path(os.environ["MARKS"]), int(os.environ.get("RANK", "0"))
kill, go, done = json.loads(os.environ.get("KILL", "[]")), step.Step.__call__, 0
def call(self, *given):
    global done
    done += 1
    if [rank, done] == kill and not (marks / "killed").exists():
        while "AWAITED" in os.environ and not any(Path(os.environ["AWAITED"]).rglob("COMMIT*")):
            time.sleep(0.02)  # checkpoints are written beside the training
        (marks / "killed").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return go(self, *given)
step.Step.__call__ = call
for epoch in experiment_generator(json.loads(os.environ["CONFIG"]), name=os.environ.get("NAME")):
    if rank == 0:
        print("epoch", epoch.number, epoch["train/loss"], flush=True)
"""


def trained(world: World, config: dict[str, Any], resources: Any, workers: int, **env: str) -> Path:
    out = world.root / "out"
    given = {"CONFIG": json.dumps({**config, "output_dir": str(out)}), "OMP_NUM_THREADS": "1", **env}
    job = world.submit(SCRIPT, resources=resources, env=given)
    assert work_together(world, workers, 240) == [0] * workers
    assert world.state(job).state == "done", world.log(job)
    return out


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path / "world")
    world.quick(grace=20.0)
    return world


@pytest.mark.timeout(280)
def test_two_ranks_with_one_killed_have_the_references_exact_weights(world: World) -> None:
    torch.set_num_threads(1)
    out = trained(world, CONFIG, gang(2), 2, KILL="[1, 9]")
    assert world.mark("killed").exists()
    assert same(load_file(out / "model.safetensors"), reference(2))
    alone = reference(1)
    assert all(
        torch.allclose(alone[n], v, atol=1e-5) for n, v in load_file(out / "model.safetensors").items()
    )
    (loss,) = {line.split(",")[1] for line in (out / "stats.csv").read_text().splitlines()[1:2]}
    assert 0 < float(loss) < 5


@pytest.mark.soak
@pytest.mark.timeout(280)
def test_two_processes_of_one_node_are_the_same_two_ranks(world: World) -> None:
    torch.set_num_threads(1)
    out = trained(world, CONFIG, gang(1, 2), 1)
    assert same(load_file(out / "model.safetensors"), reference(2))


@pytest.mark.soak
@pytest.mark.timeout(280)
def test_dropout_and_micro_batches_on_ranks_are_exact_after_kill(tmp_path: Path) -> None:
    config = {
        **CONFIG, "dataset": "synthetic/3x8x8_4_50", "model": "tiny/wrn_10_1_0.3", "grad_accum_steps": 2,
        "augment": ["flip", "mixup"], "averaging": "ema_0.9", "train_length": 2,
    }  # fmt: skip
    outs = []
    for name, env in (("calm", {}), ("killed", {"KILL": "[0, 10]"})):
        world = World(tmp_path / name)
        world.quick(grace=20.0)
        outs.append(trained(world, config, gang(2), 2, **env))
    assert (outs[0] / "model.safetensors").read_bytes() == (outs[1] / "model.safetensors").read_bytes()
    assert (outs[0] / "model_av.safetensors").read_bytes() == (outs[1] / "model_av.safetensors").read_bytes()


class ByHand:
    """Ranks that a person starts: so many processes, to their ends."""

    def __init__(self, root: Path) -> None:
        self.out, self._root = root / "out", root
        for name in ("marks", "cache", "t"):
            (root / name).mkdir(parents=True)
        (root / "train.py").write_text(SCRIPT)

    def start(self, ranks: int, **env: str) -> list[int]:
        source = Path(__file__).parents[2] / "src"
        given = {
            **{k: v for k, v in os.environ.items() if not k.startswith("HOSTLER_")},
            "PYTHONPATH": str(source), "TMPDIR": str(self._root / "t"),
            "HOSTLER_CACHE": str(self._root / "cache"),
            "MARKS": str(self._root / "marks"), "NAME": "it", "OMP_NUM_THREADS": "1",
            "CONFIG": json.dumps({**CONFIG, "output_dir": str(self.out)}), **env,
        }  # fmt: skip
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = str(server.getsockname()[1])
        meet = (
            {"WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port} if ranks > 1 else {}
        )
        processes = [
            subprocess.Popen(
                [sys.executable, "train.py"],
                cwd=self._root,
                env={**given, **meet, **({"RANK": str(rank)} if ranks > 1 else {})},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for rank in range(ranks)
        ]
        self.said = [process.communicate(timeout=200)[0] for process in processes]
        return [process.returncode for process in processes]


@pytest.mark.timeout(280)
def test_another_number_of_ranks_continues_where_the_user_allows_it(tmp_path: Path) -> None:
    torch.set_num_threads(1)
    hand = ByHand(tmp_path)
    assert hand.start(1, KILL="[0, 9]", AWAITED=str(tmp_path)) == [-9]
    refused = hand.start(2)
    assert refused[0] != 0 and "was saved by 1 processes" in hand.said[0]
    assert hand.start(2, HOSTLER_ELASTIC="1") == [0, 0], hand.said
    assert "now 2 resume from it" in hand.said[0]
    found, alone = load_file(hand.out / "model.safetensors"), reference(1)
    assert all(torch.allclose(alone[name], value, atol=1e-5) for name, value in found.items())
    seen = [line.split(",") for line in (hand.out / "stats.csv").read_text().splitlines()]
    assert [row[seen[0].index("train/seen_examples")] for row in seen[1:]] == ["41", "82", "123"]


@pytest.mark.soak
def test_a_batch_that_the_ranks_cannot_share_is_said(world: World) -> None:
    given = {"CONFIG": json.dumps({**CONFIG, "batch_size": 7}), "OMP_NUM_THREADS": "1"}
    job = world.submit(SCRIPT, resources=gang(2), env=given, retries=0)
    work_together(world, 2, 240)
    assert "batch_size 7 cannot be divided among 2 ranks (batch_size: 6 can)" in world.log(job)
