"""Options of the verbs under "Run": all that their `--help` loads."""

from __future__ import annotations

from typing import Any

import click

from hostler.cli import options
from hostler.cli.options import FilePath, perform

SEED = 0


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[SCRIPT ARGS… | KEY=VALUE…]")
@click.option(
    "--on", metavar="FLEET", help="Fleet to run on (default: hostler.yaml's `fleet`, else this machine)."
)
@click.option("--name", help="Name of the run (default: the script's, and a mark of the command).")
@click.option("--like", metavar="RUN", help="Use the command of an earlier run, with KEY=VALUE changes.")
@options.init_from_option
@click.option("--again", is_flag=True, help="Run it again, though the same command has run.")
@click.option("--detach", is_flag=True, help="Start it and return at once.")
@click.option("--tag", "tags", multiple=True, help="A tag (may be repeated).")
@click.option("-n", "-d", "--dry-run", is_flag=True, help="Show what would be started; start nothing.")
@options.yes_option
@options.store_option
@options.json_option
def run(**given: Any) -> int:
    """Run a script, streaming what it prints; returns the script's exit code.

    \b
    hostler run train.py --lr 0.1      options before the script are hostler's, after it the script's
    hostler run lr=0.1 epochs=3        with a hostler.yaml: its command, these parameters
    hostler run --like NAME lr=0.01    an earlier run's command, changed
    """
    return perform("hostler.cli.run.run", given)


@click.command()
@click.argument("file", type=FilePath())
@click.option(
    "--on",
    metavar="FLEET",
    help="Fleet to run on; of several (A,B), the cheapest as scouted (default: hostler.yaml's `fleet`).",
)
@click.option(
    "--by", metavar="WHEN", help='Be done by then: "tomorrow 9:00", 18:00, 6h; fleet and size are chosen.'
)
@click.option("--under", type=float, metavar="MONEY", help="Spend at most this; fleet and size are chosen.")
@click.option(
    "--preempt", multiple=True, metavar="RATE", help="For --by: rate of preemptions, 5%/h or FLEET=5%/h."
)
@click.option("--run-time", metavar="TIME", help="For --by: duration of one run (default: as measured).")
@click.option("-s", "script", type=FilePath(), help="Queue it on Slurm by this sbatch file.")
@click.option("-r", "resubmit", is_flag=True, help="Also submit again what is neither done nor running.")
@click.option(
    "--rerun",
    type=click.Choice(["changed"]),
    metavar="changed",
    help="Also repeat runs that other code has finished: the word `changed` must follow.",
)
@click.option(
    "-o", "overwrite", is_flag=True, help="Put the sweep of this name in the trash first; asks for it."
)
@click.option("--reuse", is_flag=True, help="Take results of equal runs that finished in other sweeps.")
@click.option("--try", "first", is_flag=True, help="First run the first one here until it is seen to work.")
@click.option("--no-start", is_flag=True, help="Submit, start nothing; prints the worker's command.")
@click.option(
    "--all-or-none",
    is_flag=True,
    help="If a queue takes only a part, cancel that part; else you are asked.",
)
@click.option("--one-by-one", is_flag=True, help="Use a process for each run, though they could share one.")
@click.option("--wait", "waits", is_flag=True, help="Wait until all have ended; 0 only if all are done.")
@click.option("-n", "-d", "--dry-run", is_flag=True, help="Show what would be done; write and start nothing.")
@options.init_from_option
@options.yes_option
@options.store_option
@options.json_option
def sweep(**given: Any) -> int:
    """Run every configuration of a sweep file; the same file again submits what is new in it.

    \b
    hostler plan FILE          what it would do
    hostler status NAME        how far it is
    hostler best NAME          its best run
    """
    return perform("hostler.cli.run.sweep", given)


@click.command()
@click.argument("file", type=FilePath())
@click.option(
    "--on", metavar="FLEET", help="Fleet to run on (default: hostler.yaml's `fleet`, else this machine)."
)
@options.store_option
@options.json_option
def plan(**given: Any) -> int:
    """Show how many runs a sweep file has, the first and last few, and which are new, done or running."""
    return perform("hostler.cli.run.plan", given)


