"""A drill's outcome, for people and for programs."""

from __future__ import annotations

import json
from dataclasses import asdict

from hostler.cli.terminal.paint import paint
from hostler.drill.diagnose import EXACT, UNTESTED, Diagnosis
from hostler.drill.evidence import Evidence
from hostler.drill.plan import Pace

SHOWN = 8  # differences that are listed


def amount(run: Evidence) -> str:
    """How much there is of a run, in a few words."""
    names = [name for name in run.curves if not name.startswith("system/")]
    points = sum(len(run.curves[name]) for name in names)
    return f"{run.seconds:.1f} s, {len(names)} metrics ({points} points), {len(run.files)} files"


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


def as_json(found: Diagnosis, calm: Evidence, killed: Evidence, seed: int) -> str:
    return json.dumps(
        {
            "verdict": found.verdict,
            "exact": found.verdict == EXACT,
            "findings": [asdict(finding) for finding in found.findings],
            "differences": [asdict(difference) for difference in found.differences],
            "not_compared": sorted({d.name for d in found.noisy}),
            "kills": [
                {"attempt": one.number, "seconds": round(one.seconds, 3)}
                for one in killed.tries
                if one.killed
            ],
            "resumed": [{"attempt": one.number, "checkpoint": one.restored} for one in killed.resumed()],
            "seconds": {"undisturbed": round(calm.seconds, 3), "killed": round(killed.seconds, 3)},
            "steps": {"undisturbed": calm.steps_done(), "killed": killed.steps_done()},
            "seed": seed,
        },
        indent=2,
    )


def _headline(found: Diagnosis, killed: Evidence) -> str:
    if found.verdict == EXACT:
        what = f"killed {killed.kills} times, and the same to the bit: metrics and files"
        return paint(f"exact: {what}", "green")
    said = found.verdict.replace("-", " ")
    return paint(said if found.verdict == UNTESTED else f"{said}: killed {killed.kills} times", "red")


def _difference(what: str, name: str, step: int | None, detail: str) -> str:
    at = f" at step {step}" if step is not None else ""
    return f"  {what} {name}{at}: {detail}" if what != "line" else f"  line {name!r} {detail}"


def _time(calm: Evidence, killed: Evidence, pace: Pace) -> str:
    repeated = max(0, killed.steps_done() - calm.steps_done())
    lost = max(0.0, killed.seconds - calm.seconds)
    starts = min(lost, pace.startup * (len(killed.tries) - 1))
    said = f"Time: {calm.seconds:.1f} s undisturbed, {killed.seconds:.1f} s with {killed.kills} kills"
    return (
        f"{said}: {starts:.1f} s of new starts, {lost - starts:.1f} s of work done again ({repeated} points)"
    )
