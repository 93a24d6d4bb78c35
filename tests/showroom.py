"""A store with something for every page of the dashboard: a grid, a search with pruning, a run that survived
on machines that cost money.

Times are fixed, so that pictures of it stay the same.
"""

from __future__ import annotations

import hashlib
import io
import math
import os
import random
import struct
import tarfile
import zlib
from pathlib import Path
from typing import Any

from hostler.records import layout
from hostler.records.body import encode
from hostler.records.launch import launches
from hostler.records.launch.launches import Generation, Stay
from hostler.records.run import heartbeats, surroundings
from hostler.records.series.metrics import MetricWriter, summary
from hostler.records.series.points import Point
from hostler.spec.job import Job, Source
from seen_world import Seen, gallery

NOW = 1.79e9 + 4000.0  # seconds: the moment at which pages look at it
OLD = "import hostler\n\nlr = 0.1\nprint('epoch', 1)\n"
NEW = "import hostler\n\nlr = 0.05\nmomentum = 0.9\nprint('epoch', 1)\n"
ROOM = {"cpus": 16.0, "memory": 64 * 10**9, "gpus": 1, "gpu_memory": 24 * 10**9, "slots": 2}


def showroom(folder: Path) -> Seen:
    seen = gallery(folder, lease=1e5)  # nobody falls silent while tests look
    _search(seen)
    _survivor(seen)
    _launch(seen, NOW - 2400)
    for n, path in enumerate(sorted(folder.glob("sweeps/*/spec/*.json"))):
        os.utime(path, (NOW - 3600 * n - 60,) * 2)
    return seen


def _search(seen: Seen) -> None:
    """A search with pruning: runs that are done, paused at a rung, pruned, running, and one that is NaN."""
    chance = random.Random(7)
    codes = [_snapshot(seen, text) for text in (OLD, NEW)]
    runs = [
        {"lr": round(10 ** chance.uniform(-4, -1), 6), "width": chance.choice([64, 128, 256]), "epochs": 27}
        for _ in range(24)
    ]
    job = seen.submit(
        "digits-search",
        runs,
        method="tpe",
        of="best",
        metric="val/accuracy",
        source=Source(snapshot=codes[0]),
    )
    held: dict[str, Any] = {}
    for index, params in enumerate(runs):
        fate = "running" if index >= 22 else ("done", "done", "paused", "pruned", "done", "paused")[index % 6]
        steps = {"paused": 3 if index % 4 else 9, "pruned": 9, "running": 14}.get(fate, 27)
        points = _curve(params, steps, index)
        host = f"gpu-{index % 3}"
        seen.claim(job, index, session=f"{host}-s", host=host, at=NOW - 3000 + 90 * index)
        known = seen.curve(job, index, points)
        facts = {
            "host": host,
            "cost": 0.02 * steps,
            "code": codes[index % 2],
            "started": NOW - 3000 + 90 * index,
        }
        if fate == "paused":
            told = {"then": "paused", "why": "rung", "step": steps, "seconds": 4.0 * steps}
            seen.entry(job, index, 2, {"kind": "release", "metrics": summary(known), **told, **facts})
        elif fate == "running":
            last = known[-1]
            use = {"system/cpu": 5.5, "system/memory": 9.1e9, "system/gpu": 87.0, "system/gpu_memory": 1.9e10}
            held.setdefault(host, {})[job.run_id(index)] = {
                "attempt": 1, "step": last.step, "metrics": {**last.values, **use}, "cost": 0.4,
                "best": {"val/accuracy": summary(known)["val/accuracy"]},
            }  # fmt: skip
        else:
            seen.end(job, index, fate, known, total=4.0 * steps + 61, seconds=4.0 * steps + 61, **facts)
        facts = {"python": {"version": "3.11.2"}, "packages": {"numpy": ("1.26.4", "2.1.0")[index % 2]}}
        surroundings.write(seen.store, job.run_id(index), 1, {**facts, "platform": "Linux-6.1"})
        if index % 2 and fate == "done":
            seen.entry(job, index, 1, _claimed(host, index, codes[1]))
    for host in ("gpu-0", "gpu-1", "gpu-2"):
        facts = {"host": host, "pid": 7, "fleet": "live/6", "room": ROOM, "runs": held.get(host, {})}
        heartbeats.beat(seen.store, f"{host}-s", 5, facts)


def _claimed(host: str, index: int, code: str) -> dict[str, Any]:
    facts = {"kind": "claim", "session": f"{host}-s", "host": host, "after": None}
    return {**facts, "at": NOW - 3000 + 90 * index, "source": {"snapshot": code}}


