"""`hostler train`: the trainer, from a config file and `key=value` words."""

from __future__ import annotations

import click

from hostler import env
from hostler.sdk import seats


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[CONFIG.yaml] [KEY=VALUE…]")
@click.option("--name", help="The run's name; without one it is known by its config.")
@click.option("--keys", is_flag=True, help="Show every key and its default.")
def command(words: tuple[str, ...], name: str | None, keys: bool) -> int:
    """Train a model; the same command again goes on where it was.

    \b
    hostler train config.yaml
    hostler train config.yaml base_lr=0.1 train_length=10
    hostler train dataset=sklearn/digits model=tiny/lenet
    """
    from hostler.train import configfile
    from hostler.train.config import Config
    from hostler.trainer import experiment_generator, seated

    if keys:
        click.echo(configfile.dump(Config()), nl=False)
        return 0
    if shared := seats.seats():
        seated(shared, lambda seat: configfile.from_words(_words(seat)), seats.limit())
        return 0
    asked = configfile.from_words(words)
    for row in experiment_generator(asked, name=name):
        if env.rank()[0] == 0:
            click.echo("  ".join(f"{k} {v:.4g}" for k, v in row.items() if k.endswith(("loss", "accuracy"))))
    return 0


def _words(seat: seats.Seat) -> tuple[str, ...]:
    """What another run's `hostler train` would have read."""
    after = seat.words[seat.words.index("train") + 1 :]
    found: tuple[str, ...] = command.make_context("train", list(after)).params["words"]
    return found
