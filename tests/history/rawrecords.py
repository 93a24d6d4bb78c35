"""Records of a store, taken apart by the formats of docs/storage.md and docs/protocol.md alone.

Shares no code with hostler: this is a second reading of the same documents. `truth_of` derives of one run
what every reader must show: its state, its curve and its newest checkpoint.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Record = dict[str, Any]
Objects = Mapping[str, bytes]  # key → bytes
Points = list[tuple[int, dict[str, float]]]  # (step, metric → value)

ENDED = ("done", "failed", "diverged", "pruned", "stopped")
ENTRY = re.compile(r"sweeps/([^/]+)/(log|ends)/(\d{7}-.+)-(\d{6,})\.json")
COMMIT = re.compile(r"runs/([^/]+)/checkpoints/(\d+)-(\d+)/COMMIT")
FRAGMENT = re.compile(r"runs/([^/]+)/metrics/(\d+)-(\d+)-(\d+)")
PRINTED = re.compile(r"runs/([^/]+)/logs/(\d+)-(\d+)-(\d+)")
GO = re.compile(r"runs/([^/]+)/gang/(\d+)/go\.json")
SPEC = re.compile(r"sweeps/([^/]+)/spec/(?!999999)\d+\.json")  # that one says that runs are packed
TRIAL = re.compile(r"sweeps/([^/]+)/journal/(\d+)\.json")
READ_AGAIN = 999_999  # the rank of points that `hostler metrics` read from the output: those of no process


@dataclass
class State:
    """What entries of a log mean together, and the rules that they broke."""

    state: str = "queued"
    attempt: int = 0  # number of the newest claim
    attempts: int = 0
    fresh_from: int = 0
    stop: int = 0  # the attempt that a person has asked to stop, until the run ends
    end: Record | None = None
    broken: list[str] = field(default_factory=list)
    prefixes: list[tuple[str, int]] = field(default_factory=list)  # (state, attempts) after each entry


@dataclass(frozen=True)
class Fragment:
    attempt: int
    rank: int
    sequence: int
    header: Record
    points: Points


@dataclass(frozen=True)
class Truth:
    """One run as the bytes have it."""

    run: str
    sweep: str
    entries: list[Record]
    copies: dict[int, Record]  # of its ends, by the number of the entry
    state: State
    chain: list[int]  # attempts that led to the result, oldest first
    points: Points
    commits: dict[tuple[int, int], Record]  # (attempt, step) → COMMIT
    broken: list[str]  # rules that the chain broke
    gangs: dict[
        int, list[int]
    ]  # attempt → slots of the workers that its go names, in the order of their ranks
    writers: dict[int, set[int]]  # attempt → slots of the workers that wrote points of it
    printed: dict[int, list[str]]  # attempt → lines of its output, rank by rank

    @property
    def newest(self) -> tuple[int, int] | None:
        """The checkpoint that counts: highest attempt, then highest step."""
        own = [at for at in self.commits if at[0] >= self.state.fresh_from]
        return max(own, default=None)

    def curve(self, metric: str) -> list[tuple[int, float]]:
        return [(step, values[metric]) for step, values in self.points if metric in values]


def by_run(objects: Objects) -> dict[tuple[str, str], dict[str, bytes]]:
    """(sweep, run) of every log → the objects of that run."""
    logs: dict[tuple[str, str], dict[str, bytes]] = {}
    rest: dict[str, dict[str, bytes]] = {}
    for key, data in objects.items():
        if match := ENTRY.fullmatch(key):
            logs.setdefault((match[1], match[3]), {})[key] = data
        elif key.startswith("runs/"):
            rest.setdefault(key.split("/")[1], {})[key] = data
    return {at: {**own, **rest.get(at[1], {})} for at, own in sorted(logs.items())}


def log_of(objects: Objects, sweep: str, run: str, part: str = "log") -> dict[int, Record]:
    """Entries of a run's log, or copies of its ends, by number."""
    found: dict[int, Record] = {}
    for key, data in objects.items():
        match = ENTRY.fullmatch(key)
        if match and (match[1], match[2], match[3]) == (sweep, part, run):
            found[int(match[4])] = json.loads(data)
    return found


def folded(entries: Sequence[Record]) -> State:
    """The state of a run after these entries, each held against what may follow what."""
    now = State()
    for k, entry in enumerate(entries, start=1):
        step = _STEPS.get(str(entry.get("kind")))
        if step is None:
            now.broken.append(f"entry {k} is of an unknown kind: {entry.get('kind')!r}")
        else:
            now.broken += [f"entry {k}, {said}" for said in step(now, entry, k)]
        now.prefixes.append((now.state, now.attempts))
    return now


def _claim(now: State, entry: Record, k: int) -> Iterator[str]:
    if now.state in ENDED:
        yield f"a claim, comes after the end: the run was {now.state}"
    now.state, now.attempt, now.attempts, now.end = "running", k, now.attempts + 1, None


