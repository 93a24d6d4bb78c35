"""Trainers of other libraries with two ranks, one of them killed: weights as without hostler, to the bit.

Each script trains once in a run, and when that is over once more without it, in the same processes.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gang_world import gang, told, work_together
from worker_world import World

LIGHTNING = """
import hashlib, json, os, signal, warnings
warnings.simplefilter("ignore")
import torch
import lightning
from lightning.pytorch.strategies import DDPStrategy
import hostler
from hostler.callbacks.lightning import HostlerCallback

torch.set_num_threads(1)
rank, nodes = int(os.environ["RANK"]), int(os.environ["GROUP_WORLD_SIZE"])

class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.3), torch.nn.Linear(8, 1))
    def training_step(self, batch, number):
        dies = [rank, self.current_epoch, number, os.environ["HOSTLER_ATTEMPT"]] == [1, 2, 1, "1"]
        if dies and self.trainer.callbacks:
            os.kill(os.getpid(), signal.SIGKILL)
        x, y = batch
        return ((self.body(x + 0.1 * torch.randn_like(x)) - y) ** 2).mean()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.05, momentum=0.9)

def train(callbacks, checkpoint):
    torch.manual_seed(0)
    data = torch.utils.data.TensorDataset(torch.randn(32, 4), torch.randn(32, 1))
    loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True)
    model = Model()
    torch.manual_seed(rank)  # each rank draws its own noise
    trainer = lightning.Trainer(
        max_epochs=4, accelerator="cpu", devices=1, num_nodes=nodes, logger=False, enable_progress_bar=False,
        enable_model_summary=False, callbacks=callbacks, enable_checkpointing=bool(callbacks),
        strategy=DDPStrategy(process_group_backend="gloo", find_unused_parameters=True),
    )
    trainer.fit(model, loader, ckpt_path=checkpoint)
    return hashlib.sha256(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest()

with hostler.start({"lr": 0.05}) as run:
    callback = HostlerCallback(run)
    resumed = callback.checkpoint is not None
    ours = train([callback], callback.checkpoint)
os.write(1, f"ended {json.dumps([rank, nodes, resumed, ours == train([], None)])}\\n".encode())
"""
ACCELERATE = """
import hashlib, json, os, signal, time
from pathlib import Path
import torch
from accelerate import Accelerator, DistributedDataParallelKwargs
import hostler

torch.set_num_threads(1)
whole = DistributedDataParallelKwargs(find_unused_parameters=True)
accelerator = Accelerator(cpu=True, kwargs_handlers=[whole])
rank, world = accelerator.process_index, accelerator.num_processes

def saved():
    # Waited for a little: it may need the other rank to go on.
    for _ in range(100):
        if any(Path(os.environ["STORE"]).rglob("COMMIT*")):
            return True
        time.sleep(0.02)
    return False

def train(run):
    torch.manual_seed(0)
    data = torch.utils.data.TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
    body = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.3), torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(body.parameters(), lr=0.05, momentum=0.9)
    loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True)
    model, optimizer, loader = accelerator.prepare(body, optimizer, loader)
    torch.manual_seed(rank)  # each rank draws its own dropout
    if run:
        run.track(model=model, optimizer=optimizer, loader=loader)
    for epoch in run.epochs(4) if run else range(4):
        for number, (x, y) in enumerate(loader):
            if run and [rank, os.environ["HOSTLER_ATTEMPT"]] == [1, "1"] and (epoch, number) >= (2, 2):
                if saved():
                    os.kill(os.getpid(), signal.SIGKILL)
            loss = ((model(x) - y) ** 2).mean()
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
    flat = accelerator.unwrap_model(model).state_dict().values()
    return hashlib.sha256(b"".join(t.numpy().tobytes() for t in flat)).hexdigest()

with hostler.start({"lr": 0.05}, save_every=0.05) as run:
    resumed = run.resumed
    ours = train(run)
os.write(1, f"ended {json.dumps([rank, world, resumed, ours == train(None)])}\\n".encode())
accelerator.end_training()
"""
COMMANDS = {
    "lightning": (LIGHTNING, (sys.executable, "train.py")),
    "accelerate": (ACCELERATE, (sys.executable, "-m", "accelerate.commands.launch", "train.py")),
}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "world")


@pytest.mark.parametrize("name", [pytest.param("lightning", marks=pytest.mark.soak), "accelerate"])
def test_two_ranks_one_killed_train_as_without_hostler(world: World, name: str) -> None:
    world.quick(grace=20.0)
    script, command = COMMANDS[name]
    job = world.submit(script, command=command, resources=gang(2), env={"STORE": str(world.root / "store")})
    assert work_together(world, 2, 280) == [0, 0]
    assert world.state(job).state == "done", world.log(job)
    assert world.state(job).attempts == 2, world.log(job)
    assert sorted(told(world, job, "ended")) == [[rank, 2, True, True] for rank in range(2)], world.log(job)
