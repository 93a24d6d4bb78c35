from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import hostler
import servers
from hostler.errors import SpecError, UsageError
from hostler.records.launch import ledger
from hostler.store import open_store

SCRIPT = """
import json, sys
lr = float(sys.argv[sys.argv.index("--lr") + 1])
print(json.dumps({"step": 1, "score": -abs(lr - 2)}))
"""
MODULE = """
OFFSET = 10
def train(lr, width=1):
    return {"score": OFFSET - abs(lr - 2) * width}
def one(params):
    return params["lr"] * 2
def broken(lr):
    raise ValueError(f"no {lr}")
if __name__ == "__main__":
    raise SystemExit("imported, never run")
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOSTLER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(Path(hostler.__file__).parents[1]))
    monkeypatch.delenv("HOSTLER_STORE", raising=False)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    Path("train.py").write_text(SCRIPT)
    Path("model.py").write_text(MODULE)
    return tmp_path


def function(name: str) -> Any:
    spec = importlib.util.spec_from_file_location("model_of_test", Path("model.py").absolute())
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return getattr(module, name)


def test_a_command_over_a_grid_becomes_a_frame() -> None:
    done = hostler.sweep("python train.py", {"lr": [1, 2, 3]}, metric="score", parallel=2).wait(60)
    found = done.frame()
    assert list(found["lr"]) == [1, 2, 3]
    assert set(found["state"]) == {"done"}
    assert list(found["score"]) == [-1, 0, -1]
    assert done.best().params == {"lr": 2}
    again = hostler.sweep("python train.py", {"lr": [1, 2, 3, 4]}, metric="score").wait(60)
    assert (again.name, len(again.frame())) == (done.name, 4)


def test_a_function_of_a_file_gets_keywords_and_returns_metrics() -> None:
    space = {"lr": [1, 2], "width": {"start": 1, "step": 1, "count": 2}}
    done = hostler.sweep(function("train"), space, metric="score", name="f").wait(60)
    found = done.frame()
    assert list(found["score"]) == [9, 8, 10, 10]
    single = hostler.sweep(function("one"), {"lr": [4]}, metric="twice").wait(60)
    assert list(single.frame()["twice"]) == [8]


def test_a_function_that_raises_is_a_failed_run() -> None:
    done = hostler.sweep(function("broken"), {"lr": [1]}, retries=0).wait(60)
    assert done.rows()[0].state == "failed"
    assert "no 1" in str(done.rows()[0].failure)


def test_functions_error_points_at_the_users_line() -> None:
    row = hostler.sweep(function("broken"), {"lr": [1]}).wait(120).rows()[0]
    failure = row.failure or {}
    assert failure["message"].startswith("ValueError: no 1 (model.py:8, the same error twice")
    assert 'File "model.py", line 8, in broken' in failure["traceback"] and row.attempt == 2


def test_function_without_such_a_parameter_is_tried_once() -> None:
    row = hostler.sweep(function("train"), {"lr": [1], "depth": [2]}).wait(120).rows()[0]
    failure = row.failure or {}
    assert (failure["kind"], row.attempt) == ("usage", 1)
    assert failure["message"] == "model.py:3: train() got an unexpected keyword argument 'depth'"


def test_what_cannot_be_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SpecError, match=r"no such key 'metrik'.*did you mean 'metric'"):
        hostler.sweep("python train.py", {"lr": [1]}, metrik="x")
    with pytest.raises(SpecError, match="a grid cannot go over a continuous range"):
        hostler.sweep("python train.py", {"lr": {"min": 0, "max": 1}})
    monkeypatch.setenv("HOSTLER_DIR", "/somewhere")
    with pytest.raises(UsageError, match="inside a run"):
        hostler.sweep("python train.py", {"lr": [1]})


def test_submitting_alone_starts_nothing_and_stopping_ends_it() -> None:
    waiting = hostler.sweep("python train.py", {"lr": [1, 2]}, start=False)
    assert [row.state for row in waiting.wait(0).rows()] == ["queued"] * 2
    waiting.stop()
    assert [row.state for row in waiting.wait(5).rows()] == ["stopped"] * 2


def test_a_sweep_from_python_reserves_and_returns_its_money(folder: Path) -> None:
    Path("hostler.yaml").write_text("fleets: {desk: {backend: local, price: 36, slots: 1}}\n")
    done = hostler.sweep("python train.py", {"lr": [1, 2]}, on="desk", name="paid", budget={"cost": 30}).wait(
        60
    )
    assert {row.state for row in done.rows()} == {"done"}
    assert all(row.cost and row.cost < 1 for row in done.rows())
    store = open_store(done.store)
    end = time.monotonic() + 30
    while ledger.read(store, "paid").open and time.monotonic() < end:
        time.sleep(0.1)
    account = ledger.read(store, "paid")
    assert account.reservations[0].cost == 30 and 0 < account.committed < 2


def test_retry_takes_the_function_that_was_last_submitted() -> None:
    servers.library("cloudpickle")
    broken = hostler.sweep(lambda lr: lr / 0, {"lr": [3]}, name="f", metric="m", retries=0).wait(60)
    assert broken.rows()[0].state == "failed"
    hostler.sweep(lambda lr: lr * 2, {"lr": [3]}, name="f", metric="m", retries=0)
    words = [sys.executable, "-m", "hostler", "retry", "f"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert "f: its function is not in a file: the last submitted one is used" in done.stderr
    assert broken.wait(60).rows()[0].metrics["m"] == 6


def test_function_in_no_file_is_refused_where_code_comes_from_git() -> None:
    Path("hostler.yaml").write_text("git: https://example.org/a.git\n")
    with pytest.raises(UsageError, match=r"lambda is not in a file, and the code .* comes from https://ex"):
        hostler.sweep(lambda lr: lr, {"lr": [1]})
