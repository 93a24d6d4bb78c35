"""How long a shared process waits for its runs: while they keep coming, and no longer."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from hostler.worker.process.process import Process
from hostler.worker.shared.process import Missed, SharedProcess
from hostler.worker.shared.slot import SharedSlot

ARGV = [sys.executable, "-c", "import time; time.sleep(60)"]


def boarded(shared: SharedProcess, folder: Path, run: str) -> SharedSlot:
    (folder / run).mkdir()
    return shared.board(run, ARGV, cwd=folder, env={}, folder=folder / run, log=folder / run / "output.log")


def test_late_run_is_told_that_the_others_have_gone(tmp_path: Path) -> None:
    removed: list[Path] = []
    shared = SharedProcess(["a", "b"], tmp_path / "shared", Process.start, removed.append, patience=0.0)
    slot = boarded(shared, tmp_path, "a")
    with pytest.raises(Missed):
        boarded(shared, tmp_path, "b")
    assert slot.others == 0 and slot.poll() is None
    shared.quit("b", tmp_path / "b")
    assert slot.poll() is None and not removed
    slot.close()
    shared.quit("a", tmp_path / "a")
    assert slot.poll() is not None and len(removed) == 3


def test_those_that_are_ready_wait_while_others_keep_coming(tmp_path: Path) -> None:
    shared = SharedProcess(
        ["a", "b", "c"], tmp_path / "shared", Process.start, lambda folder: None, patience=600.0
    )
    slots: dict[str, SharedSlot] = {}
    threads = [
        threading.Thread(target=lambda run=run: slots.update({run: boarded(shared, tmp_path, run)}))  # type: ignore[misc]
        for run in ("a", "b")
    ]
    for one in threads:
        one.start()
    shared.quit("c", tmp_path / "c")  # it will never come: nobody waits for it
    for one in threads:
        one.join(60)
    assert {run: slot.others for run, slot in slots.items()} == {"a": 1, "b": 1}
    assert slots["a"].pid == slots["b"].pid
    for run, slot in slots.items():
        slot.close()
        shared.quit(run, tmp_path / run)
