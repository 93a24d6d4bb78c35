"""The trainer behind `hostler train` and `hostler.trainer.experiment_generator`.

The only part that imports torch. Of hostler it imports the library, stores and the reading of files alone.

config.py      every key of the trainer, with its default
configfile.py  a config from a file and `key=value` words
program.py     a training as a program: words, shared processes, devices
copied.py      a copy of the trainer in a user's project; its other files are in `project`
identity.py    keys that a result depends on
experiment.py  the training loop, as a generator
epoch.py       results of an epoch, as the loop yields them
parts.py       data, model, optimiser, schedule from a config; an average of the weights
custom.py      `file.py:name`: a user's own parts
library.py     optional libraries, imported on use
step.py        one step of the optimiser
loss.py        loss and hits of a batch
optimizer.py   the optimiser that a config names; LAMB
momentum.py    `momentum` as an optimiser takes it
schedule.py    the learning rate as a function of the step
span.py        steps and epochs of a training
newest.py      the weight of the newest model in an average
memory.py      pieces of a batch that fit into memory
graphs/        steps recorded as CUDA graphs
looks.py       losses of steps on their way from the device
ranks.py       processes that train one model
seeds.py       seeds and deterministic algorithms
evaluation.py  loss and accuracy over splits; sums over an epoch
early.py       when to stop, and the best epoch
stats.py       the table of epochs
folder.py      files of a training
data/          data sets
models/        models
fused/         several trainings as one
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hostler.train.config import Config as Config

_HOMES = {"Config": "hostler.train.config"}
__all__ = ["Config"]


def __getattr__(name: str) -> Any:
    """Loaded on use: a config can be read without torch."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
