"""Options of the verbs under "See": all that their `--help` loads."""

from __future__ import annotations

from typing import Any

import click

from hostler.cli import options
from hostler.cli.options import FilePath, perform
from hostler.errors import UsageError
from hostler.spec import tracking
from hostler.spec.states import ALL

KINDS = [
    "results",
    "best",
    "grid",
    "parallel",
    "importance",
    "slices",
    "contour",
    "trend",
    "archive",
    "cost",
    "completion",
]


def _no_token(given: str | None) -> None:
    if given is not None:
        raise UsageError(
            "--token shows the token to everybody who lists processes",
            "use --token-file FILE, a file that you alone may read",
        )


@click.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="Port to listen on (default: 8642, or any if taken).",
)
@click.option("--host", default="127.0.0.1", help="Address to listen on, to be reached from other machines.")
@click.option(
    "--token-file",
    type=FilePath(dir_okay=False),
    help="Ask for the token in this file of yours, made if missing (default: a new token each time).",
)
@click.option("--token", expose_value=False, callback=lambda *given: _no_token(given[2]), hidden=True)
@click.option("--name", "names", multiple=True, help="Another host name by which it is reached (repeatable).")
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@options.store_option
def ui(**given: Any) -> int:
    """Open a dashboard of the store in the browser: live, with stop and retry. Ctrl-C ends it; runs go on.

    The address that it prints holds a token, without which nobody sees anything. Only this machine can reach
    it, unless --host says otherwise.
    """
    return perform("hostler.cli.see.ui", given)


@click.command()
@click.argument("sweep", required=False)
@click.option("-o", "--output", metavar="FILE", help="File to write (default: SWEEP.html).")
@click.option("--metric", metavar="NAME", help="Rank by this metric (default: the sweep's).")
@click.option("--show", is_flag=True, help="Also open the page in the browser.")
@options.goal_option
@options.of_option
@options.store_option
def report(**given: Any) -> int:
    """Write a sweep as one HTML file: interactive plots, the table, errors, the best runs. Without a name,
    the newest sweep.

    It opens from disk and fetches nothing: it can be mailed, or kept beside a paper.
    """
    return perform("hostler.cli.see.report", given)


@click.command()
@click.argument("kind", type=click.Choice(KINDS))
@click.argument("names", nargs=-1, metavar="[SWEEP…]")
@click.option(
    "-o", "--output", metavar="FILE", help="PNG, SVG, PDF or HTML by its ending (default: KIND.png)."
)
@click.option("--all", "every", is_flag=True, help="Plot the runs of all sweeps.")
@click.option("--show", is_flag=True, help="Also open the plot in the browser.")
@click.option(
    "--style",
    default="",
    metavar="FILE",
    help="A .mplstyle file over hostler's own, a style of matplotlib's, or dark.",
)
@click.option("--metric", metavar="NAME", help="Metric to plot (default: the sweep's).")
@options.goal_option
@click.option("--best", is_flag=True, help="Use each run's best value, kept or not.")
@click.option("--by", metavar="KEY", help="Group by this: section, round, sweep, state, or a parameter.")
@click.option("--row", metavar="KEY", help="For grid: a row of panels for each value.")
@click.option("--column", metavar="KEY", help="For grid: a column of panels for each value.")
@click.option("--legend", metavar="KEY", help="A line for each value; runs of equal value are averaged.")
@click.option("--keys", metavar="A,B", default="", help="Parameters to show, for slices, contour, parallel.")
@click.option("--x", metavar="KEY", default="step", help="X axis of curves: step, time, or another metric.")
@click.option("--y-range", metavar="LOW,HIGH", default="", help="Range of the y axis; one end may be empty.")
@click.option("--log-x", is_flag=True)
@click.option("--log-y", is_flag=True)
@click.option(
    "--top", type=click.IntRange(min=1), default=10, show_default=True, help="For archive: how many models."
)
@options.store_option
def plot(**given: Any) -> int:
    """Plot the runs of these sweeps; without a name, of the newest.

    \b
    results     the metric by section or parameter    trend       the best so far, over rounds
    best        the best run's curve                  archive     curves of the best of all sweeps
    grid        panels of averaged curves             cost        what runs took and reached
    parallel    an axis for each parameter            completion  runs by state
    importance  which parameters matter               slices, contour   along one, over two
    """
    return perform("hostler.cli.see.plot", given)


