"""How long a band waits for its runs: while they keep coming, and no longer."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from hostler.worker.process.process import Process
from hostler.worker.shared.process import Band, Missed
from hostler.worker.shared.slot import Seat

ARGV = [sys.executable, "-c", "import time; time.sleep(60)"]


def boarded(band: Band, folder: Path, run: str) -> Seat:
    (folder / run).mkdir()
    return band.board(run, ARGV, cwd=folder, env={}, folder=folder / run, log=folder / run / "output.log")


def test_late_run_is_told_that_the_others_have_gone(tmp_path: Path) -> None:
    removed: list[Path] = []
    band = Band(["a", "b"], tmp_path / "band", Process.start, removed.append, patience=0.0)
    seat = boarded(band, tmp_path, "a")
    with pytest.raises(Missed):
        boarded(band, tmp_path, "b")
    assert seat.others == 0 and seat.poll() is None
    band.quit("b", tmp_path / "b")
    assert seat.poll() is None and not removed
    seat.close()
    band.quit("a", tmp_path / "a")
    assert seat.poll() is not None and len(removed) == 3


def test_those_that_are_ready_wait_while_others_keep_coming(tmp_path: Path) -> None:
    band = Band(["a", "b", "c"], tmp_path / "band", Process.start, lambda folder: None, patience=600.0)
    seats: dict[str, Seat] = {}
    threads = [
        threading.Thread(target=lambda run=run: seats.update({run: boarded(band, tmp_path, run)}))  # type: ignore[misc]
        for run in ("a", "b")
    ]
    for one in threads:
        one.start()
    band.quit("c", tmp_path / "c")  # it will never come: nobody waits for it
    for one in threads:
        one.join(60)
    assert {run: seat.others for run, seat in seats.items()} == {"a": 1, "b": 1}
    assert seats["a"].pid == seats["b"].pid
    for run, seat in seats.items():
        seat.close()
        band.quit(run, tmp_path / run)
