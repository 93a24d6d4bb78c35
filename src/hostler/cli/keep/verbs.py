"""Options of the verbs under "Keep": all that their `--help` loads."""

from __future__ import annotations

from typing import Any

import click

from hostler.cli import options
from hostler.cli.options import FilePath, perform
from hostler.spec.states import ENDED

SMALL = "20MB"


@click.command()
@click.argument("name", metavar="NAME[@STEP]")
@click.option("--to", metavar="DIR", type=FilePath(), help="Folder to write to (default: ./NAME).")
@click.option("--step", metavar="N|best|last", help="The checkpoint of this step; NAME@N is the same.")
@click.option("--checkpoint", is_flag=True, help="Bring its checkpoint.")
@click.option("--outputs", "left", is_flag=True, help="Bring the files it left, also in its working folder.")
@click.option("--code", is_flag=True, help="Bring the code it ran.")
@click.option("--trackers", "shown", is_flag=True, help="Bring event files and offline runs of trackers.")
@click.option(
    "--folders",
    type=click.Choice(["id", "params", "dated", "numbered"]),
    default="id",
    help="How the folders of a sweep's runs are named.",
)
@click.option("--max", "most", metavar="SIZE", default=SMALL, help=f"Leave larger files there ({SMALL}).")
@click.option("--all", "everything", is_flag=True, help="Bring large files too.")
@click.option(
    "--follow",
    is_flag=True,
    help="Keep config, stats and log of all runs up to date below DIR, until they end.",
)
@options.yes_option
@options.store_option
@options.json_option
def pull(**given: Any) -> int:
    """Bring a run's newest checkpoint and outputs here, or only what is asked for; small files unless --all.

    They arrive as DIR/checkpoint, DIR/outputs, DIR/code and DIR/trackers; of a sweep, each run's in a
    folder of its own.

    \b
    hostler pull NAME@150000         the checkpoint of a step; hostler show NAME lists them
    hostler pull NAME@best           the weights at the best value of its metric
    hostler pull NAME --follow       results/DATE-NAME/NUMBER-VALUES/, kept up to date
    """
    return perform("hostler.cli.keep.pull", given)


@click.command()
@click.argument("name", metavar="RUN[@STEP]")
@click.argument("target", metavar="hf://OWNER/NAME|URL|DIR")
@click.option("--outputs", "left", is_flag=True, help="Also the files that it left, as outputs/.")
@click.option("--public", is_flag=True, help="A new model of the hub is public (default: private).")
@click.option(
    "--pickles",
    type=click.Choice(["convert", "keep"]),
    help="Pickled weights (.pt, .bin …): push their tensors as safetensors, or the files as they are. A hub "
    "is sent none unasked.",
)
@options.yes_option
@options.store_option
@options.json_option
def push(**given: Any) -> int:
    """Push a run's weights, with a model card, to a hub, a bucket or a folder, after showing what goes where.

    The card has parameters, metrics, curves and provenance. Without a step: the weights that the run is
    ranked by, if they are kept, else its newest.

    \b
    hostler push grid/3@best hf://me/model
    hostler push grid/3 s3://bucket/models/grid-3
    """
    return perform("hostler.cli.keep.push", given)


@click.command()
@click.option("--top", type=click.IntRange(min=0), metavar="N", help="Keep the best N, from now on.")
@click.option("--metric", metavar="NAME", help="Rank by this metric (default: that of the sweeps).")
@options.goal_option
@options.of_option
@click.option("--budget", metavar="SIZE", help="Keep at most this much, like 50GB.")
@options.only_option
@click.option("--trend", is_flag=True, help="Show the best so far, over all that was ever in it.")
@click.option("--pull", "pulled", metavar="RUN", help="Bring an archived run here: files and record.")
@click.option("--to", "target", metavar="FOLDER", help="Folder to write to (default: named like the run).")
@options.yes_option
@options.store_option
@options.json_option
def archive(**given: Any) -> int:
    """List the best models of all sweeps. --top N keeps that many; runs that end then enter by themselves."""
    return perform("hostler.cli.keep.archive", given)


@click.command()
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(ENDED),
    help="Also of runs in this state (repeatable; default: done, pruned). Others may go on from theirs.",
)
@click.option("--dry-run", "-n", "dry", is_flag=True, help="Only show what would go.")
@click.option(
    "--skip-damaged",
    is_flag=True,
    help="Leave out what cannot be read: it keeps its own, code and data stay.",
)
@options.yes_option
@options.store_option
@options.json_option
def gc(**given: Any) -> int:
    """Remove checkpoints that nobody needs, after showing what and how much: not those of the best run of a
    sweep, of the archive, of a run that may go on, or of the last day (HOSTLER_GC_GRACE, in seconds). What is
    needed by the time of your answer stays. Also packs ended runs for quick reading."""
    return perform("hostler.cli.keep.gc", given)


@click.command()
@click.argument("names", metavar="[SWEEP]...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="All sweeps of the store that are over.")
@click.option("--older", metavar="AGE", help="Only those whose last run ended so long ago, like 7d.")
@options.store_option
@options.json_option
def pack(**given: Any) -> int:
    """Move logs, ends, metrics, output and environments of sweeps that are over into a few objects: for disks
    with a quota of files. Everything reads as before; retry, resume and an edited file go on with a packed
    sweep, and it can be packed again. The originals go two minutes after their copies count; cut off before,
    the next hostler pack removes them. `pack: 7d` in hostler.yaml does it by itself.

    \b
    hostler pack grid                the sweep grid
    hostler pack --all --older 7d    all that were over a week ago
    """
    return perform("hostler.cli.keep.pack", given)