@click.command()
@click.argument("names", nargs=-1, metavar="[SWEEP…]")
@click.option("--csv", "csv_path", metavar="FILE", help="Write CSV here (default: CSV to the terminal; -).")
@click.option("--parquet", "parquet_path", metavar="FILE", help="Write Parquet here, with whole curves.")
@click.option(
    "--where",
    "conditions",
    multiple=True,
    metavar="COND",
    help="lr=0.1  lr=0.1,0.2  lr=0.01..0.1  model~^res; != and !~ for the others (repeatable).",
)
@click.option(
    "--state", "states", multiple=True, type=click.Choice(ALL), help="Only runs in this state (repeatable)."
)
@click.option("--curves", is_flag=True, help="Write whole curves to CSV, too, as JSON arrays.")
@click.option("--system", is_flag=True, help="Write metrics of the machine, too: system/cpu and others.")
@options.store_option
def df(**given: Any) -> int:
    """Write a table of all runs: state, host, times, every parameter, last and best of every metric.

    With --store wandb:FOLDER, mlflow:URI, tensorboard:FOLDER, comet:ARCHIVE or trackio:FOLDER, those of a
    tracking tool.
    """
    return perform("hostler.cli.see.df", given)


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME…")
@click.option(
    "--pattern",
    metavar="RE",
    help="A regular expression with a named group for each metric; a group `step` is the step.",
)
@options.store_option
@options.json_option
def metrics(**given: Any) -> int:
    """Read metrics from the stored output of runs that have ended, so that nobody has to run them twice.

    \b
    hostler metrics grid
    hostler metrics grid --pattern 'epoch (?P<step>\\d+) .* dice (?P<dice>[0-9.]+)'

    Without --pattern JSON lines count, and lines of common tools (Transformers, Keras, XGBoost, LightGBM,
    tqdm, Lightning, nanoGPT, timm, and plain `loss: 0.5`). What is found becomes points of the runs, like any
    others. Metrics that the runs logged by themselves stay as they are. A second time adds nothing.
    """
    return perform("hostler.cli.see.metrics", given)


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="SWEEP|RUN…")
@click.option("--to", "kind", required=True, type=click.Choice(list(tracking.OPTIONS)), help="The tool.")
@click.option(
    "--with",
    "given",
    multiple=True,
    metavar="KEY=VALUE",
    help="An option of the tool, as under trackers: project=, mode=offline, uri=, dir= … (repeatable).",
)
@options.store_option
@options.json_option
def export(**given: Any) -> int:
    """Copy past runs to a tracking tool: parameters, tags, states, curves. A second time adds nothing.

    \b
    hostler export grid --to tensorboard --with dir=boards
    hostler export grid --to wandb --with project=digits
    hostler export grid/3 --to mlflow --with uri=http://host:5000
    hostler export grid --to comet --with mode=offline

    Options that are not given are those of `trackers:` with which the sweep was submitted. Keys come from the
    environment, as the tools themselves take them. Files go to dir, by default ./tensorboard, ./wandb,
    ./comet or ./trackio.
    """
    return perform("hostler.cli.see.export", given)


@click.command()
@click.option("--allow-actions", "actions", is_flag=True, help="Also offer submit, stop and retry.")
@options.store_option
def mcp(**given: Any) -> int:
    """Serve an assistant by the Model Context Protocol, on standard input and output.

    A client starts this in the project's folder. Its tools list sweeps and runs, read metrics, logs, errors,
    costs and files, compare runs, plan and simulate. They only read, unless you start it with
    --allow-actions: then budgets and caps hold as on the command line, and the price is in the answer.

    \b
    claude mcp add hostler -- hostler mcp
    """
    return perform("hostler.cli.see.mcp", given)
