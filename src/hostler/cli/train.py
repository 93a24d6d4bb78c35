"""`hostler train`: the trainer, from a config file and `key=value` words."""

from __future__ import annotations

from pathlib import Path

import click

from hostler import env
from hostler.errors import MachineError


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": True})
@click.argument("config", required=False, type=click.Path(path_type=Path), metavar="[CONFIG.yaml]")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[KEY=VALUE…]")
@click.option("--name", help="The run's name; without one it is known by its config.")
@click.option("--keys", is_flag=True, help="Show every key and its default.")
def command(config: Path | None, words: tuple[str, ...], name: str | None, keys: bool) -> int:
    """Train a model; the same command again goes on where it was.

    \b
    hostler train config.yaml
    hostler train config.yaml base_lr=0.1 train_length=10
    hostler train dataset=sklearn/digits model=tiny/lenet
    """
    from hostler.train import configfile
    from hostler.train.config import Config

    if keys:
        click.echo(configfile.dump(Config()), nl=False)
        return 0
    if config is not None and "=" in str(config):
        config, words = None, (str(config), *words)
    asked = configfile.load(config, _pairs(words))
    try:
        from hostler.trainer import experiment_generator
    except ImportError as error:
        raise MachineError(f"the trainer needs torch: {error}", hint="pip install 'hostler[train]'") from None
    for row in experiment_generator(asked, name=name):
        if env.rank()[0] == 0:
            click.echo("  ".join(f"{k} {v:.4g}" for k, v in row.items() if k.endswith(("loss", "accuracy"))))
    return 0


def _pairs(words: tuple[str, ...]) -> list[str]:
    """`--key value` as workers write it, or `key=value`."""
    found: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word.startswith("--") and "=" not in word and rest:
            word = f"{word}={rest.pop(0)}"
        found.append(word)
    return found
