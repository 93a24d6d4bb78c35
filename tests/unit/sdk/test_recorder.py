from __future__ import annotations

import math
import warnings
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import servers
from hostler.records.series.points import PointReader
from hostler.sdk.point_file import PointFile
from hostler.sdk.recorder import Recorder


class Log:
    def __init__(self, folder: Path) -> None:
        self.said: list[str] = []
        self.output = folder / "output"
        self._path = folder / "metrics.bin"
        self.recorder = Recorder(PointFile(self._path), self.output, self.said.append)

    def add(self, step: Any, values: dict[Any, Any]) -> None:
        """As the run does it."""
        try:
            self.recorder.add(step, values)
        except Exception:
            self.recorder.sort_out(step, values)

    def points(self) -> list[tuple[int, dict[str, float]]]:
        reader, found = PointReader(self._path), []
        while points := reader.read():
            found += [(point.step, dict(point.values)) for point in points]
        return found


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path)


class Broken:
    def __float__(self) -> float:
        raise RuntimeError("not today")


@pytest.mark.parametrize(
    "value",
    [1, 1.0, True, np.float32(1), np.int64(1), np.bool_(True), np.array(1.0), np.array([1.0]), Decimal(1)],
    ids=lambda v: type(v).__name__,
)
def test_anything_that_is_a_number_is_a_point(log: Log, value: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        log.add(3, {"a": value})
    if isinstance(value, np.ndarray) and value.ndim:
        assert len(list(log.output.rglob("*.npy"))) == 1
    else:
        assert log.points() == [(3, {"a": 1.0})] and log.said == []


def test_a_tensor_without_dimensions_is_a_number() -> None:
    torch = servers.library("torch")
    assert float(torch.tensor(1.5)) == 1.5


def test_metric_that_is_not_a_number_is_reported_once(log: Log) -> None:
    for step in range(3):
        log.add(step, {"loss": None, "acc": step, "odd": Broken(), "z": 1j})
    assert log.points() == [(n, {"acc": n}) for n in range(3)]
    assert len(log.said) == 3
    assert "'loss' is not a number but of type NoneType: dropped" in log.said[0]


def test_nested_metrics_are_named_with_slashes(log: Log) -> None:
    log.add(1, {"val": {"acc": 0.5, "top": {"five": 0.9}}, "loss": 1})
    assert log.points() == [(1, {"val/acc": 0.5, "val/top/five": 0.9, "loss": 1.0})]


def test_names_that_are_no_text_are_made_text(log: Log) -> None:
    log.add(1, {7: 1.0, ("a", 1): 2.0})
    assert log.points() == [(1, {"7": 1.0, "('a', 1)": 2.0})]


@pytest.mark.parametrize("step", [3.0, np.int64(3), np.float32(3), True])
def test_step_of_another_whole_number_type_is_that_step(log: Log, step: Any) -> None:
    log.add(step, {"a": 1})
    assert log.points() == [(int(step), {"a": 1.0})]


@pytest.mark.parametrize("step", [1.5, "x", None, math.nan, math.inf, 1 << 70])
def test_a_step_that_is_none_is_said(log: Log, step: Any) -> None:
    log.add(step, {"a": 1})
    log.add(step, {"a": 1})
    assert log.points() == [] and len(log.said) == 1 and "step" in log.said[0]


def test_text_arrays_and_pictures_are_kept_as_files(log: Log) -> None:
    class Picture:
        mode, size = "RGB", (2, 2)

        def save(self, path: Path, format: str) -> None:
            path.write_bytes(b"png")

    class Figure:
        def savefig(self, path: Path, format: str) -> None:
            path.write_bytes(b"figure")

    values = {"note": "hello", "sample/image": Picture(), "w": np.arange(3), "fig": Figure(), "many": [1, 2]}
    log.add(5, {**values, "loss": 1})
    assert log.points() == [(5, {"loss": 1.0})]
    folder = log.output / "logged"
    assert (folder / "note" / "00000005.txt").read_text() == "hello"
    assert (folder / "sample" / "image" / "00000005.png").read_bytes() == b"png"
    assert (folder / "fig" / "00000005.figure.png").read_bytes() == b"figure"
    assert np.load(folder / "w" / "00000005.npy").tolist() == [0, 1, 2]
    assert (folder / "many" / "00000005.json").read_text() == "[1, 2]"
    assert any("'note' is not a number but text: kept" in line for line in log.said)


def test_a_name_cannot_lead_out_of_the_output_folder(log: Log) -> None:
    log.add(0, {"../../../escape": "text", "/abs/olute": "text"})
    files = list(log.output.parent.rglob("*.txt"))
    assert len(files) == 2 and all(path.is_relative_to(log.output) for path in files)


def test_unwritable_output_folder_is_reported_and_harms_nothing(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.output.write_text("a file is in the way")
    log.add(0, {"note": "text"})
    log.add(1, {"a": 1})
    assert log.points() == [(1, {"a": 1.0})] and len(log.said) == 1


def test_a_forked_child_logs_nowhere(log: Log) -> None:
    log.recorder.disown()
    log.add(1, {"a": 1})
    assert log.points() == []
