"""The uploader with a clock of its own: when fragments go, and that nothing is lost while they cannot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hostler.attempt import uploader as uploaders
from hostler.attempt.uploader import ProcessOutput, Uploader
from hostler.errors import StoreUnreachable
from hostler.records import interest
from hostler.records.interest import Interest
from hostler.records.series import metrics
from hostler.records.series.logs import LogReader, LogWriter
from hostler.records.series.metrics import MetricWriter, Origin
from hostler.records.series.picker import Picker
from hostler.records.series.points import Point, pack
from hostler.settings import Timing
from hostler.spec.job import MetricSource
from hostler.store.memory import MemoryStore
from hostler.worker.prepare.mask import Masker

RUN = "0000000-r"


class Flaky(MemoryStore):
    away = False

    def put(self, key: str, data: bytes, *, if_absent: bool = False) -> bool:
        if self.away:
            raise StoreUnreachable("away")
        return super().put(key, data, if_absent=if_absent)


class Scene:
    def __init__(
        self,
        folder: Path,
        attempt: int = 1,
        store: Flaky | None = None,
        timing: Timing = Timing(flush=5.0, flush_max=60.0),
    ) -> None:
        self.now = 0.0
        self.log, self.points = folder / f"log{attempt}", folder / f"metrics{attempt}"
        self.store = store or Flaky()
        self.interest = Interest()
        written, self.writer = LogWriter(self.store, RUN, attempt), MetricWriter(self.store, RUN, attempt)
        output = ProcessOutput(self.log, written, Picker(MetricSource()), Masker(["hunter2hunter2"]))
        self.uploader = Uploader(
            self.points, self.writer, timing, lambda: self.now, lambda: self.now, self.interest, output
        )

    def print(self, text: str) -> None:
        with open(self.log, "a") as file:
            file.write(text)

    def at(self, now: float) -> str:
        """What the store holds after one tick at that time."""
        self.now = now
        self.uploader.try_tick()
        return self.stored()

    def stored(self) -> str:
        return b"".join(piece.data for piece in LogReader(self.store, RUN).read()).decode()

    def fragments(self) -> int:
        return len(list(self.store.list(f"runs/{RUN}/logs/")))

    def curve(self, attempt: int = 1) -> list[tuple[int, dict[str, float]]]:
        points = metrics.read(self.store, RUN, attempt)
        return [(point.step, dict(point.values)) for point in points]


def test_fragments_go_often_at_first_and_rarely_in_old_runs(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.print("A")
    assert scene.at(4.9) == "" and scene.at(5.0) == "A"
    scene.print("B")
    assert scene.at(9.9) == "A" and scene.at(10.0) == "AB"
    scene.print("C")
    scene.at(8000.0)
    scene.print("D")
    assert scene.at(8039.0) == "ABC" and scene.at(8041.0) == "ABCD"
    scene.at(1e6)
    scene.print("E")
    assert scene.at(1e6 + 60) == "ABCDE"


def measured(scene: Scene) -> int:
    """Fragments of points."""
    return len(list(scene.store.list(f"runs/{RUN}/metrics/")))


def test_bucket_gets_one_fragment_in_30_seconds_or_one_overall(tmp_path: Path) -> None:
    scene = Scene(tmp_path, timing=Timing())
    for second in range(1, 301):
        scene.print(f'{{"loss": {second}}}\n')
        scene.at(float(second))
        assert measured(scene) == second // 30
    scene.uploader.exited()
    scene.uploader.flush()
    before = scene.curve()
    scene.writer.pack()
    assert measured(scene) == 1
    assert scene.curve() == before == [(n, {"loss": n + 1.0}) for n in range(300)]


def test_open_dashboard_gets_a_point_after_one_beat(tmp_path: Path) -> None:
    scene, timing = Scene(tmp_path, timing=Timing()), Timing()
    scene.print('{"loss": 1}\n')
    scene.at(11.0)
    assert measured(scene) == 0  # nobody looks
    interest.show(scene.store)
    for now in (12.0, 22.0, 32.0):
        scene.interest.look(scene.store, now)  # as every beat does
        scene.print('{"loss": 1}\n')
        scene.at(now + timing.beat - 0.5)
        interest.show(scene.store)
    assert measured(scene) == 3
    interest.withdraw(scene.store)
    scene.interest.look(scene.store, 42.0)
    scene.print('{"loss": 1}\n')
    scene.at(60.0)
    assert measured(scene) == 3


def test_nothing_new_writes_nothing(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    for now in range(0, 1000, 10):
        scene.at(now)
    assert scene.fragments() == 0


def test_much_goes_at_once(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.print("x" * (uploaders.PIECE + 1))
    assert len(scene.at(0.1)) == uploaders.PIECE + 1


def test_points_are_kept_without_the_store_and_delivered_in_order(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.store.away = True
    for n in range(5):
        scene.print(f'line {n}\n{{"loss": {n}}}\n')
        assert scene.at(10.0 * n) == ""
    with pytest.raises(StoreUnreachable):
        scene.uploader.flush()
    scene.store.away = False
    scene.uploader.exited()
    scene.uploader.flush()
    assert scene.stored() == "".join(f'line {n}\n{{"loss": {n}}}\n' for n in range(5))
    assert scene.curve() == [(n, {"loss": float(n)}) for n in range(5)]
    assert scene.uploader.covered()["position"] == 5


def test_file_and_not_memory_buffers_while_the_store_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploaders, "PIECE", 100)
    monkeypatch.setattr(uploaders, "HELD", 1000)
    scene = Scene(tmp_path)
    scene.store.away = True
    text = "".join(f"{n:06d}\n" for n in range(5000))
    scene.print(text)
    scene.at(10.0)
    assert scene.uploader._queue.held <= 1100
    scene.store.away = False
    scene.uploader.exited()
    scene.uploader.flush()
    assert scene.stored() == text


def test_a_checkpoint_covers_what_was_printed_before_it(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.print('{"loss": 1}\n{"loss": 2}\n')
    covered = scene.uploader.covered()
    assert (covered["position"], covered["metric_step"]) == (2, 1) and len(scene.curve()) == 2


def test_library_checkpoint_covers_exactly_the_points_logged_before_it(
    tmp_path: Path,
) -> None:
    scene = Scene(tmp_path)
    scene.points.write_bytes(pack([Point(n, 1.0, {"loss": n}) for n in range(3)]))
    scene.at(1.0)
    scene.uploader.add(Point(2, 1.0, {"system/cpu": 0.5}))
    scene.points.write_bytes(pack([Point(n, 1.0, {"loss": n}) for n in range(6)]))
    covered = [scene.uploader.covered(logged)["position"] for logged in (0, 2, 3, 4, 6, 9)]
    assert covered == [0, 2, 3, 5, 7, 7] and scene.uploader.covered()["position"] == 7
    scene.uploader.add(Point(9, 1.0, {"system/cpu": 0.5}))
    assert scene.uploader.covered(6)["position"] == 7 and scene.uploader.covered()["position"] == 8


def test_unfinished_last_line_counts_and_half_a_secret_is_released(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.print('hunter2hunter2 {\n{"loss": 1}\nhunter2')
    scene.uploader.flush()
    assert scene.stored().startswith("*** {") and not scene.stored().endswith("hunter2")
    scene.uploader.exited()
    scene.uploader.flush()
    assert scene.stored().endswith("\nhunter2")


def test_notes_are_masked_in_the_log_and_not_judged(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.print("the end\n")
    scene.uploader.note("setup said hunter2hunter2")
    scene.uploader.flush()
    assert "[hostler] setup said ***\n" in scene.stored() and scene.uploader.tail == b"the end\n"


def test_note_on_metrics_begins_a_line_of_its_own(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    bar = "\r{}0%|#| {}/9 [00:01<00:02, 5.1it/s, loss=0.5]"
    scene.print("".join(bar.format(n, n) for n in (1, 2, 3)))
    scene.at(5.0)
    scene.print(bar.format(4, 4) + "\n")
    lines = scene.at(10.0).replace("\r", "\n").splitlines()
    said = "[hostler] metrics read from the output: loss (turn off: metrics: none)"
    bars = [bar.format(n, n).strip() for n in (1, 2, 3, 4)]
    assert [line for line in lines if line] == [*bars[:2], said, *bars[2:]]


def test_note_leaves_an_unfinished_line_of_the_process_whole(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.print("one\nhalf")
    scene.at(1.0)
    scene.uploader.note("a")
    scene.uploader.note("b")
    scene.print("way\n")
    assert scene.at(5.0) == "one\n[hostler] a\n[hostler] b\nhalfway\n"
    scene.print("sent")
    assert scene.at(10.0).endswith("halfway\nsent")
    scene.uploader.note("c")
    scene.print("last")
    scene.uploader.exited()
    scene.uploader.note("d")
    assert scene.at(15.0).endswith("halfway\nsent\n[hostler] c\nlast\n[hostler] d\n")


def test_points_of_the_library_and_the_worker_go_together(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.points.write_bytes(pack([Point(3, 1.0, {"loss": 2.0})]))
    scene.uploader.add(Point(3, 1.0, {"system/cpu": 1.0}))
    scene.uploader.flush()
    assert scene.curve() == [(3, {"system/cpu": 1.0}), (3, {"loss": 2.0})]
    steps = {"min_step": 3, "max_step": 3, "step": 3}
    assert scene.uploader.totals == {"loss": {"min": 2.0, "max": 2.0, "last": 2.0, **steps}}


def test_a_resumed_attempt_goes_on_with_steps_and_totals(tmp_path: Path) -> None:
    first = Scene(tmp_path)
    first.print('{"loss": 5}\n{"loss": 4}\n{"loss": 9}\n')
    first.uploader.flush()
    second = Scene(tmp_path, 2, first.store)
    totals: dict[str, Any] = {"loss": {"min": 4.0, "max": 5.0, "last": 4.0, "step": 1}}
    second.uploader.continue_from(Origin(1, 1, 2), {"metric_step": 1, "totals": totals})
    second.print('{"loss": 3}\n')
    second.uploader.flush()
    assert second.curve(2) == [(0, {"loss": 5.0}), (1, {"loss": 4.0}), (2, {"loss": 3.0})]
    assert second.uploader.totals["loss"] == {
        "min": 3.0,
        "min_step": 2,
        "max": 5.0,  # of an older hostler, which notes no step of it
        "last": 3.0,
        "step": 2,
    }


def test_long_runs_keep_their_extremes(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    values = [5.0, -7.0, 99.0, *[1.0] * 5000, 2.0]
    scene.print("".join(f'{{"loss": {value}}}\n' for value in values))
    scene.uploader.flush()
    last = len(values) - 1
    assert scene.uploader.totals["loss"] == {
        "min": -7.0,
        "min_step": 1,
        "max": 99.0,
        "max_step": 2,
        "last": 2.0,
        "step": last,
    }
    assert scene.uploader.steps == last


def test_moved_is_when_something_new_was_last_seen(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.print("x")
    scene.at(7.0)
    scene.uploader.note("not the run's")
    scene.at(9.0)
    assert scene.uploader.moved == 7.0


def test_watched_run_sends_fragments_with_every_beat_at_any_age(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.print("A")
    assert scene.at(40_000) == "A"  # old enough for the longest wait
    scene.print("B")
    assert scene.at(40_012) == "A"
    scene.interest.shown = True
    assert scene.at(40_013) == "AB"
    scene.print("C")
    assert scene.at(40_022) == "AB"
    assert scene.at(40_024) == "ABC"


def test_checkpoint_covers_printed_points_where_the_library_logs_none(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.print('{"loss": 1}\n{"loss": 2}\n')
    assert scene.uploader.covered(0)["position"] == 2


def test_checkpoint_covers_the_first_line_of_a_tool(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.print("epoch 0 | loss=0.5\n")
    assert scene.at(5.0) and scene.curve() == []
    assert scene.uploader.covered()["position"] == 1 and scene.curve() == [(0, {"loss": 0.5})]


def test_heartbeat_gets_what_a_run_uses_now(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.uploader.add(Point(0, 1.0, {"system/memory": 5e7, "system/cpu": 0.5}))
    scene.uploader.add(Point(0, 2.0, {"system/memory": 6e7, "system/cpu": 0.9}))
    assert scene.uploader.last_values() == {"system/memory": 6e7, "system/cpu": 0.9}
    assert scene.uploader.totals == {}


def test_point_logged_while_another_thread_reads_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(tmp_path)
    scene.points.write_bytes(pack([Point(1, 0.0, {"loss": 1.0})]))
    scene.print("a line\n")
    read_output = scene.uploader._read_output

    def exits_meanwhile(*given: Any) -> None:
        read_output(*given)
        with open(scene.points, "ab") as points:
            points.write(pack([Point(2, 0.0, {"loss": 0.5})]))
        scene.uploader._exited = True

    with monkeypatch.context() as patch:
        patch.setattr(scene.uploader, "_read_output", exits_meanwhile)
        scene.uploader.covered()  # as the saver's thread asks
    scene.uploader.exited()
    scene.uploader.flush()
    assert scene.curve() == [(1, {"loss": 1.0}), (2, {"loss": 0.5})]
