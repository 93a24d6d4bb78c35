"""Upstream runs, which other runs take files from: their state, the best of them, what was taken.

What a run takes is decided once, by its first attempt, and written down: later attempts take the same.
"""

from __future__ import annotations

from collections.abc import Collection

from hostler.errors import MissingError, UsageError
from hostler.records import layout
from hostler.records.body import PART, TABLE, TEXT, WHOLE, Record, checked, checked_rows, decode, encode
from hostler.records.checkpoint import checkpoints, outputs, selection
from hostler.records.checkpoint.selection import KeptCheckpoint
from hostler.records.rows import Row, rows
from hostler.records.run import control, resolve
from hostler.records.run.log import RunKey
from hostler.records.sweep import sweeps
from hostler.records.sweep.queue import Queue
from hostler.records.sweep.summary import ranked
from hostler.spec.inputs import Input, all_inputs
from hostler.spec.job import Job
from hostler.spec.ranking import BEST
from hostler.spec.reference import Step
from hostler.spec.states import COUNTED, DONE
from hostler.store import NotFound, Store


def waiting_for(store: Store, job: Job) -> str:
    """The first run or sweep that must be over before a sweep's runs can start; '' if none."""
    for one in sorted(all_inputs(job), key=lambda one: one.shown):
        try:
            if not _is_over(store, one):
                return one.best_of or one.run or ""
        except (MissingError, UsageError):
            continue  # said by the run that wants it
    return ""


def check(store: Store, job: Job) -> None:
    """Check that every upstream run or sweep exists, and a step of a run that is over; the error names what
    is missing."""
    for all_input in all_inputs(job):
        name, step = _named(store, all_input)
        if all_input.best_of:
            upstream = sweeps.load(store, resolve.sweep(store, name))
            if upstream.metric is None:
                raise UsageError(
                    f"{all_input.shown}: the sweep has no metric",
                    hint="add `metric:` to its file, or name a run of it",
                )
            continue
        key = resolve.run(store, name)
        if step is not None and control.state_of(store, key).state in _counted(all_input):
            selection.choose(store, key, step)


def left_files(store: Store, row: Row) -> bool:
    """Whether a run, or the one whose result it took over, has a checkpoint or outputs."""
    try:
        run = resolve.run(store, row.copy_of).run if row.copy_of else row.id
    except (MissingError, UsageError):
        return False
    return bool(checkpoints.committed(store, run)) or outputs.are_there(store, run)


def pinned(store: Store, run: str, wanted: list[Input]) -> dict[str, Record]:
    """key → what it is, exactly: the run, and which checkpoint or outputs of it."""
    try:
        return noted(store, run)
    except NotFound:
        found = {one.key: _exactly(store, one) for one in wanted}
    if store.put(layout.inputs(run), encode({"run": run, "inputs": found}), if_absent=True):
        return found
    return noted(store, run)


def noted(store: Store, run: str) -> dict[str, Record]:
    """The same as an earlier attempt found it; NotFound if none did."""
    key = layout.inputs(run)
    record = checked(decode(store.get(key).data, key), {"inputs": TABLE}, key, ["inputs"])
    for row in checked_rows(list(record["inputs"].values()), _INPUT, key, ["run"]):
        need = ["outputs"] if "outputs" in row else ["attempt", "step"]
        checked(row, _INPUT, key, need)
    return {name: {"file": None, **row} for name, row in record["inputs"].items()}


_INPUT = {
    "run": PART,
    "sweep": PART,
    "file": TEXT,
    "attempt": WHOLE,
    "step": WHOLE,
    "outputs": WHOLE,
}


def _named(store: Store, one: Input) -> tuple[str, Step | None]:
    """The run or sweep that an input names, and the step of the checkpoint."""
    name, step = resolve.with_step(store, str(one.best_of or one.run))
    if step is not None and one.step is not None:
        raise UsageError(
            f"{one.shown}: the step is given twice",
            hint=f"run: {name}, step: {one.step}; or run: {name}@{step}",
        )
    return name, one.step if step is None else step


def _counted(one: Input) -> tuple[str, ...]:
    """States of a run that may be an input: those that `hostler best` compares."""
    return (DONE,) if one.only else COUNTED


def _is_over(store: Store, one: Input) -> bool:
    name, _ = _named(store, one)
    if one.run:
        return control.state_of(store, resolve.run(store, name)).ended
    job = sweeps.load(store, resolve.sweep(store, name))
    if job.unchosen:
        return False
    return not Queue(store, job).open(whole=True)


