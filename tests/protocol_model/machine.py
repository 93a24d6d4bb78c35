"""A worker: it takes a run, goes on from its newest checkpoint, trains, saves, and ends it.

Between two store requests a worker only remembers (`Actor`). `todo` is the list of requests it has
made up its mind to send; when it is empty the worker decides anew. One step is one request, so that
anything may happen between any two of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from protocol_model.append import append, propose
from protocol_model.checkpoint import choose, commit, erase, recheck, restore, retention, upload
from protocol_model.fold import entry_at, fold, known, standing
from protocol_model.world import Actor, Case, Entry, First, Request, Run, State, Step, name_of

FENCED = ("commit", "uncommit", "erase", "end")


def worker_steps(case: Case, state: State, i: int) -> Iterator[Step]:
    """Every request that worker i may send next."""
    me = state.actors[i]
    if me.pending is not None:
        yield from append(case, state, i)
    elif me.late and case.rules.late_reads_head and me.todo and me.todo[0][0] in FENCED:
        yield _look_at_head(state, i, "being late")
    elif me.todo:
        yield from _request(case, state, i)
    elif me.attempt:
        yield from _train(case, state, i)
    else:
        yield from _look_for_work(case, state, i)


def _look_for_work(case: Case, state: State, i: int) -> Iterator[Step]:
    me = state.actors[i]
    who = name_of(state, i)
    for r, run in enumerate(state.runs):
        now = standing(run)
        free = now.state == "queued" or (
            now.state == "running"
            and (_stale(case, state, run, now.holder) or _outlives(case, i, run, now.holder))
        )
        if free and now.claims < case.world.claims:
            claim = Entry("claim", (0, 0), session=(i, me.start), over=now.holder)
            why = f"attempt {now.holder}'s heartbeat stands still" if now.holder else "queued"
            found = propose(me, i, r, len(known(run.log)), claim)
            yield f"{who} reads the log of run {r + 1}: {why}", state.actor(i, found)
    if not case.rules.stays_while_held and all(standing(run).state != "queued" for run in state.runs):
        yield f"{who} leaves: nothing is queued", state.actor(i, me.idle()._replace(up="left"))


def _stale(case: Case, state: State, run: Run, holder: int) -> bool:
    """What a watch of a whole lease concludes; `watch.py` shows that it never errs on a live worker."""
    claim = entry_at(run.log, holder)
    assert claim is not None
    session = claim.session
    worker = state.actors[session[0]]
    if session not in state.beats and not case.rules.unseen_beat_is_still:
        return False
    return worker.start != session[1] or worker.up != "up"


def _outlives(case: Case, i: int, run: Run, holder: int) -> bool:
    """A later tenant of the holder's place takes it for dead at any moment, whether it is or not."""
    claim = entry_at(run.log, holder)
    return case.world.tenants and claim is not None and claim.session[0] < i


def _train(case: Case, state: State, i: int) -> Iterator[Step]:
    me = state.actors[i]
    if entry_at(state.runs[me.run].log, me.head + 1) is not None:
        yield _look_at_head(state, i, "beating")
    if me.stopping:
        yield from _request(case, _plan(state, i, (("end", "stopped"),)), i)
        return
    step = me.step + 1
    trained = state.actor(i, me._replace(step=step))
    if step == case.world.steps:
        plans = [(*_saving(case, step, "finished"), ("end", "done"))]
    else:
        plans = [_saving(case, step, "COMMIT")] + [(("log", step),)] * case.world.may_skip_saves
    for plan in plans:
        for said, after in _request(case, _plan(trained, i, plan), i):
            yield f"{name_of(state, i)} trains step {step}; {said}", after


def _saving(case: Case, step: int, mark: str) -> tuple[Request, ...]:
    """The writes of one saved step, in order: metrics, files, COMMIT."""
    log: Request = ("log", step)
    files: Request = ("upload", step)
    seal: Request = ("commit", step, mark)
    if not case.rules.commit_last:
        return log, seal, files
    return (log, files, seal) if case.rules.metrics_before_commit else (files, seal, log)


