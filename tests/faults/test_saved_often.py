"""Scripts that save faster than files come to rest, each in its own habit, killed early: progress is kept."""

from __future__ import annotations

import random
import signal
import sys
import time
from pathlib import Path

import pytest
from killer import RUN, SUPERVISOR, WORKER, Farm, farm, keys_of, outcome, send, until

from hostler.records.run.log import RunKey, RunLog
from hostler.records.series.logs import LogReader
from hostler.spec.job import Job

TORN = 3
HABITS = ("in place", "with best", "pointer", "symlink", "top k", "rotation", "by turns")
TOGETHER = "both"

# Saves 2 MB in several writes every 0.3 to 0.5 s; a file whose checksum is not that of its bytes is torn.
SCRIPT = """
import hashlib, json, os, pathlib, random, sys, time
folder, habit = pathlib.Path(os.environ["HOSTLER_CHECKPOINT_DIR"]), sys.argv[1]
marks, goal = pathlib.Path(sys.argv[2]), int(sys.argv[3])

def save(name, n):
    body = f"{n:08d}".encode() + bytes([n % 251]) * (2 << 20)
    data = body + hashlib.sha256(body).digest()
    with open(folder / name, "wb", buffering=0) as file:
        for start in range(0, len(data), 1 << 18):
            file.write(data[start : start + (1 << 18)])
            time.sleep(0.004)

def load(path):
    data = path.read_bytes()
    if hashlib.sha256(data[:-32]).digest() != data[-32:]:
        print("torn", path.name, len(data), flush=True)
        sys.exit(TORN)
    return int(data[:8])

def step(n):
    if habit in ("in place", "with best"):
        save("model.pt", n)
        if habit == "with best" and n % 2: save("best.pt", n)
    elif habit == "pointer":
        save(f"model-{n}.pt", n)
        (folder / "latest").write_text(f"model-{n}.pt")
        if n > 2: (folder / f"model-{n - 2}.pt").unlink(missing_ok=True)
    elif habit == "symlink":
        save(f"epoch={n}.ckpt", n)
        (folder / "last.ckpt").unlink(missing_ok=True)
        (folder / "last.ckpt").symlink_to(f"epoch={n}.ckpt")
        if n > 2: (folder / f"epoch={n - 2}.ckpt").unlink(missing_ok=True)
    elif habit == "top k":
        old = list(folder.glob("epoch=*"))
        save(f"epoch={n}-val_loss={1 / n:.4f}.ckpt", n)
        for path in old: path.unlink()
    elif habit == "rotation":
        if (folder / "ckpt.pt").exists(): os.replace(folder / "ckpt.pt", folder / "ckpt.prev.pt")
        save("ckpt.pt", n)
    else:
        save("ab"[n % 2] + ".pt", n)

def newest():
    names = {"pointer": "latest", "symlink": "last.ckpt", "rotation": "ckpt.pt"}
    path = folder / names.get(habit, "model.pt")
    if habit == "top k" or habit == "by turns":
        return max(map(load, folder.glob("*.*")), default=0)
    if habit == "with best" and (folder / "best.pt").exists(): load(folder / "best.pt")
    if habit == "pointer" and path.exists(): path = folder / path.read_text()
    return load(path) if path.exists() else 0

n = newest()
print("begins", n, flush=True)
while n < goal and not (marks / "enough").exists():
    n += 1
    print(json.dumps({"step": n, "square": n * n}), flush=True)
    step(n)
    (marks / "new").write_text(str(n))
    os.replace(marks / "new", marks / os.environ["HOSTLER_RUN"])
    time.sleep(random.uniform(0.25, 0.45))
""".replace("TORN", str(TORN))


def log_of(made: Farm, key: RunKey) -> str:
    return b"".join(piece.data for piece in LogReader(made.store, key.run).read()).decode()


def begun(made: Farm, key: RunKey) -> list[int]:
    """The numbers that the attempts of a run began from."""
    return [int(line.split()[1]) for line in log_of(made, key).splitlines() if line.startswith("begins ")]


