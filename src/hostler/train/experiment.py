"""A training from its config to its last row, as a generator: it yields after each epoch.

Reads top to bottom. Everything that the next step depends on is tracked or a pure function of seed and
step, so that a run killed anywhere ends with the same weights to the bit.
"""

from __future__ import annotations

import dataclasses
import secrets
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from hostler import env
from hostler.errors import Diverged, SpecError
from hostler.train import early, ranks
from hostler.train.config import Config
from hostler.train.evaluation import evaluate
from hostler.train.folder import Folder
from hostler.train.loss import count
from hostler.train.meter import Meter
from hostler.train.parts import Parts, assemble
from hostler.train.stats import TIMESTAMP, Stats

if TYPE_CHECKING:
    from hostler.sdk.run import Run

Row = dict[str, float]
SEEDS = ("seed_model", "seed_training")
# of the machine, not of the training: a run goes on with other ones
ELSEWHERE = (
    "output_dir",
    "device",
    "host_name",
    "num_workers",
    "checkpoint_every",
    "log_to_stdout",
    "data_dir",
    "data_on_device",
)


def params_of(config: Config) -> dict[str, Any]:
    """What makes two trainings the same."""
    found = {one.name: getattr(config, one.name) for one in dataclasses.fields(config)}
    return {
        name: list(v) if isinstance(v, tuple) else v for name, v in found.items() if name not in ELSEWHERE
    }


def experiment(run: Run, config: Config) -> Iterator[Row]:
    """Train as the config says, in this run; the rows of stats.csv as they come."""
    _make_repeatable(config)
    together = ranks.meet(config)
    folder = Folder(Path(config.output_dir or run.output_dir), config, leads=together.leads)
    try:
        folder.write("spec.yaml", config)
        parts = assemble(_seeded(config, run), ranks.device_of(config), together)
        folder.write("config.yaml", parts.config)
        yield from _train(run, parts, folder)
    finally:
        folder.close()
        together.close()


def _make_repeatable(config: Config) -> None:
    if config.deterministic:
        env.make_cuda_repeatable()
        torch.backends.cudnn.benchmark = False
    torch.use_deterministic_algorithms(config.deterministic, warn_only=True)


def _seeded(config: Config, run: Run) -> Config:
    """Seeds that are not given are drawn once, and are the same after a resume."""
    for name in SEEDS:
        if getattr(config, name) is None:
            config = config.but(**{name: run.memory.setdefault(name, secrets.randbelow(2**31))})
    return config


def _train(run: Run, parts: Parts, folder: Folder) -> Iterator[Row]:
    config, meter = parts.config, Meter(parts.device)
    stats = Stats(folder.stats if parts.ranks.leads else None)
    watched = _watched(parts)
    goal = early.goal_of(config.best_checkpoint_metric, config.best_checkpoint_goal)
    tracked: dict[str, Any] = {
        "model": parts.model,
        "optimizer": parts.optimizer,
        "meter": meter,
        "stats": stats,
    }
    if parts.average is not None:
        tracked["average"] = parts.average
    if parts.step.scaler.is_enabled():
        tracked["scaler"] = parts.step.scaler
    run.track(**tracked)
    if config.save_best_checkpoint:
        run.keep_best(watched, goal)
    if config.trial_pass and not run.resumed:
        _try(parts, folder)
    if not parts.span.epochs and not stats.rows:
        yield _untrained(run, parts, folder, stats)
    for epoch in run.epochs(parts.span.epochs):
        yield from _epoch(run, parts, folder, meter, stats, epoch)
        values = [value for row in stats.rows if (value := row.get(watched)) is not None]
        if early.ran_out(values, config.early_stopping_patience, goal):
            folder.say(f"stopped early: no better {watched} for {config.early_stopping_patience} epochs")
            break
    parts.feed.close()
    folder.save("model.safetensors", parts.model)
    folder.done(stats.rows[-1] if stats.rows else {})


def _epoch(run: Run, parts: Parts, folder: Folder, meter: Meter, stats: Stats, epoch: int) -> Iterator[Row]:
    config = parts.config
    for place in run.steps(parts.span.steps(epoch)):
        step = parts.span.first(epoch) + place
        if place == 0:
            meter.clear()
        began = time.perf_counter()
        x, y = parts.batch(step)
        loaded = time.perf_counter()
        loss, right = parts.step(x, y, parts.rate(step))
        if parts.average is not None:
            parts.average.update(parts.model)
        meter.add(loss, right, count(y))
        if (step + 1) % config.log_interval == 0:
            _check(float(loss), step, config)
            run.log({"train/step_loss": loss, "train/learning_rate": parts.rate(step)}, step=step + 1)
        meter.data_time += loaded - began
        meter.time += time.perf_counter() - began
    row = _row(parts, meter, epoch)
    stats.add(row)
    run.log(
        {name: value for name, value in row.items() if name != TIMESTAMP},
        step=parts.span.first(epoch) + parts.span.steps(epoch),
    )
    folder.say(f"epoch {epoch + 1} of {parts.span.epochs}: " + _said(row))
    _check(row["train/loss"], parts.span.first(epoch) + parts.span.steps(epoch) - 1, config)
    if config.save_freq and (epoch + 1) % config.save_freq == 0:
        folder.save(f"checkpoints/epoch_{epoch + 1:05d}.safetensors", parts.model)
    yield row


