"""Trainings with the libraries that people use, in the form of their tutorials; none knows hostler.

With `amp` they are slow enough to be killed; the numbers are the same without.
"""

from __future__ import annotations

from pathlib import Path

import torch

from script_walk import Script, largest_number, number_in

EPOCHS = 6

_ARGS = """
import argparse, json, os, time
parser = argparse.ArgumentParser()
parser.add_argument("--out", required=True)
parser.add_argument("--resume")
parser.add_argument("--amp", action="store_true")
parser.add_argument("--layers", nargs="+", type=int, default=[1])
args = parser.parse_args()
os.makedirs("results", exist_ok=True)
with open("results/config.json", "w") as file:
    json.dump(vars(args), file)
"""

TORCH = f"""
{_ARGS}
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(64, 4)
y = x.sum(1, keepdim=True)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
start = 0
if args.resume:
    state = torch.load(args.resume)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    start = state["epoch"]
    print(f"resumed from epoch {{start}}")
for epoch in range(start + 1, {EPOCHS} + 1):
    if args.amp:
        time.sleep(0.8)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    print(f"Epoch {{epoch}}/{EPOCHS} - loss: {{loss.item():.6f}}")
    state = {{"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}}
    torch.save(state, f"{{args.out}}/last.pt")
    with open(f"{{args.out}}/log.json", "w") as file:
        json.dump({{"epoch": epoch}}, file)
torch.save(model.state_dict(), "results/model.pt")
"""

TRANSFORMERS = """
import json, os, time
from dataclasses import asdict, dataclass, field
from typing import List, Optional
import torch
from transformers import HfArgumentParser, Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint

@dataclass
class ModelArguments:
    amp: bool = field(default=False)
    layers: List[int] = field(default_factory=list)

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(4, 1)
    def forward(self, x, labels):
        out = self.body(x)
        return {"loss": torch.nn.functional.mse_loss(out, labels), "logits": out}

own, args = HfArgumentParser((ModelArguments, TrainingArguments)).parse_args_into_dataclasses()
os.makedirs("results", exist_ok=True)
with open("results/config.json", "w") as file:
    json.dump(asdict(own), file)

class Slow(TrainerCallback):
    def on_epoch_begin(self, *_, **__):
        if own.amp:
            time.sleep(0.8)

torch.manual_seed(0)
data = [{"x": torch.randn(4), "labels": torch.randn(1)} for _ in range(8)]
trainer = Trainer(model=Model(), args=args, train_dataset=data, callbacks=[Slow()])
last = get_last_checkpoint(args.output_dir)
if last:
    print("resumed from epoch", last.rpartition("-")[2])
trainer.train(resume_from_checkpoint=last)
trainer.save_model("results/model")
"""

LIGHTNING = f"""
{_ARGS}
import torch
import lightning as L
from lightning.pytorch.callbacks import ModelCheckpoint

class Model(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(4, 1)
    def training_step(self, batch, _):
        x, y = batch
        loss = torch.nn.functional.mse_loss(self.body(x), y)
        self.log("train_loss", loss, prog_bar=True, on_epoch=True, on_step=False)
        return loss
    def on_train_epoch_start(self):
        if args.amp:
            time.sleep(0.8)
    def on_train_epoch_end(self):
        print(f"epoch {{self.current_epoch + 1}}: loss={{self.trainer.callback_metrics['train_loss']:.6f}}")
    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.05)

L.seed_everything(0)
if args.resume:
    print("resumed from epoch", torch.load(args.resume, weights_only=False)["epoch"] + 1)
x = torch.randn(8, 4)
data = torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True))
saver = ModelCheckpoint(dirpath=args.out, save_last=True)
trainer = L.Trainer(max_epochs={EPOCHS}, accelerator="cpu", callbacks=[saver], log_every_n_steps=1)
trainer.fit(Model(), torch.utils.data.DataLoader(data, batch_size=4), ckpt_path=args.resume)
trainer.save_checkpoint("results/final.ckpt")
"""

KERAS = f"""
{_ARGS}
import keras
import numpy as np

keras.utils.set_random_seed(0)
x = np.random.RandomState(0).randn(64, 4)
y = x.sum(1, keepdims=True)
model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(8, "relu"), keras.layers.Dense(1)])
model.compile("adam", "mse")

class Slow(keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        self.first = True
    def on_epoch_begin(self, epoch, logs=None):
        if self.first and epoch:
            print(f"resumed from epoch {{epoch}}")
        self.first = False
        if args.amp:
            time.sleep(0.8)

backup = keras.callbacks.BackupAndRestore(args.out, delete_checkpoint=False)
history = keras.callbacks.CSVLogger("results/history.csv", append=True)
model.fit(x, y, epochs={EPOCHS}, batch_size=16, shuffle=False, callbacks=[backup, history, Slow()])
model.save("results/model.keras")
"""

