"""`hostler worker STORE`, and `python -m hostler.worker STORE` where nothing is installed.

The parent keeps one worker alive; the worker does the work. Both are this program, and the parent loads
nothing of what only the worker needs: it is there as long, and the worker starts only when it has loaded.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Callable, Sequence

from hostler import env, settings
from hostler.errors import HostlerError
from hostler.worker import parent, pod, slurm_step, slurm_task
from hostler.worker.options import parser

NOTICE = 75.0  # seconds before a time limit, if nobody said so before: to save, and to be queued again


def main(argv: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    given = parser().parse_args(words)
    try:
        if given.session or given.no_parent:
            from hostler.worker.session import work

            return work(given, _say)
        command = [sys.executable, "-m", "hostler.worker", *words]
        if given.nodes > 1 and not given.step:
            return _keep_nodes([*command, "--step"], given.nodes)
        return _keep(command, given)
    except HostlerError as error:
        print(f"hostler worker: {error}", file=sys.stderr)
        return pod.exit_code(error) if given.kubernetes else error.exit_code
    except Exception:  # a bug must not pass for a refusal: the parent starts another worker
        traceback.print_exc()
        return parent.CRASHED


def _keep(command: Sequence[str], given: argparse.Namespace) -> int:
    task = slurm_task.this_task(env.inherited()) if given.slurm and not given.step else None
    left = task.seconds_left() if task else None
    try:
        return parent.keep(
            command,
            timing=settings.timing(),
            say=_say,
            notice_in=None if left is None else left - min(NOTICE, left / 4),
            requeue=task.requeue if task else None,
            watch=_watch_vm if given.gce else lambda notice: None,
        )
    finally:
        if given.secrets:
            from hostler.backends import privatefile  # which a worker without any does not load

            privatefile.remove_own(given.secrets)


def _watch_vm(notice: Callable[[], None]) -> None:
    from hostler.worker.gce_vm import watch_preemption

    watch_preemption(notice)


def _keep_nodes(command: Sequence[str], nodes: int) -> int:
    """A worker on each node of this allocation."""
    task = slurm_task.this_task(env.inherited())
    left = task.seconds_left() if task else None
    return slurm_step.keep(
        slurm_step.srun(command, nodes, env.inherited()),
        notice_in=None if left is None else left - min(NOTICE, left / 4),
        requeue=task.requeue if task else None,
        say=_say,
    )


def _say(line: str) -> None:
    print(line, flush=True)
