"""`hostler show`: everything about one run."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import click

from hostler.cli import here
from hostler.cli.terminal import missing_file, output
from hostler.cli.terminal.screen import columns, paint, size, state, title
from hostler.cli.terminal.table import is_terminal, state_text, with_others
from hostler.records.run import resolve, run_details
from hostler.records.run.history import Event, Try
from hostler.records.run.run_details import Dossier
from hostler.records.run.tracked import Tracked
from hostler.records.sweep.error_groups import advice
from hostler.spec.job import Source, source_facts
from hostler.spec.states import PAUSED, QUEUED, RUNNING, STOPPED
from hostler.spec.units import show_duration, show_number, show_size
from hostler.store import Store

FILES = 10  # output files shown; --json has all


def command(run: str, store_url: str | None, as_json: bool) -> int:
    """Show everything about one run: parameters, metrics, attempts, checkpoints, outputs, code, failure."""
    store = here.open_here(store_url)
    job, key = resolve.one(store, run)
    found = run_details.read(store, key, output.saying(), job)
    if as_json:
        output.print_json(facts(found))
    else:
        click.echo("\n".join(_lines(found, _held(store, found))))
    return 0


def _held(store: Store, found: Dossier) -> str:
    if found.row.state not in (PAUSED, STOPPED):
        return ""
    from hostler.cli.terminal import halt_hints  # with what acts on runs: only for runs that may go on

    return halt_hints.out_of_hours(store, found.row.sweep)


def facts(found: Dossier) -> dict[str, Any]:
    """The same as JSON: the row of `status`, and more."""
    job = found.job
    return {
        **output.row_json(found.row),
        "title": job.title,
        "chosen": found.chosen,
        "command": command_line(found),
        "source": source_facts(job.source),
        "totals": found.metrics,
        "recognised": found.recognised,
        "result": found.result,
        "attempts": [asdict(one) for one in found.tries],
        "events": [asdict(event) for event in found.events],
        "checkpoints": [asdict(checkpoint) for checkpoint in found.checkpoints],
        "outputs": [{k: f[k] for k in ("name", "size", "sha256") if k in f} for f in found.outputs],
        "unkept": found.unkept,
        "trackers": [asdict(one) for one in found.tracked],
        "environment": found.environment,
    }


def command_line(found: Dossier) -> str:
    """The command as it was run; as it is configured, before its first attempt."""
    import shlex

    ran = found.environment or {}
    return shlex.join(ran.get("command") or found.job.command)


def _lines(found: Dossier, held: str = "") -> Iterator[str]:
    """`held`: why its sweep does not go on, and what to do first."""
    yield f"{title(found.row.name)}  {state(state_text(found.row))}"
    yield from columns(_head(found))
    params = {**found.row.params, **found.chosen}
    yield from _section("parameters", [(k, output.value_text(v)) for k, v in params.items()])
    yield from _section("metrics", _metrics(found))
    if found.recognised:
        names = ", ".join(found.recognised)
        yield f"  metrics read from the output: {names} (turn off: metrics: none)"
    yield from _section("result", [(k, output.value_text(v)) for k, v in (found.result or {}).items()])
    yield from _section("attempts", _attempts(found), size().columns if is_terminal() else 0)
    yield from _section("checkpoints", _checkpoints(found))
    yield from _section("outputs", _outputs(found))
    yield from (paint(line, "red") for line in found.unkept)
    yield from _section("trackers", [_tracked(found, one) for one in found.tracked])
    yield from _section("environment", _environment(found))
    yield from _failure(found)
    yield title("next")
    yield from columns(_next(found, resumes=not held))
    yield from [f"  → {held}"] if held else []


def _section(name: str, table: list[tuple[str, ...]], room: int = 0) -> Iterator[str]:
    if table:
        yield title(name)
        yield from columns(table, room=room)


def _head(found: Dossier) -> list[tuple[str, str]]:
    row, job = found.row, found.job
    pairs = [
        ("id", row.id),
        ("sweep", f"{row.sweep} ({job.count} runs)" if job.count > 1 else ""),
        ("command", command_line(found)),
        ("code", code_text(job.source)),
        ("from", output.value_text(job.init) if job.init else ""),
        ("where", _where(found)),
        ("tags", ", ".join(row.tags)),
        ("trash", "yes" if row.trashed else ""),
    ]
    return [(name, text) for name, text in pairs if text]


def code_text(source: Source) -> str:
    if source.git:
        return f"{source.git} at {(source.ref or '')[:12]}"
    commit = (
        f"commit {source.commit[:12]}{', changed since' if source.dirty else ''}" if source.commit else ""
    )
    snapshot = f"snapshot {source.snapshot[:12]}" if source.snapshot else ""
    return ", ".join(filter(None, (commit, snapshot)))


def _where(found: Dossier) -> str:
    row = found.row
    parts = [f"on {row.host}" if row.host else ""]
    if row.started:
        parts.append(f"since {_clock(row.started)}")
    if row.seconds is not None:
        parts.append(f"took {show_duration(row.seconds)}")
    if row.together:
        parts.append(with_others(row.together))
    if row.lost:
        parts.append(paint("its script died", "red"))
    elif row.stale:
        age = f"for {show_duration(row.beat_age)}" if row.beat_age is not None else "at all"
        parts.append(paint(f"no sign of life {age}", "red"))
    return ", ".join(filter(None, parts))


def _metrics(found: Dossier) -> list[tuple[str, ...]]:
    names = sorted(found.metrics, key=lambda n: (n != found.row.metric, n.startswith("system/"), n))
    if not names:
        return []
    head = ("", "last", "min", "max", "step")
    return [head, *((name, *_numbers(name, found.metrics[name])) for name in names)]


def _numbers(name: str, row: dict[str, float]) -> tuple[str, ...]:
    values = [row.get(k, math.nan) for k in ("last", "min", "max")]
    size = name in ("system/memory", "system/gpu_memory") and all(map(math.isfinite, values))
    shown = tuple(show_size(int(value)) if size else show_number(value) for value in values)
    return (*shown, str(int(row["step"])) if "step" in row else "")


def _attempts(found: Dossier) -> list[tuple[str, ...]]:
    lines: list[Try | Event] = sorted([*found.tries, *found.events], key=lambda one: one.number)
    ordinals = {str(one.number): one.ordinal for one in found.tries}
    return [_attempt(one, ordinals) if isinstance(one, Try) else _event(one) for one in lines]


def _attempt(one: Try, ordinals: Mapping[str, int]) -> tuple[str, ...]:
    words = [one.words]
    if one.exit not in (None, 0):
        words.append(f"exit {one.exit}" if (one.exit or 0) > 0 else f"signal {-(one.exit or 0)}")
    if one.together:
        words.append(with_others(one.together))
    if one.restored:
        number, _, step = one.restored.partition("-")
        words.append(f"went on from step {step} of attempt {ordinals.get(number, number)}")
    took = one.seconds if one.seconds is not None else (one.ended or time.time()) - one.started
    return (str(one.ordinal), _clock(one.started), one.host, show_duration(max(0.0, took)), ", ".join(words))


def _event(one: Event) -> tuple[str, ...]:
    return ("", _clock(one.at), "", "", one.what + (f" by {one.by}" if one.by else ""))


def _checkpoints(found: Dossier) -> list[tuple[str, ...]]:
    if not found.checkpoints:
        return []
    head = ("", "step", found.row.metric or "", "files", "size", "age", "")
    return [head, *map(_checkpoint, found.checkpoints)]


def _checkpoint(one: run_details.CheckpointDetails) -> tuple[str, ...]:
    words = ", ".join(word for word, so in (("finished", one.finished), ("kept", one.kept)) if so)
    value = "" if one.value is None else show_number(one.value)
    age = "" if one.saved is None else show_duration(max(0.0, time.time() - one.saved))
    return (one.name, str(one.step), value, str(one.files), show_size(one.size), age, words)


def _tracked(found: Dossier, one: Tracked) -> tuple[str, ...]:
    """The trackers it is shown in, what is wrong, and how to deliver the rest."""
    over = found.row.state not in (QUEUED, RUNNING, PAUSED)
    if one.error or (over and one.state != "closed"):
        why = one.error or "not all of it was delivered"
        words = f"{why}; hostler export {found.row.name} --to {one.kind}"
        return (one.kind, one.id, one.state, paint(words, "red"))
    return (one.kind, one.id, one.state, one.url)


def _outputs(found: Dossier) -> list[tuple[str, ...]]:
    shown = [(str(f["name"]), show_size(f.get("size", 0))) for f in found.outputs[:FILES]]
    more = len(found.outputs) - len(shown)
    return [*shown, (f"… and {more} more", "")] if more > 0 else list(shown)


def _environment(found: Dossier) -> list[tuple[str, ...]]:
    facts = found.environment
    if not facts:
        return []
    python, memory = facts.get("python") or {}, show_size(facts.get("memory") or 0)
    pairs = [
        ("python", f"{python.get('version', '?')}  {python.get('exe', '')}"),
        ("packages", str(len(facts.get("packages") or {}))),
        ("machine", f"{facts.get('cpus', '?')} CPUs, {memory}, {facts.get('platform', '')}"),
        ("gpus", ", ".join(gpu["name"] for gpu in facts.get("gpus") or [])),
        ("driver", facts.get("driver") or ""),
    ]
    return [pair for pair in pairs if pair[1]]


def _failure(found: Dossier) -> Iterator[str]:
    failure = found.row.failure
    if not failure:
        return
    yield f"{title('failure')}  {paint(failure.get('kind', ''), 'red')}: {failure.get('message', '')}"
    yield from (f"  {line}" for line in (failure.get("traceback") or "").splitlines())
    if failure.get("advice"):
        yield f"  → {advice(failure, found.row.name)}"
    yield from (f"  → {line}" for line in missing_file.lines(failure, lambda: found.job.cwd))


def _next(found: Dossier, *, resumes: bool) -> list[tuple[str, str]]:
    name, now = found.row.name, found.row.state
    words = [(f"hostler logs {name}", "what it printed")]
    if found.row.lost:
        again = "start it again" + ": it goes on from its last checkpoint" * bool(found.checkpoints)
        words += [(command_line(found), again), (f"hostler stop {name}", "end it")]
    elif now in (QUEUED, RUNNING):
        words += [(f"hostler attach {name}", "follow it"), (f"hostler stop {name}", "save and end it")]
    elif now in (PAUSED, STOPPED) and resumes:
        words.append((f"hostler resume {name}", "go on from its last checkpoint"))
    elif found.row.failure and resumes:
        words.append((f"hostler retry {name}", "again, with today's code"))
    if found.checkpoints or found.outputs:
        words.append((f"hostler pull {name}", "bring its files here"))
    return words


def _clock(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))
