"""`keep_best` on a disk whose writes are held up, and with steps and names of any kind."""

from __future__ import annotations

import errno
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from hostler.records.checkpoint import saved_folder
from hostler.sdk.checkpoint import part
from hostler.sdk.checkpoint.bests import places
from hostler.sdk.leaving import Leaving


class Disk:
    """One whose writes wait until they are let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._free, self.begun = threading.Event(), threading.Event()
        self._write = part.write_file
        self.written: list[str] = []
        monkeypatch.setattr(part, "write_file", self._held)

    def _held(self, path: Path, buffers: Any) -> Any:
        self.begun.set()
        assert self._free.wait(30)
        if path.name.startswith("tensors"):
            self.written.append(f"{path.parent.parent.name}/{path.parent.name}")
        return self._write(path, buffers)

    def let_go(self) -> None:
        self._free.set()


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


def kept(handed: Any, metric: str = "acc") -> Any:
    text = (handed.folder.output / "best" / metric / "state-0000.json").read_text()
    return json.loads(text)["objects"]["counter"]["n"]


def test_log_never_waits_for_a_best_checkpoint_being_written(
    handed: Any, counter: Any, start: Any, disk: Disk
) -> None:
    with start() as run:
        run.track(counter=counter)
        run.keep_best("acc")
        for n in range(5):
            counter.n = n
            run.log(acc=n)  # would wait for ever
            assert disk.begun.wait(30)
        counter.n = 99
        disk.let_go()
        run.finish()
    assert kept(handed) == 4
    bests = [name for name in disk.written if name.startswith("acc")]
    assert bests == ["acc/step-000000000001", "acc/step-000000000005"], "those between were never begun"


def test_loop_never_waits_for_the_best_and_checkpoints_after_it(
    handed: Any, counter: Any, start: Any, disk: Disk
) -> None:
    with start(save_every="epoch") as run:
        run.track(counter=counter)
        run.keep_best("acc")
        for epoch in run.epochs(4):
            counter.n = epoch
            run.log(acc=epoch)
        assert saved_folder.committed(handed.folder.checkpoint) == []
        disk.let_go()
    assert disk.written[0] == "acc/step-000000000001" and kept(handed) == 3
    first = disk.written.index("checkpoint/step-000000000001")
    assert disk.written.index("acc/step-000000000001") < first


def test_a_state_that_cannot_be_taken_harms_no_one(handed: Any, counter: Any, start: Any, disk: Disk) -> None:
    taken = counter.state_dict
    with start() as run:
        run.track(counter=counter)
        run.keep_best("acc")
        run.log(acc=1)
        run.log(acc=2)
        counter.state_dict = None
        run.log(acc=3)
        counter.state_dict = taken
        disk.let_go()
    assert kept(handed) == 0


def test_the_best_is_the_best_whatever_its_step(handed: Any, counter: Any, start: Any) -> None:
    values = {900: 1, 800: 2, 10: 5, 700: 3, 0: 4}
    with start() as run:
        run.track(counter=counter)
        run.keep_best("acc")
        for step, value in values.items():
            counter.n = value
            run.log(acc=value, step=step)
    assert kept(handed) == 5


def test_what_is_tracked_later_is_in_the_next_best_one(handed: Any, counter: Any, start: Any) -> None:
    with start() as run:
        run.track(counter=counter)
        run.keep_best("acc")
        run.log(acc=1)
        run.track(more=type(counter)())
        run.log(acc=2)
    text = (handed.folder.output / "best" / "acc" / "state-0000.json").read_text()
    assert set(json.loads(text)["objects"]) == {"counter", "more"}


def test_every_metric_has_a_folder_of_its_own() -> None:
    names = ["a/b", "a-b", "..", "", "a\nb", "x" * 300, "val/top 1 %", "ünï"]
    found = places(names)
    assert len(set(found.values())) == len(names) and found["a/b"] == "a-b" and found["ünï"] == "ünï"
    assert all(name.strip(".") and "/" not in name and len(name.encode()) <= 100 for name in found.values())


def test_another_goal_begins_anew_and_is_kept(handed: Any, counter: Any, start: Any) -> None:
    with start() as run:
        run.track(counter=counter)
        run.keep_best("acc", "max")
        for n in (1, 2, 3):
            run.log(acc=n)
        run.keep_best("acc", "min")
        counter.n = 7
        run.log(acc=8)
    assert kept(handed) == 7 and run.best == {"acc": 8.0}


def test_best_checkpoint_of_a_cut_off_course_is_not_shown(handed: Any, counter: Any, start: Any) -> None:
    def train(curve: dict[int, float], stop: int | None) -> None:
        with start(save_every="2 steps") as run:
            run.track(counter=counter)
            run.keep_best("acc")
            for step in run.steps(6):
                counter.n = step
                run.log(acc=curve.get(step, 0.0))
                run.save(wait=True) if step == 1 else None
                if step == stop:
                    raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train({1: 0.5, 3: 0.9}, stop=3)
    for mark in saved_folder.committed(handed.folder.checkpoint)[:-1]:
        saved_folder.remove(handed.folder.checkpoint, mark)
    handed.again("second")
    train({1: 0.5}, stop=None)
    again = handed.folder.folder.with_name("second")
    text = (again / "output" / "best" / "acc" / "state-0000.json").read_text()
    assert json.loads(text)["objects"]["counter"]["n"] == 1


def test_a_stop_request_writes_the_best_one_that_waits(
    handed: Any, counter: Any, start: Any, disk: Disk
) -> None:
    with pytest.raises(Leaving), start() as run:
        run.track(counter=counter)
        run.keep_best("acc")
        for step in run.steps(9):
            counter.n = step
            run.log(acc=step)
            if step == 3:
                disk.let_go()
                run._home.folder.request_stop("preempted")
                run._home._looked = float("-inf")
    found = saved_folder.committed(handed.folder.checkpoint / "best" / "acc")
    assert found[0].step == 4, "the fourth that was the best"


def test_best_refused_by_a_full_disk_is_retried_at_end(
    handed: Any, counter: Any, start: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    write, full = part.write_file, threading.Event()

    def fails(path: Path, buffers: Any) -> Any:
        if full.is_set():
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(path, buffers)

    monkeypatch.setattr(part, "write_file", fails)
    with start() as run:
        run.track(counter=counter)
        run.keep_best("acc")
        run.log(acc=1)
        assert run._keeper._bests._made["acc"].wait(30)
        full.set()
        counter.n = 5
        run.log(acc=2)
        assert run._keeper._bests._made["acc"].wait(30)
        full.clear()
        counter.n = 9
    assert kept(handed) == 5
    said = capfd.readouterr().err
    assert "No space left" in said and "is lost" not in said
