"""Answers for single pages: a run and its files, a comparison, errors, workers and their spend."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any

from hostler.analysis import codediff
from hostler.analysis.spend import spend
from hostler.errors import HostlerError, MissingError, StoreError
from hostler.records import layout
from hostler.records.checkpoint import outputs
from hostler.records.rows import Row
from hostler.records.run import heartbeats, run_details, surroundings
from hostler.records.run.history import tries
from hostler.records.run.log import RunKey, RunLog
from hostler.records.run.state import fold
from hostler.records.sweep import error_groups, sweeps
from hostler.spec.job import Job, Source
from hostler.spec.params import flatten
from hostler.spec.ranking import LAST
from hostler.store import Store

TEXT = 200_000  # bytes of a text file that are shown
PICTURE = 4_000_000  # bytes of the largest picture that is shown
PICTURES = {
    b"\x89PNG": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"RIFF": "image/webp",
    b"<svg": "image/svg+xml",
    b"<?xml": "image/svg+xml",
}


def run(store: Store, key: RunKey) -> dict[str, Any]:
    """Everything of one run that has a page of its own."""
    found = run_details.read(store, key)
    ran = found.environment or {}
    python = ran.get("python") or {}
    return {
        "attempts": [{**asdict(one), "words": one.words} for one in found.tries],
        "events": [asdict(event) for event in found.events],
        "totals": found.metrics,
        "checkpoints": [asdict(checkpoint) for checkpoint in found.checkpoints],
        "outputs": [{"name": f.get("name"), "size": f.get("size")} for f in found.outputs],
        "unkept": found.unkept,
        "environment": {
            **{k: v for k, v in ran.items() if isinstance(v, (str, int, float))},
            **({"python": python["version"]} if python.get("version") else {}),
            **({"gpus": ", ".join(g["name"] for g in ran["gpus"])} if ran.get("gpus") else {}),
        },
        "command": list(ran.get("command") or found.job.command),
        "source": found.job.source.mark,
        "metric": found.row.metric,
        "goal": found.row.goal,
        "result": found.result,
        "failure": found.row.failure,
        "notes": found.job.notes,
        "tracked": [{"tool": one.kind, "url": one.url} for one in found.tracked],
    }


def file(store: Store, key: RunKey, name: str) -> dict[str, Any]:
    """A file that a run left: a picture as an address that holds it, a text as text, else its size alone."""
    newest = outputs.newest(store, key.run)
    row = next((record for record in (newest[1] if newest else []) if record["name"] == name), None)
    if row is None:
        raise MissingError(f"{key.run} has left no file named {name!r}")
    at, size = layout.output_file(key.run, row["attempt"], row["n"]), row["size"]
    begin = row.get("at") or 0
    data = store.get(at, start=begin, end=begin + min(size, TEXT)).data if size else b""
    kind = next((kind for start, kind in PICTURES.items() if data.startswith(start)), "")
    facts = {"name": name, "size": size}
    if kind and (kind != "image/svg+xml" or b"<svg" in data[:4000]):
        if size > PICTURE:
            return facts
        whole = store.get(at, start=begin, end=begin + size).data if size > len(data) else data
        return {**facts, "picture": f"data:{kind};base64,{base64.b64encode(whole).decode()}"}
    if b"\0" in data[:8000]:
        return facts
    return {**facts, "text": data.decode("utf-8", "replace"), "cut": size > len(data)}


def compare(store: Store, rows: Sequence[Row]) -> dict[str, Any]:
    """Runs side by side: what differs first, then what is equal."""
    if not rows:  # none of those that were asked for can be read
        raise MissingError("none of these runs is there")
    params, same = _differing([flatten(row.params) for row in rows])
    metrics = [{n: v for n, v in r.metrics.items() if not n.startswith("system/")} for r in rows]
    facts, _ = _differing([{"state": r.state, "host": r.host, "code": r.code[:12]} for r in rows])
    packages, _ = _differing([_packages(store, row.key) for row in rows])
    jobs = {name: _job(store, name) for name in dict.fromkeys(row.sweep for row in rows)}
    return {
        "runs": [{"id": r.id, "name": r.name, "state": r.state} for r in rows],
        "params": params,
        "same": {name: cells[0] for name, cells in same.items()},
        "facts": facts,
        "metrics": {**_judged(rows), **_columns(metrics)},
        "goals": {**_goals(filter(None, jobs.values())), **dict.fromkeys(_judged(rows), rows[0].goal)},
        "packages": packages,
        "codes": [r.code for r in rows],
    }


def code(store: Store, rows: Sequence[Row]) -> dict[str, Any]:
    """The code of two runs, file by file."""
    if len(rows) != 2:
        raise MissingError("name two runs whose code is compared")
    source, other = (_source(store, row.key) for row in rows)
    changes = codediff.compare(store, source, other)
    kept = bool(source.snapshot and other.snapshot)
    return {"kept": kept, "files": [asdict(change) for change in changes]}


def errors(store: Store, rows: Sequence[Row]) -> list[dict[str, Any]]:
    ours = [row for row in rows if not row.trashed]
    return [asdict(group) for group in error_groups.groups(list(error_groups.failed(store, ours)))]


def workers(store: Store, names: Callable[[str], str]) -> dict[str, Any]:
    """Workers with a heartbeat, what each does, and the cost of fleets as far as it is known.

    `names` gives a run's name for people."""
    ages, found = _ages(store), []
    for session in ages:
        try:
            beat = heartbeats.read(store, session)
        except HostlerError:  # written by a newer version, or damaged
            continue
        if beat is not None:
            kept = {n: v for n, v in beat.items() if isinstance(v, (str, int, float, bool))}
            held = beat.get("runs") or {}
            runs = [_held(run, names(run), facts) for run, facts in held.items()]
            found.append(
                {**kept, "session": session, "age": ages[session], "room": beat.get("room"), "runs": runs}
            )
    found.sort(key=lambda one: (str(one.get("fleet") or ""), str(one.get("host") or ""), one["session"]))
    return {"workers": found, "spend": spend(store)}


