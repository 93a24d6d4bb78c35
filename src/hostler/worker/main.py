"""`hostler worker STORE`, and `python -m hostler.worker STORE` where nothing is installed.

The parent keeps one worker alive; the worker does the work. Both are this program, and the parent loads
nothing that only the worker needs: it lives as long, and the worker starts only when it has loaded.
"""

from __future__ import annotations

import argparse
import gc
import sys
import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hostler.backends import registry
from hostler.errors import HostlerError
from hostler.worker.options import parser

if TYPE_CHECKING:
    from hostler.backends.base import Host

RARELY = 20_000, 20, 20  # objects and looks until garbage is looked for: runs make hardly any
NOTICE = 75.0  # seconds before a time limit, if nobody said so before: to save, and to be queued again


def main(argv: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    arguments = parser().parse_args(words)
    from hostler.worker import parent  # not for `--help`, at which parsing ends

    host = registry.host(arguments.host)
    try:
        if arguments.session or arguments.no_parent:
            gc.disable()  # nothing that is imported is garbage, now or later
            from hostler.worker.session import work

            gc.freeze()
            gc.set_threshold(*RARELY)
            gc.enable()
            return work(arguments, host, _say)
        command = [sys.executable, "-m", "hostler.worker", *words]
        if arguments.nodes > 1 and not arguments.step:
            started = host.on_nodes([*command, "--step"], arguments.nodes)
            return parent.keep_nodes(started, notice_in=_notice_in(host), requeue=host.give_back, say=_say)
        return _keep(command, arguments, host)
    except HostlerError as error:
        print(f"hostler worker: {error}", file=sys.stderr)
        return host.exit_code(error)
    except Exception:  # a bug must not pass for a refusal: the parent starts another worker
        traceback.print_exc()
        return parent.CRASHED


def _keep(command: Sequence[str], given: argparse.Namespace, host: Host) -> int:
    from hostler import settings
    from hostler.worker import parent, session_name

    whole = not given.step  # the time limit and the queue's place of a step are those of all its nodes
    try:
        return parent.keep(
            command,
            timing=settings.timing(),
            say=_say,
            notice_in=_notice_in(host) if whole else None,
            requeue=host.give_back if whole else None,
            watch=host.watch,
            place=session_name.place_of(host, given.fleet),
            again=host.again,
        )
    finally:
        if given.secrets:
            from hostler.backends import privatefile  # which a worker without any does not load

            privatefile.remove_own(given.secrets)


def _notice_in(host: Host) -> float | None:
    """Seconds until the worker is told that its platform will end it; None if it never will."""
    left = host.seconds_left()
    return None if left is None else left - min(NOTICE, left / 4)


def _say(line: str) -> None:
    print(line, flush=True)