def _exactly(store: Store, one: Input) -> Record:
    name, step = _named(store, one)
    if one.best_of:
        row = best_row(store, name, _counted(one))
        key = original(store, row.key)
        ranked = _ranked_by(store, key, row) if step is None else None
    else:
        key, ranked = resolve.run(store, name), None
    state = control.state_of(store, key)
    if one.run and state.state not in _counted(one):
        raise MissingError(
            f"{one.key} is {one.shown}, which is {state.state}", hint=f"hostler show {key.run}"
        )
    place = _place(store, key, one, ranked) if step is None else _at_step(store, key, one, step)
    return {"run": key.run, "sweep": key.sweep, "file": one.file, **place}


def original(store: Store, key: RunKey) -> RunKey:
    """The run whose files they are: a result that was taken over has none of its own."""
    end = control.state_of(store, key).end or {}
    return resolve.run(store, end["copy_of"]) if end.get("copy_of") else key


def _ranked_by(store: Store, key: RunKey, row: Row) -> KeptCheckpoint | None:
    """The checkpoint with the weights at the best value, where the best run is ranked by that; None if it is
    ranked by another value, or if they are not kept: the newest has to do."""
    if row.judged is None or row.judged.of != BEST or row.metric is None:
        return None
    return selection.ranked(store, key, row.metric, row.judged)


def best(store: Store, word: str, states: Collection[str] = COUNTED) -> RunKey:
    """The best run of a sweep by its own metric, of those that ended so; of equal ones the first."""
    return best_row(store, word, states).key


def best_row(store: Store, word: str, states: Collection[str] = COUNTED) -> Row:
    """The same with all that is known of it."""
    job = sweeps.load(store, resolve.sweep(store, word))
    if job.metric is None:
        raise UsageError(f"{job.name} has no metric", hint="add `metric:` to its file, or name a run of it")
    over = [row for row in rows(store, [job.name], touched=True, say=_pass_over) if row.state in states]
    found = ranked(job, over)
    if not found:
        raise MissingError(
            f"no finished run of {job.name} has logged {job.metric}", hint=f"hostler status {job.name}"
        )
    return found[0][1]


def _pass_over(line: str) -> None:
    """A run that cannot be read is not the best one."""


def _place(store: Store, key: RunKey, one: Input, ranked: KeptCheckpoint | None = None) -> Record:
    """A named file is one of its outputs, or of its newest checkpoint; without a name, that checkpoint. Of
    the best run of a sweep: of the checkpoint with the weights that it is ranked by."""
    left = outputs.newest(store, key.run)
    saved = [ranked.place] if ranked else checkpoints.committed(store, key.run)
    names = [row["name"] for row in left[1]] if left else []
    if left and (not saved if one.file is None else _holds(names, one.file)):
        return {"outputs": left[0]}
    if saved and (one.file is None or _holds(_saved_names(store, key.run, saved[0]), one.file)):
        file = one.file or (ranked.folder if ranked else "") or None
        return {"attempt": saved[0].attempt, "step": saved[0].step, "file": file}
    if one.file is None:
        raise MissingError(
            f"{one.key}: {one.shown} has neither a checkpoint nor outputs", f"hostler show {key.run}"
        )
    known = [*names, *(_saved_names(store, key.run, saved[0]) if saved else [])]
    raise MissingError(
        f"{one.key}: {key.run} has no file {one.file}", hint=f"it has {', '.join(known[:10]) or 'no files'}"
    )


def _at_step(store: Store, key: RunKey, one: Input, step: Step) -> Record:
    """The checkpoint of a step, and the file or folder of it that is meant."""
    checkpoint = selection.choose(store, key, step)
    place = {"attempt": checkpoint.place.attempt, "step": checkpoint.place.step}
    file = "/".join(filter(None, (checkpoint.folder, (one.file or "").strip("/"))))
    names = _saved_names(store, key.run, checkpoint.place)
    if file and not _holds(names, file):
        raise MissingError(
            f"{one.key}: the checkpoint of {key.run}@{step} has no file {one.file}",
            hint=f"it has {', '.join(names[:10])}",
        )
    return {**place, "file": file or None}


def _saved_names(store: Store, run: str, place: checkpoints.Place) -> list[str]:
    return [str(row["name"]) for row in checkpoints.read(store, run, place).record["files"]]


def _holds(names: list[str], file: str) -> bool:
    wanted = file.strip("/")
    return any(name == wanted or name.startswith(f"{wanted}/") for name in names)
