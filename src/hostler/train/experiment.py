"""A training from its config to its last row, as a generator: it yields after each epoch.

Reads top to bottom. Everything that the next step depends on is tracked or a pure function of seed and
step, so that a run killed anywhere ends with the same weights to the bit.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from hostler.errors import Diverged, HostlerError, SpecError
from hostler.train import early, ranks, seeds
from hostler.train.config import Config
from hostler.train.data.order import mixed
from hostler.train.early import WatchedColumns
from hostler.train.epoch import Epoch
from hostler.train.evaluation import ScoreMeter, columns, evaluated
from hostler.train.folder import RunFolder
from hostler.train.fused import places
from hostler.train.fused.alone import went_on
from hostler.train.identity import inferred
from hostler.train.looks import Looks
from hostler.train.loss import count
from hostler.train.parts import TrainingParts, assemble
from hostler.train.stats import TIMESTAMP, Stats

if TYPE_CHECKING:
    from hostler.sdk.run import Run
from hostler.train.memory import ForwardState

WATCHED = "watched"  # the best of several columns, as a metric
AHEAD = 8  # steps that a GPU has to do while its state is gathered for a checkpoint


def experiment(run: Run, config: Config) -> Iterator[Epoch]:
    """Train as the config says, in this run; each epoch as it comes."""
    seeds.make_repeatable(config)
    if places.began(run.memory):
        yield from went_on(run, config)
        return
    together = ranks.meet(config)
    folder = RunFolder(Path(config.output_dir or run.output_dir), config, leads=together.leads)
    try:
        folder.write("spec.yaml", config)
        if line := ranks.said(config, together):
            folder.say(line)
        parts = assemble(seeds.seeded(config, run, together), ranks.device_of(config), together)
        folder.write("config.yaml", parts.config)
        run.chose(**inferred(config, parts.config))
        yield from _train(run, parts, folder)
    except HostlerError as error:
        folder.say(f"ended: {error}")
        raise
    finally:
        folder.close()
        together.close()


def _train(run: Run, parts: TrainingParts, folder: RunFolder) -> Iterator[Epoch]:
    meter, looks = ScoreMeter(parts.device, parts.ranks.count), Looks()
    stats = Stats(folder.stats if parts.ranks.leads else None, beside=True)
    try:
        yield from _epochs(run, parts, folder, meter, looks, stats)
    finally:
        stats.wait()
        parts.feed.close()
    for name, model in _models(parts):
        folder.save(f"model{name}.safetensors", model)
    folder.done(stats.rows[-1] if stats.rows else {})


def _epochs(
    run: Run, parts: TrainingParts, folder: RunFolder, meter: ScoreMeter, looks: Looks, stats: Stats
) -> Iterator[Epoch]:
    config, watched = parts.config, _watched(parts)
    run.track(**_tracked(parts, meter, stats), looks=looks)
    if parts.device.type == "cuda" and parts.ranks.count == 1 and config.checkpoint_every is None:
        run._saves_inside(AHEAD)
    if config.save_best_checkpoint:
        run.keep_best(_name(watched), watched.goal)
    parts.step.say = folder.say
    pieces = parts.step.pieces
    pieces.on_change = lambda text: _changed(parts, folder, text)
    if pieces.training != config.grad_accum_steps:
        pieces.on_change(f"goes on with grad_accum_steps {pieces.training}, as before")
    if config.trial_pass and not run.resumed:
        rehearse(parts)
        folder.say("trial pass: one batch of each split went through")
    if not parts.span.epochs and not stats.rows:
        yield _untrained(run, parts, folder, stats)
    for epoch in run.epochs(parts.span.epochs):
        _steps(run, parts, folder, meter, looks, epoch)
        row = _row(parts, folder, meter, epoch)
        stats.add(row)
        _report(run, parts, folder, stats, watched, epoch)
        yield _as_epoch(parts, row, epoch)
        if watched.ran_out(stats.rows, config.early_stopping_patience):
            folder.say(f"stopped early: nothing better for {config.early_stopping_patience} epochs")
            run._ends_early()
            break


def _steps(
    run: Run, parts: TrainingParts, folder: RunFolder, meter: ScoreMeter, looks: Looks, epoch: int
) -> None:
    """The steps of one epoch, from where it was."""
    count_of_epoch, every = parts.span.steps(epoch), parts.config.log_interval
    for place in run.steps(count_of_epoch):
        step = parts.span.first(epoch) + place
        if place == 0:
            meter.clear()
        if meter.moved:  # the random numbers are those of another number of ranks
            torch.manual_seed(mixed(parts.config.seed_training or 0, step, parts.ranks.rank))
            meter.moved = False
        began = time.perf_counter()
        x, y = parts.batch(step)
        loaded = time.perf_counter()
        whole = parts.order.size(step)
        mine = parts.ranks.mine(whole)
        loss, right = parts.step(x, y, parts.rate(step), mine * parts.ranks.count / whole)
        if parts.average is not None:
            parts.average.update(parts.model)
        if mine:
            meter.add(loss, right, count(y))
        last = place + 1 == count_of_epoch
        if (step + 1) % every == 0 or last:
            looks.add(step, parts.ranks.sum(loss * (mine / whole)))
        for at, value in looks.arrived(all_of_them=last or parts.ranks.count > 1):
            _look(run, parts, folder, at, value)
        meter.data_time += loaded - began
        meter.time += time.perf_counter() - began


def _look(run: Run, parts: TrainingParts, folder: RunFolder, step: int, loss: float) -> None:
    """Every so often at the loss of a step, and whether the training runs away."""
    rate, total = parts.rate(step), parts.span.total
    folder.say(
        f"train: step {step + 1} of {total} ({(step + 1) / total:.1%}), loss {loss:.4g}, rate {rate:.4g}"
    )
    if parts.ranks.leads:
        run.log({"train/step_loss": loss, "train/learning_rate": rate}, step=step + 1)
    _check(loss, f"at step {step + 1}", parts.config)


def _row(parts: TrainingParts, folder: RunFolder, meter: ScoreMeter, epoch: int) -> dict[str, float]:
    first = parts.span.first(epoch)
    last = first + parts.span.steps(epoch)
    row = {TIMESTAMP: time.time()}
    row.update({f"train/{name}": value for name, value in meter.row(parts.ranks).items()})
    row["train/seen_examples"] = parts.order.seen(last)
    row["train/learning_rate"] = parts.rate(last - 1)
    seen = parts.order.seen(last) - parts.order.seen(first)
    row["train/throughput"] = seen / row["train/time"] if row["train/time"] else 0.0
    row.update(evaluated(parts, say=folder.say))
    return row


def _report(
    run: Run, parts: TrainingParts, folder: RunFolder, stats: Stats, watched: WatchedColumns, epoch: int
) -> None:
    """Tell the run, the log and the disk of an epoch; a loss that runs away ends it here."""
    config, row = parts.config, stats.rows[-1]
    best, last = watched.best_of(row), parts.span.first(epoch) + parts.span.steps(epoch)
    told = {name: value for name, value in row.items() if name != TIMESTAMP}
    if len(watched.columns) > 1 and best is not None:
        told[WATCHED] = best[1]
    if parts.ranks.leads:
        run.log(told, step=last)
    folder.say(f"epoch {epoch + 1} of {parts.span.epochs}: {_said(row)}")
    for name, value in row.items():
        if name.endswith("/loss"):
            _check(value, f"after epoch {epoch + 1} ({name})", config)
    if config.save_freq and ((epoch + 1) % config.save_freq == 0 or epoch + 1 == parts.span.epochs):
        for name, model in _models(parts):
            folder.save(f"checkpoints/epoch_{epoch + 1:05d}{name}.safetensors", model)
    if config.save_best_checkpoint and best is not None and watched.is_best(stats.rows):
        folder.say(f"the best so far: {best[0]} {best[1]:.4g}")
        folder.save("checkpoints/best.safetensors", _model_of(parts, best[0]))


def _untrained(run: Run, parts: TrainingParts, folder: RunFolder, stats: Stats) -> Epoch:
    """The model as it begins: all there is to say where nothing is trained."""
    row = {TIMESTAMP: time.time(), **evaluated(parts, say=folder.say)}
    stats.add(row)
    if parts.ranks.leads:
        run.log({name: value for name, value in row.items() if name != TIMESTAMP}, step=0)
    folder.say("nothing is trained: " + _said(row))
    return _as_epoch(parts, row, -1)


def _as_epoch(parts: TrainingParts, row: dict[str, float], epoch: int) -> Epoch:
    average = parts.average.model if parts.average is not None else None
    return Epoch(row, number=epoch + 1, config=parts.config, model=parts.model, average=average)


def _tracked(parts: TrainingParts, meter: ScoreMeter, stats: Stats) -> dict[str, Any]:
    """All that the next step depends on, and the rows so far."""
    record: dict[str, Any] = {
        "model": parts.model,
        "optimizer": parts.optimizer,
        "pieces": parts.step.pieces,
        "meter": meter,
        "stats": stats,
    }
    if parts.average is not None:
        record["average"] = parts.average
    if parts.step.scaler.is_enabled():
        record["scaler"] = parts.step.scaler
    return record


def _models(parts: TrainingParts) -> list[tuple[str, torch.nn.Module]]:
    """The models written at the end, by the suffix of their file."""
    return [("", parts.model), *([("_av", parts.average.model)] if parts.average is not None else [])]


def _model_of(parts: TrainingParts, column: str) -> torch.nn.Module:
    return parts.average.model if parts.average is not None and "/av/" in column else parts.model


def _watched(parts: TrainingParts) -> WatchedColumns:
    """The columns that best checkpoints and patience go by."""
    config, known = parts.config, columns(parts.config, parts.data)
    watched_columns = early.watched(known, config.best_checkpoint_metric, config.best_checkpoint_goal)
    if not watched_columns.columns and (config.save_best_checkpoint or config.early_stopping_patience):
        raise SpecError(
            f"best_checkpoint_metric {config.best_checkpoint_metric!r} fits no column", hint=", ".join(known)
        )
    return watched_columns


def _name(watched: WatchedColumns) -> str:
    return watched.columns[0] if len(watched.columns) == 1 else WATCHED


def _changed(parts: TrainingParts, folder: RunFolder, text: str) -> None:
    """A batch goes through in more pieces from here on: the config says so, too."""
    pieces = parts.step.pieces.training
    size = -(-parts.config.batch_size // pieces)
    folder.say(text)
    folder.write("config.yaml", parts.config.but(grad_accum_steps=pieces, batch_size_accum=size))


def _check(loss: float, when: str, config: Config) -> None:
    if early.has_diverged(loss, config.max_allowed_loss):
        raise Diverged(f"the loss is {loss:g} {when} (max_allowed_loss {config.max_allowed_loss:g})")


def _said(row: Mapping[str, float]) -> str:
    return ", ".join(
        f"{name} {value:.4g}" for name, value in row.items() if name.endswith(("loss", "accuracy"))
    )


# One batch of each split through all that the long run will do with it, before the long run.
#
# Nothing of it stays: weights, buffers and random numbers are as before.


def rehearse(parts: TrainingParts) -> None:
    """Raises now what would fail later. Ranks agree in how many pieces a batch goes through."""
    before = ForwardState(parts.model)
    parts.model.train()
    parts.step.rehearse(*parts.batch(0))
    evaluated(parts, batches=1)
    pieces = parts.step.pieces
    pieces.training = parts.ranks.most(pieces.training)
    pieces.evaluating = parts.ranks.most(pieces.evaluating)
    before.put_back()
