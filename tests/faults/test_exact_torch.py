"""A torch training killed again and again ends as one that never was: weights, metrics, early stopping.

The kills come at random moments, and every second one inside the writing of a checkpoint. A history of them
is judged by tests/history/checker.py.
"""

from __future__ import annotations

import os
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from recorder import Recorder, events_of, sweep_as_it_is
from schedule import repeatable

import servers
from hostler.records.rows import rows
from hostler.records.run import control
from hostler.records.series import metrics
from hostler.records.sweep import sweeps
from hostler.store import open_store
from kill_world import SOURCE, carry_out

SCRIPT = Path(__file__).with_name("exact_torch_training.py").read_text()
STEPS = 96
CURVES = ("loss", "lr", "epoch/best")


@pytest.fixture(autouse=True)
def torch_is_here() -> None:
    if find_spec("torch") is None:
        servers.missing("torch is not installed")


def outcome(folder: Path) -> tuple[object, object]:
    """The result and the curves of the one run of a project."""
    store = open_store(str(folder / ".hostler"))
    [row] = rows(store)
    state = control.state_of(store, row.key)
    assert state.end is not None and row.state == "done"
    points = list(metrics.read(store, row.id, state.attempt))
    curves = {
        name: [(point.step, point.values[name]) for point in points if name in point.values]
        for name in CURVES
    }
    assert len(curves["loss"]) == STEPS
    return state.end["result"], curves


class Watcher:
    """Writes the history of the killed one of two trainings while it goes on, once its run is there."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._waiting = folder, list[dict[str, Any]]()
        self.history: Recorder | None = None

    def see(self, event: dict[str, Any]) -> None:
        if event.pop("folder") != "killed":
            return
        self._waiting.append(event)
        self.history = self.history or self._begun()
        while self.history and self._waiting:
            self.history.add(**self._waiting.pop(0), kind="script")
        if self.history:
            self.history.look()

    def _begun(self) -> Recorder | None:
        killed, names = self._folder / "killed", self.names("killed")
        environ = {**os.environ, "PYTHONPATH": str(SOURCE), "HOSTLER_CACHE": str(killed / "cache")}
        return Recorder(self.url("killed"), self._folder / "evidence", names[0], environ) if names else None

    def url(self, name: str) -> str:
        return str(self._folder / name / ".hostler")

    def names(self, name: str) -> list[str]:
        return sweeps.names(open_store(self.url(name)))

    def violations(self) -> list[str]:
        """Of the killed one's history; the other one is what it must be."""
        assert self.history is not None, "no history was written"
        [calm], [row] = self.names("calm"), rows(open_store(self.url("killed")))
        [wanted] = sweep_as_it_is(self.url("calm"), calm, os.environ, metrics=CURVES, judged="^$")
        self.history.expect({row.id: wanted})
        killed = self._folder / "killed"
        return self.history.close([row.id], killed / "cache", killed / "tmp")


def killed_it_is_the_same(folder: Path, kind: str, kills: int, seed: int) -> None:
    script, watcher = SCRIPT.replace("sys.argv[1]", repr(kind)), Watcher(folder)
    naps = STEPS // (kills + 1)
    calm, killed = carry_out(
        folder, script, kills=kills, naps=naps, seed=seed, in_saves=True, watch=watcher.see
    )
    assert (calm.killed, killed.killed) == (0, kills), "it was over before it could be killed"
    assert "passed over" not in killed.said, killed.said
    assert outcome(killed.folder) == outcome(calm.folder)
    assert watcher.violations() == []
    happened = Counter(event["what"] for event in events_of(folder / "evidence"))
    assert happened["killed"] == kills and happened["entry"] > kills and happened["saved"]


@pytest.mark.parametrize("kind", ["mlp", "gpt"])
def test_killed_twice_it_ends_as_if_it_never_was(tmp_path: Path, kind: str) -> None:
    killed_it_is_the_same(tmp_path, kind, 2, seed=repeatable())


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("kind", ["mlp", "gpt"])
def test_killed_twenty_times_it_ends_as_if_it_never_was(tmp_path: Path, kind: str) -> None:
    killed_it_is_the_same(tmp_path, kind, 20, seed=11)
