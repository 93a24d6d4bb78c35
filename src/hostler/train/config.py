"""What to train and how: every key of the trainer, its default, and what it may be.

One typed place. An unknown key or a value that cannot be is an error that says what is known; what is
inferred (classes, shapes, seeds, the device) is filled in by `resolved` and written back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from hostler.errors import SpecError

SGD_LIKE = ("sgd",)
ADAM_LIKE = ("adam", "adamw", "amsgrad", "amsgradw")
LOSSES = ("log", "cross_entropy", "mse", "square")
UNITS = ("epoch", "step", "sample")


@dataclass(frozen=True)
class Config:
    # book-keeping
    log_interval: int = 10  # steps between two points of train/loss
    log_interval_eval: int | None = None  # epochs between two evaluations; none: only at the end
    save_freq: int = 0  # epochs between two checkpoints that are kept for good; 0: none
    checkpoint_every: str | float | None = None  # "5m", "500 steps", "epoch"; none: as often as pays
    save_best_checkpoint: bool = False
    best_checkpoint_metric: str = "test/.*/accuracy"  # a regular expression over the columns of stats.csv
    best_checkpoint_goal: str | None = None  # max | min; none: min for losses and errors
    output_dir: str | None = None
    log_to_stdout: bool = False
    device: str | None = None
    host_name: str | None = None
    multi_gpu: bool = True  # the devices of a gang train one model
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
    data_n_examples: int | None = None
    data_n_classes: int | None = None
    data_splits_map: Mapping[str, str | None] = field(
        default_factory=lambda: {"train": "train", "test": "test"}
    )
    data_on_device: bool | None = None  # none: where it fits
    augment: tuple[str, ...] = ()
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
    loss: str = "log"
    label_smoothing: float = 0.0
    # optimisation
    batch_size: int = 100
    train_length: int = 100
    train_length_unit: str = "epoch"
    steps_per_epoch: int | None = None
    samples_per_epoch: int | None = None
    grad_accum_steps: int = 1
    batch_size_accum: int | None = None
    optim_alg: str = "sgd"
    lr_schedule: str = "constant"
    base_lr: float = 1.0
    weight_decay: float = 0.0
    weight_decay_biases: float = 0.0
    momentum: float | str = 0.9  # "b1,b2" for Adam
    ada_eps: float = 1e-8
    warmup_steps: int = 0
    clip_grad_norm: float | None = None
    amp: str | None = None  # bf16 | fp16
    compile: bool = False
    channels_last: bool = False
    # averaging
    averaging: str | None = None
    evaluate: str = "both"  # last | av | both

    def __post_init__(self) -> None:
        for check in (_lengths, _words, _batches, _numbers):
            problem = check(self)
            if problem:
                raise SpecError(*problem)

    def but(self, **changed: Any) -> Config:
        return replace(self, **changed)


KEYS = {one.name: one for one in fields(Config)}

Problem = tuple[str, str] | None


def _lengths(c: Config) -> Problem:
    if c.train_length_unit not in UNITS:
        return f"train_length_unit {c.train_length_unit!r} is none of {', '.join(UNITS)}", ""
    if c.steps_per_epoch is not None and c.samples_per_epoch is not None:
        return "steps_per_epoch and samples_per_epoch say the same thing", "give one of the two"
    for name in (
        "steps_per_epoch",
        "samples_per_epoch",
        "log_interval",
        "eval_batch_size",
        "image_size",
        "text_length",
    ):
        value = getattr(c, name)
        if value is not None and value < 1:
            return f"{name} is {value}, and must be at least 1", ""
    for name in ("train_length", "num_workers", "save_freq", "warmup_steps"):
        if getattr(c, name) < 0:
            return f"{name} is {getattr(c, name)}, and cannot be less than nothing", ""
    return None


def _words(c: Config) -> Problem:
    known: dict[str, tuple[object, ...]] = {
        "optim_alg": (*SGD_LIKE, *ADAM_LIKE),
        "loss": LOSSES,
        "amp": (None, "bf16", "fp16"),
        "evaluate": ("last", "av", "both"),
        "best_checkpoint_goal": (None, "max", "min"),
        "model_head_init": (None, "zero", "rand"),
    }
    for name, words in known.items():
        if getattr(c, name) not in words:
            said = ", ".join("null" if word is None else str(word) for word in words)
            return f"{name}: {getattr(c, name)!r} is none of {said}", ""
    if "train" not in c.data_splits_map or c.data_splits_map["train"] is None:
        return "data_splits_map has no train", "for example {train: train, test: test}"
    return None


def _batches(c: Config) -> Problem:
    if c.batch_size < 1 or c.grad_accum_steps < 1:
        return "batch_size and grad_accum_steps must be at least 1", ""
    if c.batch_size % c.grad_accum_steps:
        fits = [n for n in range(1, c.batch_size + 1) if c.batch_size % n == 0]
        near = min(fits, key=lambda n: abs(n - c.grad_accum_steps))
        return (
            f"grad_accum_steps {c.grad_accum_steps} does not divide batch_size {c.batch_size}",
            f"{near} does",
        )
    return None


def _numbers(c: Config) -> Problem:
    if not c.base_lr > 0:
        return f"base_lr is {c.base_lr}, and must be above 0", ""
    if not 0 <= c.label_smoothing < 1:
        return f"label_smoothing is {c.label_smoothing}, and must be in [0, 1)", ""
    if c.early_stopping_patience is not None and c.early_stopping_patience < 1:
        return "early_stopping_patience must be at least 1", "null switches it off"
    return None
