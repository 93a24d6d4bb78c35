"""What befalls the workers: SIGKILL, SIGSTOP and SIGCONT, preemption, restarts, delayed writes, a person.

A store that cannot be reached for a while is a worker that is frozen for a while: neither sends
anything, and both find out later what happened meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator

from protocol_model.append import append, land, propose
from protocol_model.fold import known, standing
from protocol_model.world import Actor, Case, Entry, State, Step, name_of


def environment_steps(case: Case, state: State) -> Iterator[Step]:
    for r, k, entry in sorted(state.flying):
        yield f"the delayed put of entry {k} arrives", land(state, r, k, entry)
    for i, actor in enumerate(state.actors):
        if not actor.person:
            yield from _befalls(case, state, i, actor)


def person_steps(case: Case, state: State, i: int) -> Iterator[Step]:
    """A person who wants to stop or reopen run 1: reads its log, then appends what fits its state."""
    me = state.actors[i]
    if me.pending is not None:
        yield from append(case, state, i)
    elif me.wants:
        run = state.runs[0]
        entry = _wish(case, state, me.wants[0])
        said = f"the person wants to {me.wants[0]}, reads the log: {standing(run).state}"
        if entry is None:
            yield f"{said}, nothing to do", state.actor(i, me._replace(wants=me.wants[1:]))
        else:
            yield said, state.actor(i, propose(me, i, 0, len(known(run.log)), entry))


def _wish(case: Case, state: State, verb: str) -> Entry | None:
    now = standing(state.runs[0])
    if verb == "stop":
        if now.state == "queued":
            return Entry("end", (0, 0), result="stopped")
        return Entry("stop", (0, 0)) if now.state == "running" and not now.stop else None
    if now.state == "ended" and now.result == "stopped":
        return Entry("reopen", (0, 0))
    return None if case.rules.reopen_needs_end or now.state == "ended" else Entry("reopen", (0, 0))


def _befalls(case: Case, state: State, i: int, actor: Actor) -> Iterator[Step]:
    who, left = name_of(state, i), state.left
    busy = actor.up == "up" and (actor.attempt or actor.pending)
    if busy and left.crashes:
        dead = actor.idle()._replace(up="crashed")
        yield f"{who} is killed", state._replace(left=left._replace(crashes=left.crashes - 1)).actor(i, dead)
    if busy and left.freezes:
        cold = actor._replace(up="frozen")
        yield f"{who} freezes", state._replace(left=left._replace(freezes=left.freezes - 1)).actor(i, cold)
    if busy and left.preemptions and actor.attempt and not (actor.todo or actor.pending or actor.stopping):
        told = actor._replace(todo=(("release",),))
        fewer = left._replace(preemptions=left.preemptions - 1)
        yield f"{who} is told that it will be preempted", state._replace(left=fewer).actor(i, told)
    if actor.up == "frozen":
        overtaken = actor.attempt > 0 and standing(state.runs[actor.run]).holder != actor.attempt
        yield f"{who} wakes up", state.actor(i, actor._replace(up="up", late=True, overtaken=overtaken))
    if actor.up == "crashed" and case.world.restarts:
        start = actor.start + case.rules.new_session_each_start
        yield f"{who} is started again", state.actor(i, actor.idle()._replace(start=start))
