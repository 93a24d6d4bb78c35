"""`libsvm/NAME`: `NAME` and `NAME.t` in the data folder, or fetched once, however many processes ask at
a time."""

from __future__ import annotations

import bz2
import math
import os
import shutil
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

import torch

from hostler.errors import DamagedError, MissingError, SpecError
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

ROOM = 0.5  # of the machine's memory that examples may take


@dataclass
class _SparseRows:
    """The content of a file: row, column and value of each entry that is not zero."""

    path: Path
    targets: list[float] = field(default_factory=list)
    at: list[int] = field(default_factory=list)
    columns: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    width: int = 0
    widest: int = 0  # the line that says so

    def add(self, line: str, number: int) -> None:
        words = line.partition("#")[0].split()
        if not words:
            return
        self.targets.append(_number(words[0]))
        for word in words[1:]:
            column, _, value = word.partition(":")
            if int(column) < 1:
                raise ValueError
            if int(column) > self.width:
                self.width, self.widest = int(column), number
            self.at.append(len(self.targets) - 1)
            self.columns.append(int(column) - 1)
            self.values.append(_number(value))


def load(config: Config, name: str) -> Data:
    rows = {ours: _read(_file(config, name, theirs)) for ours, theirs in wanted(config).items()}
    width = max(one.width for one in rows.values())
    _check_room([*rows.values()], width)
    labels = sorted({label for one in rows.values() for label in one.targets})
    classes = labels if len(labels) <= 1000 and all(label.is_integer() for label in labels) else []
    splits = {ours: _arrays(one, width, classes) for ours, one in rows.items()}
    return Data(splits, (width,), len(classes), VECTORS, classes=tuple(f"{label:g}" for label in classes))


def _check_room(rows: list[_SparseRows], width: int) -> None:
    """Examples are kept as whole rows: one wrong index would make all of them as wide."""
    count = sum(len(one.targets) for one in rows)
    room = ROOM * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if count * width * 4 > room:
        wide = next(one for one in rows if one.width == width)
        raise SpecError(
            f"{wide.path}:{wide.widest} has the index {width}: {count} examples so wide do not fit in memory",
            hint="is it an index? Examples are kept as whole rows",
        )


def _arrays(rows: _SparseRows, width: int, classes: list[float]) -> Arrays:
    x = torch.zeros(len(rows.targets), width)
    places = torch.tensor(rows.at, dtype=torch.long), torch.tensor(rows.columns, dtype=torch.long)
    x[places] = torch.tensor(rows.values)
    if not classes:
        return Arrays(x, torch.tensor(rows.targets))
    number = {label: place for place, label in enumerate(classes)}
    return Arrays(x, torch.tensor([number[label] for label in rows.targets]))


def _read(path: Path) -> _SparseRows:
    found, count = _SparseRows(path), 0
    try:
        with bz2.open(path, "rt") if path.suffix == ".bz2" else path.open() as lines:
            for count, line in enumerate(lines, 1):
                found.add(line, count)
    except UnicodeDecodeError:
        raise DamagedError(f"{path} is not a libsvm file: after line {count} it is not text") from None
    except ValueError:
        raise DamagedError(f"{path}:{count} is not a line of a libsvm file") from None
    except (OSError, EOFError) as error:
        raise DamagedError(f"{path} cannot be read: {error}") from None
    return found


def _number(text: str) -> float:
    found = float(text)
    if not math.isfinite(found):
        raise ValueError
    return found


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