@click.command()
@click.argument("file", type=FilePath())
@click.option(
    "--on", multiple=True, required=True, metavar="FLEET", help="Fleets to try (--on A --on B, or A,B)."
)
@click.option(
    "--for",
    "span",
    default="3m",
    show_default=True,
    metavar="TIME",
    help="Time that each is measured, after its first steps.",
)
@click.option(
    "--steps",
    type=click.IntRange(min=1),
    metavar="N",
    help="Steps of a run (default: as its parameters say).",
)
@click.option(
    "--preempt",
    multiple=True,
    metavar="RATE",
    help="Rate at which machines are taken away: 5%/h, 20%/d, FLEET=5%/h.",
)
@options.yes_option
@options.store_option
@options.json_option
def scout(**given: Any) -> int:
    """Begin the first runs on each of several fleets, measure them for some minutes, and compare.

    Shown are steps a second after the warm-up, the cost of a run, and hours and cost of the whole sweep with
    its preemptions. The runs are saved and go on wherever the sweep goes. What was measured is kept in the
    store, for `plan`, `simulate` and the next launch.

    \b
    hostler scout grid.yaml --on burst,tau,lab
    hostler sweep grid.yaml --on burst,tau,lab    takes the cheapest of them
    """
    return perform("hostler.cli.run.scout", given)


@click.command()
@click.argument("file", type=FilePath())
@click.option(
    "--on", multiple=True, metavar="FLEET", help="Fleet; several are compared (--on A --on B, or A,B)."
)
@click.option(
    "--preempt",
    multiple=True,
    metavar="RATE",
    help="Rate at which machines are taken away: 5%/h, 20%/d, FLEET=5%/h.",
)
@click.option(
    "--history", is_flag=True, help="Use the rate that the store remembers of the fleet; fail without one."
)
@click.option(
    "--trace",
    "trace_file",
    type=FilePath(),
    metavar="FILE",
    help="Replay a file of what happened to a launch.",
)
@click.option(
    "--stockout",
    multiple=True,
    metavar="WHEN",
    help="Zones without free machines: ZONE@1h-3h, or 10%/d:2h by chance.",
)
@click.option(
    "--run-time", metavar="TIME", help="Duration of one run: 40m, or 30m-1h (default: as earlier runs took)."
)
@click.option("--like", multiple=True, metavar="SWEEP", help="Runs take as long as those of this sweep did.")
@click.option(
    "--checkpoint", metavar="TIME,…", help="Intervals to compare: 5m,15m,1h (default: the project's)."
)
@click.option("--whole", is_flag=True, help="Simulate all runs of the file, also those that are done.")
@click.option("--save", metavar="TIME", help="Time that a checkpoint holds the training up.")
@click.option("--boot", metavar="TIME", help="Time from asking for a machine until it works: 90s, or 1m-5m.")
@click.option(
    "--notice", metavar="TIME", help="Time between the notice of a preemption and the end; 0: none."
)
@click.option(
    "--seeds", type=click.IntRange(min=1), metavar="N", help="Simulations of each (default: 20 or more)."
)
@click.option(
    "--by",
    type=click.Choice(["cost", "time"]),
    default="cost",
    show_default=True,
    help="Compare by this.",
)
@click.option("--plot", metavar="FILE", help="Also write a plot: PNG, SVG, PDF or HTML by its ending.")
@options.store_option
@options.json_option
def simulate(**given: Any) -> int:
    """Estimate a sweep's cost and time, at given or remembered rates of preemption.

    The decisions of workers and fleets on a virtual clock, with many chances: the mean, and between what nine
    of ten lie. Nothing is written or started. Several fleets and checkpoint intervals are compared, and the
    best is named; if none gets all runs done, the exit code is 1.

    \b
    hostler simulate grid.yaml --on burst --preempt 5%/h --run-time 40m
    hostler simulate grid.yaml --on burst,tau --checkpoint 5m,15m,1h --plot cost.png
    """
    return perform("hostler.cli.run.simulate", given)


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[CONFIG.yaml] [KEY=VALUE…]")
@click.option("--name", help="Name of the run (default: made from its config).")
@click.option("--keys", is_flag=True, help="Show every key and its default.")
def train(**given: Any) -> int:
    """Train a model; the same command again continues where it was.

    \b
    hostler train config.yaml
    hostler train config.yaml base_lr=0.1 train_length=10
    hostler train dataset=sklearn/digits model=tiny/lenet
    """
    return perform("hostler.cli.run.train", given)


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[--] [SCRIPT ARGS…]")
@click.option("--kills", type=click.IntRange(1, 1000), default=3, show_default=True, help="How many kills.")
@click.option("--seed", type=int, default=SEED, show_default=True, help="Seed for the moments of the kills.")
@options.json_option
def drill(**given: Any) -> int:
    """Run a script undisturbed, then killed with SIGKILL at random moments, and compare.

    \b
    hostler drill -- python train.py --epochs 3
    hostler drill --kills 10 train.py --epochs 3

    Exit code 0: metrics and files are the same to the bit; 1: they are not, and what was not saved is named.
    Give it a short training, of some seconds to some minutes.
    """
    return perform("hostler.cli.run.drill", given)
