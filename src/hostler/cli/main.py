"""The command: finds the verb, turns errors into one line and an exit code."""

from __future__ import annotations

import gc
import io
import os
import signal
import sys
from importlib import import_module
from keyword import iskeyword
from typing import TYPE_CHECKING

import click

from hostler import __version__, env, terminal
from hostler.cli import overview
from hostler.cli.overview import ALIASES, GROUPS, VERBS
from hostler.errors import HostlerError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

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

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Verbs by the table: click would import all that fit, with every press of a key."""
        from click.shell_completion import CompletionItem

        verbs = [CompletionItem(name, help=VERBS[name]) for name in VERBS if name.startswith(incomplete)]
        return verbs + click.Command.shell_complete(self, ctx, incomplete)

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

    def get_help(self, ctx: click.Context) -> str:
        return overview.text()


@click.command(
    cls=Verbs,
    subcommand_metavar="VERB …",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    invoke_without_command=True,
    no_args_is_help=True,
)
@click.option("--version", is_flag=True)
@click.option("--json", "as_json", is_flag=True, hidden=True)
@click.pass_context
def cli(ctx: click.Context, version: bool, as_json: bool) -> None:
    """The verbs, and what may be typed before one; `overview.py` has the words about them."""
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
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # names of files may be no text
    if sys.argv[1:2] != ["train"] and not env.completing():  # with train the person's own code prints
        terminal.guard()
    code = _main()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C changes nothing any more
    if sys.argv[1:2] != ["train"]:  # a person's objects may do something when they go
        gc.freeze()  # ours go with the process: to look for cycles in all that is imported takes long
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
    from pathlib import Path  # takes longer than all else that a verb's --help imports, but click

    try:
        Path.cwd()
    except FileNotFoundError:
        return True
    return False


def _unhoused() -> bool:
    """Whether the user has no home folder, as in containers."""
    from pathlib import Path

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
