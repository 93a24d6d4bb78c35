"""A store that real runs have filled with some of everything: what an enemy begins from."""

from __future__ import annotations

import hashlib
from pathlib import Path

from hostler.records import layout
from hostler.records.body import encode
from hostler.records.checkpoint import archive, checkpoints
from hostler.records.checkpoint.bundle import SMALL, Bundle, format_of
from hostler.records.checkpoint.checkpoints import Place
from hostler.records.launch import launches, ledger
from hostler.records.launch.launches import Generation
from hostler.records.packs import packer
from hostler.records.packs.packed_store import PackedStore
from hostler.records.run import control, heartbeats, surroundings, tracked
from hostler.records.run.tracked import Tracked
from hostler.records.series import packing
from hostler.records.sweep import rungs, sweeps
from hostler.spec.job import Budget
from hostler.spec.states import QUEUED
from worker_world import World

SHOWN = "good"  # its run is done, and shown whatever else the store holds
DUE = "due"  # its run is queued, and a worker does it whatever else the store holds
TRAIN = """
import json, os, time
from pathlib import Path
run = os.environ["HOSTLER_RUN"]
for step in range(1, 6):
    print(json.dumps({"step": step, "loss": 1 / step, "accuracy": step / 10}), flush=True)
if run.startswith("0000002-grid"):
    raise ValueError("no luck")
saved = Path(os.environ["HOSTLER_CHECKPOINT_DIR"])
(saved / "model").mkdir(exist_ok=True)
(saved / "model" / "weights.bin").write_bytes(b"w" * 1000)
if not (saved / "newest").is_symlink():
    (saved / "newest").symlink_to("model/weights.bin")
Path(os.environ["HOSTLER_OUTPUT_DIR"], "report.txt").write_text("fine")
if "-again-" in run and not Path(os.environ["MARKS"], "easy").exists():
    time.sleep(3)  # what was at rest when a script failed is its checkpoint
    raise ValueError("it is hard")
"""


def bundle(world: World, run: str) -> None:
    """A checkpoint and outputs of a run whose small files are one object, as those of shared processes."""
    folder = world.root / "bundled"
    files = {"config.yaml": b"a: 1", "deep/empty": b"", "deep/stats.csv": b"1,2", "large.bin": bytes(70_000)}
    small, rows = Bundle(), []
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
        if len(data) < SMALL:
            sha = hashlib.sha256(data).hexdigest()
            rows.append({"name": name, "size": len(data), "sha256": sha, "n": 0, "at": small.add(data)})
    checkpoints.save(world.store, run, Place(1, 2), folder, dict, lambda: None, bundled=True)
    world.store.put(layout.output_file(run, 1, 0), small.data)
    record = {"run": run, "files": rows, **format_of(rows)}
    world.store.put(layout.output_commit(run, 1), encode(record))


def fill(root: Path) -> Path:
    """Run sweeps by a real worker under `root`; returns the folder of their store."""
    world = World(root)
    runs = [{"lr": lr} for lr in (0.1, 0.01, 0.001)]
    facts = {"metric": "accuracy", "goal": "max", "method": "grid", "retries": 0}
    grid = world.submit(TRAIN, name="grid", runs=runs, **facts)
    for name, count in {"old": 2, SHOWN: 1, "again": 1, "kept": 2}.items():
        world.submit(TRAIN, name=name, runs=runs[:count], **facts)
    assert world.work(waits_free=False) == 0
    store = world.store
    old = sweeps.load(store, "old")
    packing.compact(store, old)
    packer.pack(PackedStore(store), sweeps.load(store, "kept"), lambda seconds: None)
    bundle(world, grid.run_id(1))
    terms = archive.ArchiveTerms(5, "accuracy", "max")
    archive.agree(store, terms)
    for entry in archive.candidates(store, terms):
        archive.enter(store, entry, terms)
    sweeps.tag(store, "grid", "", ["paper"], [])
    sweeps.put_in_trash(store, "old", old.run_id(1))
    again = sweeps.load(store, "again")
    control.retry(store, world.key(again))
    assert world.state(again).state == QUEUED and world.committed(again)
    world.mark("easy").touch()
    waiting = world.submit(TRAIN, name="waiting", runs=[*runs, {"lr": 1}], **facts)
    control.pause(store, world.key(waiting, 1))
    control.stop(store, world.key(waiting, 2))
    sweeps.halt(store, "grid", "5 errors in a row")
    world.submit(
        TRAIN,
        name="learn",
        runs=[],
        **{
            **facts,
            "method": "random",
            "search": {"parameters": {"lr": [0.1, 0.5]}},
            "budget": Budget(runs=1),
        },
    )
    store.put(layout.journal_entry("learn", 1), encode({"params": {"lr": 0.5}, "picks": {}, "attrs": {}}))
    rungs.write(store, world.key(grid), 3, 0.3, 3, 1)
    store.put(layout.turn("grid", 1, 1), encode({"run": grid.run_id(0), "attempt": 1}))
    launches.begin(store, Generation("burst", 1, workers=1, price=1.0, sweeps=("grid",)))
    ledger.charge(store, "grid", fleet="burst", generation=1, cost=1.5)
    heartbeats.beat(store, "w-1", 1, {"host": "desk", "pid": 1, "runs": {}})
    python = {"version": "3.11.2", "exe": "/usr/bin/python3"}
    ran_on = {"python": python, "packages": {"numpy": "2.1"}, "memory": 8e9, "gpus": [], "command": []}
    surroundings.write(store, grid.run_id(0), 1, ran_on)  # however long that attempt took
    surroundings.share(store, ran_on)
    tracked.write(store, grid.run_id(0), Tracked("tensorboard", "x", 1, "closed"))
    store.put(layout.tracker_file(grid.run_id(0), 1, "tensorboard", "events.out"), b"events")
    world.submit(TRAIN, name=DUE, runs=runs[:1], **facts)
    return root / "store"
