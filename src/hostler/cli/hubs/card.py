"""The model card of a run: what was trained, how, and what came out. Pure: facts in, files out.

A card is for others: it has no field of a host, a user or a working folder, and home folders in what the run
was given or left are `~`.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from hostler import __version__
from hostler.records.run.run_details import Dossier
from hostler.records.series.points import Point
from hostler.spec.job import source_facts
from hostler.spec.names import slug
from hostler.spec.params import flatten
from hostler.spec.scalars import text
from hostler.spec.units import show_duration, show_number

WIDE, HIGH, EDGE = 640, 240, 30  # of a curve's picture
_HOMES = r"/(?:home|Users)/[\w.-]+"
_BEGINS = r"(?:(?<![\w.-])|(?<=-\w))"  # of a path: not in the middle of one, but behind an option like -I
SHOWN = 6  # metrics whose curves are drawn; curves.csv has all


def files(
    found: Dossier, points: Sequence[Point], step: int, target: str, homes: Sequence[str]
) -> dict[str, str]:
    """Name → text of each file beside the weights. `homes`: paths of the user's own home folder."""
    curves = {name: _curve(points, name) for name in _metrics(found)}
    drawn = [name for name, curve in curves.items() if len(curve) > 1][:SHOWN]
    drawn = sorted(drawn, key=lambda name: name != found.job.metric)
    record = _record(found, step, homes)
    notes = without_home(found.job.notes, homes)
    return {
        "README.md": _readme(found.row.name, record, drawn, target, notes),
        "run.json": json.dumps(record, indent=2, default=str) + "\n",
        "curves.csv": _table(curves),
        **{_picture(name): _drawn(name, curves[name]) for name in drawn},
    }


def _metrics(found: Dossier) -> list[str]:
    return [name for name in found.metrics if not name.startswith("system/")]


def _readme(name: str, record: Mapping[str, Any], drawn: Sequence[str], target: str, notes: str) -> str:
    metrics, origin = record["metrics"], record["provenance"]
    parts = [
        "---\ntags:\n- hostler\n---",
        f"# {_plain(target.rstrip('/').rpartition('/')[2] or name)}",
        f"Weights of the run `{_plain(name)}` at step {origin['step']}, trained and kept by hostler.",
        "## Parameters",
        _rows(
            ("parameter", "value"), [(key, _cell(value)) for key, value in flatten(record["params"]).items()]
        ),
        "## Metrics",
        _rows(
            ("metric", "last", "least", "greatest"),
            [(n, *(_cell(one.get(part)) for part in ("last", "min", "max"))) for n, one in metrics.items()],
        ),
        *(f"![{_plain(one)}]({_picture(one)})" for one in drawn),
        "## Provenance",
        _rows(("", ""), [(key, _cell(value)) for key, value in origin.items()]),
    ]
    return "\n\n".join(part for part in [*parts, notes] if part) + "\n"


def _provenance(found: Dossier, step: int) -> dict[str, Any]:
    row, ran = found.row, found.environment or {}
    source = {f"code {name}": value for name, value in source_facts(found.job.source).items() if value}
    known = {
        "run": row.id,
        "state": row.state,
        "step": step,
        "command": " ".join(found.job.command_of(row.index)),
        "attempts": len(found.tries),
        "time": show_duration(round(row.seconds)) if row.seconds else None,
        **{name: value for name, value in source.items() if isinstance(value, (str, int, float))},
        "python": (ran.get("python") or {}).get("version"),
        "gpus": ", ".join(gpu["name"] for gpu in ran.get("gpus") or []) or None,
        "hostler": ran.get("hostler") or __version__,
    }
    return {name: value for name, value in known.items() if value is not None}


def _record(found: Dossier, step: int, homes: Sequence[str]) -> dict[str, Any]:
    """The same for programs."""
    packages = (found.environment or {}).get("packages") or {}
    known = {
        "provenance": _provenance(found, step),
        "params": dict(found.row.params),
        "metrics": {name: found.metrics[name] for name in _metrics(found)},
        "metric": {"name": found.job.metric, "goal": found.job.goal} if found.job.metric else None,
        "result": found.result,
        "packages": dict(packages),
    }
    return {name: without_home(value, homes) for name, value in known.items()}


def without_home(value: Any, homes: Sequence[str]) -> Any:
    """The same with `~` for home folders: the user's own, and those below /home and /Users."""
    if isinstance(value, Mapping):
        return {without_home(name, homes): without_home(part, homes) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_home(part, homes) for part in value]
    if not isinstance(value, str):
        return value
    own = [re.escape(home.rstrip("/")) for home in homes if home.rstrip("/")]
    every = "|".join([*sorted(own, key=len, reverse=True), _HOMES])
    return re.sub(rf"{_BEGINS}(?:{every})(?![\w.-])", "~", value)


def _rows(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return "None."
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(_plain(cell) for cell in line)} |" for line in lines)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return show_number(value) if isinstance(value, float) else text(value)


def _plain(value: str) -> str:
    """Text that Markdown and HTML take as it is."""
    for letter, instead in (
        ("&", "&amp;"),
        ("<", "&lt;"),
        ("|", "\\|"),
        ("`", "'"),
        ("[", "\\["),
        ("]", "\\]"),
    ):
        value = value.replace(letter, instead)
    return " ".join(value.split())


def _curve(points: Sequence[Point], name: str) -> list[tuple[int, float]]:
    return [(point.step, point.values[name]) for point in points if name in point.values]


def _table(curves: Mapping[str, Sequence[tuple[int, float]]]) -> str:
    out = io.StringIO()
    write = csv.writer(out, lineterminator="\n")
    write.writerow(("metric", "step", "value"))
    for name, curve in curves.items():
        write.writerows((name, step, value) for step, value in curve)
    return out.getvalue()


def _picture(name: str) -> str:
    return f"curves/{slug(name) or 'metric'}.svg"


def _drawn(name: str, curve: Sequence[tuple[int, float]]) -> str:
    """A curve as a small picture; it needs no library."""
    finite = [(step, value) for step, value in curve if value - value == 0]
    steps, values = [step for step, _ in finite] or [0], [value for _, value in finite] or [0.0]
    low, high, first, last = min(values), max(values), min(steps), max(steps)

    def place(step: float, value: float) -> str:
        x = EDGE + (WIDE - 2 * EDGE) * (step - first) / ((last - first) or 1)
        y = HIGH - EDGE - (HIGH - 2 * EDGE) * (value - low) / ((high - low) or 1)
        return f"{x:.1f},{y:.1f}"

    line = " ".join(place(step, value) for step, value in finite)
    title = name.replace("&", "&amp;").replace("<", "&lt;")
    words = [(EDGE, 18, title), (EDGE, HIGH - 8, f"step {first}"), (WIDE - 110, HIGH - 8, f"step {last}")]
    words += [(WIDE - 110, 18, f"{show_number(low)} to {show_number(high)}")]
    shown = "".join(f'<text x="{x}" y="{y}">{word}</text>' for x, y, word in words)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {HIGH}" font-family="sans-serif" '
        f'font-size="12"><rect width="{WIDE}" height="{HIGH}" fill="white"/>{shown}'
        f'<polyline fill="none" stroke="#3f51b5" stroke-width="2" points="{line}"/></svg>\n'
    )
