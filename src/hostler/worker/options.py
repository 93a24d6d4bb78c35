"""Options of a worker, parsed by the standard library alone; its help looks like every verb's."""

from __future__ import annotations

import argparse
import sys
from typing import Any, NoReturn

from hostler.backends.registry import BACKENDS, HERE


def parser() -> argparse.ArgumentParser:
    made = _Parser(
        prog="hostler worker",
        usage="hostler worker [OPTIONS] STORE",
        description="Take runs from STORE (a folder, ssh://host/path, s3://bucket/prefix, …) until nothing "
        "is left. Any machine that reaches the store can help.",
        formatter_class=_HelpForm,
        add_help=False,
        allow_abbrev=False,
    )
    made.add_argument("store", help=argparse.SUPPRESS)
    _by_hand(made.add_argument_group("Options"))
    _by_fleets(made.add_argument_group("Given by fleets, not by hand"))
    for hidden in ("--session", "--dead"):
        made.add_argument(hidden, default="", help=argparse.SUPPRESS)
    made.add_argument("--checked", action="store_true", help=argparse.SUPPRESS)
    made.add_argument("--step", action="store_true", help=argparse.SUPPRESS)
    made.add_argument("--parent-fd", type=int, help=argparse.SUPPRESS)
    return made


def _by_hand(group: Any) -> None:
    group.add_argument(
        "--sweep", action="append", default=[], metavar="NAME", help="Only runs of this sweep (repeatable)."
    )
    group.add_argument(
        "--section",
        type=int,
        default=0,
        metavar="N",
        help="Only runs of this section, in sweeps that have sections.",
    )
    group.add_argument(
        "--slots", type=int, metavar="N", help="Runs at once (one per GPU, or what CPUs allow)."
    )
    group.add_argument("--cpus", type=float, metavar="N", help="CPUs to offer (all).")
    group.add_argument(
        "--gpus", metavar="IDS", help="GPUs to offer, as CUDA_VISIBLE_DEVICES names them (all visible)."
    )
    group.add_argument("--runs", type=int, metavar="N", help="Leave after N runs have ended.")
    group.add_argument("--billed", action="store_true", help="Idle time costs money here: leave when idle.")
    group.add_argument("--no-parent", action="store_true", help="Do not restart the worker if it is killed.")
    group.add_argument("-h", "--help", action="help", help="Show this message and exit.")


def _by_fleets(group: Any) -> None:
    group.add_argument("--fleet", default="", metavar="NAME/N", help="The launch it is a part of.")
    group.add_argument(
        "--deadline",
        type=float,
        metavar="SECONDS",
        help="Save all and leave by this time: since 1970, by the store's clock.",
    )
    group.add_argument(
        "--price",
        type=float,
        metavar="N",
        help="What this worker costs an hour, if not what its launch says.",
    )
    group.add_argument("--secrets", default="", metavar="WHERE", help="Where its runs' secrets are.")
    group.add_argument(
        "--host",
        default=HERE,
        choices=tuple(BACKENDS),
        metavar="NAME",
        help="The platform whose machine this is.",
    )
    for name in BACKENDS:  # as machines that were launched before `--host` still say it
        group.add_argument(f"--{name}", dest="host", action="store_const", const=name, help=argparse.SUPPRESS)
    group.add_argument(
        "--nodes", type=int, default=1, metavar="N", help="Nodes of this allocation: a worker on each."
    )


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        print(f"hostler: {message}\n  → {self.prog} --help", file=sys.stderr)
        sys.exit(2)


class _HelpForm(argparse.HelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=24, width=80)

    def add_usage(self, usage: str | None, actions: Any, groups: Any, prefix: str | None = None) -> None:
        super().add_usage(usage, actions, groups, "Usage: ")

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return super()._fill_text(text, width, indent + "  ")
