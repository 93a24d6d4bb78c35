"""The trainer's config: every key, its default, and its allowed values.

One typed place. An unknown key or a value that cannot be is an error that says what is known; what is
inferred (classes, shapes, seeds, the device) is filled in by `resolved` and written back.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from hostler.errors import SpecError, UsageError
from hostler.sdk.saving import policy_of
from hostler.spec.nearest import did_you_mean
from hostler.spec.ranking import GOALS
from hostler.train import momentum, newest, schedule
from hostler.train.custom import is_place

SGD_LIKE = ("sgd",)
ADAM_LIKE = ("adam", "adamw", "amsgrad", "amsgradw", "lamb")
CLASSES = ("log", "cross_entropy", "xentropy")  # losses of classes
LOSSES = (*CLASSES, "mse", "square")
COMPILES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
PLACES = ("loss", "optim_alg")  # words that may also be a place in a file
UNITS = ("epoch", "step", "sample")
SEEDS = 2**63  # what torch takes
PILLOW, TORCHVISION = "pillow", "torchvision"  # decoders
DECODED = ("folder/", "tar/")  # datasets whose pictures one of them decodes
MOST_CLASSES = 10_000_000  # a class beyond is damage: no model has so many outputs
LARGEST = 2**31  # batch: no more examples are at hand at a time


@dataclass(frozen=True)
class Config:
    # book-keeping
    log_interval: int = 10  # steps between two lines of training.log, and two points of train/step_loss
    log_interval_eval: int | None = None  # batches between two lines of an evaluation; none: one at its end
    save_freq: int = 0  # epochs between two checkpoints that are kept for good; 0: none
    checkpoint_every: str | float | None = None  # "5m", "500 steps", "epoch"; none: as often as pays
    save_best_checkpoint: bool = False
    best_checkpoint_metric: str = "test/.*/accuracy"  # a regular expression over the columns of stats.csv
    best_checkpoint_goal: str | None = None  # max | min; none: min for losses and errors
    output_dir: str | None = None
    log_to_stdout: bool = False
    device: str | None = None
    host_name: str | None = None
    multi_gpu: bool = True  # all visible GPUs train one model, a process on each; false: one
    num_workers: int = 2
    eval_batch_size: int | None = None  # none: the training batch size
    max_allowed_loss: float = 1e6
    early_stopping_patience: int | None = None
    trial_pass: bool = True  # one batch of each split before the long run
    deterministic: bool = True
    # trackers
    wandb: bool = False
    wandb_project_name: str | None = None
    wandb_run_name: str | None = None
    wandb_tags: tuple[str, ...] = ()
    # seeds
    seed_model: int | None = None
    seed_training: int | None = None
    seed_order: int | None = None  # of the examples' order; none: as seed_training says
    # data
    dataset: str = "libsvm/a9a"
    data_dir: str = "data"
    data_download: bool = True
    data_n_examples: Mapping[str, int] | None = None  # filled in, and so are the next, device and host_name
    data_n_classes: int | None = None
    data_splits_map: Mapping[str, str | None] = field(
        default_factory=lambda: {"train": "train", "test": "test"}
    )
    eval_datasets: Mapping[str, str] = field(
        default_factory=dict
    )  # more to evaluate on: dataset, or dataset@split
    data_on_device: bool | None = None  # none: where it fits
    transform: str | None = None  # file.py:name, a function of an example's input and "is it for training"
    augment: tuple[str, ...] = ()
    decoder: str = (
        "pillow"  # of JPEG in folders and shards: pillow | torchvision, on a GPU where there is one
    )
    image_size: int | None = None  # the side of pictures; none: as they are
    data_input: str | None = None  # column of pictures or texts, or several of texts; none: found by kind
    data_target: str | None = None  # column of classes or numbers; none: found by name
    tokenizer: str | None = None  # folder or name; none: the bytes of a text are its tokens
    text_length: int = 128  # tokens of an example
    # model
    model: str = "linear/no_bias"
    model_options: Mapping[str, Any] = field(default_factory=dict)  # of the library that makes the model
    model_pretrained: bool | str = False  # or the path of weights
    model_head_init: str | None = None  # zero | rand
    model_output_dim: int | None = None
    model_input_shape: tuple[int, ...] | None = None
    # loss
    loss: str = "log"  # or file.py:name
    label_smoothing: float = 0.0
    # optimisation
    batch_size: int = 100
    train_length: int = 100
    train_length_unit: str = "epoch"
    steps_per_epoch: int | None = None
    samples_per_epoch: int | None = None
    grad_accum_steps: int = 1
    batch_size_accum: int | None = None  # filled in
    on_out_of_memory: str = "say"  # say what would fit | halve the micro-batch and keep the batch
    optim_alg: str = "sgd"  # or file.py:name
    lr_schedule: str = "constant"
    base_lr: float = 1.0
    weight_decay: float = 0.0
    weight_decay_biases: float = 0.0
    momentum: float | str = 0.9  # "b1,b2" for Adam
    ada_eps: float = 1e-8
    warmup_steps: int = 0
    clip_grad_norm: float | None = None
    amp: str | None = None  # bf16 | fp16
    compile: bool | str = False  # or a mode of torch.compile
    cuda_graph: bool | None = None  # the step is one; none: with compile, and of models linear and tiny
    channels_last: bool = False
    grad_exchange: str | None = None  # bf16: ranks send half the bytes of their gradients
    # averaging
    averaging: str | None = None
    evaluate: str = "both"  # last | av | both

    def __post_init__(self) -> None:
        for check in (_lengths, _words, _places, _effects, _batches, _numbers):
            problem = check(self)
            if problem:
                raise SpecError(*problem)
        schedule.factor(self.lr_schedule, 1)
        if self.averaging is not None:
            newest.share(self.averaging)
        _saving(self.checkpoint_every)
        if self.optim_alg in ADAM_LIKE:
            momentum.betas(self.momentum)
        elif self.optim_alg in SGD_LIKE:
            momentum.one(self.momentum)

    def but(self, **changed: Any) -> Config:
        return replace(self, **changed)


KEYS = {one.name: one for one in fields(Config)}

Problem = tuple[str, str] | None


def _saving(every: str | float | None) -> None:
    try:
        policy_of(every)
    except UsageError as error:
        text = error.message.partition(": ")[2] or error.message
        raise SpecError(f"checkpoint_every: {text}", error.hint) from None


def _lengths(c: Config) -> Problem:
    if c.train_length_unit not in UNITS:
        return f"train_length_unit {c.train_length_unit!r} is not one of {', '.join(UNITS)}", ""
    if c.steps_per_epoch is not None and c.samples_per_epoch is not None:
        return "steps_per_epoch and samples_per_epoch cannot be combined", "give one of the two"
    for name in (
        "steps_per_epoch",
        "samples_per_epoch",
        "log_interval",
        "log_interval_eval",
        "eval_batch_size",
        "image_size",
        "text_length",
        "model_output_dim",
    ):
        value = getattr(c, name)
        if value is not None and value < 1:
            return f"{name} is {value}, but must be at least 1", ""
    if c.model_input_shape is not None and min(c.model_input_shape, default=0) < 1:
        return f"model_input_shape is {list(c.model_input_shape)}, but each must be at least 1", ""
    for name in ("train_length", "num_workers", "save_freq", "warmup_steps"):
        if getattr(c, name) < 0:
            return f"{name} is {getattr(c, name)}, but must be at least 0", ""
    return None


def _words(c: Config) -> Problem:
    known: dict[str, tuple[object, ...]] = {
        "optim_alg": (*SGD_LIKE, *ADAM_LIKE),
        "loss": LOSSES,
        "on_out_of_memory": ("say", "halve"),
        "compile": (False, True, *COMPILES),
        "decoder": (PILLOW, TORCHVISION),
        "amp": (None, "bf16", "fp16"),
        "grad_exchange": (None, "bf16"),
        "evaluate": ("last", "av", "both"),
        "best_checkpoint_goal": (None, *GOALS),
        "model_head_init": (None, "zero", "rand"),
    }
    for name, words in known.items():
        value = getattr(c, name)
        if value not in words and not (name in PLACES and is_place(value)):
            lines = ["null" if word is None else str(word) for word in words]
            lines += ["file.py:name"] if name in PLACES else []
            return f"{name}: {value!r} is not one of {', '.join(lines)}", did_you_mean(str(value), lines)
    if "train" not in c.data_splits_map or c.data_splits_map["train"] is None:
        return "data_splits_map does not name a train split", "for example {train: train, test: test}"
    for name in c.eval_datasets:
        if c.data_splits_map.get(name) is not None:
            return f"eval_datasets: {name!r} is a split of data_splits_map, too", "give it another name"
    return None


def _places(c: Config) -> Problem:
    if c.transform is not None and not is_place(c.transform):
        return f"transform: {c.transform!r} is not file.py:name", "for example my.py:transform"
    return None


def _effects(c: Config) -> Problem:
    """Refuse settings that would have no effect."""
    if c.label_smoothing and c.loss not in CLASSES:
        return f"label_smoothing has no effect on loss: {c.loss}", "it is for loss: log"
    if c.decoder != PILLOW and not c.dataset.startswith(DECODED):
        return f"decoder: {c.decoder} has no effect on {c.dataset}", f"it is for {' and '.join(DECODED)}"
    if c.evaluate == "av" and c.averaging is None:
        return "evaluate: av, but nothing is averaged", "averaging: ema_0.99, for example"
    return None


def _batches(c: Config) -> Problem:
    if c.batch_size < 1 or c.grad_accum_steps < 1:
        return "batch_size and grad_accum_steps must be at least 1", ""
    if c.batch_size >= LARGEST:
        return f"batch_size is {c.batch_size}, but must be below {LARGEST}", ""
    if c.batch_size % c.grad_accum_steps:
        near = min(divisors(c.batch_size), key=lambda n: abs(n - c.grad_accum_steps))
        return (
            f"grad_accum_steps {c.grad_accum_steps} does not divide batch_size {c.batch_size}",
            f"{near} does",
        )
    return None


def _numbers(c: Config) -> Problem:
    if not 0 < c.base_lr < math.inf:
        return f"base_lr is {c.base_lr}, but must be above 0 and finite", ""
    for name in ("seed_model", "seed_training", "seed_order"):
        if not -SEEDS <= (getattr(c, name) or 0) < SEEDS:
            return f"{name} is {getattr(c, name)}, but a seed has 63 bits", f"at most {SEEDS - 1}"
    for name in ("weight_decay", "weight_decay_biases", "ada_eps"):
        if not 0 <= getattr(c, name) < math.inf:
            return f"{name} is {getattr(c, name)}, but must be at least 0 and finite", ""
    if math.isnan(c.max_allowed_loss):
        return "max_allowed_loss is not a number", "1e6, for example; .inf sets no bound"
    if c.clip_grad_norm is not None and not c.clip_grad_norm > 0:
        return f"clip_grad_norm is {c.clip_grad_norm}, but must be above 0", "null switches it off"
    if not 0 <= c.label_smoothing < 1:
        return f"label_smoothing is {c.label_smoothing}, but must be in [0, 1)", ""
    if c.early_stopping_patience is not None and c.early_stopping_patience < 1:
        return "early_stopping_patience must be at least 1", "null switches it off"
    return None


def divisors(number: int) -> list[int]:
    """The numbers that divide this one, from 1 on, found by as many tries as its root is large. Pure."""
    low = [one for one in range(1, math.isqrt(number) + 1) if number % one == 0]
    return [*low, *(number // one for one in reversed(low) if one * one != number)]
