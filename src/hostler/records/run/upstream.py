"""Runs that other runs take something from: whether they are over, which is the best, what was taken.

What a run takes is decided once, by its first attempt, and written down: later attempts take the same.
"""

from __future__ import annotations

from hostler.errors import MissingError, UsageError
from hostler.records import layout
from hostler.records.body import PART, TABLE, TEXT, WHOLE, Record, checked, checked_rows, decode, encode
from hostler.records.checkpoint import checkpoints, outputs
from hostler.records.rows import rows
from hostler.records.run import control, resolve
from hostler.records.run.log import RunKey
from hostler.records.sweep import sweeps
from hostler.records.sweep.queue import Queue
from hostler.records.sweep.summary import ranked
from hostler.spec.inputs import Input, all_inputs
from hostler.spec.job import Job, Objective
from hostler.spec.states import DONE
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
    """What a sweep takes from is there; an error that names it otherwise."""
    for one in all_inputs(job):
        if one.best_of:
            upstream = sweeps.load(store, resolve.sweep(store, one.best_of))
            if upstream.metric is None:
                raise UsageError(
                    f"{one.shown}: it has no metric to go by", hint="metric: in its file, or name a run of it"
                )
        else:
            resolve.run(store, str(one.run))


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


def _is_over(store: Store, one: Input) -> bool:
    if one.run:
        return control.state_of(store, resolve.run(store, one.run)).ended
    job = sweeps.load(store, resolve.sweep(store, str(one.best_of)))
    if job.unchosen:
        return False
    return not Queue(store, job).open(whole=True)


def _exactly(store: Store, one: Input) -> Record:
    key = best(store, one.best_of) if one.best_of else resolve.run(store, str(one.run))
    state = control.state_of(store, key)
    if one.run and state.state != DONE:
        raise MissingError(
            f"{one.key} is {one.shown}, which is {state.state}", hint=f"hostler show {key.run}"
        )
    place = _place(store, key, one)
    return {"run": key.run, "sweep": key.sweep, "file": one.file, **place}


def best(store: Store, word: str | None) -> RunKey:
    """The best finished run of a sweep by its own metric; of equal ones the first."""
    job = sweeps.load(store, resolve.sweep(store, str(word)))
    if job.metric is None:
        raise UsageError(
            f"{job.name} has no metric to go by", hint="metric: in its file, or name a run of it"
        )
    done = [row for row in rows(store, [job.name], touched=True, say=_pass_over) if row.state == DONE]
    found = ranked(job, done, Objective(job.metric, job.goal))
    if not found:
        raise MissingError(
            f"no finished run of {job.name} has logged {job.metric}", hint=f"hostler status {job.name}"
        )
    return found[0][1].key


def _pass_over(line: str) -> None:
    """A run that cannot be read is not the best one."""


def _place(store: Store, key: RunKey, one: Input) -> Record:
    """A named file is one of its outputs, or of its newest checkpoint; without a name, that checkpoint."""
    left = outputs.newest(store, key.run)
    saved = checkpoints.committed(store, key.run)
    names = [row["name"] for row in left[1]] if left else []
    if left and (not saved if one.file is None else _holds(names, one.file)):
        return {"outputs": left[0]}
    if saved and (one.file is None or _holds(_saved_names(store, key.run, saved[0]), one.file)):
        return {"attempt": saved[0].attempt, "step": saved[0].step}
    if one.file is None:
        raise MissingError(
            f"{one.key}: {one.shown} left no checkpoint and no outputs", f"hostler show {key.run}"
        )
    known = [*names, *(_saved_names(store, key.run, saved[0]) if saved else [])]
    raise MissingError(
        f"{one.key}: {key.run} left no {one.file}", hint=f"it left {', '.join(known[:10]) or 'nothing'}"
    )


def _saved_names(store: Store, run: str, place: checkpoints.Place) -> list[str]:
    return [str(row["name"]) for row in checkpoints.read(store, run, place).record["files"]]


def _holds(names: list[str], file: str) -> bool:
    wanted = file.strip("/")
    return any(name == wanted or name.startswith(f"{wanted}/") for name in names)