def _release(now: State, entry: Record, k: int) -> Iterator[str]:
    if now.state in ENDED:
        yield "a release, comes after the end"
    if entry.get("attempt") != now.attempt:
        yield f"a release, is of the fenced attempt {entry.get('attempt')}: {now.attempt} has the run"
    if now.state != "running" and entry.get("then") != "paused":
        yield f"a release, gives back a run that is {now.state}"
    now.state = str(entry.get("then", "queued"))


def _stop_request(now: State, entry: Record, k: int) -> Iterator[str]:
    if now.state != "running":
        yield f"a stop request, is to the holder of a run that is {now.state}"
    if entry.get("reason", "person") == "person":
        now.stop = now.attempt


def _end(now: State, entry: Record, k: int) -> Iterator[str]:
    again = now.end is not None and _meaning(now.end) == _meaning(entry)
    if now.end is not None and not again:
        yield "an end, comes after another end"
    if entry.get("attempt") != now.attempt and not entry.get("copy_of"):
        yield f"an end, is of the fenced attempt {entry.get('attempt')}: {now.attempt} has the run"
    if entry.get("state") not in ENDED:
        yield f"an end, has the state {entry.get('state')!r}"
    if now.stop and entry.get("state") != "stopped" and now.stop != entry.get("attempt"):
        yield f"an end, is {entry.get('state')} although a person had stopped attempt {now.stop}"
    now.state, now.end, now.stop = str(entry.get("state")), entry, 0


def _reopen(now: State, entry: Record, k: int) -> Iterator[str]:
    if now.state not in (*ENDED, "paused") and entry.get("why") != "lost":
        yield f"a reopen, is of a run that is {now.state}"
    now.state, now.end, now.stop = "queued", None, 0
    now.fresh_from = k if entry.get("fresh") else now.fresh_from


_STEPS = {
    "claim": _claim,
    "release": _release,
    "stop-request": _stop_request,
    "end": _end,
    "reopen": _reopen,
}


def _meaning(end: Record) -> Record:
    return {name: end[name] for name in end if name not in ("token", "format", "metrics", "step")}


def truth_of(objects: Objects, sweep: str, run: str) -> Truth:
    numbered = log_of(objects, sweep, run)
    entries = [numbered[k] for k in sorted(numbered)]
    state = folded(entries)
    if sorted(numbered) != list(range(1, len(numbered) + 1)):
        state.broken.append(f"the log has a hole: entries {sorted(numbered)}")
    commits = commits_of(objects, run)
    fragments = fragments_of(objects, run)
    chain, points, broken = followed(fragments, state, commits)
    copies = log_of(objects, sweep, run, "ends")
    writers: dict[int, set[int]] = {}
    for one in fragments:
        if one.points:
            writers.setdefault(one.attempt, set()).add(one.rank)
    gangs = gangs_of(objects, run)
    printed = printed_of(objects, run)
    return Truth(run, sweep, entries, copies, state, chain, points, commits, broken, gangs, writers, printed)


def printed_of(objects: Objects, run: str) -> dict[int, list[str]]:
    """What each attempt of a run printed, line by line."""
    texts: dict[tuple[int, int], bytes] = {}
    for key in sorted(objects):  # numbers in it have leading zeros
        match = PRINTED.fullmatch(key)
        if match and match[1] == run:
            at = int(match[2]), int(match[3])
            texts[at] = texts.get(at, b"") + objects[key]
    lines: dict[int, list[str]] = {}
    for (attempt, _), text in sorted(texts.items()):
        lines.setdefault(attempt, []).extend(text.decode(errors="replace").split("\n"))
    return {attempt: [line for line in own if line] for attempt, own in lines.items()}


def gangs_of(objects: Objects, run: str) -> dict[int, list[int]]:
    """The gangs of a run that were complete, by attempt."""
    found: dict[int, list[int]] = {}
    for key, data in objects.items():
        match = GO.fullmatch(key)
        if match and match[1] == run:
            found[int(match[2])] = [node["slot"] for node in json.loads(data)["nodes"]]
    return found


def newest_spec(objects: Objects, sweep: str) -> Record:
    """The job of a sweep, as it was submitted or edited last."""
    keys = sorted(key for key in objects if (m := SPEC.fullmatch(key)) and m[1] == sweep)
    return dict(json.loads(objects[keys[-1]])) if keys else {}


def trials_of(objects: Objects, sweep: str) -> dict[int, Record]:
    """Entries of a search's journal, by number."""
    found: dict[int, Record] = {}
    for key, data in objects.items():
        match = TRIAL.fullmatch(key)
        if match and match[1] == sweep:
            found[int(match[2])] = json.loads(data)
    return found


