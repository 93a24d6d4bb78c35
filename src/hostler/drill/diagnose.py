"""Diagnoses what a script did not save. Pure: evidence in, findings out, worst first.

The first attempt of a killed run is undisturbed until it is killed, so differences there are not due to
a restart. Of a resumed attempt the first training step tells most: the undisturbed step with the very same
weights is the one it should be, and what else differs there was not restored.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from hostler.drill.compare import Difference, compare, without
from hostler.drill.evidence import DrillAttempt, Evidence, Sight
from hostler.frozen import dataclass

# What a drill's findings are called, and what a person can do about each.
WORDS = {
    "position": "weights, optimiser and random states are as they were, and yet it goes on differently: "
    "which data comes next was not restored, or something else that the script keeps in variables",
    "unknown": "something is not restored, but the drill cannot see what",
}

_NAMES = {
    "rng|python": "Python's random state (module random)",
    "rng|numpy": "NumPy's random state (np.random)",
    "rng|torch": "torch's random state (CPU)",
    "rng|cuda": "torch's random state (CUDA)",
}
_KINDS = {
    "optimizer": "the accumulated state of the {} (momentum, averages)",
    "groups": "the settings (learning rate and the like) of the {}",
    "state": "the state of the {}",
    "generator": "the {}",
    "weights": "the weights of the {}",
}

_SAVE = {
    "rng|python": "save random.getstate() with the checkpoint, and random.setstate() it after loading",
    "rng|numpy": "save np.random.get_state() with the checkpoint, and np.random.set_state() it after loading",
    "rng|torch": "save torch.get_rng_state() with the checkpoint, and torch.set_rng_state() it after loading",
    "rng|cuda": "save torch.cuda.get_rng_state_all() with the checkpoint, and set it after loading",
    "generator": "save the generator's state with the checkpoint, and set it after loading",
    "optimizer": "save optimizer.state_dict() with the checkpoint, and load it",
    "groups": "save the state_dict() of optimizer and scheduler with the checkpoint, and load both",
    "state": "save its state_dict() with the checkpoint, and load it",
    "weights": "save and load all weights, whole: write beside and rename",
    "position": "save the position in the data with the checkpoint (epoch and batch), and go on from there",
    "unknown": "compare what the script saves with every variable that one step hands to the next",
    "not-loaded": "at the start, load what lies in $HOSTLER_CHECKPOINT_DIR; or `resume:` in hostler.yaml",
    "skipped": "save the step that was finished, and begin with the one after it",
    "nothing-saved": "write checkpoints to $HOSTLER_CHECKPOINT_DIR and load them at the start; "
    "or hostler.start() and run.track(…)",
    "never-at-rest": "files were written to the checkpoint folder, but none was complete at a kill: "
    "write to a temporary name, then rename, or to names like checkpoint-20.pt; save earlier, or train "
    "longer; or hostler.start() and run.track(…)",
    "may-lose": "write to a temporary name, then rename; several files of one save as one file; or to names "
    "like checkpoint-20.pt; or save less often",
    "not-repeatable": "seed random, numpy and torch; PYTHONHASHSEED=0; no nondeterministic kernels",
    "seed": "seed it at the start",
}
_TRACK = {
    "rng": "hostler restores it: do not seed or draw between start() and the loop",
    "generator": "run.track(rng=…) saves it too",
    "optimizer": "run.track(optimizer=…) saves it",
    "groups": "run.track(optimizer=…, scheduler=…) saves them",
    "state": "run.track(scheduler=…) saves it, whatever it is called",
    "weights": "run.track(model=…) saves them",
    "position": "for step in run.steps(n) and run.track(loader=…) keep it",
    "not-loaded": "run.track(…) what must go on, and take the position from run.epochs(n) or run.steps(n)",
    "nothing-saved": "run.track(…) what must go on, and loop over run.epochs(n) or run.steps(n)",
    "may-lose": "let run.track(…) and run.save() write it",
    "never-at-rest": "run.save() earlier",
}


def named(mark: str) -> str:
    kind, _, label = mark.partition("|")
    return _NAMES.get(mark) or _KINDS[kind].format(label)


def advice(about: str, joined: bool) -> str:
    """Advice for a script that uses the library, or one that does not. `about`: a mark or a kind."""
    kind = about.split("|")[0]
    return _TRACK.get(kind, "") if joined and kind in _TRACK else _SAVE.get(about) or _SAVE.get(kind, "")


LOOP = 3  # a line printed this often is of the training's loop

EXACT = "exact"
DIFFERS = "differs"
NOTHING_SAVED = "nothing-saved"
MAY_LOSE = "may-lose"
NOT_LOADED = "not-loaded"
NOT_REPEATABLE = "not-repeatable"
FAILED = "failed"
UNTESTED = "untested"
MORE = "train longer: more epochs, more steps"


@dataclass(frozen=True)
class Finding:
    """A problem in a sentence, and what to do about it."""

    kind: str
    text: str
    advice: str = ""


@dataclass(frozen=True)
class Diagnosis:
    verdict: str
    findings: tuple[Finding, ...] = ()
    differences: tuple[Difference, ...] = ()
    noisy: tuple[Difference, ...] = ()  # differ between two undisturbed runs, too


def needs_control(calm: Evidence, killed: Evidence) -> bool:
    """Whether a second undisturbed run would tell more."""
    return killed.state == "done" and bool(killed.kills) and bool(compare(calm, killed))


def diagnose(calm: Evidence, killed: Evidence, control: Evidence | None = None) -> Diagnosis:
    if not killed.kills:
        text = f"the script ended before it could be killed: it takes {calm.seconds:.1f} s"
        return Diagnosis(UNTESTED, (Finding(UNTESTED, text, MORE),))
    if killed.state != "done":
        return Diagnosis(FAILED, (_failed(killed),))
    all_found = compare(calm, killed)
    noise = compare(calm, control) if control else []
    differences = without(all_found, noise)
    noisy = tuple(d for d in all_found if d not in differences)
    chance = any(attempt.at_edge for attempt in killed.tries)
    if not killed.resumed() and chance:
        return Diagnosis(MAY_LOSE, (_may_lose(calm),), tuple(differences), noisy)
    if not killed.resumed():
        return Diagnosis(NOTHING_SAVED, (_nothing_saved(calm),), tuple(differences), noisy)
    if calm.first.worked and not any(attempt.worked for attempt in killed.resumed()):
        text = "no kill came between a checkpoint and the end of the work"
        return Diagnosis(UNTESTED, (Finding(UNTESTED, text, MORE),), tuple(differences), noisy)
    again = [cause for attempt in killed.resumed() for cause in _not_loaded(calm, attempt)]
    if again:
        return Diagnosis(NOT_LOADED, tuple(again[:1]), tuple(differences), noisy)
    if not differences and not _compared(calm, noisy):
        return Diagnosis(NOT_REPEATABLE, _not_repeatable(calm, control), (), noisy)
    if not differences and chance:
        return Diagnosis(MAY_LOSE, (_may_lose(calm),), (), noisy)
    if not differences:
        return Diagnosis(EXACT, (), (), noisy)
    return Diagnosis(DIFFERS, tuple(_causes(calm, killed, control, differences)), tuple(differences), noisy)


def _failed(killed: Evidence) -> Finding:
    what = "the script fails after the restart" if killed.kills else "it fails"
    return Finding(
        FAILED, f"{what}: {killed.failure}", "see its log above; it may load an incomplete checkpoint"
    )


def _may_lose(calm: Evidence) -> Finding:
    text = (
        "files are rewritten so closely after each other that a busy machine catches none between two saves: "
        "a kill may start the script anew"
    )
    return Finding(MAY_LOSE, text, advice(MAY_LOSE, calm.joined))


def _nothing_saved(calm: Evidence) -> Finding:
    if calm.files and any(name.startswith("checkpoint/") for name in calm.files):
        text = "no checkpoint was ready at any kill: every kill starts the script anew"
        return Finding("never-at-rest", text, advice("never-at-rest", calm.joined))
    text = "nothing was saved: every kill starts the script anew"
    return Finding(NOTHING_SAVED, text, advice(NOTHING_SAVED, calm.joined))


def _compared(calm: Evidence, noisy: Sequence[Difference]) -> bool:
    """Whether anything that matters is left to compare."""
    names = {(d.what, d.name) for d in noisy}
    metrics = [n for n in calm.curves if not n.startswith("system/") and ("metric", n) not in names]
    had = [n for n in calm.curves if not n.startswith("system/")]
    files = [n for n in calm.files if ("file", n) not in names]
    if had:
        return bool(metrics)
    return bool(files) or not noisy


def _not_repeatable(calm: Evidence, control: Evidence | None) -> tuple[Finding, ...]:
    text = "two undisturbed runs differ from each other, so a killed one cannot be judged"
    seen = _unstable([(calm.first, control.first)]) if control else set()
    random = [mark for mark in sorted(seen) if mark.startswith(("rng|", "generator|"))]
    seeds = [Finding("seed", f"{named(mark)} differs in each run", advice("seed", False)) for mark in random]
    return (Finding(NOT_REPEATABLE, text, advice(NOT_REPEATABLE, False)), *seeds)


def _causes(
    calm: Evidence, killed: Evidence, control: Evidence | None, found: Sequence[Difference]
) -> Iterable[Finding]:
    pairs = [(calm.first, killed.first)] + ([(calm.first, control.first)] if control else [])
    unstable = _unstable(pairs)
    for attempt in killed.resumed():
        causes = list(_skipped(calm, attempt, found, unstable)) or list(
            _not_restored(calm, attempt, unstable)
        )
        if causes:
            yield from causes
            return
        if _diverged(calm, attempt, found):
            kind = "position" if _aligned(calm, attempt) else "unknown"
            yield Finding(kind, WORDS[kind], advice(kind, calm.joined))
            return
    yield Finding("unknown", WORDS["unknown"], advice("unknown", calm.joined))


def _diverged(calm: Evidence, one: DrillAttempt, found: Sequence[Difference]) -> bool:
    """Whether it was this attempt that left the undisturbed run's way."""
    known = [_weights(sight) for sight in calm.first.at_steps()]
    if known and one.at_steps():
        return any(_weights(sight) not in known for sight in one.at_steps())
    return any(d.step in one.steps for d in found if d.step is not None)


