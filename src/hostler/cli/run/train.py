"""`hostler train`: the trainer, from a config file and `key=value` words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hostler import env
from hostler.cli.run.verbs import train

if TYPE_CHECKING:
    from hostler.sdk.shared_process import SharedRun


def command(words: tuple[str, ...], name: str | None, keys: bool) -> int:
    """Train a model; the same command again goes on where it was."""
    from hostler.train import configfile, program
    from hostler.train.config import Config
    from hostler.trainer import experiment_generator

    if keys:
        click.echo(configfile.dump(Config()), nl=False)
        return 0
    code = program.elsewhere(words, _words)
    if code is not None:
        return code
    for row in experiment_generator(program.asked(words), name=name):
        if env.rank()[0] == 0:
            click.echo("  ".join(f"{k} {v:.4g}" for k, v in row.items() if k.endswith(("loss", "accuracy"))))
    return 0


def _words(seat: SharedRun) -> tuple[str, ...]:
    """The words that another run's `hostler train` would have read."""
    after = seat.words[seat.words.index("train") + 1 :]
    words: tuple[str, ...] = train.make_context("train", list(after)).params["words"]
    return words
