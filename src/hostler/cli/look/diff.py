"""`hostler diff`: what differs between two runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import click

from hostler.analysis.codediff import Change, compare
from hostler.cli import here
from hostler.cli.look.show import code_text, command_line
from hostler.cli.terminal import output
from hostler.cli.terminal.screen import columns, paint, title
from hostler.records.run import resolve, run_details
from hostler.records.run.run_details import Dossier

Pairs = dict[str, tuple[Any, Any]]  # name → its value in the one and in the other; None: not there


def command(a: str, b: str, stat: bool, store_url: str | None, as_json: bool) -> int:
    """Compare two runs: parameters, command, code, packages, machine, results."""
    store = here.open_here(store_url)
    say = output.saying()
    one, other = (run_details.read(store, resolve.run(store, word), say) for word in (a, b))
    sections = {name: pairs for name, pairs in differences(one, other).items() if pairs}
    changes = compare(store, one.job.source, other.job.source)
    if as_json:
        output.print_json(_facts(one, other, sections, changes))
    else:
        click.echo("\n".join(_lines(one, other, sections, changes, stat=stat)))
    return 0


def differences(one: Dossier, other: Dossier) -> dict[str, Pairs]:
    """Section → what is not the same in it. Pure."""
    return {
        "run": _unequal(_run(one), _run(other)),
        "parameters": _unequal(one.row.params, other.row.params),
        "environment": _unequal(_environment(one), _environment(other)),
        "packages": _unequal(_packages(one), _packages(other)),
        "metrics": _unequal(_last(one), _last(other)),
        "result": _unequal(one.result or {}, other.result or {}),
    }


def _unequal(one: Mapping[str, Any], other: Mapping[str, Any]) -> Pairs:
    names = [*one, *(name for name in other if name not in one)]
    return {n: (one.get(n), other.get(n)) for n in names if one.get(n) != other.get(n)}


def _run(found: Dossier) -> dict[str, Any]:
    job, row = found.job, found.row
    return {
        "state": row.state,
        "command": command_line(found),
        "code": code_text(job.source),
        "seconds": row.seconds,
        "attempts": row.attempt,
        "host": row.host,
        "setup": " ".join(job.setup) or None,
        **{f"env {name}": value for name, value in job.env.items()},
        **{f"resources {name}": value for name, value in asdict(job.resources).items()},
        **{
            f"data {item.name}": item.blob or item.url or item.path or " ".join(item.run) for item in job.data
        },
    }


def _environment(found: Dossier) -> dict[str, Any]:
    facts = found.environment or {}
    python = facts.get("python") or {}
    gpus = ", ".join(gpu["name"] for gpu in facts.get("gpus") or [])
    return {
        "python": python.get("version"),
        "interpreter": python.get("exe"),
        "platform": facts.get("platform"),
        "gpus": gpus or None,
        "driver": facts.get("driver") or None,
        "hostler": facts.get("hostler"),
    }


def _packages(found: Dossier) -> dict[str, str]:
    return dict((found.environment or {}).get("packages") or {})


def _last(found: Dossier) -> dict[str, float]:
    return {n: row["last"] for n, row in found.metrics.items() if not n.startswith("system/")}


def _facts(one: Dossier, other: Dossier, sections: dict[str, Pairs], changes: list[Change]) -> dict[str, Any]:
    return {
        "a": one.row.name,
        "b": other.row.name,
        **{name: {key: list(pair) for key, pair in pairs.items()} for name, pairs in sections.items()},
        "files": [asdict(change) for change in changes],
    }


def _lines(
    one: Dossier, other: Dossier, sections: dict[str, Pairs], changes: list[Change], *, stat: bool
) -> Iterator[str]:
    if not sections and not changes:
        yield f"{one.row.name} and {other.row.name} do not differ"
        return
    yield f"{paint('- ' + one.row.name, 'red')}\n{paint('+ ' + other.row.name, 'green')}"
    for name, pairs in sections.items():
        yield title(name)
        yield from columns((key, *_told_apart(a, b)) for key, (a, b) in pairs.items())
    if changes:
        yield title("files")
        yield from columns((change.how, change.name) for change in changes)
    for change in changes if not stat else ():
        yield from map(_coloured, change.text)


def _told_apart(a: Any, b: Any) -> tuple[str, str, str]:
    """Both values, in full where they would look alike."""
    one, other = _text(a), _text(b)
    return (one, "→", other) if one != other else (repr(a), "→", repr(b))


def _text(value: Any) -> str:
    return "(none)" if value is None else output.value_text(value)


def _coloured(line: str) -> str:
    if line.startswith(("---", "+++")):
        return title(line)
    return paint(line, {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], ""))