def _untrained(run: Run, parts: Parts, folder: Folder, stats: Stats) -> Row:
    """The model as it begins: all there is to say where nothing is trained."""
    row = {TIMESTAMP: time.time(), **_evaluated(parts)}
    stats.add(row)
    run.log({name: value for name, value in row.items() if name != TIMESTAMP}, step=0)
    folder.say("nothing is trained: " + _said(row))
    return row


def _row(parts: Parts, meter: Meter, epoch: int) -> Row:
    config, last = parts.config, parts.span.first(epoch) + parts.span.steps(epoch)
    row: Row = {TIMESTAMP: time.time()}
    row.update({f"train/{name}": value for name, value in meter.row(parts.ranks).items()})
    row["train/seen_examples"] = parts.order.seen(last)
    row["train/learning_rate"] = parts.rate(last - 1)
    row["train/throughput"] = _pace(row, parts, epoch)
    every = config.log_interval_eval
    if epoch + 1 == parts.span.epochs or (every and (epoch + 1) % every == 0):
        row.update(_evaluated(parts))
    return row


def _pace(row: Mapping[str, float], parts: Parts, epoch: int) -> float:
    first = parts.span.first(epoch)
    seen = parts.order.seen(first + parts.span.steps(epoch)) - parts.order.seen(first)
    return seen / row["train/time"] if row["train/time"] else 0.0


def _evaluated(parts: Parts) -> Row:
    row: Row = {}
    config = parts.config
    for name, split in parts.data.splits.items():
        if name == "train":
            continue
        for which, model in _models(parts):
            found = evaluate(
                model,
                split,
                parts.step,
                batch=config.eval_batch_size or config.batch_size,
                device=parts.device,
                workers=config.num_workers,
                ranks=parts.ranks,
                prepare=parts.data.prepare,
            )
            row.update({f"{name}/{which}/{what}": value for what, value in found.items()})
    return row


def _models(parts: Parts) -> list[tuple[str, torch.nn.Module]]:
    """Those that are evaluated: as it is now, and the average."""
    if parts.average is None:
        return [("last", parts.model)]
    both = [("last", parts.model), ("av", parts.average.model)]
    return [one for one in both if parts.config.evaluate in (one[0], "both")]


def _columns(parts: Parts) -> list[str]:
    """What a row with an evaluation holds."""
    train = [f"train/{what}" for what in ("loss", "accuracy")]
    others = [name for name in parts.data.splits if name != "train"]
    return train + [
        f"{name}/{which}/{what}"
        for name in others
        for which, _ in _models(parts)
        for what in ("loss", "accuracy")
    ]


def _watched(parts: Parts) -> str:
    """The column that best checkpoints and patience go by."""
    config, columns = parts.config, _columns(parts)
    found = early.column(columns, config.best_checkpoint_metric)
    if found is None and (config.save_best_checkpoint or config.early_stopping_patience):
        raise SpecError(
            f"best_checkpoint_metric {config.best_checkpoint_metric!r} fits no column",
            hint=", ".join(columns),
        )
    return found or columns[0]


def _check(loss: float, step: int, config: Config) -> None:
    if early.has_diverged(loss, config.max_allowed_loss):
        raise Diverged(
            f"the loss is {loss:g} at step {step + 1} (max_allowed_loss {config.max_allowed_loss:g})"
        )


def _said(row: Mapping[str, float]) -> str:
    return ", ".join(
        f"{name} {value:.4g}" for name, value in row.items() if name.endswith(("loss", "accuracy"))
    )


def _try(parts: Parts, folder: Folder) -> None:
    """One batch of each split there and back, before the long run; nothing of it stays."""
    state = torch.get_rng_state()
    parts.model.train()
    x, y = parts.batch(0)
    parts.step.forward(parts.model, x, y)[0].backward()  # type: ignore[no-untyped-call]
    parts.optimizer.zero_grad(set_to_none=True)
    torch.set_rng_state(state)
    folder.say("trial pass: one batch went through")
