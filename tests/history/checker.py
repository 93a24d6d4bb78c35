"""A judge of what a store and its readers say after faults: `python tests/history/checker.py EVIDENCE`.

EVIDENCE is a folder with `history.jsonl`, which the recorder wrote while it happened, and `store/`, all
objects of the store as files. The judge knows the documents alone (docs/storage.md, docs/protocol.md): it
imports nothing of hostler, and decides by five rules.

    one-end   each run has one end; its log is whole, never changed, and no fenced attempt wrote in it; each
              trial of a search was asked for once, and within its budget
    fenced    readers show the winning chain's state, curve and checkpoint, and nothing of a fenced attempt,
              nor of a worker that its gang's go does not name
    steps     steps of the winning chain are without gap or repeat
    weights   the newest checkpoint is whole, with the parts of all ranks, and equal to that of the
              undisturbed run
    left      no process, machine, group, secret or file is left
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import rawpacks
import rawrecords
from rawrecords import Objects, Record, Truth, truth_of

ONE_END, FENCED, STEPS, WEIGHTS, LEFT = RULES = ("one-end", "fenced", "steps", "weights", "left")
RANKED = ("done", "pruned", "stopped")  # runs that count when the best is asked for
OWN = "system/"  # metrics of the machine: they go on while nothing is trained


@dataclass(frozen=True)
class Violation:
    rule: str
    thing: str
    said: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.thing}: {self.said}"


@dataclass(frozen=True)
class Evidence:
    events: list[Record]
    objects: Objects
    truths: dict[str, Truth]

    def of(self, what: str) -> list[Record]:
        return [event for event in self.events if event["what"] == what]

    @cached_property
    def expected(self) -> dict[str, Record]:
        """Run → what the undisturbed one is: state, curves, weights."""
        return {run: row for event in self.of("expected") for run, row in event["runs"].items()}

    @cached_property
    def of_run(self) -> dict[str, list[Record]]:
        """Run → the events that are about it alone, in their order."""
        found: dict[str, list[Record]] = {}
        for event in self.events:
            if "run" in event:
                found.setdefault(event["run"], []).append(event)
        return found


def check(folder: Path) -> list[Violation]:
    """All violations, by rule; none of a good history."""
    evidence = opened(folder)
    judges = {ONE_END: _one_end, FENCED: _fenced, STEPS: _steps, WEIGHTS: _weights, LEFT: _left}
    return [Violation(rule, thing, said) for rule in RULES for thing, said in judges[rule](evidence)]


def opened(folder: Path) -> Evidence:
    events = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
    store = folder / "store"
    raw = {p.relative_to(store).as_posix(): p.read_bytes() for p in store.rglob("*") if p.is_file()}
    objects = rawpacks.unpacked(raw)
    truths = {run: truth_of(own, sweep, run) for (sweep, run), own in rawrecords.by_run(objects).items()}
    return Evidence(events, objects, truths)


Found = Iterator[tuple[str, str]]


def _one_end(evidence: Evidence) -> Found:
    if not evidence.expected:
        yield "history", "it names no run"
    for run, wanted in evidence.expected.items():
        truth = evidence.truths.get(run)
        if truth is None:
            yield run, "it has no log"
            continue
        yield from ((run, said) for said in truth.state.broken)
        if truth.state.state != wanted["state"]:
            yield run, f"it is {truth.state.state}, not {wanted['state']}"
        if truth.state.end is not None:
            yield from ((run, said) for said in _copies(truth))
    yield from _unchanged(evidence)
    for sweep in sorted({truth.sweep for truth in evidence.truths.values()}):
        yield from ((sweep, said) for said in _trials(evidence, sweep))
    for run in sorted(set(evidence.truths) - set(evidence.expected)):
        yield run, "nobody submitted it"


def _copies(truth: Truth) -> Iterator[str]:
    """Copies of the end, for readers: that of the newest entry is there, and each is what the log says."""
    if len(truth.entries) not in truth.copies:
        yield f"the end, entry {len(truth.entries)}, has no copy under ends/, only {sorted(truth.copies)}"
    for k, copy in truth.copies.items():
        entry = truth.entries[k - 1] if k <= len(truth.entries) else {}
        if entry.get("kind") != "end" or {**copy, "token": 0} != {**entry, "token": 0}:
            yield f"ends/ has a copy {k} that is not entry {k} of the log"


def _trials(evidence: Evidence, sweep: str) -> Iterator[str]:
    """A search's journal: without a hole, within the budget, and each entry is one run that was trained."""
    spec = rawrecords.newest_spec(evidence.objects, sweep)
    trials, before = rawrecords.trials_of(evidence.objects, sweep), int(spec.get("journal_from") or 0)
    if not trials:
        return
    asked, budget = len(trials) - before, (spec.get("budget") or {}).get("runs")
    if sorted(trials) != list(range(1, len(trials) + 1)):
        yield f"its journal has a hole: entries {sorted(trials)}"
    if budget is not None and asked > budget:
        yield f"{asked} trials were asked for, its budget has {budget}"
    runs = {int(run[:7]) for run, truth in evidence.truths.items() if truth.sweep == sweep}
    if odd := sorted(runs ^ set(range(asked))):
        yield f"runs {odd} are not one trial of the journal each, which has {asked}"


