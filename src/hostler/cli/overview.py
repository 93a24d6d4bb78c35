"""The verbs at a glance: what each does, and the text of `hostler --help`.

The table imports none of the verbs, and the text needs no click, which takes most of a short command's time.
"""

from __future__ import annotations

NARROWEST, WIDEST = 52, 100  # columns of the text
MARGIN = 2
VERB_COLUMN = 15  # where the words about a verb begin
ABOUT = """\
Usage: hostler [OPTIONS] VERB …

  Runs a training script once or ten thousand times, and never loses a run.

  hostler run train.py --lr 0.1     run it; parameters are the script's own
  hostler sweep sweep.yaml          run every configuration of a file
  hostler status                    what runs, what ended
  hostler logs -f NAME              what it prints
  hostler VERB --help               every option

Options:
  --version   Show the version and exit; --json for programs.
  -h, --help  Show this message and exit."""
# verb → what it does; its options are in hostler.cli.<heading>.verbs
VERBS = {
    "run": "Run a script, here or on a fleet; the same command twice continues.",
    "sweep": "Run every configuration of a file; the same file again runs what is new.",
    "ui": "Open a dashboard of the store in the browser: live, with stop and retry.",
    "report": "Write a sweep as one HTML page: plots, table, errors, the best runs.",
    "plot": "Plot runs as PNG, SVG or HTML.",
    "plan": "Show how many runs a sweep file has, and which are new, done or running.",
    "scout": "Measure a sweep's first runs on several fleets, and say which is cheapest.",
    "simulate": "Estimate a sweep's cost and time before anything is spent.",
    "cost": "Show what runs, sweeps and fleets have cost, and what is left of a budget.",
    "best": "Show the best run of a sweep, and how to get it.",
    "parallel": "Change how many runs of a sweep may run at once, while it runs.",
    "init": "Write hostler.yaml, a sweep file, setup.sh and a README into a folder.",
    "status": "List runs: running, waiting, ended (also: ps).",
    "show": "Show everything about one run.",
    "logs": "Print a run's output; -f follows.",
    "attach": "Follow a run as if it had been started here.",
    "wait": "Wait until runs have ended; 0 only if all are done.",
    "stop": "Save and end runs.",
    "pause": "Save and set runs aside; resume continues them.",
    "resume": "Continue stopped or paused runs.",
    "retry": "Try failed, diverged or lost runs again, with today's code.",
    "errors": "Show failures, grouped by kind, with tracebacks.",
    "diff": "Compare two runs: parameters, code, packages, results.",
    "tag": "Give runs tags, or take them away.",
    "rm": "Put runs in the trash, after asking.",
    "pull": "Bring a run's checkpoint and outputs here.",
    "push": "Push a run's weights, with a model card, to a hub, a bucket or a folder.",
    "df": "Write all runs as one table: CSV or Parquet.",
    "metrics": "Read metrics from the stored output of runs that have ended.",
    "mcp": "Serve an assistant (Model Context Protocol): sweeps, runs, logs, plans; actions only if allowed.",
    "export": "Copy past runs to TensorBoard, W&B, MLflow, Comet or trackio, never twice.",
    "archive": "Keep the best N models over all sweeps, with weights, curves and provenance.",
    "gc": "Remove checkpoints that nobody needs, after showing what and how much.",
    "pack": "Move the small files of sweeps that are over into a few; reading stays the same.",
    "import": "Convert a folder, search or machine file of another tool into hostler's.",
    "ssh": "Open a shell or run a command on a machine of a fleet; -L forwards its ports.",
    "sync": "Keep a copy of this project on a machine, while you edit.",
    "notebook": "Open Jupyter on a machine of a fleet, reachable from this one alone.",
    "image": "Build, list and delete images with a project's packages, for VMs and containers.",
    "prices": "Show the price table that costs are counted with; `prices update` brings a newer one.",
    "up": "Start a fleet's workers for what waits, on machines that have none.",
    "down": "End a fleet's workers, and show that none is left.",
    "doctor": "Check store, machine, tools and keys; each line says what to do.",
    "drill": "Kill a script at random moments; tell whether it resumes exactly, or what it does not save.",
    "train": "Train a model from a config file: the trainer, with exact resume.",
    "worker": "Take runs from a store until nothing is left.",
    "demo": "Run six small runs here and kill a worker on the way; `demo gce` on an emulated Google.",
    "completion": "Print the completion script for bash, zsh or fish.",
}
GROUPS = {  # how --help shows them; each heading is a folder
    "Begin": ("init", "demo", "doctor", "import", "completion"),
    "Run": ("run", "sweep", "plan", "scout", "simulate", "train", "drill"),
    "Look": ("status", "show", "logs", "attach", "wait", "errors", "best", "diff", "cost"),
    "See": ("ui", "report", "plot", "df", "metrics", "export", "mcp"),
    "Steer": ("stop", "pause", "resume", "retry", "parallel", "tag", "rm"),
    "Keep": ("pull", "push", "archive", "gc", "pack"),
    "Machines": ("up", "down", "ssh", "sync", "notebook", "image", "prices", "worker"),
}
ALIASES = {"ps": "status"}


def text() -> str:
    """The answer to `hostler --help`, as wide as the terminal."""
    import shutil  # for this text alone: every verb imports the table

    columns = min(max(shutil.get_terminal_size().columns, NARROWEST), WIDEST) - MARGIN
    return "\n\n".join([ABOUT, *(_group(title, verbs, columns) for title, verbs in GROUPS.items())])


def _group(title: str, verbs: tuple[str, ...], columns: int) -> str:
    """A heading, and the verbs that a person looks for there."""
    import textwrap

    lines = [f"{title}:"]
    for verb in verbs:
        first = f"{'':{MARGIN}}{verb}".ljust(VERB_COLUMN)
        lines += textwrap.wrap(
            VERBS[verb], columns, initial_indent=first, subsequent_indent=" " * VERB_COLUMN
        )
    return "\n".join(lines)
