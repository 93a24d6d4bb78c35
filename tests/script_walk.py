"""A script without a line of hostler, swept by a file, killed at a random moment, and finished.

The kill is of the script's process, of its worker, or of both; the moment is drawn once the store has a
checkpoint that it goes on from. Only the first run of the sweep is killed. Its boolean and its list change
nothing about the training, so the others, undisturbed, have the curve that the first must end with.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from cli_world import World
from hostler import proctable
from hostler.records.checkpoint import checkpoints
from hostler.records.rows import Row, rows
from hostler.records.run import control
from hostler.records.series import metrics
from hostler.store import open_store

PROCESS, WORKER, BOTH = "process", "worker", "both"
VICTIMS = (PROCESS, WORKER, BOTH)
SETTLE = 0.3
LATE = 1.0  # seconds until a worker that shares its processor has looked at files that rest
SWEEP = ("sweep", "-y", "--wait", "sweep.yaml")


def largest_number(folder: Path) -> int:
    """The largest number in a name of a file or folder: that of `checkpoint-20`, `epoch_3.pt`."""
    names = [path.name for path in folder.rglob("*")]
    return max((int(number) for name in names for number in re.findall(r"\d+", name)), default=0)


def number_in(name: str, key: str) -> Callable[[Path], int]:
    """Reader of a number that a JSON file has."""

    def read(folder: Path) -> int:
        try:
            return int(json.loads((folder / name).read_text())[key])
        except (OSError, ValueError):  # missing, or being written
            return 0

    return read


@dataclass(frozen=True)
class Script:
    """A project, its sweep file without parameters, and what is to become of it."""

    files: Mapping[str, str]
    sweep: str
    metric: str  # as the tool prints it
    steps: int  # points of the metric after the last epoch
    also: tuple[str, ...] = ()  # metrics of which there is a point besides
    boolean: str = "amp"
    many: str = "layers"
    lists: tuple[tuple[int, ...], ...] = ((3, 4),)
    more: str = ""  # parameters besides
    saved: Callable[[Path], int] = largest_number  # epochs that a checkpoint folder has
    outputs: tuple[str, ...] = ("results/config.json", "results/history.csv")
    exact: bool = True  # it goes on to the bit
    unprinted: int = 0  # epochs that may be saved, and lost before they are printed
    env: Mapping[str, str] = field(default_factory=dict)

    def text(self) -> str:
        """The sweep file."""
        lists = [list(one) for one in self.lists]
        many = lists if lists[1:] else f"{{value: {lists[0]}}}"
        swept = f"  {self.boolean}: [true, false]\n  {self.many}: {many}\n{self.more}"
        return f"{self.sweep}checkpoint: {{every: 1}}\nparameters:\n{swept}"


def walk(
    world: World, script: Script, victim: str, seed: int, begin: Sequence[str] = ("-m", "hostler", *SWEEP)
) -> None:
    """Sweep, kill, finish; then look at everything that a person would look at. `begin`: words after
    `python` that begin the sweep and wait for its end."""
    _write(world, script)
    command = _begun(world, begin)
    floor, ceiling = _kill(world, command, script, victim, random.Random(f"{seed} {victim}"))
    out, err = command.communicate(timeout=240)
    log = world.run("logs", "sweep").out
    assert command.returncode == 0, out + err + log
    killed, *others = _rows(world)
    swept = {(row.params[script.boolean], tuple(row.params[script.many])) for row in (killed, *others)}
    assert swept == set(product((True, False), script.lists))
    assert [row.state for row in others] == [killed.state] * len(others) == ["done"] * len(others), log
    resumed = [int(number) for number in re.findall(r"resumed from epoch (\d+)", log)]
    assert len(resumed) == killed.attempt - 1 == 1, log
    assert 0 < floor <= resumed[0] <= ceiling, (floor, resumed, ceiling, log)
    curve, whole = _curve(world, killed, script.metric), _curve(world, others[-1], script.metric)
    assert len(whole) == script.steps, (whole, log)
    steps, missing = [step for step, _ in curve], len(whole) - len(curve)
    assert steps == [step for step, _ in whole if step in steps] and 0 <= missing <= script.unprinted, log
    for step, value in curve:
        right = dict(whole)[step]
        assert value == right if script.exact else abs(value - right) <= 0.05 * abs(right) + 1e-3, log
    for row in (killed, *others):
        assert all(_curve(world, row, name) for name in script.also), log
        _check_files(world, script, row)


def _write(world: World, script: Script) -> None:
    (world.folder / "train.py").unlink()
    for name, text in script.files.items():
        (world.folder / name).parent.mkdir(exist_ok=True)
        world.write(name, text)
    world.write("sweep.yaml", script.text())
    world.env |= {"HOSTLER_SETTLE": str(SETTLE), "OMP_NUM_THREADS": "1", **script.env}


def _kill(
    world: World, command: subprocess.Popen[str], script: Script, victim: str, rng: random.Random
) -> tuple[int, int]:
    """Kill the first run's first attempt: epochs that were safe then, and epochs that were begun."""
    folder, pid = first_process(world, command)
    run, store = folder.name.removesuffix("-1"), open_store(str(world.store))
    _awaited(command, lambda: checkpoints.committed(store, run) and _safe(world, script, run))
    moment, seen = time.monotonic() + rng.uniform(0.0, 1.5), list[tuple[float, int]]()
    while time.monotonic() < moment:
        seen.append((time.monotonic(), script.saved(folder / "checkpoint")))
        time.sleep(0.02)
    rested = [n for when, n in seen if when < time.monotonic() - SETTLE - LATE]
    safe = max([_safe(world, script, run), *rested])
    if victim != PROCESS:
        send_kill(worker_of(world))
    if victim != WORKER:
        send_kill(pid)
    while (row := proctable.row(pid)) is not None and row.alive:  # without its worker it goes in a moment
        seen.append((time.monotonic(), script.saved(folder / "checkpoint")))
        time.sleep(0.02)
    return safe, max([safe, *(n for _, n in seen)]) + 1