def _unchanged(evidence: Evidence) -> Found:
    """Entries that were seen while it happened are still the same."""
    for event in evidence.of("entry"):
        truth = evidence.truths.get(event["run"])
        if truth is None or event["k"] > len(truth.entries):
            yield event["run"], f"entry {event['k']} was seen, and is gone"
        elif truth.entries[event["k"] - 1].get("token") != event["token"]:
            yield event["run"], f"entry {event['k']} was another when it was seen"


def _fenced(evidence: Evidence) -> Found:
    nodes = {sweep: _nodes_of(evidence, sweep) for sweep in {one.sweep for one in evidence.truths.values()}}
    for run, truth in evidence.truths.items():
        yield from ((run, said) for said in truth.broken)
        claims = {k for k, entry in enumerate(truth.entries, start=1) if entry.get("kind") == "claim"}
        for attempt, step in truth.commits:
            if attempt not in claims:
                yield run, f"checkpoint {attempt}-{step} is of an attempt that never had the run"
        yield from ((run, said) for said in _strangers(truth, nodes[truth.sweep]))
    readers = evidence.of("read")
    if not any(event["when"] == "after" for event in readers):
        yield "history", "no reader was asked afterwards"
    for event in readers:
        judge = _read_after if event["when"] == "after" else _read_meanwhile
        for run, row in event["runs"].items():
            truth = evidence.truths.get(run)
            if truth is None:
                yield run, f"{event['reader']} shows it, and it has no log"
            else:
                wanted = evidence.expected.get(run, {})
                yield from ((run, f"{event['reader']} {said}") for said in judge(row, truth, wanted))
        if "ranked" in event:
            yield from ((event["sweep"], f"{event['reader']} {said}") for said in _ranked(event, evidence))


def _nodes_of(evidence: Evidence, sweep: str) -> tuple[int, int]:
    """The fewest and the most nodes that a run of this sweep may have."""
    wanted = rawrecords.newest_spec(evidence.objects, sweep).get("resources") or {}
    nodes = int(wanted.get("nodes") or 1)
    return int(wanted.get("min_nodes") or nodes), nodes


def _strangers(truth: Truth, nodes: tuple[int, int]) -> Iterator[str]:
    """Ranks of a gang train together: only those that its go names, and none before there is one."""
    for attempt, slots in sorted(truth.gangs.items()):
        if not nodes[0] <= len(set(slots)) == len(slots) <= nodes[1]:
            yield f"the gang of attempt {attempt} went with {slots}, not {nodes[0]} to {nodes[1]} workers"
    if nodes[1] == 1:
        return
    for attempt, writers in sorted(truth.writers.items()):
        if odd := sorted(writers - set(truth.gangs.get(attempt, ())) - {rawrecords.READ_AGAIN}):
            yield f"points of attempt {attempt} are of workers {odd}, which its go does not name"
    for attempt, step in sorted(truth.commits):
        if attempt not in truth.gangs:
            yield f"checkpoint {attempt}-{step} is of a gang that was never complete"


