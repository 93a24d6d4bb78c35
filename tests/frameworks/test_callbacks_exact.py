"""Real frameworks, killed with SIGKILL at random moments: the end is an undisturbed run's, to the bit."""

from __future__ import annotations

from pathlib import Path

import pytest

from kill_world import carry_out

TORCH = "torch,torch._dynamo"

TRANSFORMERS = """
import hashlib, json, time
import torch
from transformers import Trainer, TrainerCallback, TrainingArguments
import hostler
from hostler.callbacks.transformers import HostlerCallback

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.3), torch.nn.Linear(8, 1))
    def forward(self, x, labels):
        out = self.body(x)
        return {"loss": ((out - labels) ** 2).mean(), "logits": out}

class Slow(TrainerCallback):
    def on_step_end(self, *_, **__):
        time.sleep(0.01)

torch.manual_seed(0)
data = [{"x": torch.randn(4), "labels": torch.randn(1)} for _ in range(64)]
with hostler.start({"lr": 0.01}) as run:
    callback = HostlerCallback(run)
    args = TrainingArguments(
        output_dir=callback.output_dir, num_train_epochs=6, per_device_train_batch_size=8, learning_rate=0.01,
        save_strategy="steps", save_steps=5, save_total_limit=2, logging_steps=1, report_to=[], use_cpu=True,
        disable_tqdm=True, seed=1,
    )
    torch.manual_seed(1)
    model = Model()
    Trainer(model=model, args=args, train_dataset=data, callbacks=[callback, Slow()]).train(
        resume_from_checkpoint=callback.checkpoint
    )
weights = b"".join(t.numpy().tobytes() for t in model.state_dict().values())
json.dump({"weights": hashlib.sha256(weights).hexdigest()}, open("result.json", "w"))
"""

LIGHTNING = """
import hashlib, json, logging, time, warnings
warnings.simplefilter("ignore")
import torch
import lightning
import hostler
from hostler.callbacks.lightning import HostlerCallback

class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.3), torch.nn.Linear(8, 1))
    def training_step(self, batch, _):
        x, y = batch
        time.sleep(0.005)
        loss = ((self.body(x + 0.1 * torch.randn_like(x)) - y) ** 2).mean()
        self.log("loss", loss)
        return loss
    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=0.05, momentum=0.9)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.5)]

torch.manual_seed(0)
data = torch.utils.data.TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True)
with hostler.start({"lr": 0.05}) as run:
    model = Model()
    callback = HostlerCallback(run)
    resumed = callback.checkpoint
    trainer = lightning.Trainer(
        max_epochs=10, accelerator="cpu", logger=False, enable_progress_bar=False, enable_model_summary=False,
        callbacks=[callback],
    )
    trainer.fit(model, loader, ckpt_path=callback.checkpoint)
weights = b"".join(t.numpy().tobytes() for t in model.state_dict().values())
json.dump({"weights": hashlib.sha256(weights).hexdigest()}, open("result.json", "w"))
"""

ACCELERATE = """
import hashlib, json, time
import torch
from accelerate import Accelerator
import hostler

torch.manual_seed(0)
class Noisy(torch.utils.data.TensorDataset):
    def __getitem__(self, index):
        x, y = super().__getitem__(index)
        return x + 0.1 * torch.randn(4), y  # drawn a batch ahead of the loop

data = Noisy(torch.randn(64, 4), torch.randn(64, 1))
with hostler.start({"lr": 0.05}, save_every=0.02) as run:
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    body = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.3), torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(body.parameters(), lr=0.05, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.5)
    loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True)
    model, optimizer, loader, scheduler = accelerator.prepare(body, optimizer, loader, scheduler)
    run.track(model=model, optimizer=optimizer, scheduler=scheduler, loader=loader)
    for epoch in run.epochs(8):
        for x, y in loader:
            with accelerator.accumulate(model):
                loss = ((model(x) - y) ** 2).mean()
                accelerator.backward(loss)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            run.log(loss=loss.item())
            time.sleep(0.005)
weights = b"".join(t.numpy().tobytes() for t in accelerator.unwrap_model(model).state_dict().values())
json.dump({"weights": hashlib.sha256(weights).hexdigest()}, open("result.json", "w"))
"""

KERAS = """
import os
os.environ["KERAS_BACKEND"] = "torch"
import hashlib, json, time
import keras, numpy
import hostler
from hostler.callbacks.keras import HostlerCallback

keras.utils.set_random_seed(0)
x, y = numpy.random.randn(64, 4), numpy.random.randn(64, 1)
model = keras.Sequential([
    keras.Input((4,)), keras.layers.Dense(8), keras.layers.Dropout(0.3), keras.layers.Dense(1)
])
model.compile(optimizer=keras.optimizers.Adam(0.01), loss="mse")
with hostler.start({"lr": 0.01}) as run:
    callback = HostlerCallback(run)
    callback.restore(model)
    slow = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: time.sleep(0.005))
    both = [slow, callback]
    model.fit(x, y, batch_size=8, epochs=10, initial_epoch=callback.epoch, callbacks=both, verbose=0)
weights = b"".join(w.tobytes() for w in model.get_weights())
json.dump({"weights": hashlib.sha256(weights).hexdigest()}, open("result.json", "w"))
"""

