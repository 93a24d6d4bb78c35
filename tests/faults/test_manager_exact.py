"""clouDL's words, killed with SIGKILL at random moments: equal to the bit to a search that nobody killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from kill_world import carry_out

# Word for word what a script of clouDL's does: only the model is tracked, nothing else is handed over.
SCRIPT = """
import hashlib, json, time
import torch
from torch import nn
from hostler.earlystop import EarlyStopping
from hostler.manager import Manager

def mark(tensors):
    return hashlib.sha256(b"".join(t.detach().numpy().tobytes() for t in tensors)).hexdigest()

def run(manager, param_pth=None, best_param_pth=None):
    hyparams = manager.get_hyparams()
    torch.manual_seed(hyparams["seed"])
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=hyparams["lr"], momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 4, 0.5)
    stopping = EarlyStopping(patience=8)
    data = torch.utils.data.TensorDataset(torch.randn(64, 8), torch.randn(64, 1))
    loader = torch.utils.data.DataLoader(data, batch_size=16, shuffle=True)
    manager.set_compare_goal("loss", "min")
    start_epoch = manager.start_epoch()
    manager.track_model(model)
    for epoch in range(start_epoch, hyparams["epochs"]):
        manager.add_progress("epochs", epoch)
        total = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = ((model(x + 0.1 * torch.randn_like(x)) - y) ** 2).mean()
            loss.backward()
            optimizer.step()
            total += loss.item()
            time.sleep(0.002)
        scheduler.step()
        manager.add_progress("loss", total)
        if stopping.stop(total):
            break
        if epoch % 3 == 2:
            manager.save_progress()
    momentum = [optimizer.state[p]["momentum_buffer"] for p in model.parameters()]
    result = {
        "weights": mark(model.state_dict().values()), "momentum": mark(momentum),
        "best": mark(manager._trial.best_weights.values()), "progress": manager.get_progress(),
        "stopping": stopping.state_dict(), "lr": scheduler.get_last_lr(), "began": start_epoch,
    }
    json.dump(result, open(f"result-{hyparams['seed']}.json", "w"))
    manager.finished()

trials = [{"seed": 1, "lr": 0.05, "epochs": 16}, {"seed": 2, "lr": 0.02, "epochs": 16}]
Manager.create_manager(torch, hyparams=trials).hyparam_search(run)
"""


LONG = SCRIPT.replace('"epochs": 16', '"epochs": 60').replace("patience=8", "patience=50")


def check(tmp_path: Path, kills: int, seed: int, script: str = SCRIPT) -> None:
    calm, killed = carry_out(tmp_path, script, kills=kills, naps=30, seed=seed)
    assert killed.killed == kills
    began = 0
    for name in ("result-1.json", "result-2.json"):
        one, other = calm.read(name), killed.read(name)
        began += other.pop("began")
        one.pop("began")
        assert one == other
    assert began > 0, "no attempt went on from a checkpoint"


def test_a_search_killed_at_random_equals_one_that_nobody_killed(tmp_path: Path) -> None:
    check(tmp_path, kills=6, seed=4)


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("seed", range(1, 6))
def test_a_search_killed_twenty_times_equals_one_that_nobody_killed(tmp_path: Path, seed: int) -> None:
    check(tmp_path, kills=20, seed=seed, script=LONG)