def _held(run: str, name: str, facts: dict[str, Any]) -> dict[str, Any]:
    metrics = facts.get("metrics") or {}
    use = {n.removeprefix("system/"): v for n, v in metrics.items() if n.startswith("system/")}
    return {"id": run, "name": name, "step": facts.get("step"), "cost": facts.get("cost"), "use": use}


def _ages(store: Store) -> dict[str, float | None]:
    """session → seconds since its last beat, by the store's clock; None where nobody can tell."""
    try:
        return dict(heartbeats.ages(store, heartbeats.readers_time))
    except StoreError:
        return dict.fromkeys(heartbeats.etags(store))


def _columns(records: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    names = dict.fromkeys(name for record in records for name in record)
    return {name: [record.get(name) for record in records] for name in names}


def _differing(records: Sequence[dict[str, Any]]) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
    """(what differs between them, what does not)."""
    columns = _columns(records)
    unequal = {name for name, cells in columns.items() if len({repr(c) for c in cells}) > 1}
    return (
        {name: cells for name, cells in columns.items() if name in unequal},
        {name: cells for name, cells in columns.items() if name not in unequal},
    )


def _judged(rows: Sequence[Row]) -> dict[str, list[Any]]:
    """The values that runs are ranked by, where these are not the last ones."""
    kinds = {row.judged.of for row in rows if row.judged and row.judged.counts}
    if kinds <= {LAST} or len({row.metric for row in rows}) != 1:
        return {}
    values = [row.judged.value if row.judged and row.judged.counts else None for row in rows]
    return {f"{rows[0].metric} ({', '.join(sorted(kinds))})": values}


def _goals(jobs: Iterable[Job]) -> dict[str, str]:
    """metric → max or min, where all of these sweeps that name it agree."""
    found: dict[str, set[str]] = {}
    for job in jobs:
        named = [(objective.name, objective.goal) for objective in job.objectives] or [
            (job.metric or "", job.goal)
        ]
        for name, goal in named:
            found.setdefault(name, set()).add(goal)
    return {name: next(iter(goals)) for name, goals in found.items() if name and len(goals) == 1}


def _job(store: Store, name: str) -> Job | None:
    try:
        return sweeps.load(store, name)
    except HostlerError:
        return None


def _packages(store: Store, key: RunKey) -> dict[str, Any]:
    """Versions of the packages and the Python that the newest attempt ran with."""
    try:
        entries = RunLog(store, key).read_on().entries
        for attempt in reversed(tries(entries)):
            if ran := surroundings.of_attempt(store, key.run, attempt.number, entries):
                version = (ran.get("python") or {}).get("version")
                return {**({"python": version} if version else {}), **(ran.get("packages") or {})}
    except HostlerError:
        pass
    return {}


def _source(store: Store, key: RunKey) -> Source:
    state = fold(RunLog(store, key).read_on().entries)
    return sweeps.with_source(sweeps.load(store, key.sweep), state).source