def first_process(world: World, command: subprocess.Popen[str]) -> tuple[Path, int]:
    """The folder and the process of the first run's first attempt, once they are there."""
    runs = Path(world.env["HOSTLER_CACHE"]) / "runs"
    folder: Path = _awaited(command, lambda: next(runs.glob("*/0000000-*-1"), None))
    return folder, int(_awaited(command, lambda: _read(folder / "process.json"))["pid"])


def _awaited(command: subprocess.Popen[str], what: Callable[[], Any]) -> Any:
    while not (found := what()):
        assert command.poll() is None, command.communicate()
        time.sleep(0.02)
    return found


def _begun(world: World, words: Sequence[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *words],
        cwd=world.folder,
        env=world.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _safe(world: World, script: Script, run: str) -> int:
    """Epochs of the newest checkpoint in the store."""
    with tempfile.TemporaryDirectory() as place:
        target = Path(place) / "restored"
        checkpoints.restore_newest(open_store(str(world.store)), run, target, before=10**6)
        return script.saved(target)


def worker_of(world: World) -> int:
    """The worker; its parent, of the same name, starts another."""
    of_that_name = set(world.processes(holding="hostler.worker"))
    [pid] = [pid for pid in of_that_name if (row := proctable.row(pid)) and row.parent in of_that_name]
    return pid


def send_kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:  # it went with its worker
        pass


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return found


def _rows(world: World) -> list[Row]:
    return sorted(rows(open_store(str(world.store))), key=lambda row: row.id)


def _curve(world: World, row: Row, name: str) -> list[tuple[int, float]]:
    store = open_store(str(world.store))
    points = metrics.read(store, row.id, control.state_of(store, row.key).attempt)
    return [(point.step, point.values[name]) for point in points if name in point.values]


def _check_files(world: World, script: Script, row: Row) -> None:
    target = world.folder.parent / "got" / row.id
    pulled = world.run("pull", row.id, "--to", str(target))
    assert pulled.code == 0, pulled.err
    there = {str(path.relative_to(target / "outputs")) for path in (target / "outputs").rglob("*")}
    assert there >= set(script.outputs), there
    config = json.loads((target / "outputs" / script.outputs[0]).read_text())
    assert config[script.boolean] is row.params[script.boolean]
    assert [str(item) for item in config[script.many]] == [str(item) for item in row.params[script.many]]