XGBOOST = """
import hashlib, json, time
import numpy, xgboost
import hostler
from hostler.callbacks.xgboost import HostlerCallback

chance = numpy.random.default_rng(0)
x, y = chance.normal(size=(300, 5)), chance.normal(size=300)
data = xgboost.DMatrix(x, y)

class Slow(xgboost.callback.TrainingCallback):
    def after_iteration(self, *_):
        time.sleep(0.02)
        return False

with hostler.start({"depth": 3}) as run:
    callback = HostlerCallback(run)
    params = {"max_depth": 3, "eta": 0.1, "nthread": 1, "seed": 1}
    booster = xgboost.train(
        params, data, callback.rounds_left(40), xgb_model=callback.model, evals=[(data, "train")],
        verbose_eval=False, callbacks=[callback, Slow()],
    )
predicted = booster.predict(data)
assert booster.num_boosted_rounds() == 40
json.dump({"weights": hashlib.sha256(predicted.tobytes()).hexdigest()}, open("result.json", "w"))
"""

LIGHTGBM = """
import hashlib, json, time
import lightgbm, numpy
import hostler
from hostler.callbacks.lightgbm import HostlerCallback

chance = numpy.random.default_rng(0)
x, y = chance.normal(size=(300, 5)), chance.normal(size=300)
data = lightgbm.Dataset(x, y, free_raw_data=False)
slow = lambda env: time.sleep(0.02)
with hostler.start({"leaves": 7}) as run:
    callback = HostlerCallback(run)
    params = {"num_leaves": 7, "learning_rate": 0.1, "num_threads": 1, "seed": 1, "deterministic": True,
              "force_row_wise": True, "verbose": -1, "objective": "l2", "metric": "l2"}
    booster = lightgbm.train(
        params, data, callback.rounds_left(40), init_model=callback.model, valid_sets=[data],
        callbacks=[callback, slow],
    )
predicted = booster.predict(x)
assert booster.num_trees() == 40, booster.num_trees()
json.dump({"weights": hashlib.sha256(predicted.tobytes()).hexdigest()}, open("result.json", "w"))
"""

SKLEARN = """
import hashlib, json, time
import numpy
from sklearn.linear_model import SGDClassifier
import hostler
from hostler.callbacks.sklearn import Pickled

numpy.random.seed(0)
x, y = numpy.random.randn(200, 5), numpy.random.randint(0, 2, 200)
with hostler.start({"alpha": 0.01}) as run:
    model = Pickled(SGDClassifier(alpha=0.01))
    run.track(model=model)
    for epoch in run.epochs(40):
        order = numpy.random.permutation(200)
        model.estimator.partial_fit(x[order], y[order], classes=[0, 1])
        run.log(step=epoch, score=model.estimator.score(x, y))
        time.sleep(0.02)
json.dump({"weights": hashlib.sha256(model.estimator.coef_.tobytes()).hexdigest()}, open("result.json", "w"))
"""

ALL = {
    "transformers": (TRANSFORMERS, f"{TORCH},transformers,accelerate,transformers.trainer", 16),
    "lightning": (LIGHTNING, f"{TORCH},lightning", 24),
    "accelerate": (ACCELERATE, f"{TORCH},accelerate", 24),
    "keras": (KERAS, f"{TORCH},keras", 24),
    "xgboost": (XGBOOST, "xgboost", 12),
    "lightgbm": (LIGHTGBM, "lightgbm", 12),
    "sklearn": (SKLEARN, "sklearn.linear_model", 12),
}
RESUMED = {
    "transformers": "callback.checkpoint",
    "lightning": "resumed",
    "accelerate": "run.resumed",
    "keras": "callback.epoch",
    "xgboost": "callback.model",
    "lightgbm": "callback.model",
    "sklearn": "run.resumed",
}


@pytest.mark.parametrize("name", ALL)
def test_randomly_killed_training_ends_as_the_undisturbed_one(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERAS_BACKEND", "torch")  # before the parent of all attempts imports it
    script, imports, naps = ALL[name]
    script += f'open("resumed", "w").write("yes" if {RESUMED[name]} else "no")\n'
    calm, killed = carry_out(tmp_path, script, kills=3, naps=naps, seed=3, imports=imports)
    assert killed.killed == 3
    assert (killed.folder / "resumed").read_text() == "yes"
    assert killed.read("result.json") == calm.read("result.json")
