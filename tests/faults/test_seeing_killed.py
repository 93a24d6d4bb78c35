"""SIGKILL before each single thing that packing, archiving and pulling do to a disk: no point is lost, or is
there twice, the archive holds whole models, and a folder that was asked for is whole or not there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import hostler
from hostler.analysis.frame import columns
from hostler.records import garbage, layout
from hostler.records.checkpoint import archive, archive_files, checkpoints
from hostler.records.checkpoint.archive import ArchiveTerms
from hostler.records.checkpoint.checkpoints import Place
from hostler.records.run import log as run_log
from hostler.records.run.attempt import claim
from hostler.records.run.entries import Claim
from hostler.records.run.log import RunKey, RunLog
from hostler.records.series import packing
from hostler.records.series.metrics import MetricWriter
from hostler.records.series.points import Point
from hostler.records.sweep import sweeps
from hostler.spec.job import Job
from hostler.store import open_store

SOURCE = str(Path(hostler.__file__).resolve().parents[1])
TERMS = ArchiveTerms(2, "loss", "min")

# Forks for each n: the child does the deed on a copy of the store and dies before the n-th call that changes
# the disk; another then does it again, undisturbed, on what is left.
KILLS = """
import builtins, json, os, shutil, signal, sys
from pathlib import Path
from hostler.records.checkpoint import archive
from hostler.records.checkpoint import archive_files as delivery
from hostler.records.run import log as run_log
from hostler.records.series import metrics
from hostler.records.series import packing
from hostler.records.sweep import sweeps
from hostler.records.checkpoint.archive import ArchiveTerms
from hostler.store import open_store

root, deed, step = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
terms = ArchiveTerms(2, "loss", "min")
packing.RUNS = 3  # several segments

def compact(folder):
    store = open_store(str(folder / "store"))
    packing.compact(store, sweeps.load(store, "s"))

def enter(folder):
    store = open_store(str(folder / "store"))
    for one in archive.candidates(store, terms):
        if archive.would_stay(one, archive.entries(store, terms), terms):
            archive.enter(store, one, terms)
        for other in archive.beyond(archive.entries(store, terms), terms):
            archive.remove(store, other.run)

def pull(folder):
    store = open_store(str(folder / "store"))
    delivery.deliver(store, archive.ranked(archive.entries(store, terms), terms)[0].record, folder / "pulled")

def fragments(folder):
    store = open_store(str(folder / "store"))
    for run in run_log.heads(store, "s"):
        writer = metrics.MetricWriter(store, run, 1)
        writer.go_on()
        writer.pack()

def deadly(call, count):
    def instead(*words, **more):
        count[0] -= 1
        if count[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*words, **more)
    return instead

def doomed(act, folder, n):
    count = [n]
    for name in ("open", "write", "fsync", "link", "replace", "rename", "mkdir", "unlink", "rmdir", "close"):
        setattr(os, name, deadly(getattr(os, name), count))
    builtins.open = deadly(builtins.open, count)
    act(folder)

def child(act, *words):
    pid = os.fork()
    if pid == 0:
        try:
            act(*words)
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

act, n = {"compact": compact, "enter": enter, "pull": pull, "fragments": fragments}[deed], 1
while True:
    folder = root / f"{n}"
    shutil.copytree(root / "calm", folder)
    code = child(doomed, act, folder, n)
    if code == 0:
        print(json.dumps({"n": n, "code": code}), flush=True)
        break
    shutil.copytree(folder, root / f"{n}-again")
    if deed != "pull" or not (folder / "pulled").exists():
        assert child(act, root / f"{n}-again") == 0
    print(json.dumps({"n": n, "code": code}), flush=True)
    n += step
