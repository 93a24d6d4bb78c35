"""`libsvm/NAME`: `NAME` and `NAME.t` in the data folder, or fetched once, however many processes ask at
a time."""

from __future__ import annotations

import bz2
import os
import shutil
import urllib.error
import urllib.request
from pathlib import Path

import torch

from hostler.errors import DamagedError, MissingError
from hostler.spec.nearest import did_you_mean
from hostler.train.config import Config
from hostler.train.data.lock import alone
from hostler.train.data.sources import wanted
from hostler.train.data.split import VECTORS, Arrays, Data

SITE = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
KINDS = ("binary", "multiclass", "regression")
SUFFIXES = {"train": "", "test": ".t", "val": ".val", "validation": ".val", "remaining": ".r"}
ENDS = ("", ".txt", ".bz2")
WAIT = 30.0  # seconds for an answer

Rows = tuple[
    list[float], list[int], list[int], list[float]
]  # targets; row, column, value of what is not zero


def load(config: Config, name: str) -> Data:
    rows = {ours: _read(_file(config, name, theirs)) for ours, theirs in wanted(config).items()}
    width = max(max(one[2], default=-1) for one in rows.values()) + 1
    labels = sorted({label for one in rows.values() for label in one[0]})
    classes = labels if len(labels) <= 1000 and all(label.is_integer() for label in labels) else []
    splits = {ours: _arrays(one, width, classes) for ours, one in rows.items()}
    return Data(splits, (width,), len(classes), VECTORS, classes=tuple(f"{label:g}" for label in classes))


def _arrays(rows: Rows, width: int, classes: list[float]) -> Arrays:
    targets, at, columns, values = rows
    x = torch.zeros(len(targets), width)
    x[torch.tensor(at, dtype=torch.long), torch.tensor(columns, dtype=torch.long)] = torch.tensor(values)
    if not classes:
        return Arrays(x, torch.tensor(targets))
    number = {label: place for place, label in enumerate(classes)}
    return Arrays(x, torch.tensor([number[label] for label in targets]))


def _read(path: Path) -> Rows:
    found: Rows = ([], [], [], [])
    with bz2.open(path, "rt") if path.suffix == ".bz2" else path.open() as lines:
        for count, line in enumerate(lines, 1):
            try:
                _line(line, found)
            except ValueError:
                raise DamagedError(f"{path}:{count} is no line of a libsvm file") from None
    return found


def _line(line: str, found: Rows) -> None:
    words = line.partition("#")[0].split()
    if not words:
        return
    found[0].append(float(words[0]))
    for word in words[1:]:
        column, _, value = word.partition(":")
        if int(column) < 1:
            raise ValueError
        found[1].append(len(found[0]) - 1)
        found[2].append(int(column) - 1)
        found[3].append(float(value))


def _file(config: Config, name: str, split: str) -> Path:
    folder = Path(config.data_dir)
    stem = name + SUFFIXES.get(split, f".{split}")
    found = _there(folder, stem)
    if found is None and config.data_download:
        found = _fetched(folder, name, stem)
    if found is None:
        near = [one.name for one in folder.glob("*")] if folder.is_dir() else []
        raise MissingError(
            f"there is no {folder / stem}", did_you_mean(stem, near, f"put the file there; it is at {SITE}")
        )
    return found


def _there(folder: Path, stem: str) -> Path | None:
    return next((folder / (stem + end) for end in ENDS if (folder / (stem + end)).is_file()), None)


def _fetched(folder: Path, name: str, stem: str) -> Path | None:
    with alone(folder / f".{stem}.lock"):
        found = _there(folder, stem)  # by whoever was first
        if found is not None:
            return found
        for kind in KINDS:
            for end in ("", ".bz2"):
                if _fetch(f"{SITE}/{kind}/{stem}{end}", folder / (stem + end)):
                    return folder / (stem + end)
    return None


def _fetch(url: str, path: Path) -> bool:
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with urllib.request.urlopen(url, timeout=WAIT) as answer, open(part, "wb") as file:
            shutil.copyfileobj(answer, file)
        os.replace(part, path)
        return True
    except urllib.error.HTTPError:
        return False
    except OSError as error:
        raise MissingError(f"{url} cannot be reached: {error}", hint=f"put the file at {path}") from None
    finally:
        part.unlink(missing_ok=True)
