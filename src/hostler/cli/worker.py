"""`hostler worker`: the same program as `python -m hostler.worker`."""

from __future__ import annotations

import click

from hostler.worker.main import main


@click.command(
    context_settings={"ignore_unknown_options": True, "help_option_names": []}, add_help_option=False
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def command(words: tuple[str, ...]) -> int:
    return main(words)
