"""A worker's requests about checkpoints: save, choose, restore, delete.

An attempt goes on from the newest good COMMIT; it deletes its own beyond `keep`, those of earlier
attempts once it has `keep` good ones itself, and those of later attempts never.
"""

from __future__ import annotations

from protocol_model.fold import fold, known
from protocol_model.lineage import descends
from protocol_model.world import (
    NOWHERE,
    Actor,
    Case,
    First,
    Place,
    Request,
    Run,
    Saved,
    State,
    Step,
    name_of,
)


def upload(state: State, i: int, step: int) -> State:
    me = state.actors[i]
    run = state.runs[me.run]
    there = _folder(run, (me.attempt, step))
    return state.run(me.run, _with(run, there._replace(files=True)))


def commit(case: Case, state: State, i: int, step: int, mark: str) -> State:
    me = state.actors[i]
    state = _awake(state, me, f"writes the {mark} of step {step}")
    run = state.runs[me.run]
    place = (me.attempt, step)
    run = _with(run, _folder(run, place)._replace(commit=mark))
    if fold(known(run.log)).holder == me.attempt:
        finished = place if mark == "finished" else run.truth.finished
        run = run._replace(truth=run.truth._replace(anchor=place, finished=finished))
    source = place if mark == "finished" else me.source
    todo = retention(case, run, me.attempt) + me.todo
    return state.run(me.run, run).actor(i, me._replace(todo=todo, source=source))


def retention(case: Case, run: Run, attempt: int) -> tuple[Request, ...]:
    """The deletions that an attempt has to send now."""
    own = sorted(s.step for s in run.saved if s.attempt == attempt and s.commit)
    enough = len(own) >= case.world.keep
    doomed = [(attempt, step) for step in own[: -case.world.keep]]
    for s in sorted(run.saved):
        earlier = s.attempt < attempt and (enough or not case.rules.keep_until_own)
        later = s.attempt > attempt and enough and not case.rules.keep_later_attempts
        if earlier or later:
            doomed.append(s.place)
    verbs = ("uncommit", "erase") if case.rules.commit_first_on_delete else ("erase", "uncommit")
    return tuple((verb, *place) for place in doomed for verb in verbs)


def erase(state: State, i: int, verb: str, place: Place) -> State:
    """Takes COMMIT (uncommit) or the files (erase) of a checkpoint away."""
    me = state.actors[i]
    state = _awake(state, me, f"deletes from {place}")
    if place[0] > me.attempt:
        state = state.breaks(f"P6: attempt {me.attempt} deletes from {place}, a later attempt's checkpoint")
    run = state.runs[me.run]
    there = _folder(run, place)
    left = there._replace(commit="") if verb == "uncommit" else there._replace(files=False)
    return state.run(me.run, _with(run, left))


def choose(case: Case, state: State, i: int) -> Step:
    """Lists the COMMITs and makes up its mind: end what is finished or to be stopped, else go on."""
    me = state.actors[i]
    run = state.runs[me.run]
    newest = _newest(case, run)
    source = newest.place if newest else NOWHERE
    said = f"{name_of(state, i)} lists the checkpoints, the newest is {source if newest else 'none'}"
    sources = {first for first in run.truth.sources if first.attempt != me.attempt}
    truth = run.truth._replace(sources=frozenset({*sources, First(me.attempt, source)}))
    todo: tuple[Request, ...]
    if newest and newest.commit == "finished" and case.rules.finished_commit_ends:
        said, todo, step = f"{said}, finished", (("first",), ("end", "done")), newest.step
        todo = todo if case.rules.ender_names_source else todo[1:]
    elif fold(known(run.log)[: me.attempt]).stop and case.rules.stop_seen_by_taker:
        return f"{said}; a stop request stands", state.actor(i, me._replace(todo=(("end", "stopped"),)))
    else:
        anchor = run.truth.anchor
        if anchor != NOWHERE and not descends(run.truth.sources, source, anchor):
            state = state.breaks(f"P3: attempt {me.attempt} goes on from {source}, not from {anchor}")
        if not newest:
            state = _starts(state, me, run)
        todo, step = (("restore", *source) if newest else ("first",),), source[1]
    state = state.run(me.run, run._replace(truth=truth))
    return said, state.actor(i, me._replace(source=source, step=step, todo=todo))


def restore(case: Case, state: State, i: int) -> Step:
    me = state.actors[i]
    run = state.runs[me.run]
    said = f"{name_of(state, i)} restores {me.source}"
    if _folder(run, me.source).files:
        return said, _starts(state, me, run).actor(i, me._replace(todo=(("first",),)))
    if not case.rules.vanished_is_not_damage:
        return f"{said}: files are gone", state.breaks(f"P3: {me.source} is reported as damaged")
    return f"{said}: files are gone", state.actor(i, me._replace(todo=(("recheck",),)))


def recheck(state: State, i: int) -> Step:
    """Files were missing: without its COMMIT the checkpoint was deleted, and that is no damage."""
    me = state.actors[i]
    said = f"{name_of(state, i)} looks for COMMIT of {me.source} again"
    if _folder(state.runs[me.run], me.source).commit:
        return f"{said}: there", state.breaks(f"P3: {me.source} has a COMMIT and no files: damaged")
    return f"{said}: gone, chooses again", state.actor(i, me._replace(todo=(("choose",),)))


def _starts(state: State, me: Actor, run: Run) -> State:
    """The user's process starts: here it shows whether it should have."""
    if run.truth.finished[0] and run.truth.finished[0] < me.attempt:
        state = state.breaks(f"P2: attempt {me.attempt} trains what attempt {run.truth.finished[0]} finished")
    if fold(known(run.log)[: me.attempt]).stop:
        state = state.breaks(f"P7: attempt {me.attempt} trains although a stop stood before its claim")
    return state


def _awake(state: State, me: Actor, does: str) -> State:
    if not me.overtaken:
        return state
    return state.breaks(f"P9: attempt {me.attempt} was taken over while it slept, wakes up and {does}")


def _newest(case: Case, run: Run) -> Saved | None:
    good = [s for s in run.saved if s.commit]
    if case.rules.newest_by_attempt_then_step:
        return max(good, key=lambda s: (s.attempt, s.step), default=None)
    return max(good, key=lambda s: (s.step, s.attempt), default=None)


def _folder(run: Run, place: Place) -> Saved:
    found = [s for s in run.saved if s.place == place]
    return found[0] if found else Saved(*place, files=False, commit="")


def _with(run: Run, new: Saved) -> Run:
    others = frozenset(s for s in run.saved if s.place != new.place)
    return run._replace(saved=others | {new} if new.files or new.commit else others)