def _not_loaded(calm: Evidence, one: DrillAttempt) -> Iterable[Finding]:
    """Whether a resumed attempt began where the first one did."""
    again = bool(one.steps) and bool(calm.first.steps) and one.steps[0] == calm.first.steps[0]
    first, there = next(iter(one.at_steps()), None), next(iter(calm.first.at_steps()), None)
    if first is not None and there is not None:
        again = _weights(first) == _weights(there) and len(calm.first.at_steps()) > 1
    if not again:
        return
    how = f"was given checkpoint {one.restored}"
    how += f" and read {', '.join(one.opened[:3])} of it" if one.opened else ", but opened none of its files"
    text = f"attempt {one.number} {how}, but began at the beginning"
    yield Finding(NOT_LOADED, text, advice(NOT_LOADED, calm.joined))


def _skipped(
    calm: Evidence, one: DrillAttempt, found: Sequence[Difference], unstable: set[str]
) -> Iterable[Finding]:
    """Whether a resumed attempt went on at another place than it was: steps were left out or done twice."""
    missing = [
        d.step for d in found if d.what == "metric" and d.detail == "is missing" and d.step is not None
    ]
    if missing and one.steps and one.steps[0] > min(missing):
        text = f"step {min(missing)} was never done: attempt {one.number} began with step {one.steps[0]}"
        yield Finding("skipped", text, advice("skipped", calm.joined))
        return
    loop = _at_loop_line(calm.first, one)
    if loop is None:
        return
    carried = _random(loop[0], unstable)
    same = [s.key for s in calm.first.at_lines() if _random(s, unstable) == carried]
    seeded = next(iter(_loop_lines(calm.first)), None)  # where a generator stands that was only seeded again
    elsewhere = [key for key in same if key not in (loop[0].key, seeded)]
    if carried and len(same) == len(elsewhere) == 1:
        text = f"attempt {one.number} came to {loop[0].key!r} as the undisturbed run did to {elsewhere[0]!r}"
        yield Finding("skipped", f"{text}: the position is not restored", advice("skipped", calm.joined))


