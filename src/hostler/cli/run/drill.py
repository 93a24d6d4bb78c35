"""`hostler drill`: a script undisturbed and killed at random moments; what of it survives, and what does not.

Everything happens in a throw-away folder; nothing runs on, and nothing of it stays, however this ends.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from types import FrameType

import click

from hostler import env
from hostler.cli import here
from hostler.cli.terminal.screen import paint
from hostler.drill import diagnose, rig
from hostler.drill.diagnose import EXACT, UNTESTED, Diagnosis
from hostler.drill.evidence import Evidence
from hostler.drill.plan import Pace, moments
from hostler.errors import HostlerError, UsageError
from hostler.fleet.secrets import check_secrets
from hostler.fleet.submit import draft, named
from hostler.spec.argv import command_for, params_of
from hostler.spec.job import Job
from hostler.spec.project import Project
from hostler.spec.script import in_project
from hostler.spec.units import counted


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
    _say(f"undisturbed: {amount(calm)}")
    plan = moments(kills, seed, saves=calm.joined or _saved(calm))
    disturbed = rig.killed(setup, "killed", pace, plan)
    _say(f"killed {counted(disturbed.kills, 'time')}: {amount(disturbed)}")
    control = None
    if diagnose.needs_control(calm, disturbed):
        _say("they differ: one more undisturbed run shows what differs by itself …")
        control, _ = rig.undisturbed(setup, "control")
    diagnosis = diagnose.diagnose(calm, disturbed, control)
    if as_json:
        click.echo(report_json(diagnosis, calm, disturbed, seed))
    else:
        click.echo(text(diagnosis, calm, disturbed, pace))
    return 0 if diagnosis.verdict == diagnose.EXACT else 1


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
            hint="make it work with hostler run first; the end of its log: " + " | ".join(calm.lines[-3:]),
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


# A drill's outcome, for people and for programs.


SHOWN = 8  # differences that are listed


def amount(run: Evidence) -> str:
    """How much there is of a run, in a few words."""
    names = [name for name in run.curves if not name.startswith("system/")]
    points = sum(len(run.curves[name]) for name in names)
    metrics = f"{counted(len(names), 'metric')} ({counted(points, 'point')})"
    return f"{run.seconds:.1f} s, {metrics}, {counted(len(run.files), 'file')}"


def text(found: Diagnosis, calm: Evidence, killed: Evidence, pace: Pace) -> str:
    lines = [_headline(found, killed)]
    for finding in found.findings:
        lines.append(f"  {finding.text}")
        if finding.advice:
            lines.append(f"    → {finding.advice}")
    if found.differences:
        lines += [
            "",
            "Differences:",
            *(_difference(d.what, d.name, d.step, d.detail) for d in found.differences[:SHOWN]),
        ]
        more = len(found.differences) - SHOWN
        lines += [f"  and {more} more"] if more > 0 else []
    if found.noisy:
        names = ", ".join(dict.fromkeys(d.name for d in found.noisy[:SHOWN]))
        lines += ["", f"Not compared, since two undisturbed runs differ there as well: {names}"]
    if killed.kills:
        lines += ["", _time(calm, killed, pace)]
    return "\n".join(lines)


def report_json(found: Diagnosis, calm: Evidence, killed: Evidence, seed: int) -> str:
    return json.dumps(
        {
            "verdict": found.verdict,
            "exact": found.verdict == EXACT,
            "findings": [asdict(finding) for finding in found.findings],
            "differences": [asdict(difference) for difference in found.differences],
            "not_compared": sorted({d.name for d in found.noisy}),
            "kills": [
                {"attempt": attempt.number, "seconds": round(attempt.seconds, 3)}
                for attempt in killed.tries
                if attempt.killed
            ],
            "resumed": [
                {"attempt": attempt.number, "checkpoint": attempt.restored} for attempt in killed.resumed()
            ],
            "seconds": {"undisturbed": round(calm.seconds, 3), "killed": round(killed.seconds, 3)},
            "steps": {"undisturbed": calm.steps_done(), "killed": killed.steps_done()},
            "seed": seed,
        },
        indent=2,
    )


def _headline(found: Diagnosis, killed: Evidence) -> str:
    if found.verdict == EXACT:
        what = f"killed {counted(killed.kills, 'time')}, and the same to the bit: metrics and files"
        return paint(f"exact: {what}", "green")
    said = found.verdict.replace("-", " ")
    return paint(
        said if found.verdict == UNTESTED else f"{said}: killed {counted(killed.kills, 'time')}", "red"
    )


def _difference(what: str, name: str, step: int | None, detail: str) -> str:
    at = f" at step {step}" if step is not None else ""
    return f"  {what} {name}{at}: {detail}" if what != "line" else f"  line {name!r} {detail}"


def _time(calm: Evidence, killed: Evidence, pace: Pace) -> str:
    repeated = max(0, killed.steps_done() - calm.steps_done())
    lost = max(0.0, killed.seconds - calm.seconds)
    starts = min(lost, pace.startup * (len(killed.tries) - 1))
    said = (
        f"Time: {calm.seconds:.1f} s undisturbed, {killed.seconds:.1f} s with {counted(killed.kills, 'kill')}"
    )
    points = counted(repeated, "point")
    return f"{said}: {starts:.1f} s of restarts, {lost - starts:.1f} s of repeated work ({points})"