def _read_meanwhile(row: Record, truth: Truth, wanted: Record) -> Iterator[str]:
    """At some moment the log said so, and the values are those of a run that nothing disturbs."""
    if (row["state"], row["attempts"]) not in [("queued", 0), *truth.state.prefixes]:
        yield f"said {row['state']} in attempt {row['attempts']}, which was never so"
    for name, value in row.get("metrics", {}).items():
        known = [v for _, v in wanted.get("curves", {}).get(name, [])]
        if known and not any(_same(value, v, wanted) for v in known):
            yield f"showed {name} = {value}, which no step has"


def _read_after(row: Record, truth: Truth, wanted: Record) -> Iterator[str]:
    """Each part that a reader shows is the one that the bytes lead to."""
    if "state" in row and row["state"] != truth.state.state:
        yield f"says {row['state']}, the log {truth.state.state}"
    if "attempts" in row and row["attempts"] != truth.state.attempts:
        yield f"counts {row['attempts']} attempts, the log {truth.state.attempts}"
    for name, value in row.get("metrics", {}).items():
        last = truth.curve(name)[-1:]
        if [value] != [v for _, v in last]:
            yield f"shows {name} = {value}, the winning chain has {last}"
    for name, curve in row.get("curves", {}).items():
        if [tuple(point) for point in curve] != truth.curve(name):
            yield f"shows another curve of {name} than the winning chain has"
    if "curves" in row and set(row["curves"]) != _measured(truth):
        yield f"shows curves of {sorted(row['curves'])}, the winning chain has {sorted(_measured(truth))}"
    if "files" in row and row["files"] != _hashes(truth):
        yield f"brings other files than checkpoint {truth.newest} has"

    for name, total in row.get("totals", {}).items():
        values = [v for _, v in truth.curve(name)] or [None]
        if [total[part] for part in ("min", "max", "last")] != [min(values), max(values), values[-1]]:
            yield f"shows {total} of {name}, the winning chain has other values"
    if "tried" in row and row["tried"] != _claims(truth):
        yield f"shows attempts {row['tried']}, the log {_claims(truth)}"
    kept = {f"{attempt}-{step}" for attempt, step in truth.commits}
    if odd := sorted(set(row.get("kept", ())) - kept):
        yield f"shows checkpoints {odd}, which are not there"
    if "kept" in row and truth.newest and f"{truth.newest[0]}-{truth.newest[1]}" not in row["kept"]:
        yield f"does not show checkpoint {truth.newest}"
    if "printed" in row:
        yield from _printed(row["printed"], truth)
    if "again" in row:
        yield from _read_again(row["again"], truth, wanted)


def _claims(truth: Truth) -> list[int]:
    """Numbers of the attempts, as the log has them."""
    return [k for k, entry in enumerate(truth.entries, start=1) if entry.get("kind") == "claim"]


def _printed(shown: Mapping[str, list[str]], truth: Truth) -> Iterator[str]:
    """Lines stand under the attempt that printed them (its place among the attempts), and those of the one
    that led to the end are all there."""
    claims = _claims(truth)
    for place, lines in shown.items():
        attempt = claims[int(place) - 1] if 0 < int(place) <= len(claims) else 0
        if odd := _plain(lines) - _plain(truth.printed.get(attempt, ())):
            yield f"shows {min(odd)!r} under attempt {attempt}, which did not print it"
    last = claims[-1:] or [0]
    if missing := _plain(truth.printed.get(last[0], ())) - _plain(shown.get(str(len(claims)), ())):
        yield f"leaves out {min(missing)!r}, which attempt {last[0]} printed"