def _random(sight: Sight, unstable: set[str]) -> dict[str, str]:
    kinds = ("rng|", "generator|")
    return {m: value for m, value in sight.marks.items() if m.startswith(kinds) and m not in unstable}


def _not_restored(calm: Evidence, one: DrillAttempt, unstable: set[str]) -> Iterable[Finding]:
    """State of the resumed attempt that differs from the undisturbed run's."""
    pair = _aligned(calm, one)
    where = f"before the first step of attempt {one.number}"
    if pair is None and one.at_steps() and calm.first.at_steps():
        text = f"the weights {where} never occurred in the undisturbed run"
        yield Finding("weights", text, advice("weights", calm.joined))
    loop = _at_loop_line(calm.first, one)
    for here, there, at in (
        *(((*pair, where),) if pair else ()),
        *(((*loop, f"at {loop[0].key!r}, the first such line of attempt {one.number}"),) if loop else ()),
    ):
        differing = [
            mark
            for mark in sorted({*here.marks, *there.marks})
            if here.marks.get(mark) != there.marks.get(mark) and mark not in unstable
        ]
        for mark in differing:
            text = f"{named(mark)} is not restored: {at}, it differs from the undisturbed run"
            yield Finding(mark.split("|")[0], text, advice(mark, calm.joined))
        if differing:
            return