def commits_of(objects: Objects, run: str) -> dict[tuple[int, int], Record]:
    found: dict[tuple[int, int], Record] = {}
    for key, data in objects.items():
        match = COMMIT.fullmatch(key)
        if match and match[1] == run:
            found[int(match[2]), int(match[3])] = json.loads(data)
    return found


def checkpoint_key(run: str, at: tuple[int, int], n: int) -> str:
    return f"runs/{run}/checkpoints/{at[0]:06d}-{at[1]:012d}/files/{n:06d}"


def fragments_of(objects: Objects, run: str) -> list[Fragment]:
    found: list[Fragment] = []
    for key in sorted(objects):
        match = FRAGMENT.fullmatch(key)
        if match and match[1] == run:
            header, points = taken_apart(objects[key])
            found.append(Fragment(int(match[2]), int(match[3]), int(match[4]), header, points))
    return found


def followed(
    fragments: Sequence[Fragment], state: State, commits: Mapping[tuple[int, int], Record]
) -> tuple[list[int], Points, list[str]]:
    """Attempts and points of the winning chain, from the last attempt that has a fragment back."""
    fragments = [one for one in fragments if one.rank != READ_AGAIN]
    written = {one.attempt for one in fragments if one.attempt <= state.attempt and one.rank == 0}
    attempt, upto = max(written, default=0), None
    chain, pieces, broken = list[int](), list[Points](), list[str]()
    while attempt:
        own = [one for one in fragments if one.attempt == attempt]
        writers = {
            rank: _in_order([one for one in own if one.rank == rank]) for rank in {o.rank for o in own}
        }
        if upto is not None and upto["position"] > len(writers[0]):
            broken.append(
                f"attempt {chain[-1]} goes on after {upto['position']} points of {attempt}, which has"
                f" {len(writers[0])}"
            )
        chain.append(attempt)
        pieces.append(_covered(writers, upto))
        origin = next((o.header["origin"] for o in own if not o.rank and o.header.get("origin")), None)
        if origin is None:
            break
        at = (origin["attempt"], origin["step"])
        if at[0] >= attempt or at[0] < state.fresh_from:
            broken.append(f"attempt {attempt} goes on from {at[0]}, which it must not")
            break
        if at in commits and commits[at].get("position", origin["position"]) != origin["position"]:
            broken.append(f"attempt {attempt} goes on after other points than its checkpoint covers")
        attempt, upto = at[0] if at[0] in written else 0, origin
        if not attempt:
            chain.append(at[0])
    return chain[::-1], _joined(pieces[::-1]), broken


def _covered(writers: Mapping[int, Points], upto: Record | None) -> Points:
    """Points of an attempt that count, node by node. Those of other nodes' that the checkpoint does not count
    reach as far as the steps of node 0's."""
    if upto is None:
        return [point for rank in sorted(writers) for point in writers[rank]]
    points = writers[0][: upto["position"]]
    reached, others = max((step for step, _ in points), default=-1), upto.get("others") or {}
    for rank in sorted(set(writers) - {0}):
        counted = others.get(str(rank))
        own = writers[rank]
        points += [point for point in own if point[0] <= reached] if counted is None else own[:counted]
    return points


def _joined(pieces: Sequence[Points]) -> Points:
    """Points of attempts, oldest first; what a later one measured again is its own."""
    points: Points = []
    later: set[tuple[str, int]] = set()
    for piece in reversed(pieces):
        kept = [(step, {n: v for n, v in row.items() if (n, step) not in later}) for step, row in piece]
        later |= {(name, step) for step, row in piece for name in row}
        points[:0] = [point for point in kept if point[1]]
    return points


def _in_order(own: Sequence[Fragment]) -> Points:
    """Points of one attempt; a whole fragment stands for those before it."""
    points: Points = []
    for one in sorted(own, key=lambda one: one.sequence):
        points = [*([] if one.header.get("whole") else points), *one.points]
    return points


def taken_apart(data: bytes) -> tuple[Record, Points]:
    """Header and points of a fragment."""
    magic, version, length = struct.unpack_from("<4sHI", data)
    if magic != b"HSTM" or version != 1:
        raise ValueError(f"not a fragment of format 1: {data[:6]!r}")
    header = json.loads(data[10 : 10 + length])
    return header, list(_points(data[10 + length :]))


def _points(data: bytes) -> Iterator[tuple[int, dict[str, float]]]:
    names: dict[int, str] = {}
    at = 0
    while at + 5 <= len(data):
        length, kind = struct.unpack_from("<IB", data, at)
        payload, at = data[at + 5 : at + 5 + length], at + 5 + length
        if not length or len(payload) < length:
            return
        if kind == 1:
            names[struct.unpack_from("<H", payload)[0]] = payload[2:].decode()
        elif kind == 2:
            step = struct.unpack_from("<dq", payload)[1]
            pairs = struct.iter_unpack("<Hd", payload[16:])
            yield step, {names[number]: value for number, value in pairs}