def _read_again(again: Record, truth: Truth, wanted: Record) -> Iterator[str]:
    """What the run measured is known as its own, and is not taken from its output once more."""
    if odd := sorted(set(again["own"]) - _measured(truth)):
        yield f"says that the run measured {odd}, and the winning chain did not"
    if odd := sorted(set(again["metrics"]) & set(wanted.get("curves", ()))):
        yield f"takes {odd} from the output, which the run has by itself"


def _plain(lines: Sequence[str]) -> Counter[str]:
    """Lines that a terminal shows as they are, but for empty ones."""
    return Counter(line for line in lines if line and line.isprintable())


def _ranked(event: Record, evidence: Evidence) -> Iterator[str]:
    """Every run that counts is in the ranking, none else, and by the values that it ended with."""
    name = event["metric"]
    ends = {
        run: truth.curve(name)[-1][1]
        for run, truth in evidence.truths.items()
        if truth.sweep == event["sweep"] and truth.state.state in RANKED and truth.curve(name)
    }
    if sorted(event["ranked"]) != sorted(ends):
        yield f"ranks {sorted(set(event['ranked']) ^ set(ends))} wrongly: they count, or they do not"
    values = [ends[run] for run in event["ranked"] if run in ends]
    if values != sorted(values, reverse=True):
        yield f"ranks by another {name} than the winning chains have: {values}"


def _same(one: float, other: float, wanted: Record) -> bool:
    """To the bit; `near` is by how much at most, where the undisturbed run sums in another order."""
    return one == other or math.isclose(one, other, rel_tol=wanted.get("near", 0.0))


def _measured(truth: Truth) -> set[str]:
    return {name for _, values in truth.points for name in values if not name.startswith(OWN)}


def _hashes(truth: Truth) -> dict[str, str]:
    """Files of the checkpoint that counts → their hashes, as its COMMIT has them."""
    return (
        {} if truth.newest is None else {f["name"]: f["sha256"] for f in truth.commits[truth.newest]["files"]}
    )


def _steps(evidence: Evidence) -> Found:
    for run, wanted in evidence.expected.items():
        truth = evidence.truths.get(run)
        for name, curve in wanted["curves"].items() if truth else ():
            assert truth
            found, steps = truth.curve(name), [step for step, _ in curve]
            own = [step for step, _ in found]
            repeated = sorted({step for step in own if own.count(step) > 1})
            if repeated:
                yield run, f"steps {repeated} of {name} are there more than once"
            elif missing := sorted(set(steps) - set(own)):
                yield run, f"steps {missing} of {name} are missing"
            elif own != steps:
                yield run, f"steps of {name} are {own}, not {steps}"
            elif not all(_same(a, b, wanted) for (_, a), (_, b) in zip(found, curve, strict=True)):
                yield run, f"values of {name} are not those of the undisturbed run"


def _weights(evidence: Evidence) -> Found:
    for run, wanted in evidence.expected.items():
        truth = evidence.truths.get(run)
        if truth is None:
            continue
        late = _late(evidence, run, truth)
        for at, commit in truth.commits.items():
            for file in commit["files"] if at not in late else ():
                if said := _damage(evidence.objects, run, at, file):
                    yield run, f"checkpoint {at[0]}-{at[1]}, {file['name']}: {said}"
        yield from ((run, said) for said in _parts_missing(truth))
        judged = re.compile(wanted.get("judged", ""))  # files that have nothing of the machine in them
        own = {name: value for name, value in _hashes(truth).items() if judged.search(name)}
        if own != wanted["weights"]:
            yield run, f"checkpoint {truth.newest} has {own}, the undisturbed run {wanted['weights']}"
        if "result" in wanted and (truth.state.end or {}).get("result") != wanted["result"]:
            result = (truth.state.end or {}).get("result")
            yield run, f"its result is {result}, the undisturbed run's {wanted['result']}"


