"""Options of the verbs under "Steer": all that their `--help` loads."""

from __future__ import annotations

from typing import Any

import click

from hostler.cli import options
from hostler.cli.options import perform


@click.command()
@click.argument("names", nargs=-1, metavar="NAME…")
@click.option("--now", is_flag=True, help="Kill instead: what was not saved is lost.")
@click.option("--workers", is_flag=True, help="Also end the workers of the fleet, whatever they run.")
@click.option("--on", metavar="FLEET", help="Whose workers (default: hostler.yaml's `fleet`, else here).")
@options.store_option
@options.json_option
def stop(**given: Any) -> int:
    """Save and end runs; hostler resume continues them.

    A run that is running is asked to save, and ends by itself; a queued one ends at once.
    """
    return perform("hostler.cli.steer.stop", given)


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME…")
@options.store_option
@options.json_option
def pause(**given: Any) -> int:
    """Save runs and set them aside; hostler resume continues them."""
    return perform("hostler.cli.steer.pause", given)


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME…")
@options.requeue_options
@options.store_option
@options.json_option
def resume(**given: Any) -> int:
    """Continue stopped or paused runs, from their last checkpoints, with the code they had."""
    return perform("hostler.cli.steer.resume", given)


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME…]")
@click.option("--same-code", is_flag=True, help="Use the code and settings it had, not today's.")
@click.option(
    "--fresh", is_flag=True, help="Start from the beginning, without its checkpoints. Also for done runs."
)
@options.requeue_options
@options.store_option
@options.json_option
def retry(**given: Any) -> int:
    """Try failed, diverged or lost runs again, from their last checkpoints. Without a name, those of the
    newest sweep.

    With today's code, and what hostler.yaml says today about limits, resources, packages and the rest.
    Lost: its worker's heartbeat has stood still for longer than a lease.
    """
    return perform("hostler.cli.steer.retry", given)


@click.command()
@click.argument("sweep")
@click.argument("number", metavar="N|none|auto")
@options.store_option
@options.json_option
def parallel(**given: Any) -> int:
    """Let at most N runs of a sweep run at once, on all workers together; `none` removes the bound,
    `auto` has each machine measure how many fit.

    Workers follow within one heartbeat. What runs already continues; no more are started until there is room.
    """
    return perform("hostler.cli.steer.parallel", given)


@click.command(context_settings={"ignore_unknown_options": True, "help_option_names": ["--help"]})
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED, metavar="NAME… [+TAG] [-TAG]")
@options.store_option
@options.json_option
def tag(**given: Any) -> int:
    """Give runs tags, or take them away; without any, show them.

    \b
    hostler tag NAME good            add one
    hostler tag A B +good -bad       add and take away, for several
    hostler tag NAME@150000 keep     this checkpoint stays; -keep takes that back
    """
    return perform("hostler.cli.steer.tag", given)


@click.command()
@click.argument("names", nargs=-1, metavar="NAME…")
@click.option("--restore", is_flag=True, help="Take them out of the trash.")
@click.option("--empty", is_flag=True, help="Really delete what is in the trash (of NAME…, if named).")
@click.option(
    "--skip-damaged",
    is_flag=True,
    help="With --empty: leave out what cannot be read and is not in the trash.",
)
@options.yes_option
@options.store_option
@options.json_option
def rm(**given: Any) -> int:
    """Put runs in the trash, after asking. They can come back until the trash is emptied."""
    return perform("hostler.cli.steer.rm", given)
