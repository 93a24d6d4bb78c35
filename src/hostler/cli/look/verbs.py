"""Options of the verbs under "Look": all that their `--help` loads."""

from __future__ import annotations

from typing import Any

import click

from hostler.cli import options
from hostler.cli.options import perform
from hostler.spec.states import ALL


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME…]")
@click.option("--watch", "-f", "watch", is_flag=True, help="Keep showing it until everything has ended.")
@click.option(
    "--sweeps", "only_sweeps", is_flag=True, help="Show a line per sweep: counts, time left, the best."
)
@click.option(
    "--state", "states", multiple=True, type=click.Choice(ALL), help="Only runs in this state (repeatable)."
)
@click.option("--tag", "tags", multiple=True, help="Only runs with this tag (repeatable).")
@click.option("--trash", is_flag=True, help="Also show runs in the trash.")
@options.store_option
@options.json_option
def status(**given: Any) -> int:
    """List runs: running, waiting, ended. Large sweeps are one line each, unless they are named."""
    return perform("hostler.cli.look.status", given)


@click.command()
@click.argument("run")
@options.store_option
@options.json_option
def show(**given: Any) -> int:
    """Show everything about one run: parameters, metrics, attempts, checkpoints, outputs, code, failure."""
    return perform("hostler.cli.look.show", given)


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME…")
@click.option("-f", "--follow", is_flag=True, help="Go on until the run has ended.")
@click.option("--attempt", type=int, metavar="N", help="Only this attempt, as `hostler show` numbers them.")
@click.option("--tail", "-t", type=click.IntRange(min=0), metavar="N", help="Only the last N lines.")
@click.option("--grep", metavar="RE", help="Only lines that match this regular expression.")
@click.option("--raw", is_flag=True, help="Pass escape sequences on to the terminal as they were printed.")
@options.store_option
@options.json_option
def logs(**given: Any) -> int:
    """Print a run's output. Lines of several runs begin with the run's name; --json prints a line as JSON.
    Escape sequences are shown (␛[31m), of a progress bar only its last state; --raw passes all on.

    hostler logs FLEET[/MACHINE] prints the output of the machines themselves, for a fleet that makes them.
    """
    return perform("hostler.cli.look.logs", given)


@click.command()
@click.argument("run")
@click.option("--raw", is_flag=True, help="Pass escape sequences on to the terminal as they are printed.")
@options.store_option
@options.json_option
def attach(**given: Any) -> int:
    """Print a run's output until it ends; returns the script's exit code. Escape sequences are shown
    (␛[31m), as in hostler logs.

    \b
    Ctrl-C once asks the run to save and stop, twice kills it;
    hostler logs -f RUN only looks.
    """
    return perform("hostler.cli.look.attach", given)


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME…]")
@click.option("--timeout", metavar="TIME", help="Give up after so long (90, 30m, 6h); exits with 75.")
@options.store_option
@options.json_option
def wait(**given: Any) -> int:
    """Wait until runs have ended (all, if none is named). 0 only if all of them are done.

    A paused run is not waited for: nobody goes on with it until `hostler resume`.
    """
    return perform("hostler.cli.look.wait", given)


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME…]")
@click.option("--all", "everything", is_flag=True, help="Also errors of attempts that were tried again.")
@click.option("-v", "--verbose", is_flag=True, help="Whole tracebacks, and all runs by name.")
@options.store_option
@options.json_option
def errors(**given: Any) -> int:
    """Show failures, grouped by kind and place, with a traceback of each.

    Without --all only errors that stand: of runs that failed, or that wait for another try.
    """
    return perform("hostler.cli.look.errors", given)


@click.command()
@click.argument("sweep")
@click.option("--metric", metavar="NAME", help="Rank by this metric (default: the sweep's).")
@click.option(
    "--goal", type=click.Choice(["max", "min"]), help="Whether more or less is better (default: the sweep's)."
)
@click.option(
    "--top", type=click.IntRange(min=1), default=1, metavar="N", help="The best N.", show_default=True
)
@click.option(
    "--by",
    "key",
    metavar="KEY",
    help="Show the best of each section (--by section), or of each value of a parameter.",
)
@options.store_option
@options.json_option
def best(**given: Any) -> int:
    """Show the best finished run of a sweep by its metric: parameters, value, how to get it."""
    return perform("hostler.cli.look.best", given)


@click.command()
@click.argument("a")
@click.argument("b")
@click.option("--stat", is_flag=True, help="Only names of changed files, not their text.")
@options.store_option
@options.json_option
def diff(**given: Any) -> int:
    """Compare two runs: parameters, command, code, packages, machine, results."""
    return perform("hostler.cli.look.diff", given)


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME…]")
@click.option("--runs", "with_runs", is_flag=True, help="Every run, however many there are.")
@options.store_option
@options.json_option
def cost(**given: Any) -> int:
    """Show the cost so far of runs, sweeps and fleets: all, or the named ones (a fleet's launch: lab/2).

    A run costs what its attempts took of their machines. A fleet costs as long as its workers are there: what
    no run took is idle. A sweep bears its part of its fleets.
    """
    return perform("hostler.cli.look.cost", given)