XGBOOST = f"""
{_ARGS}
import glob
import numpy as np
import xgboost as xgb

x = np.random.RandomState(0).randn(200, 4)
data = xgb.DMatrix(x, (x.sum(1) > 0).astype(int))

class Slow(xgb.callback.TrainingCallback):
    def after_iteration(self, model, epoch, evals_log):
        if args.amp:
            time.sleep(0.8)
        return False

found = sorted(glob.glob(args.out + "/model_*.ubj"), key=lambda name: int(name[:-4].rpartition("_")[2]))
booster, left = None, {EPOCHS}
if found:
    booster = xgb.Booster(model_file=found[-1])
    left -= booster.num_boosted_rounds()
    print(f"resumed from epoch {{booster.num_boosted_rounds()}}")
saver = xgb.callback.TrainingCheckPoint(args.out, name="model", interval=1)
booster = xgb.train(
    {{"objective": "binary:logistic", "eval_metric": "logloss", "max_depth": 2}}, data, left,
    evals=[(data, "train")], xgb_model=booster, callbacks=[saver, Slow()],
)
booster.save_model("results/model.json")
"""

LIGHTGBM = f"""
{_ARGS}
import lightgbm as lgb
import numpy as np

x = np.random.RandomState(0).randn(200, 4)
data = lgb.Dataset(x, (x.sum(1) > 0).astype(int), free_raw_data=False)

def save(env):
    if args.amp:
        time.sleep(0.8)
    env.model.save_model(f"{{args.out}}/model.txt.new")
    os.replace(f"{{args.out}}/model.txt.new", f"{{args.out}}/model.txt")
    with open(f"{{args.out}}/log.json", "w") as file:
        json.dump({{"epoch": env.iteration + 1}}, file)

left = {EPOCHS}
if args.resume:
    before = lgb.Booster(model_file=args.resume)
    left -= before.current_iteration()
    print(f"resumed from epoch {{before.current_iteration()}}")
booster = lgb.train(
    {{"objective": "binary", "metric": "binary_logloss", "num_leaves": 4, "verbose": -1, "num_threads": 1}},
    data, left, valid_sets=[data], valid_names=["train"], init_model=args.resume,
    callbacks=[lgb.log_evaluation(1), save],
)
booster.save_model("results/model.txt")
"""

SKLEARN = f"""
{_ARGS}
import joblib
import numpy as np
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import accuracy_score, log_loss

x = np.random.RandomState(0).randn(400, 4)
y = (x.sum(1) > 0).astype(int)
model, done = SGDClassifier(loss="log_loss", random_state=0, shuffle=False), 0
if args.resume:
    model, done = joblib.load(args.resume)
    print(f"resumed from epoch {{done}}")
for epoch in range(done + 1, {EPOCHS} + 1):
    if args.amp:
        time.sleep(0.8)
    model.partial_fit(x, y, classes=[0, 1])
    print(f"epoch {{epoch}}: log_loss={{log_loss(y, model.predict_proba(x)):.6f}}, "
          f"accuracy={{accuracy_score(y, model.predict(x)):.4f}}")
    joblib.dump((model, epoch), f"{{args.out}}/model.joblib")
    with open(f"{{args.out}}/log.json", "w") as file:
        json.dump({{"epoch": epoch}}, file)
joblib.dump(model, "results/model.joblib")
"""


def _script(text: str, metric: str, resume: str, model: str, **more: object) -> Script:
    sweep = "command: python train.py --out {checkpoint_dir}\n"
    sweep += f"resume: --resume {{checkpoint_dir}}/{resume}\n" if resume else ""
    given = {"outputs": ("results/config.json", f"results/{model}"), "steps": EPOCHS, **more}
    return Script({"train.py": text}, sweep, metric, **given)  # type: ignore[arg-type]


def _in_last_ckpt(folder: Path) -> int:
    """Epochs that the file of Lightning has."""
    try:
        return int(torch.load(folder / "last.ckpt", weights_only=False)["epoch"]) + 1
    except Exception:  # missing, or being written
        return 0


def _rounds(folder: Path) -> int:
    """XGBoost names its first round 0."""
    return largest_number(folder) + 1 if any(folder.glob("*.ubj")) else 0


_LOG = number_in("log.json", "epoch")
_HF = (
    "command: python train.py --output_dir {checkpoint_dir} --num_train_epochs 6 --save_strategy epoch "
    "--logging_strategy epoch --per_device_train_batch_size 8 --use_cpu --report_to none\n"
)
LIBRARIES = {
    "torch": _script(TORCH, "loss", "last.pt", "model.pt", saved=_LOG),
    "transformers": Script(
        {"train.py": TRANSFORMERS},
        _HF,
        "loss",
        EPOCHS,
        outputs=("results/config.json", "results/model/model.safetensors"),
    ),
    "lightning": _script(  # where there is no terminal its bar is printed once, at the end: a point
        LIGHTNING, "loss", "last.ckpt", "final.ckpt", saved=_in_last_ckpt, also=("train_loss",)
    ),
    "keras": _script(
        KERAS,
        "loss",
        "",
        "model.keras",
        env={"KERAS_BACKEND": "torch"},
        saved=number_in("training_metadata.json", "epoch"),
    ),
    "xgboost": _script(XGBOOST, "train-logloss", "", "model.json", saved=_rounds, unprinted=1),
    "lightgbm": _script(LIGHTGBM, "train/binary_logloss", "model.txt", "model.txt", saved=_LOG, exact=False),
    "sklearn": _script(SKLEARN, "log_loss", "model.joblib", "model.joblib", saved=_LOG),
}
