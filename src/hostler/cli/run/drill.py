"""`hostler drill`: a script undisturbed and killed at random moments; what of it survives, and what does not.

Everything happens in a throw-away folder; nothing runs on, and nothing of it stays, however this ends.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType

import click

from hostler import env
from hostler.cli import here
from hostler.cli.run import drill_report
from hostler.drill import diagnose, rig
from hostler.drill.evidence import Evidence
from hostler.drill.plan import moments
from hostler.errors import HostlerError, UsageError
from hostler.fleet.secrets import check_secrets
from hostler.fleet.submit import draft, named
from hostler.spec.argv import command_for, params_of
from hostler.spec.job import Job
from hostler.spec.project import Project
from hostler.spec.script import in_project


def command(words: tuple[str, ...], kills: int, seed: int, as_json: bool) -> int:
    """Run a script undisturbed, then killed with SIGKILL at random moments, and compare."""
    project = here.project()
    job = replace(_job(project, words), retries=max(project.retries, 0))
    check_secrets(job.secrets)
    with _scratch() as scratch:
        setup = rig.Setup(project, job, scratch, _cache(project, scratch), _say)
        return _drill(setup, kills, seed, as_json)


def _drill(setup: rig.Setup, kills: int, seed: int, as_json: bool) -> int:
    _say("undisturbed …")
    calm, pace = rig.undisturbed(setup, "calm")
    _check_done(calm)
    _say(f"undisturbed: {drill_report.amount(calm)}")
    plan = moments(kills, seed, saves=calm.joined or _saved(calm))
    disturbed = rig.killed(setup, "killed", pace, plan)
    _say(f"killed {disturbed.kills} times: {drill_report.amount(disturbed)}")
    control = None
    if diagnose.needs_control(calm, disturbed):
        _say("they differ: undisturbed once more, to know what differs by itself …")
        control, _ = rig.undisturbed(setup, "control")
    found = diagnose.diagnose(calm, disturbed, control)
    if as_json:
        click.echo(drill_report.as_json(found, calm, disturbed, seed))
    else:
        click.echo(drill_report.text(found, calm, disturbed, pace))
    return 0 if found.verdict == diagnose.EXACT else 1


def _job(project: Project, words: tuple[str, ...]) -> Job:
    folder = os.path.relpath(Path.cwd(), project.root)
    cwd = "" if folder == "." else folder
    if not words:
        if project.command is None:
            raise UsageError("nothing to drill", hint="like: hostler drill -- python train.py --epochs 3")
        made = draft(project, project.command, title="drill", style=project.style, runs=[{}], cwd=cwd)
    else:
        argv, _ = in_project(command_for(words, Path.cwd()), Path.cwd(), project.root)
        made = draft(project, argv, title="drill", style="none", runs=[params_of(argv)], cwd=cwd)
    return named(made, "drill")


def _saved(calm: Evidence) -> bool:
    return any(name.startswith("checkpoint/") for name in calm.files)


def _check_done(calm: Evidence) -> None:
    if calm.state != "done":
        raise HostlerError(
            f"the script fails without being killed: {calm.failure or calm.state}",
            hint="hostler run it first; the end of its log: " + " | ".join(calm.lines[-3:]),
        )


def _cache(project: Project, scratch: Path) -> Path:
    """A throw-away one, unless packages or setup would be made anew for nothing."""
    costly = project.setup or project.python.requirements or project.python.conda
    return env.cache_dir() if costly else scratch / "cache"


@contextmanager
def _scratch() -> Iterator[Path]:
    """Removed at the end, by Ctrl-C and SIGTERM too."""

    def leave(number: int, frame: FrameType | None) -> None:
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    folder = Path(tempfile.mkdtemp(prefix="hostler-drill-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        signal.signal(signal.SIGTERM, before)


def _say(line: str) -> None:
    click.echo(f"hostler: {line}", err=True)