def _look_at_head(state: State, i: int, why: str) -> Step:
    """A stop request is heard; any other entry means that the run is not ours any more."""
    me = state.actors[i]
    k = me.head + 1
    there = entry_at(state.runs[me.run].log, k)
    said = f"{name_of(state, i)}, {why}, reads entry {k}: "
    if there is None:
        return f"{said}absent", state.actor(i, me._replace(late=False))
    if there.kind == "stop":
        return f"{said}stop", state.actor(i, me._replace(head=k, stopping=True))
    return f"{said}{there.kind}, gives up", state.actor(i, me.idle())


def _request(case: Case, state: State, i: int) -> Iterator[Step]:
    """Sends the first request of the list."""
    me = state.actors[i]
    verb, *rest = me.todo[0]
    args = [a for a in rest if isinstance(a, int)]
    words = [a for a in rest if isinstance(a, str)]
    who = name_of(state, i)
    after = state.actor(i, me._replace(todo=me.todo[1:]))
    if verb == "end" and not case.rules.end_is_log_entry:
        yield f"{who} writes ends/: {words[0]}", _end_by_copy(after, i, words[0])
    elif verb in ("end", "release"):
        source = me.source if me.step == case.world.steps and words == ["done"] else (0, 0)
        last = Entry(str(verb), (0, 0), attempt=me.attempt, result="".join(words), source=source)
        yield from append(case, after.actor(i, propose(after.actors[i], i, me.run, me.head, last)), i)
    elif verb == "reread":
        yield _reread(after, i, words)
    elif verb == "beat":
        yield f"{who} writes its heartbeat", after._replace(beats=after.beats | {(i, me.start)})
    elif verb == "choose":
        yield choose(case, after, i)
    elif verb == "restore":
        yield restore(case, after, i)
    elif verb == "recheck":
        yield recheck(after, i)
    elif verb == "first":
        yield f"{who} writes its first fragment, naming {me.source}", _first(case, after, i)
    elif verb == "log":
        yield f"{who} writes the metrics of step {args[0]}", _log(after, i, args[0])
    elif verb == "upload":
        yield f"{who} uploads the files of {(me.attempt, args[0])}", upload(after, i, args[0])
    elif verb == "commit":
        yield f"{who} writes {words[0]} of {(me.attempt, args[0])}", commit(case, after, i, args[0], words[0])
    else:
        yield (
            f"{who} deletes {'COMMIT' if verb == 'uncommit' else 'files'} of {tuple(args)}",
            erase(after, i, str(verb), (args[0], args[1])),
        )


def _reread(state: State, i: int, words: list[str]) -> Step:
    """The append of an end or release was lost: still ours if only a stop request came between."""
    me = state.actors[i]
    log = known(state.runs[me.run].log)
    said = f"{name_of(state, i)} reads the log again: "
    if fold(log).holder != me.attempt:
        return f"{said}not its run any more, gives up", state.actor(i, me.idle())
    result = "done" if words[-1] == "done" else "stopped"
    todo: tuple[Request, ...] = (("end", result),)
    return f"{said}a stop request", state.actor(i, me._replace(head=len(log), todo=todo, stopping=True))


def _first(case: Case, state: State, i: int) -> State:
    me = state.actors[i]
    run = state.runs[me.run]
    state = state.run(me.run, run._replace(firsts=run.firsts | {First(me.attempt, me.source)}))
    if me.todo:  # it found the run finished, and only ends it
        return state
    return state.actor(i, me._replace(todo=retention(case, state.runs[me.run], me.attempt)))


def _log(state: State, i: int, step: int) -> State:
    me = state.actors[i]
    run = state.runs[me.run]
    return state.run(me.run, run._replace(points=run.points | {(me.attempt, step)}))


def _end_by_copy(state: State, i: int, result: str) -> State:
    me = state.actors[i]
    run = state.runs[me.run]
    if standing(run).holder != me.attempt or run.copy:
        state = state.breaks(f"P1: attempt {me.attempt} ended a run that it did not hold")
    return state.run(me.run, run._replace(copy=result)).actor(i, me.idle())


def _plan(state: State, i: int, todo: tuple[Request, ...]) -> State:
    me: Actor = state.actors[i]
    return state.actor(i, me._replace(todo=todo))
