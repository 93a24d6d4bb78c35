"""The entry point: finds the verb, turns errors into one line and an exit code.

The table of verbs is here so that `hostler --help` imports none of them.
"""

from __future__ import annotations

import gc
import io
import os
import signal
import sys
from importlib import import_module
from keyword import iskeyword
from pathlib import Path

import click

from hostler import __version__, env, terminal
from hostler.errors import HostlerError

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
    "export": "Copy past runs to TensorBoard, W&B, MLflow or Comet, never twice.",
    "archive": "Keep the best N models over all sweeps, with weights, curves and provenance.",
    "gc": "Remove checkpoints that nobody needs, after showing what and how much.",
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
    "Keep": ("pull", "push", "archive", "gc"),
    "Machines": ("up", "down", "ssh", "sync", "notebook", "image", "prices", "worker"),
}
ALIASES = {"ps": "status"}
HELP = getattr(click.exceptions, "NoArgsIsHelpError", ())  # what newer clicks raise to show --help


def module_of(verb: str) -> str:
    """Module that declares a verb and its options: that of its heading."""
    heading = next(title for title, verbs in GROUPS.items() if verb in verbs)
    return f"hostler.cli.{heading.lower()}.verbs"


def declared(verb: str) -> click.Command:
    """A verb with its options; what it does is imported when it is performed."""
    name = f"{verb}_" if iskeyword(verb) else verb
    command: click.Command = getattr(import_module(module_of(verb)), name)
    return command


class Verbs(click.Group):
    """Verbs by name, imported when called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        name = ALIASES.get(name, name)
        if name not in VERBS:
            return None
        command = declared(name)
        if ctx.resilient_parsing:  # a shell asks what may come next
            from hostler.cli import completing

            completing.teach(name, command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and ALIASES.get(args[0], args[0]) not in VERBS and not args[0].startswith("-"):
            import difflib

            near = difflib.get_close_matches(args[0], [*VERBS, *ALIASES], n=1)
            hint = f"did you mean {near[0]}?" if near else "hostler --help lists the verbs"
            raise click.UsageError(f"no verb named {args[0]!r} ({hint})")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        """Run the verb; a reader that has left (head, less) is not an error: click would make it one."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verbs by what a person is about to do."""
        named = {verb for verbs in GROUPS.values() for verb in verbs}
        rest = tuple(verb for verb in VERBS if verb not in named)
        for title, verbs in {**GROUPS, "More": rest}.items():
            rows = [(verb, VERBS[verb]) for verb in verbs if verb in VERBS]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows, col_spacing=13 - max(len(verb) for verb, _ in rows))


@click.command(
    cls=Verbs,
    subcommand_metavar="VERB …",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    invoke_without_command=True,
    no_args_is_help=True,
)
@click.option("--version", is_flag=True, help="Show the version and exit; --json for programs.")
@click.option("--json", "as_json", is_flag=True, hidden=True)
@click.pass_context
def cli(ctx: click.Context, version: bool, as_json: bool) -> None:
    """Runs a training script once or ten thousand times, and never loses a run.

    \b
    hostler run train.py --lr 0.1     run it; parameters are the script's own
    hostler sweep sweep.yaml          run every configuration of a file
    hostler status                    what runs, what ended
    hostler logs -f NAME              what it prints
    hostler VERB --help               every option
    """
    if version:
        click.echo(_version(as_json))
        ctx.exit()
    if as_json:
        raise click.UsageError("--json goes behind a verb: hostler status --json")
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def _version(as_json: bool) -> str:
    if not as_json:
        return f"hostler, version {__version__}"
    import json
    import platform

    facts = {"version": __version__, "python": platform.python_version(), "executable": sys.executable}
    return json.dumps(facts)


def main() -> None:
    gc.set_threshold(50_000, 20, 20)  # rows of ten thousand runs are no garbage: looking costs a quarter
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # names of files may be no text
    if sys.argv[1:2] != ["train"] and not env.completing():  # with train the person's own code prints
        terminal.guard()
    code = _main()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C changes nothing any more
    sys.exit(code)


def _main() -> int:
    try:
        result = cli.main(prog_name="hostler", standalone_mode=False, color=True)
        return result if isinstance(result, int) else 0
    except HostlerError as error:
        return _complain(error.message, error.hint, error.exit_code)
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.ClickException as error:
        if isinstance(error, HELP):  # nothing was typed after a name that wants more
            click.echo(error.format_message())
            return 0
        return _complain(" ".join(error.format_message().split()), _usage(error), 2)
    except (KeyboardInterrupt, click.Abort):
        return 130
    except Exception as error:  # the last resort: a bug, said as one
        if _homeless():
            return _complain("the current folder no longer exists", "cd to one that does", 2)
        if _unhoused():
            return _complain("the home folder of this user is not known", "export HOME=/a/folder/of/yours", 1)
        return _bug(error)


def _homeless() -> bool:
    try:
        Path.cwd()
    except FileNotFoundError:
        return True
    return False


def _unhoused() -> bool:
    """Whether the user has no home folder, as in containers."""
    try:
        Path.home()
    except RuntimeError:
        return True
    return False


def _complain(message: str, hint: str, code: int) -> int:
    click.echo(f"hostler: {message}", err=True, color=True)
    if hint:
        click.echo(f"  → {hint}", err=True, color=True)
    return code


def _usage(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    return f"{context.command_path} --help" if context else ""


def _bug(error: Exception) -> int:
    import traceback

    from hostler.train.custom import line_of

    traceback.print_exc()
    theirs = line_of(error)
    if theirs is not None:
        return _complain(f"{theirs}: {type(error).__name__}: {error}", "the error is in your own code", 1)
    return _complain(
        f"{type(error).__name__}: {error}", "this is a bug in hostler; please report the lines above", 1
    )


if __name__ == "__main__":
    main()