def _late(evidence: Evidence, run: str, truth: Truth) -> set[tuple[int, int]]:
    """Checkpoints whose COMMIT came when a later attempt had the run, which has one itself: its writer slept
    before that last request, and the later attempt may have deleted their files as those of a save that was
    cut off. Readers take the later attempt's."""
    newest_claim, late = 0, set[tuple[int, int]]()
    for event in evidence.of_run.get(run, ()):
        if event["what"] == "entry" and event["kind"] == "claim":
            newest_claim = max(newest_claim, event["k"])
        elif event["what"] == "saved" and event["attempt"] < newest_claim:
            late.add((event["attempt"], event["step"]))
    newest = max((attempt for attempt, _ in truth.commits), default=0)
    return {at for at in late if at[0] < newest}


PART = re.compile(r"step-([\d.]+)/state-(\d+)\.json")


def _parts_missing(truth: Truth) -> Iterator[str]:
    """A checkpoint that several ranks wrote has the part of each."""
    for (attempt, step), commit in sorted(truth.commits.items()):
        parts: dict[str, set[int]] = {}
        for match in filter(None, (PART.fullmatch(file["name"]) for file in commit["files"])):
            parts.setdefault(match[1], set()).add(int(match[2]))
        nodes = len(truth.gangs.get(attempt, [0]))
        for name, ranks in parts.items():
            if len(ranks) % nodes or ranks != set(range(len(ranks))):
                yield f"checkpoint {attempt}-{step}: {name} has parts of {sorted(ranks)} of {nodes} nodes"


def _damage(objects: Objects, run: str, at: tuple[int, int], file: Mapping[str, Any]) -> str:
    if file.get("link"):
        return ""
    numbers = range(file["n"], file["n"] + int(file.get("parts") or 1))
    parts = [objects.get(rawrecords.checkpoint_key(run, at, n)) for n in numbers]
    if None in parts:
        return "it is named in COMMIT and is not there"
    data = b"".join(part or b"" for part in parts)
    if "at" in file:  # one of several in an object
        data = data[file["at"] :][: file["size"]]
    return "" if hashlib.sha256(data).hexdigest() == file["sha256"] else "its bytes are not those of COMMIT"


SAVE = re.compile(r"runs/([^/]+)/checkpoints/(\d+)-(\d+)/")

# Keys that must not be there once everything has ended, and what they are a sign of.
PASSING = {
    r"secrets/.*": "a secret",
    r"interest\.json": "a mark of a reader that has gone",
}


def _left(evidence: Evidence) -> Found:
    events = evidence.of("left")
    if not events:
        yield "history", "nobody looked for what was left"
    for event in events:
        for kind in ("processes", "files", "machines", "groups", "mounts"):
            yield from ((kind, f"{one} is left") for one in event.get(kind, ()))
    for key in sorted(evidence.objects):
        for pattern, name in PASSING.items():
            if re.fullmatch(pattern, key):
                yield key, f"{name} is left"
    yield from _launches(evidence.objects)
    yield from _half_made(evidence.objects)


def _launches(objects: Objects) -> Found:
    """A launch that began machines says that they are gone."""
    for key in sorted(objects):
        match = re.fullmatch(r"(fleets/[^/]+/\d+/)spec\.json", key)
        if match and f"{match[1]}gone.json" not in objects:
            yield key, "a launch is left whose machines nobody has seen gone"


def _half_made(objects: Objects) -> Found:
    """Files of a save that was cut off, although its attempt has saved again since."""
    found = {m[0]: (m[1], int(m[2]), int(m[3])) for key in objects if (m := SAVE.match(key))}
    whole = {at for folder, at in found.items() if f"{folder}COMMIT" in objects or f"{folder}KEEP" in objects}
    newest: dict[tuple[str, int], int] = {}
    for run, attempt, step in whole:
        newest[run, attempt] = max(step, newest.get((run, attempt), step))
    for folder, (run, attempt, step) in sorted(found.items()):
        if step < newest.get((run, attempt), step) and (run, attempt, step) not in whole:
            yield folder, "files of a save that was cut off are left"


def main(words: Sequence[str]) -> int:
    found = check(Path(words[0]))
    for violation in found:
        print(violation)
    print(f"{len(opened(Path(words[0])).truths)} runs, {len(found)} violations")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
