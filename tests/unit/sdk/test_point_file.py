from __future__ import annotations

import errno
import math
import os
import signal
import struct
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hostler.records.series.points import PointFolder, PointReader, survey
from hostler.sdk import point_file
from hostler.sdk.point_file import NoRoom, PointFile

SOURCE = str(Path(point_file.__file__).parents[2])


def read(path: Path) -> list[tuple[int, dict[str, float]]]:
    reader, found = PointReader(path), []
    while points := reader.read():
        found += [(point.step, dict(point.values)) for point in points]
    return found


def test_points_are_read_while_the_file_grows_ahead_of_zeros(tmp_path: Path) -> None:
    file, reader = PointFile(tmp_path / "m"), PointReader(tmp_path / "m")
    assert reader.read() == []
    file.add(1, {"loss": 0.5})
    assert [p.step for p in reader.read()] == [1]
    assert reader.read() == []
    file.add(2, {"loss": 0.25, "acc": 1})
    assert [dict(p.values) for p in reader.read()] == [{"loss": 0.25, "acc": 1.0}]


def test_ten_thousand_points_pass_several_chunks(tmp_path: Path) -> None:
    file = PointFile(tmp_path / "m")
    for step in range(10_000):
        file.add(step, {"a": step, "b": -step})
    assert file.points == 10_000
    assert read(tmp_path / "m") == [(n, {"a": n, "b": -n}) for n in range(10_000)]


def test_nan_and_infinities_are_kept(tmp_path: Path) -> None:
    file = PointFile(tmp_path / "m")
    file.add(0, {"a": math.nan, "b": math.inf, "c": -math.inf})
    [(_, values)] = read(tmp_path / "m")
    assert math.isnan(values["a"]) and values["b"] == math.inf and values["c"] == -math.inf


def test_what_is_no_number_leaves_nothing_behind_it(tmp_path: Path) -> None:
    file = PointFile(tmp_path / "m")
    file.add(1, {"a": 1})
    with pytest.raises((struct.error, TypeError)):
        file.add(2, {"a": 5, "b": "text"})
    file.add(3, {"a": 3})
    assert read(tmp_path / "m") == [(1, {"a": 1}), (3, {"a": 3})]


def test_a_closed_file_holds_its_points_and_no_zeros(tmp_path: Path) -> None:
    file = PointFile(tmp_path / "m")
    file.add(1, {"a": 1})
    file.close()
    file.close()
    assert (tmp_path / "m").stat().st_size == survey(tmp_path / "m").size
    assert read(tmp_path / "m") == [(1, {"a": 1})]


def test_second_process_of_an_attempt_continues_behind_the_first(tmp_path: Path) -> None:
    PointFile(tmp_path / "m").add(1, {"a": 1, "b": 2})
    second = PointFile(tmp_path / "m")
    assert second.points == 1
    second.add(2, {"b": 3, "c": 4})
    assert read(tmp_path / "m") == [(1, {"a": 1, "b": 2}), (2, {"b": 3, "c": 4})]


