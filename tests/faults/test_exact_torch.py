"""A torch training killed again and again ends as one that never was: weights, metrics, early stopping.

The kills come at random moments, and every second one inside the writing of a checkpoint.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from schedule import repeatable

import servers
from hostler.records.rows import rows
from hostler.records.run import control
from hostler.records.series import metrics
from hostler.store import open_store
from kill_world import carry_out

SCRIPT = Path(__file__).with_name("exact_torch_training.py").read_text()
STEPS = 96


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
        for name in ("loss", "lr", "epoch/best")
    }
    assert len(curves["loss"]) == STEPS
    return state.end["result"], curves


def killed_it_is_the_same(folder: Path, kind: str, kills: int, seed: int) -> None:
    script = SCRIPT.replace("sys.argv[1]", repr(kind))
    calm, killed = carry_out(folder, script, kills=kills, naps=STEPS // (kills + 1), seed=seed, in_saves=True)
    assert (calm.killed, killed.killed) == (0, kills), "it was over before it could be killed"
    assert "passed over" not in killed.said, killed.said
    assert outcome(killed.folder) == outcome(calm.folder)


@pytest.mark.parametrize("kind", ["mlp", "gpt"])
def test_killed_twice_it_ends_as_if_it_never_was(tmp_path: Path, kind: str) -> None:
    killed_it_is_the_same(tmp_path, kind, 2, seed=repeatable())


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("kind", ["mlp", "gpt"])
def test_killed_twenty_times_it_ends_as_if_it_never_was(tmp_path: Path, kind: str) -> None:
    killed_it_is_the_same(tmp_path, kind, 20, seed=11)
