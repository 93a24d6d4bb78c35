"""Handwritten digits with a small network, searched with clouDL's Manager; only the imports are hostler's."""

import torch
from sklearn.datasets import load_digits
from torch import nn

from hostler.earlystop import EarlyStopping
from hostler.manager import Manager

DEFAULTS = {"lr": 0.1, "hidden": 32, "dropout": 0.1, "epochs": 8}


def data():
    """Training and validation halves of scikit-learn's 1797 digits of 8 × 8 pixels."""
    digits = load_digits()
    x = torch.tensor(digits.data, dtype=torch.float32) / 16
    y = torch.tensor(digits.target)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
    return (x[order[:1200]], y[order[:1200]]), (x[order[1200:]], y[order[1200:]])


def run(manager):
    hyparams = {**DEFAULTS, **manager.get_hyparams()}
    (x, y), (val_x, val_y) = data()
    torch.manual_seed(1)
    model = nn.Sequential(
        nn.Linear(64, hyparams["hidden"]),
        nn.ReLU(),
        nn.Dropout(hyparams["dropout"]),
        nn.Linear(hyparams["hidden"], 10),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=hyparams["lr"], momentum=0.9)
    stopping = EarlyStopping(mode="max", patience=5)
    manager.set_compare_goal("val_accuracy", "max")
    manager.track_model(model)
    for epoch in range(manager.start_epoch(), hyparams["epochs"]):
        manager.add_progress("epochs", epoch)
        model.train()
        for batch in torch.randperm(len(x)).split(100):
            loss = nn.functional.cross_entropy(model(x[batch]), y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            accuracy = (model(val_x).argmax(1) == val_y).float().mean().item()
        manager.add_progress("loss", loss.item())
        manager.add_progress("val_accuracy", accuracy)
        manager.save_progress()
        if stopping.stop(accuracy):
            break
    manager.finished()


if __name__ == "__main__":
    torch.set_num_threads(1)
    Manager.create_manager(hyparams=DEFAULTS).hyparam_search(run)