def kill(made: Farm, victim: str) -> None:
    kinds = (WORKER, SUPERVISOR, RUN) if victim == TOGETHER else (victim,)
    for kind in kinds:
        for pid in made.processes(kind):
            send(pid, signal.SIGKILL)


def survive(root: Path, habit: str, victim: str, seed: int, *, kills: int = 2, lag: int = 6) -> None:
    """Kill the attempts of a run, each within the first ten seconds, and look where the next one begins."""
    rng = random.Random(f"{habit}{victim}{seed}")
    with farm(str(root / "store"), root, settle=2.0) as made:
        (made.code / "often.py").write_text(SCRIPT)
        command = (sys.executable, "often.py", habit, str(root), "200")
        job = made.submit(Job(name="often", command=command, retries=kills))
        [key] = keys_of(job)
        made.start()
        saved: list[int] = []
        for n in range(kills):
            until(lambda: len(begun(made, key)) == n + 1, why=made.said)  # noqa: B023
            time.sleep(rng.uniform(5.0, 9.5))
            kill(made, victim)
            saved.append(int((root / key.run).read_text()))
        until(lambda: len(begun(made, key)) == kills + 1, why=made.said)
        (root / "enough").touch()
        made.finish(job, workers=1)
        exits = [entry.get("exit") for entry in RunLog(made.store, key).read_on().entries]
        assert TORN not in exits, log_of(made, key)
        found, numbers = outcome(made.store, key), begun(made, key)
        assert found.state.state == "done" and len(numbers) == kills + 1, log_of(made, key)
        for number, newest in zip(numbers[1:], saved, strict=True):
            assert max(1, newest - lag) <= number <= newest, (numbers, saved, log_of(made, key))


FEW = tuple(zip(HABITS, (RUN, TOGETHER, WORKER) * 3, strict=False))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("habit, victim", FEW)
def test_saves_of_every_half_second_survive_an_early_kill(habit: str, victim: str, tmp_path: Path) -> None:
    """With the resting time and the `every` of real runs."""
    survive(tmp_path, habit, victim, 0, kills=1)


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("victim", [RUN, WORKER, TOGETHER])
@pytest.mark.parametrize("habit", HABITS)
def test_saves_of_every_half_second_survive_many_kills(
    habit: str, victim: str, seed: int, tmp_path: Path
) -> None:
    survive(tmp_path, habit, victim, seed + 1, kills=4)


SLOWLY = """
import os, pathlib, sys, time
path, marks = pathlib.Path(os.environ["HOSTLER_CHECKPOINT_DIR"], "ckpt.pt"), pathlib.Path(sys.argv[1])
n = int(path.read_text()) if path.exists() else 0
print("begins", n, flush=True)
while n < 12 and not (marks / "enough").exists():
    n += 1
    time.sleep(2.0)
    path.write_text(str(n))
    (marks / "saved").write_text(str(n))
"""


@pytest.mark.timeout(300)
@pytest.mark.parametrize("victim", [RUN, TOGETHER])
def test_kill_right_after_a_slow_save_loses_that_one_alone(victim: str, tmp_path: Path) -> None:
    """Each save but the last has rested; the store takes one only every five minutes."""
    with farm(str(tmp_path / "store"), tmp_path, settle=0.8) as made:
        (made.code / "slowly.py").write_text(SLOWLY)
        job = made.submit(Job(name="slowly", command=(sys.executable, "slowly.py", str(tmp_path))))
        [key] = keys_of(job)
        made.start()
        saved = tmp_path / "saved"
        until(lambda: saved.exists() and saved.read_text() == "5", why=made.said)
        kill(made, victim)
        until(lambda: len(begun(made, key)) == 2, why=made.said)
        (tmp_path / "enough").touch()
        made.finish(job, workers=1)
        assert begun(made, key)[1] in (4, 5), log_of(made, key)
