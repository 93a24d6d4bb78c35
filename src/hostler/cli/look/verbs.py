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
@click.option("--sort", default="", metavar="KEY", help="Sort by a column: lr, or -lr from the highest down.")
@click.option(
    "--columns",
    default="",
    metavar="A,B",
    help="Show these columns: parameters, metrics, state, step, time, left, host; or all.",
)
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
@click.argument("names", nargs=-1, metavar="[NAME…]")
@click.option("-f", "--follow", is_flag=True, help="Follow until the run has ended.")
@click.option("--attempt", type=int, metavar="N", help="Only this attempt, as `hostler show` numbers them.")
@click.option("--tail", "-t", type=click.IntRange(min=0), metavar="N", help="Only the last N lines.")
@click.option("--grep", metavar="RE", help="Only lines that match this regular expression.")
@click.option("--raw", is_flag=True, help="Pass escape sequences on to the terminal as they were printed.")
@options.store_option
@options.json_option
def logs(**given: Any) -> int:
    """Print a run's output. Without a name, of the newest sweep. Lines of several runs begin with the run's
    name; --json prints a line as JSON.
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
@click.option("--all", "every", is_flag=True, help="Wait for the runs of all sweeps.")
@click.option("--timeout", metavar="TIME", help="Give up after this long (90, 30m, 6h); exits with 75.")
@options.store_option
@options.json_option
def wait(**given: Any) -> int:
    """Wait until runs have ended: those named, else of the newest sweep. 0 only if all of them are done.

    A paused run is not waited for: it stays paused until `hostler resume`.
    """
    return perform("hostler.cli.look.wait", given)


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME…]")
@click.option("--all", "everything", is_flag=True, help="Also errors of attempts that were repeated.")
@click.option("-v", "--verbose", is_flag=True, help="Whole tracebacks, and all runs by name.")
@options.store_option
@options.json_option
def errors(**given: Any) -> int:
    """Show failures, grouped by kind and place, with a traceback of each.

    Without --all only open errors: of runs that failed, or that wait for another try.
    """
    return perform("hostler.cli.look.errors", given)


@click.command()
@click.argument("sweep", required=False)
@click.option("--metric", metavar="NAME", help="Rank by this metric (default: the sweep's).")
@options.goal_option
@options.of_option
@click.option(
    "--top", type=click.IntRange(min=1), default=1, metavar="N", help="Show the best N.", show_default=True
)
@click.option(
    "--by",
    "key",
    metavar="KEY",
    help="Show the best of each section (--by section), or of each value of a parameter.",
)
@options.only_option
@options.store_option
@options.json_option
def best(**given: Any) -> int:
    """Show the best run of a sweep by its metric: parameters, value, how to get it. Runs count that are done,
    pruned, or stopped by a person. Without a name, of the newest sweep."""
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
@click.option("--explain", is_flag=True, help="By purpose: training, booting, saving, repeated, idle, tail.")
@options.store_option
@options.json_option
def cost(**given: Any) -> int:
    """Show the cost so far of runs, sweeps and fleets: all, or the named ones (a fleet's launch: lab/2).

    A run costs what its attempts took of their machines. A fleet costs as long as its workers are there: what
    no run took is idle. A sweep bears its part of its fleets.
    """
    return perform("hostler.cli.look.cost", given)
