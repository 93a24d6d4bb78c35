"""The promises, each checked in every state the search reaches.

P1 one decider per entry, one end per generation. P2 what is finished is not trained again. P3 what is
restored is whole and the newest. P4 readers show the chain, whole and once. P5 a run can always still
end. P6 the last good checkpoint stays. P7 a stop is not lost. P8 a worker that beats is not fenced. P9 who
was taken over while it slept changes no checkpoint when it wakes up.

P2, P3, P6, P7 and P9 are partly noted where the step happens (`State.broken`); P5 is the search's own; P8
is `watch.py`'s.
"""

from __future__ import annotations

from functools import lru_cache

from protocol_model.fold import entry_at, fold, known, standing
from protocol_model.lineage import chain, descends, shown
from protocol_model.rules import Rules
from protocol_model.world import NOWHERE, Case, Place, Run, State


def broken(case: Case, state: State) -> str:
    """The first promise that does not hold in this state, as 'P<n>: …', or ''."""
    if state.broken:
        return state.broken
    for run in state.runs:
        wrong = _broken_run(run, case.rules)
        if wrong:
            return wrong
    return _beliefs(state)


def ended(state: State) -> bool:
    return all(standing(run).state == "ended" for run in state.runs)


def out_of_bounds(case: Case, state: State) -> bool:
    """Nothing is promised once the environment has killed everybody, or the bound on claims is used up."""
    workers = [a for a in state.actors if not a.person]
    if all(a.up == "crashed" for a in workers) and not case.world.restarts:
        return True
    folds = [standing(run) for run in state.runs]
    return any(f.state != "ended" and f.claims >= case.world.claims for f in folds)


def _beliefs(state: State) -> str:
    for actor in state.actors:
        if actor.attempt:
            entry = entry_at(state.runs[actor.run].log, actor.attempt)
            if entry is None or entry.token != actor.claim:
                return f"P1: a worker believes that entry {actor.attempt} is its claim, and it is not"
    return ""


@lru_cache(maxsize=500_000)
def _broken_run(run: Run, rules: Rules) -> str:
    return _log(run) or _result(run) or _checkpoints(run) or _curve(run, rules)


def _log(run: Run) -> str:
    now = fold(run.log)
    return f"P1: {now.wrong}" if now.wrong else ""


def _result(run: Run) -> str:
    """Done is done with what was finished, and after a stop only by who had claimed before it."""
    last = run.log[-1] if run.log else None
    if last is None or last.kind != "end":
        return ""
    finished = run.truth.finished
    if last.result == "done" and (last.source == NOWHERE or finished not in (NOWHERE, last.source)):
        return f"P2: the end's result is {last.source}, what was finished is {finished}"
    stops = [k for k, entry in enumerate(run.log, 1) if entry and entry.kind == "stop"]
    if fold(known(run.log)[:-1]).stop and last.result == "done" and last.source[0] > stops[-1]:
        return f"P7: entry {stops[-1]} asked to stop, and attempt {last.source[0]} trained after it"
    return ""


def _checkpoints(run: Run) -> str:
    good = [s for s in run.saved if s.commit]
    newest = max(good, default=None)
    if newest and not newest.files:
        return f"P3: the newest COMMIT, {newest.place}, stands without its files"
    anchor = run.truth.anchor
    whole = [s.place for s in good if s.files]
    if anchor != NOWHERE and not any(descends(run.truth.sources, p, anchor) for p in whole):
        return f"P6: {anchor} is gone, and nothing that stems from it is left"
    return ""


def _curve(run: Run, rules: Rules) -> str:
    seen = shown(run, rules)
    steps = [step for _, step in seen]
    if len(set(steps)) < len(steps):
        return f"P4: a step is shown twice: {sorted(seen)}"
    tip = _tip(run)
    true = {first.attempt: first.source for first in run.truth.sources}
    off = set(seen) - set(chain(run, true, tip[0], tip[1] or None))
    if off:
        return f"P4: shown, but off the chain of {tip}: {sorted(off)}"
    missing = set(range(1, _covered(run, true, tip) + 1)) - set(steps)
    return f"P4: covered by a COMMIT of the chain, but not shown: steps {sorted(missing)}" if missing else ""


def _tip(run: Run) -> Place:
    """Where the true chain ends: in the result, once there is one, else in the last attempt that began."""
    last = run.log[-1] if run.log else None
    if last and last.kind == "end" and last.source != NOWHERE:
        return last.source
    return max((first.attempt for first in run.firsts), default=0), 0


def _covered(run: Run, true: dict[int, Place], tip: Place) -> int:
    own = max((s.step for s in run.saved if s.attempt == tip[0] and s.commit), default=0)
    return max(own, true.get(tip[0], NOWHERE)[1])
