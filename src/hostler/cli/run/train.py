"""`hostler train`: the trainer, from a config file and `key=value` words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hostler import env
from hostler.cli.run.verbs import train
from hostler.records.run import handoff
from hostler.records.run.handoff import Handoff
from hostler.sdk import shared_process

if TYPE_CHECKING:
    from hostler.train.config import Config


def command(words: tuple[str, ...], name: str | None, keys: bool) -> int:
    """Train a model; the same command again goes on where it was."""
    from hostler.train import configfile
    from hostler.train.config import Config
    from hostler.trainer import experiment_generator, seated

    if keys:
        click.echo(configfile.dump(Config()), nl=False)
        return 0
    if shared := shared_process.seats():
        seated(shared, lambda seat: _asked(_words(seat), seat.folder), shared_process.limit())
        return 0
    folder = env.run_dir()
    asked = _asked(words, Handoff(folder)) if folder is not None else configfile.from_words(words)
    for row in experiment_generator(asked, name=name):
        if env.rank()[0] == 0:
            click.echo("  ".join(f"{k} {v:.4g}" for k, v in row.items() if k.endswith(("loss", "accuracy"))))
    return 0


def _asked(words: tuple[str, ...], folder: Handoff) -> Config:
    """The options as the worker that handed the run over gave them."""
    from hostler.train import configfile

    given = handoff.read(folder.params) or {}
    return configfile.from_words((*words, *configfile.restated(words, given)))


def _words(seat: shared_process.SharedRun) -> tuple[str, ...]:
    """The words that another run's `hostler train` would have read."""
    after = seat.words[seat.words.index("train") + 1 :]
    found: tuple[str, ...] = train.make_context("train", list(after)).params["words"]
    return found
