"""`hostler tag`: gives runs tags, takes them away, shows them; and marks checkpoints that stay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from hostler.cli import here
from hostler.cli.steer import acting
from hostler.cli.steer.acting import REFUSED, Result
from hostler.cli.terminal import output
from hostler.errors import MissingError, UsageError
from hostler.records.checkpoint import checkpoints, selection
from hostler.records.rows import Row
from hostler.records.run import resolve
from hostler.records.sweep import sweeps
from hostler.spec.job import Job
from hostler.spec.names import is_tag
from hostler.spec.reference import Step
from hostler.store import Store


@dataclass
class _TagOptions:
    names: list[str] = field(default_factory=list)
    add: list[str] = field(default_factory=list)
    remove: list[str] = field(default_factory=list)


# A tag to take away looks like an option, so there are no short ones here.
def command(words: tuple[str, ...], store_url: str | None, as_json: bool) -> int:
    """Give runs tags, or take them away; without any, show them."""
    store = here.open_here(store_url)
    asked = _read(store, words)
    steps = {name: resolve.with_step(store, name) for name in asked.names}
    if any(step is not None for _, step in steps.values()):
        return acting.report(store, _mark_all(store, steps, asked), as_json=as_json)
    jobs: dict[str, Job] = {}

    def do(row: Row) -> Result:
        job = jobs.setdefault(row.sweep, sweeps.load(store, row.sweep))
        return _tag(store, job, row, asked)

    return acting.report(store, acting.act(store, asked.names, do), as_json=as_json)


def _read(store: Store, words: tuple[str, ...]) -> _TagOptions:
    """Names and changes. Without a + or -, the first word is the run and the others are tags."""
    asked = _TagOptions()
    for word in words:
        to = {"+": asked.add, "-": asked.remove}.get(word[:1])
        if to is None:
            asked.names.append(word)
        else:
            to.append(_checked(word[1:]))
    if not asked.names:
        raise UsageError("name the run first", hint="hostler tag NAME +good")
    if not asked.add and not asked.remove and len(asked.names) > 1:
        asked.add = [_checked(word) for word in asked.names[1:]]
        known = set(sweeps.names(store))
        for word in asked.add:
            if word in known:
                raise UsageError(f"{word!r} is the name of a run, too", hint=f"+{word} means the tag")
        asked.names = asked.names[:1]
    return asked


def _checked(tag: str) -> str:
    if not is_tag(tag):
        raise UsageError(f"{tag!r} is not a tag", hint="letters and signs without spaces or commas")
    return tag


def _tag(store: Store, job: Job, row: Row, asked: _TagOptions) -> Result:
    shared = sweeps.tags(store, job, output.saying())[""]
    whole = [tag for tag in asked.remove if tag in shared and job.count > 1]
    if whole:
        text = f"{whole[0]} is a tag of the whole sweep, from its file"
        return Result(row.name, text, REFUSED, row)
    add = [tag for tag in asked.add if tag not in row.tags]
    remove = [tag for tag in asked.remove if tag in row.tags]
    if add or remove:
        sweeps.tag(store, row.sweep, "" if job.count == 1 else row.id, add, remove)
    remaining = [tag for tag in row.tags if tag not in remove] + [tag for tag in add if tag not in remove]
    return Result(row.name, " ".join(remaining) or "no tags", row=row)


KEEP = "keep"  # the one mark of a checkpoint


def _mark_all(store: Store, steps: Mapping[str, tuple[str, Step | None]], asked: _TagOptions) -> list[Result]:
    """Mark a checkpoint of each run as one that stays, take the mark away, or show it."""
    for word in [*asked.add, *asked.remove]:
        if word != KEEP:
            raise UsageError(f"{word!r} is not a mark of a checkpoint", hint="hostler tag RUN@STEP keep")
    results: list[Result] = []
    for name, (run, step) in steps.items():
        if step is None:
            raise UsageError(
                f"{name} names no checkpoint", hint=f"{name}@STEP; hostler show {name} lists them"
            )
        results += acting.act(store, [run], partial(_mark, store, step, asked))
    return results


def _mark(store: Store, step: Step, asked: _TagOptions, row: Row) -> Result:
    try:
        checkpoint = selection.choose(store, row.key, step)
    except MissingError as error:
        return Result(row.name, str(error).removeprefix(f"{row.name}: "), REFUSED, row)
    place, at = checkpoint.place, f"checkpoint {checkpoint.place.name}, step {checkpoint.checkpoint.step}"
    if asked.remove:
        checkpoints.unmark(store, row.id, place)
        if checkpoint.checkpoint.record.get("kept"):
            text = f"{at}: it stays, because `checkpoint: keep_every` chose it"
            return Result(row.name, text, REFUSED, row)
        return Result(row.name, f"{at}: may be removed", row=row)
    if not asked.add:
        return Result(row.name, f"{at}: {'stays' if checkpoint.stays else 'may be removed'}", row=row)
    if checkpoints.mark(store, row.id, place):
        return Result(row.name, f"{at}: stays", row=row)
    text = f"{at} was removed meanwhile, as newer ones came (hostler show {row.name} lists what is kept)"
    return Result(row.name, text, REFUSED, row)
