"""Creating entry head+1 of a log: the put, every answer a store may give, and how they are settled.

An append is won, lost, or not yet known; it never guesses. A lost append is decided anew by its
author, from a log read again.
"""

from __future__ import annotations

from collections.abc import Iterator

from protocol_model.fold import entry_at, with_entry
from protocol_model.world import Actor, Case, Entry, State, Step, name_of


def propose(me: Actor, i: int, run: int, head: int, entry: Entry) -> Actor:
    """The actor, about to create `entry` (with a fresh token) after the `head` entries it has read."""
    serial = me.serial + 1
    return me._replace(
        run=run, head=head, pending=entry._replace(token=(i, serial)), serial=serial, unsure=False
    )


def append(case: Case, state: State, i: int) -> Iterator[Step]:
    """The next request of an actor with a pending entry."""
    return _settle(case, state, i) if state.actors[i].unsure else _send(case, state, i)


def _send(case: Case, state: State, i: int) -> Iterator[Step]:
    me = state.actors[i]
    entry, k = _pending(me), me.head + 1
    there = entry_at(state.runs[me.run].log, k)
    said = f"{name_of(state, i)} puts {_words(entry)} as entry {k}"
    if there is None or not case.rules.put_if_absent:
        yield said, _won(_write(state, me.run, k, entry), i)
        if there is None:
            yield from _faults(case, state, i, said)
    elif case.rules.settle_by_token:
        yield f"{said}: exists already", _read_back(case, state, i)
    else:
        yield f"{said}: exists already, taken as lost", _lost(case, state, i)


def _faults(case: Case, state: State, i: int, said: str) -> Iterator[Step]:
    if not state.left.faults:
        return
    me = state.actors[i]
    entry, k = _pending(me), me.head + 1
    spent = state._replace(left=state.left._replace(faults=state.left.faults - 1))
    written = _write(spent, me.run, k, entry)
    unsure = me._replace(unsure=True)
    for kind in case.world.fault_kinds:
        if kind == "lost":
            yield f"{said}: written, the answer is lost", _unknown(case, written.actor(i, unsure), i)
        elif kind == "exists":
            yield (
                f"{said}: written, but answered 'exists already'",
                _exists(case, written, i),
            )
        elif kind == "conflict":
            yield f"{said}: answered 409, nothing written", _unknown(case, spent.actor(i, unsure), i)
        elif kind == "delayed":
            late = spent._replace(flying=spent.flying | {(me.run, k, entry)})
            yield f"{said}: time-out, still on its way", _unknown(case, late.actor(i, unsure), i)


def _exists(case: Case, state: State, i: int) -> State:
    if not case.rules.settle_by_token:
        return _lost(case, state, i)
    return state.actor(i, state.actors[i]._replace(unsure=True))


def _unknown(case: Case, state: State, i: int) -> State:
    me = state.actors[i]
    if not case.rules.settle_before_next:
        return state.actor(i, me._replace(head=me.head + 1, unsure=False))
    if not case.rules.settle_by_token:
        return state.actor(i, me._replace(unsure=False))
    return state


def _settle(case: Case, state: State, i: int) -> Iterator[Step]:
    me = state.actors[i]
    there = entry_at(state.runs[me.run].log, me.head + 1)
    found = "absent" if there is None else "its own" if there.token == _pending(me).token else "another's"
    yield f"{name_of(state, i)} reads entry {me.head + 1} back: {found}", _read_back(case, state, i)


def _read_back(case: Case, state: State, i: int) -> State:
    me = state.actors[i]
    entry = _pending(me)
    there = entry_at(state.runs[me.run].log, me.head + 1)
    if there is None:
        again = me if case.rules.retry_same_token else propose(me, i, me.run, me.head, entry)
        return state.actor(i, again._replace(unsure=False))
    return _won(state, i) if there.token == entry.token else _lost(case, state, i)


def _won(state: State, i: int) -> State:
    me = state.actors[i]
    entry, k = _pending(me), me.head + 1
    if entry.kind == "claim":
        mine = me.idle()._replace(run=me.run, head=k, attempt=k, claim=entry.token)
        return state.actor(i, mine._replace(todo=(("beat",), ("choose",))))
    return state.actor(i, me.idle()._replace(wants=me.wants[1:]))


def _lost(case: Case, state: State, i: int) -> State:
    me = state.actors[i]
    entry = _pending(me)
    if me.attempt:
        if not case.rules.claim_fences:
            return state.actor(i, me._replace(head=me.head + 1, unsure=False))
        again = me._replace(pending=None, unsure=False, todo=(("reread", entry.kind, entry.result),))
        return state.actor(i, again)
    if not case.rules.redecide_after_loss:
        return state.actor(i, me._replace(head=me.head + 1, unsure=False))
    return state.actor(i, me.idle())


def _write(state: State, r: int, k: int, entry: Entry) -> State:
    run = state.runs[r]
    there = entry_at(run.log, k)
    if there is not None and there.token != entry.token:
        state = state.breaks(f"P1: entry {k} was decided twice")
    return state.run(r, run._replace(log=with_entry(run.log, k, entry)))


def land(state: State, r: int, k: int, entry: Entry) -> State:
    """A delayed put arrives: it is created if the key is still free, else refused."""
    run = state.runs[r]
    state = state._replace(flying=state.flying - {(r, k, entry)})
    if entry_at(run.log, k) is not None:
        return state
    return state.run(r, run._replace(log=with_entry(run.log, k, entry)))


def _pending(me: Actor) -> Entry:
    assert me.pending is not None
    return me.pending


def _words(entry: Entry) -> str:
    if entry.kind == "claim" and entry.over:
        return f"a claim over attempt {entry.over}"
    return f"{entry.kind} {entry.result}".strip()