def _aligned(calm: Evidence, one: DrillAttempt) -> tuple[Sight, Sight] | None:
    """The first training step of a resumed attempt, and the undisturbed one with the same weights."""
    first = next(iter(one.at_steps()), None)
    if first is None:
        return None
    same = [sight for sight in calm.first.at_steps() if _weights(sight) == _weights(first)]
    return (first, same[-1]) if same else None


def _weights(sight: Sight) -> dict[str, str]:
    return {mark: value for mark, value in sight.marks.items() if mark.startswith("weights|")}


def _at_loop_line(calm: DrillAttempt, one: DrillAttempt) -> tuple[Sight, Sight] | None:
    """The first line of the training's loop that both printed."""
    known = _loop_lines(calm)
    return next(((sight, known[sight.key]) for sight in one.at_lines() if sight.key in known), None)


def _loop_lines(one: DrillAttempt) -> dict[str, Sight]:
    families = Counter(_family(sight.key) for sight in one.at_lines())
    return {sight.key: sight for sight in one.at_lines() if families[_family(sight.key)] >= LOOP}


def _family(key: str) -> str:
    return re.sub(r"\d+", "", key)


def _unstable(pairs: Iterable[tuple[DrillAttempt, DrillAttempt]]) -> set[str]:
    """Marks that differ between two tries before anything was killed: no restart is to blame."""
    found: set[str] = set()
    for attempt, drill_attempt in pairs:
        both = [
            *zip(attempt.at_steps(), drill_attempt.at_steps(), strict=False),
            *zip(attempt.at_lines(), drill_attempt.at_lines(), strict=False),
        ]
        for here, there in both:
            if here.key == there.key:
                found |= {m for m in here.marks if m in there.marks and here.marks[m] != there.marks[m]}
    return found