def _curve(params: dict[str, Any], steps: int, seed: int) -> list[Point]:
    chance = random.Random(seed)
    top = 0.97 - 0.08 * abs(math.log10(params["lr"] / 0.003)) + 0.01 * math.log2(params["width"] / 64)
    found = []
    for step in range(1, steps + 1):
        done = 1 - math.exp(-step / 5)
        values = {
            "val/accuracy": top * done + chance.gauss(0, 0.004),
            "train/loss": 2.3 * (1 - done) + 0.00163,
        }
        if seed == 4 and step > 20:
            values["train/loss"] = math.nan
        found.append(Point(step, NOW - 3000 + 90 * seed + 4 * step, values))
    return found


def _survivor(seen: Seen) -> None:
    """A run of three attempts: lost, preempted, done; with a picture, a text and what it used."""
    job = seen.submit("survivor", [{"lr": 0.003, "epochs": 90, "model": "resnet18"}])
    run, begun = job.run_id(0), NOW - 2400
    seen.claim(job, 0, session="s-1", host="spot-1", at=begun)
    after = {"why": "lost", "seconds": 400.0}
    seen.entry(
        job, 0, 2, {"kind": "claim", "session": "s-2", "host": "spot-2", "at": begun + 480, "after": after}
    )
    left = {"kind": "release", "then": "queued", "why": "preempted", "seconds": 700.0, "step": 50}
    left["phases"] = {"prepare": 70.0, "save": 30.0}
    seen.entry(job, 0, 3, {**left, "at": begun + 1180})
    seen.entry(
        job, 0, 4, {"kind": "claim", "session": "s-3", "host": "spot-1", "at": begun + 1300, "after": None}
    )
    points = [
        Point(n, begun + 20 * n, {
            "accuracy": 0.95 * (1 - math.exp(-n / 20)), "loss": 2.3 * math.exp(-n / 20),
            "system/cpu": 3 + math.sin(n / 6), "system/memory": 2e9 + 2e7 * n,
            "system/gpu": 80 + 10 * math.sin(n / 4),
        })
        for n in range(1, 91)
    ]  # fmt: skip
    MetricWriter(seen.store, run, 4).write(points)
    end = {"kind": "end", "attempt": 4, "state": "done", "host": "spot-1", "attempts": 3, "started": begun}
    end |= {"restored": "2-50", "phases": {"prepare": 60.0, "save": 20.0, "from": begun + 1150}}
    end |= {"seconds": 800.0, "total": 1900.0, "step": 90, "metrics": summary(points), "at": begun + 2100}
    seen.entry(job, 0, 5, {**end, "cost": 1.37})
    seen.log(job, 0, "".join(f"epoch {n} of 90: loss {2.3 * math.exp(-n / 20):.4f}\n" for n in range(1, 91)))
    files = {"confusion.png": picture(), "notes.txt": b"All of it went well.\n", "weights.bin": bytes(5000)}
    rows = []
    for n, (name, data) in enumerate(files.items()):
        seen.store.put(layout.output_file(run, 4, n), data)
        rows.append({"name": name, "size": len(data), "sha256": hashlib.sha256(data).hexdigest(), "n": n})
    seen.store.put(layout.output_commit(run, 4), encode({"run": run, "files": rows}))


def _launch(seen: Seen, begun: float) -> None:
    """Three machines of the survivor: each boots, trains, and waits a little before it goes."""
    one = Generation("spot", 1, "t", 3, 2.4, begun - 90, None, ("survivor",), counted=True)
    launches.begin(seen.store, one)
    launches.close(seen.store, "spot", 1)
    for session, came, left in (("s-1", -60, 400), ("s-2", 400, 1230), ("s-3", 1250, 2160)):
        lasted = float(left - came)
        stay = Stay(session, lasted - 20, over=True, final=True, machine=f"spot-{session}", age=lasted)
        launches.note(seen.store, "spot", 1, stay)
        os.utime(seen.folder / layout.fleet_worker("spot", 1, session), (begun + left,) * 2)


def picture(side: int = 160) -> bytes:
    """A small PNG: squares of a confusion matrix."""
    on, off = (30, 110, 105), (225, 235, 233)
    lines = (
        b"\0" + bytes(v for x in range(side) for v in (on if x * 8 // side == y * 8 // side else off))
        for y in range(side)
    )
    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(b"".join(lines))), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _snapshot(seen: Seen, text: str) -> str:
    """Code in the store, as a submission leaves it; its hash."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as tar:
        facts = tarfile.TarInfo("train.py")
        facts.size = len(text)
        tar.addfile(facts, io.BytesIO(text.encode()))
    name = hashlib.sha256(text.encode()).hexdigest()
    seen.store.put(layout.code(name), made.getvalue())
    return name


def job_of(seen: Seen, sweep: str) -> Job:
    from hostler.records.sweep import sweeps

    return sweeps.load(seen.store, sweep)
