"""Evidence made by hand, after the documents alone: a gang, a script by hand, a search and a shared process.

Each of the four runs or pairs was killed once and went on from its checkpoint; nothing is wrong with any of
them. It takes no process and no store, so that a violation can be planted in it within a moment.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from checker import check
from rawrecords import taken_apart

Record = dict[str, Any]
Points = Sequence[tuple[int, Mapping[str, float]]]
GANG, HAND, FIRST, SECOND = (
    "0000000-gang-aaaaaa",
    "0000000-hand-bbbbbb",
    "0000000-pair-cccccc",
    "0000001-pair-dddddd",
)
TRIALS = tuple(f"{n:07d}-tpe-eeeee{n}" for n in range(3))
STEPS = 6  # of each run; the first attempt was killed after `KILLED` of them, and had saved after `SAVED`
KILLED, SAVED = 4, 3


def fragment(header: Record, points: Points) -> bytes:
    """The bytes of a fragment, as docs/storage.md has them."""

    def record(kind: int, payload: bytes) -> bytes:
        return struct.pack("<IB", len(payload), kind) + payload

    names = sorted({name for _, row in points for name in row})
    body = b"".join(record(1, struct.pack("<H", n) + name.encode()) for n, name in enumerate(names))
    for step, row in points:
        values = b"".join(struct.pack("<Hd", names.index(name), value) for name, value in row.items())
        body += record(2, struct.pack("<dq", 0.0, step) + values)
    text = json.dumps(header).encode()
    return struct.pack("<4sHI", b"HSTM", 1, len(text)) + text + body


@dataclass(frozen=True)
class Made:
    """A folder of evidence, and the ways to change it."""

    folder: Path

    def path(self, pattern: str) -> Path:
        """The last object whose key fits."""
        return sorted((self.folder / "store").glob(pattern))[-1]

    def put(self, key: str, data: bytes | Record) -> None:
        path = self.folder / "store" / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else json.dumps(data).encode())

    def edit(self, pattern: str, change: Callable[[Record], object]) -> None:
        path = self.path(pattern)
        record = json.loads(path.read_text())
        change(record)
        path.write_text(json.dumps(record))

    def points(self, pattern: str, change: Callable[[list[Any]], Points]) -> None:
        path = self.path(pattern)
        header, points = taken_apart(path.read_bytes())
        path.write_bytes(fragment(header, change(points)))

    def rules(self) -> set[str]:
        return {violation.rule for violation in check(self.folder)}

    def told(self, event: Record) -> None:
        with (self.folder / "history.jsonl").open("a") as file:
            file.write(json.dumps({"at": 1.0, "since": 1.0, **event}) + "\n")


def loss(run: str, rank: int, step: int) -> float:
    """What this rank of a run measures at a step."""
    return float(int(hashlib.sha256(f"{run} {rank} {step}".encode()).hexdigest()[:6], 16))


def weights(run: str) -> bytes:
    return f"weights of {run}".encode()


def make(folder: Path) -> Made:
    made = Made(folder)
    (folder / "store").mkdir(parents=True)
    spec = {"resources": {"nodes": 2, "min_nodes": None}}
    made.put("sweeps/gang/spec/000001.json", spec)
    made.put(
        "sweeps/tpe/spec/000001.json", {"search": {"x": [0, 1]}, "budget": {"runs": 3}, "journal_from": 0}
    )
    _run(made, "gang", GANG, ranks=2)
    _run(made, "hand", HAND, holder="4242 17")
    for run in (FIRST, SECOND):
        _run(made, "pair", run)
    for n, run in enumerate(TRIALS):
        made.put(f"sweeps/tpe/journal/{n + 1:06d}.json", {"params": {"x": n}, "token": f"trial-{n}"})
        _run(made, "tpe", run)
    runs = [GANG, HAND, FIRST, SECOND, *TRIALS]
    made.told({"what": "expected", "runs": {run: _wanted(run) for run in runs}})
    made.told(
        {"what": "read", "reader": "hostler df", "when": "after", "runs": {run: _shown(run) for run in runs}}
    )
    made.told({"what": "left", "processes": [], "files": [], "mounts": []})
    return made


def _ranks(run: str) -> int:
    return 2 if run == GANG else 1


def _curves(run: str) -> dict[str, list[tuple[int, float]]]:
    return {f"loss{rank}": [(n, loss(run, rank, n)) for n in range(STEPS)] for rank in range(_ranks(run))}


def _wanted(run: str) -> Record:
    """What an undisturbed run is: its files are judged but for the state, which has the machine in it."""
    own = {"weights": hashlib.sha256(weights(run)).hexdigest()}
    return {
        "state": "done",
        "curves": _curves(run),
        "weights": own,
        "judged": "^weights$",
        "result": {"w": run},
    }


def _shown(run: str) -> Record:
    return {"state": "done", "attempts": 2, "curves": _curves(run)}


def _run(made: Made, sweep: str, run: str, ranks: int = 1, holder: str = "") -> None:
    """Claimed as entry 1, killed, claimed as entry 2, done as entry 3."""
    claim = {"kind": "claim", "session": "a", **({"holder": holder} if holder else {})}
    lost = {"kind": "claim", "session": "b", "after": {"why": "lost", "counts": "lost"}}
    end = {"kind": "end", "attempt": 2, "state": "done", "result": {"w": run}}
    for k, entry in enumerate((claim, lost, end), start=1):
        made.put(f"sweeps/{sweep}/log/{run}-{k:06d}.json", {**entry, "token": f"{run} {k}"})
    made.put(f"sweeps/{sweep}/ends/{run}-000003.json", {**end, "token": f"{run} 3"})
    others = {str(rank): SAVED for rank in range(1, ranks)}
    _attempt(made, run, 1, range(KILLED), ranks, None)
    _attempt(
        made,
        run,
        2,
        range(SAVED, STEPS),
        ranks,
        {"attempt": 1, "step": 1, "position": SAVED, "others": others},
    )


def _attempt(made: Made, run: str, attempt: int, steps: range, ranks: int, origin: Record | None) -> None:
    for rank in range(ranks):
        header = {"attempt": attempt, "start": 0, "origin": None if rank else origin}
        points = [(step, {f"loss{rank}": loss(run, rank, step)}) for step in steps]
        made.put(f"runs/{run}/metrics/{attempt:06d}-{rank:04d}-00000000", fragment(header, points))
    if ranks > 1:
        made.put(
            f"runs/{run}/gang/{attempt:06d}/go.json", {"nodes": [{"slot": rank} for rank in range(ranks)]}
        )
    folder = f"runs/{run}/checkpoints/{attempt:06d}-{1:012d}"
    names = ["weights", *(f"step-{SAVED:012d}/state-{rank:04d}.json" for rank in range(ranks))]
    contents = [weights(run), *(f"state of {rank} at {attempt}".encode() for rank in range(ranks))]
    files = []
    for n, (name, data) in enumerate(zip(names, contents, strict=True)):
        made.put(f"{folder}/files/{n:06d}", data)
        sha256 = hashlib.sha256(data).hexdigest()
        files.append({"name": name, "n": n, "parts": 1, "size": len(data), "sha256": sha256})
    position = SAVED if attempt == 1 else STEPS - SAVED
    made.put(f"{folder}/COMMIT", {"attempt": attempt, "step": 1, "position": position, "files": files})
