"""Compares an edited file with the sweep in the store and decides which runs are new: a pure decision.

Runs that are in the file again keep index and id; what is new gets indices after all that were given out;
runs that left the file are dropped unless they have started. A file without a run of the sweep is not an edit
of it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any

from hostler.errors import UsageError
from hostler.frozen import dataclass
from hostler.spec import spans
from hostler.spec.job import Job, mark
from hostler.spec.params import flatten
from hostler.spec.rounds import Round
from hostler.spec.scalars import text
from hostler.spec.space import LARGEST, Listed
from hostler.spec.spans import Spans


@dataclass(frozen=True)
class Edit:
    """A sweep as it will be. Indices are those of `job`."""

    job: Job
    new: Spans  # given out by this edit
    kept: Spans  # there already, and in the file
    dropped: Spans  # not started, and in the file no longer: will not be
    left: Spans  # started, and in the file no longer: they stay

    @property
    def runs(self) -> int:
        """How many runs the file has."""
        return len(self.new) + len(self.kept)


def first(job: Job) -> Edit:
    """The sweep of a file that was never submitted: its one round, as it is."""
    check_size(job)
    return Edit(job, spans.whole(job.count), Spans(), Spans(), Spans())


def edit(
    old: Job, job: Job, started: Collection[int], gone: Collection[int] = (), *, anew: bool = False
) -> Edit:
    """`job` has the file's one round; `started` are indices with a log, `gone` those in the trash. `anew`:
    the old one is given up, so it need not have anything in common."""
    wanted = job.rounds[0]
    if not gone and _same(old, wanted):
        return _unchanged(old, job)
    there = {_short(old.mark(i)): i for i in range(old.count) if i not in gone}
    kept, cells = _matched(old.name, wanted, there)
    if not kept and not anew and any(i not in old.dropped for i in there.values()):
        raise UsageError(*_another(old, job, bool(started)))
    fresh = Round(wanted.space, spans.of(cells), wanted.command)
    both = (*old.rounds, fresh) if cells else old.rounds
    absent = [i for i in range(old.count) if i not in kept and i not in gone]
    unstarted = [i for i in absent if i not in started]
    merged = replace(job, **{**_past(old), "rounds": both, "dropped": spans.of(unstarted)})
    check_size(merged)
    return Edit(
        job=merged,
        new=spans.of(range(old.count, merged.count)),
        kept=spans.of(sorted(kept)),
        dropped=spans.of(i for i in unstarted if i not in old.dropped),
        left=spans.of(i for i in absent if i in started),
    )


def added(old: Job, job: Job, gone: Collection[int] = ()) -> Edit:
    """The sweep with the runs of `job` that it has not, and all that it has: nothing is dropped."""
    wanted = job.rounds[0]
    there = {_short(old.mark(i)): i for i in range(old.count) if i not in gone}
    kept, cells = _matched(old.name, wanted, there)
    calls = Listed(tuple(wanted.space.params(cell) for cell in cells))
    both = (*old.rounds, Round(calls, spans.whole(calls.count), wanted.command)) if cells else old.rounds
    merged = replace(job, **{**_past(old), "rounds": both})
    check_size(merged)
    new = spans.of(range(old.count, merged.count))
    return Edit(merged, new, spans.of(sorted(kept)), Spans(), Spans())


def searched(old: Job, job: Job) -> Edit:
    """The same where one of them learns, and so has the runs of a journal: method, space and command stay as
    they are once it has begun."""
    search = json.loads(json.dumps(job.search))  # as it comes back from the store
    same = (old.method, old.command, old.search) == (job.method, job.command, search)
    begun = bool(old.runs) if old.search else bool(old.count)
    if not same and begun:
        raise UsageError(
            f"{old.name} has begun, and this file changes its method, command or parameters",
            "give it another name, or hostler sweep -o puts the old one in the trash first",
        )
    merged = replace(job, runs=old.runs if old.search else (), **_past(old))
    kept = spans.of(range(old.searched_from, merged.count))
    return Edit(merged, Spans(), kept, Spans(), Spans())


def instead(old: Job, job: Job, started: Collection[int]) -> Edit:
    """The file in place of a sweep that lies in the trash; what of that has not started is dropped. A search
    begins anew, with none of the old runs; its journal goes on after theirs."""
    given_up = written_down(old)
    if not job.search:
        return edit(given_up, job, started, started, anew=True)
    unstarted = spans.of(i for i in range(given_up.count) if i not in started)
    merged = replace(job, runs=(), **{**_past(given_up), "dropped": unstarted})
    new_ones = spans.of(i for i in unstarted if i not in old.dropped)
    return Edit(merged, Spans(), Spans(), new_ones, Spans())


def written_down(old: Job) -> Job:
    """A sweep whose search is over: what its journal held is a round of its own."""
    if not old.search:
        return old
    chosen = Round(Listed(old.runs), spans.whole(len(old.runs)), old.command)
    both = (*old.rounds, chosen) if old.runs else old.rounds
    return replace(old, rounds=both, search={}, runs=(), journal_from=old.journal_from + len(old.runs))


def _past(old: Job) -> dict[str, Any]:
    """The rounds and settings that every later version of a sweep keeps."""
    return {
        "name": old.name,
        "rounds": old.rounds,
        "dropped": old.dropped,
        "journal_from": old.journal_from,
    }


def check_size(job: Job) -> None:
    if job.count > LARGEST:
        raise UsageError(
            f"{job.count:,} runs are too many: a sweep has at most {LARGEST:,}",
            hint="fewer values, or method: random with budget: {runs: N}",
        )


def _same(old: Job, wanted: Round) -> bool:
    """Whether the newest round was of this very file, and nothing of it was there before."""
    newest = old.rounds[-1] if old.rounds else None
    return newest is not None and len(old.rounds) == 1 and _text(newest) == _text(wanted)


def _text(one: Round) -> str:
    return json.dumps(one.to_json(), sort_keys=True)


def _unchanged(old: Job, job: Job) -> Edit:
    merged = replace(job, **{**_past(old), "dropped": Spans()})
    return Edit(merged, Spans(), spans.whole(old.count), Spans(), Spans())


def _matched(name: str, wanted: Round, there: dict[int, int]) -> tuple[set[int], list[int]]:
    """Indices of runs that the file has again, and cells that are new; of equal cells the first."""
    kept: set[int] = set()
    cells: list[int] = []
    seen: set[int] = set()
    for n, cell in enumerate(wanted.cells):
        key = _short(mark(name, wanted.command, wanted.params(n), wanted.repeat(n)))
        if key in there:
            kept.add(there[key])
        elif key not in seen:
            seen.add(key)
            cells.append(cell)
    return kept, cells


def _short(digest: str) -> int:
    """Sixteen digits of a hash are enough to tell millions apart, in a tenth of the memory."""
    return int(digest[:16], 16)


def _another(old: Job, job: Job, started: bool) -> tuple[str, str]:
    """Why this is another sweep of the same name, in words, and what to do."""
    why = "; ".join(_differences(old, job)) or "none of the sweep's runs is in the file"
    what = "would change runs that have started" if started else "has other runs"
    return (
        f"the sweep {old.name!r} exists already, and this file {what}: {why}",
        "give it another name, or hostler sweep -o puts the old one in the trash first",
    )


def _differences(old: Job, job: Job) -> Iterator[str]:
    then, now = old.rounds[-1] if old.rounds else None, job.rounds[0]
    command = then.command if then else old.command
    if command != now.command:
        yield f"the command was {' '.join(command)} and is now {' '.join(now.command)}"
    if not then or not then.count or not now.count:
        return
    before, after = _constants(then), _constants(now)
    for key in sorted(before.keys() | after.keys()):
        one, other = before.get(key), after.get(key)
        if key in before and key in after and one != other:
            yield f"{key} was {text(one)} and is now {text(other)}"
        elif key in before and key not in flatten(now.params(0)):
            yield f"{key} is gone"
        elif key in after and key not in flatten(then.params(0)):
            yield f"{key} is new"


def _constants(one: Round) -> dict[str, object]:
    """Parameters that the first, the last and some runs between share: for a message, not a decision."""
    some = [flatten(one.params(n)) for n in range(0, one.count, max(1, one.count // 50))]
    some.append(flatten(one.params(one.count - 1)))
    return {k: v for k, v in some[0].items() if all(k in other and other[k] == v for other in some)}