"""


def prepare(folder: Path, count: int) -> None:
    store = open_store(str(folder / "store"))
    job = Job(
        name="s", command=("x",), runs=tuple({"lr": n} for n in range(count)), metric="loss", goal="min"
    )
    assert sweeps.submit(store, job)
    archive.agree(store, TERMS)
    for index in range(count):
        key = RunKey("s", job.run_id(index))
        held = claim(store, RunLog(store, key).read_on(), 60.0, lambda: 0.0, Claim("s", facts={"host": "h"}))
        assert held is not None
        values = [float(count - index), float(count - index) / 2]
        writer = MetricWriter(store, key.run, 1)
        for n, value in enumerate(values):
            writer.write([Point(n, float(n), {"loss": value})])
        (folder / "w").mkdir(exist_ok=True)
        for name in ("a.bin", "b.bin"):
            (folder / "w" / name).write_text(f"{name} of {index}")
        checkpoints.save(store, key.run, Place(1, 1), folder / "w", dict, lambda: None)
        total = {"loss": {"last": values[-1], "min": values[-1], "max": values[0], "step": 1}}
        held.end("done", attempts=1, metrics=total, host="h")


def killed(root: Path, deed: str, step: int) -> list[int]:
    done = subprocess.run(
        [sys.executable, "-c", KILLS, str(root), deed, str(step)],
        env={**os.environ, "PYTHONPATH": SOURCE, "HOSTLER_CACHE": str(root / "cache")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["code"] for one in said[:-1]] == [-9] * (len(said) - 1) and len(said) > 4
    return [one["n"] for one in said[:-1]]


def curves(folder: Path) -> list[list[float]]:
    found = columns(open_store(str(folder / "store")), "s", say=pytest.fail)
    return [list(curve) for curve in found["loss.curve"]]


def packed(folder: Path) -> list[str]:
    store = open_store(str(folder / "store"))
    there = packing.covered(packing.read(store, "s", say=pytest.fail), run_log.heads(store, "s"))
    return sorted(there.rows)


def models(folder: Path, *, whole: bool) -> list[str]:
    """What is in the archive; each with its files and its curve."""
    store, names = open_store(str(folder / "store")), []
    for n, one in enumerate(archive.ranked(archive.entries(store, TERMS), TERMS)):
        target = folder / f"model-{n}"
        archive_files.deliver(store, one.record, target)
        assert sorted(p.name for p in (target / "checkpoint").iterdir()) == ["a.bin", "b.bin"]
        assert archive.curves(store, one.run).header["tracks"][0]["counts"] == [2]
        names.append(one.run)
    if whole:  # and nothing else, once it has been tidied
        look = partial(garbage.find, store, 1e12, grace=0.0)
        garbage.remove(store, look(), look)
        keys = {entry.key.split("/")[1] for entry in store.list(layout.ARCHIVE)}
        assert {key for key in keys if key[0].isdigit()} == set(names)
    return names


def steps(every: int) -> Any:
    return pytest.mark.parametrize("step", [every, pytest.param(1, marks=pytest.mark.soak)])


@steps(7)
def test_killed_packer_neither_loses_nor_doubles_a_point(
    tmp_path: Path, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(tmp_path / "calm", 7)
    monkeypatch.setenv("HOSTLER_CACHE", str(tmp_path / "reader"))
    wanted = curves(tmp_path / "calm")
    assert len(wanted) == 7
    runs = sorted(run_log.heads(open_store(str(tmp_path / "calm" / "store")), "s"))
    for n in killed(tmp_path, "compact", step):
        assert curves(tmp_path / f"{n}") == wanted
        assert curves(tmp_path / f"{n}-again") == wanted
        assert packed(tmp_path / f"{n}-again") == runs


@steps(7)
def test_killed_merge_of_objects_neither_loses_nor_doubles_a_point(
    tmp_path: Path, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(tmp_path / "calm", 2)
    monkeypatch.setenv("HOSTLER_CACHE", str(tmp_path / "reader"))
    wanted = curves(tmp_path / "calm")
    assert [len(curve) for curve in wanted] == [2, 2]
    for n in killed(tmp_path, "fragments", step):
        assert curves(tmp_path / f"{n}") == wanted
        assert curves(tmp_path / f"{n}-again") == wanted
        store = open_store(str(tmp_path / f"{n}-again" / "store"))
        assert all(len(list(store.list(layout.metrics(run)))) == 1 for run in run_log.heads(store, "s"))


@steps(11)
def test_archive_holds_whole_models_and_the_best_after_any_kill(tmp_path: Path, step: int) -> None:
    prepare(tmp_path / "calm", 3)
    runs = sorted(run_log.heads(open_store(str(tmp_path / "calm" / "store")), "s"))
    for n in killed(tmp_path, "enter", step):
        assert set(models(tmp_path / f"{n}", whole=False)) <= set(runs)
        assert models(tmp_path / f"{n}-again", whole=True) == [runs[2], runs[1]]


@steps(2)
def test_killed_pull_leaves_nothing_under_the_name_and_resumes(tmp_path: Path, step: int) -> None:
    prepare(tmp_path / "calm", 1)
    store = open_store(str(tmp_path / "calm" / "store"))
    (one,) = archive.candidates(store, TERMS)
    archive.enter(store, one, TERMS)
    for n in killed(tmp_path, "pull", step):
        for folder in (tmp_path / f"{n}", tmp_path / f"{n}-again"):
            if folder.name.endswith("again") or (folder / "pulled").exists():
                assert (folder / "pulled" / "checkpoint" / "b.bin").read_text() == "b.bin of 0"
                assert json.loads((folder / "pulled" / "run.json").read_text())["run"] == one.run