def test_threads_log_at_the_same_time(tmp_path: Path) -> None:
    file = PointFile(tmp_path / "m")

    def log(name: str) -> None:
        for step in range(2000):
            file.add(step, {name: step})

    threads = [threading.Thread(target=log, args=(f"t{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = read(tmp_path / "m")
    assert len(found) == 8000
    for n in range(4):
        assert [step for step, values in found if f"t{n}" in values] == list(range(2000))


def test_signal_handler_may_log_in_the_middle_of_a_log(tmp_path: Path) -> None:
    file = PointFile(tmp_path / "m")
    before = signal.signal(signal.SIGALRM, lambda *_: file.add(-1, {"alarm": 1.0}))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
        for step in range(20_000):
            file.add(step, {"a": step})
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    found = read(tmp_path / "m")
    assert [step for step, values in found if "a" in values] == list(range(20_000))
    assert any("alarm" in values for _, values in found)


def test_names_first_logged_by_signal_and_loop_at_once_stay_apart(tmp_path: Path) -> None:
    class Interrupted(str):
        """A name in the middle of whose definition a signal arrives."""

        def encode(self, *args: str, **more: str) -> bytes:
            file.add(-1, {"alarm": 1.0})
            return super().encode(*args, **more)

    file = PointFile(tmp_path / "m")
    for step in range(3):
        file.add(step, {Interrupted("a"): step})
    assert read(tmp_path / "m") == [
        (0, {"a": 0.0}),
        (-1, {"alarm": 1.0}),
        (1, {"a": 1.0}),
        (2, {"a": 2.0}),
    ]


def test_signal_inside_a_write_overwrites_no_point(tmp_path: Path) -> None:
    signals = iter([True] * 3)

    def clock() -> float:
        if next(signals, False):
            file.add(-1, {"alarm": 1.0})
        return 1.0

    file = PointFile(tmp_path / "m", clock=clock)
    for step in range(3):
        file.add(step, {"a": step})
    found = read(tmp_path / "m")
    assert [step for step, values in found if "a" in values] == [0, 1, 2]
    assert sum("alarm" in values for _, values in found) == 3 and file.points == 6


def test_a_full_disk_drops_points_and_counts_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    file = PointFile(tmp_path / "m", monotonic=lambda: now[0])
    full = True

    def allocate(handle: int, size: int) -> None:
        if full:
            raise OSError(errno.ENOSPC, "No space left on device")
        os.posix_fallocate(handle, 0, size)

    monkeypatch.setattr(point_file, "_allocate", allocate)
    kept = 0
    with pytest.raises(NoRoom):
        for step in range(100_000):
            file.add(step, {"a": step})
            kept += 1
    with pytest.raises(NoRoom):
        file.add(-1, {"a": 0})
    assert file.dropped == 2
    full = False
    now[0] = 100.0
    file.add(kept, {"a": kept})
    assert len(read(tmp_path / "m")) == kept + 1


def test_names_of_every_kind_and_the_largest_steps_come_back(tmp_path: Path) -> None:
    file = PointFile(tmp_path / "m")
    values = {"a/b c": 1.0, "größe": 2.0, "": 3.0, "x" * 5000: 4.0}
    file.add((1 << 63) - 1, values)
    file.add(-(1 << 63), values)
    assert read(tmp_path / "m") == [((1 << 63) - 1, values), (-(1 << 63), values)]


def test_a_record_longer_than_a_piece_is_read_whole(tmp_path: Path) -> None:
    file = PointFile(tmp_path / "m")
    values = {f"n{n}": float(n) for n in range(3000)}
    file.add(1, values)
    reader, found = PointReader(tmp_path / "m"), []
    while points := reader.read(100):
        found += points
    assert dict(found[0].values) == values


def test_files_of_all_ranks_are_one_stream(tmp_path: Path) -> None:
    folder = PointFolder(tmp_path / "metrics.bin")
    PointFile(tmp_path / "metrics.bin").add(0, {"a": 0})
    assert [p.step for p in folder.read()] == [0]
    PointFile(tmp_path / "metrics-3.bin").add(3, {"a": 3})
    PointFile(tmp_path / "metrics-1.bin").add(1, {"a": 1})
    assert [p.step for p in folder.read()] == [1]
    assert [p.step for p in folder.read()] == [3]
    assert folder.read() == []


def test_forked_child_lets_go_of_the_file_and_spares_it(tmp_path: Path) -> None:
    file = PointFile(tmp_path / "m")
    file.add(1, {"a": 1})
    pid = os.fork()
    if pid == 0:
        file.disown()
        file.close()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    file.add(2, {"a": 2})
    assert [step for step, _ in read(tmp_path / "m")] == [1, 2]


@pytest.mark.parametrize("run", range(3))
def test_every_point_is_there_when_the_process_is_killed(tmp_path: Path, run: int) -> None:
    script = (
        "import sys; from pathlib import Path; from hostler.sdk.point_file import PointFile\n"
        "file = PointFile(Path(sys.argv[1]))\n"
        "for n in range(20000):\n"
        "    file.add(n, dict(a=n, b=n, c=n, d=n, e=n))\n"
        "    if n % 100 == 99: print(n, flush=True)\n"
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "m")]
    with subprocess.Popen(
        command, env={**os.environ, "PYTHONPATH": SOURCE}, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        if run == 2:  # to its end
            last = int(process.stdout.read().split()[-1])
        else:
            for _ in range(20 + 40 * run):
                last = int(process.stdout.readline())
            process.kill()
    found = read(tmp_path / "m")
    assert [step for step, _ in found] == list(range(len(found)))
    assert all(values == dict.fromkeys("abcde", float(step)) for step, values in found)
    assert len(found) > last
    assert run != 2 or len(found) == 20_000
