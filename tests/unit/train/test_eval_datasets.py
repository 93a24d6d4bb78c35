"""`eval_datasets`: other data that the same model is evaluated on, beside the splits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hostler.errors import MissingError, SpecError
from hostler.train.config import Config
from hostler.train.data import sources
from small_trainings import Place, place

__all__ = ["place"]


def write(folder: Path, name: str, rows: list[str]) -> None:
    (folder / name).write_text("".join(f"{row}\n" for row in rows))


def config(folder: Path, **others: str) -> Config:
    return Config(dataset="libsvm/a", data_dir=str(folder), data_download=False, eval_datasets=others)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, "a", ["1 1:1 3:1", "2 2:1"])
    write(tmp_path, "a.t", ["1 1:1"])
    write(tmp_path, "b.t", ["1 1:0.5", "2 2:0.5", "2 2:0.25"])
    write(tmp_path, "b.val", ["1 3:1", "2 1:1"])
    write(tmp_path, "c.t", ["1 1:1", "7 1:1"])
    write(tmp_path, "wide.t", ["1 9:1", "2 1:1"])
    return tmp_path


def test_other_sets_are_evaluated_beside_the_splits(folder: Path) -> None:
    data = sources.load(config(folder, v2="libsvm/b", mine="libsvm/b@val"))
    assert {name: len(one) for name, one in data.splits.items()} == {
        "train": 2,
        "test": 1,
        "v2": 3,
        "mine": 2,
    }
    assert data.splits["v2"][0][0].tolist() == [0.5, 0.0, 0.0]
    assert [int(data.splits["v2"][n][1]) for n in range(3)] == [0, 1, 1]


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ("libsvm/c", "v2: libsvm/c has other classes than libsvm/a"),
        ("libsvm/wide", r"v2: examples of libsvm/wide are of the shape \[9\], not \[3\]"),
        ("nothing", "nothing.t does not exist"),
    ],
)
def test_set_that_does_not_fit_is_said(folder: Path, other: str, said: str) -> None:
    with pytest.raises((SpecError, MissingError), match=said):
        sources.load(config(folder, v2=other))


def test_name_alone_is_of_the_same_source(folder: Path) -> None:
    data = sources.load(config(folder, v2="b", mine="b@val"))
    assert (len(data.splits["v2"]), len(data.splits["mine"])) == (3, 2)


def test_other_sets_are_columns_of_each_epoch(place: Place) -> None:
    x, y = np.eye(6, dtype=np.float32), np.arange(6) % 3
    for name, count in (("one", 6), ("two", 4)):
        np.savez(f"{name}.npz", x_train=x, y_train=y, x_test=x[:count], y_test=y[:count])
    given = {
        "dataset": "npz/one.npz",
        "data_dir": ".",
        "eval_datasets": {"v2": "two.npz", "all": "npz/one.npz"},
    }
    for averaging in (None, "ema_0.5"):
        place.train(**given, averaging=averaging, batch_size=3, save_best_checkpoint=True,
                    best_checkpoint_metric="v2/last/accuracy")  # fmt: skip
        rows = place.rows()
        assert len(rows) == 2 and all(0 <= float(row["v2/last/accuracy"]) <= 1 for row in rows)
        assert all(row["all/last/loss"] == row["test/last/loss"] != row["v2/last/loss"] for row in rows)
    assert float(rows[-1]["v2/av/loss"]) > 0


def test_name_of_a_split_is_refused(folder: Path) -> None:
    with pytest.raises(SpecError, match="'test' is a split of data_splits_map, too"):
        config(folder, test="libsvm/b")


def test_pictures_of_another_file_are_evaluated(tmp_path: Path) -> None:
    x, y = np.zeros((4, 8, 8, 3), dtype=np.uint8), np.array([0, 1, 2, 0])
    np.savez(tmp_path / "one.npz", x_train=x, y_train=y, x_test=x[:2], y_test=y[:2])
    np.savez(tmp_path / "two.npz", x_train=x, y_train=y, x_test=x[1:], y_test=y[1:])
    data = sources.load(
        Config(dataset="npz/one.npz", data_dir=str(tmp_path), eval_datasets={"v2": "npz/two.npz@train"})
    )
    assert {name: len(one) for name, one in data.splits.items()} == {"train": 4, "test": 2, "v2": 4}
