"""`libsvm/NAME`: files of the data folder, or fetched once, however many processes ask at a time.

A name that the library `libsvmdata` knows is the file that it means there; any other is `NAME` and `NAME.t`.
"""

from __future__ import annotations

import bz2
import lzma
import math
import os
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO

import torch

from hostler.errors import DamagedError, MissingError, SpecError
from hostler.spec.nearest import did_you_mean
from hostler.train.config import Config
from hostler.train.data.download import fetch
from hostler.train.data.libsvm_names import FILES
from hostler.train.data.lock import alone
from hostler.train.data.sources import wanted
from hostler.train.data.split import VECTORS, Arrays, Data

SITE = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
KINDS = ("binary", "multiclass", "regression")
SUFFIXES = {"train": "", "test": ".t", "val": ".val", "validation": ".val", "remaining": ".r"}
PACKED = (".bz2", ".xz")
ENDS = ("", ".txt", *PACKED)
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
    width = max(row.width for row in rows.values())
    _check_room([*rows.values()], width)
    labels = sorted({label for row in rows.values() for label in row.targets})
    classes = labels if len(labels) <= 1000 and all(label.is_integer() for label in labels) else []
    splits = {ours: _arrays(sparse_rows, width, classes) for ours, sparse_rows in rows.items()}
    return Data(splits, (width,), len(classes), VECTORS, classes=tuple(f"{label:g}" for label in classes))


def _check_room(rows: list[_SparseRows], width: int) -> None:
    """Examples are kept as whole rows: one wrong index would make all of them as wide."""
    count = sum(len(row.targets) for row in rows)
    room = ROOM * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if count * width * 4 > room:
        wide = next(row for row in rows if row.width == width)
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
    rows, count = _SparseRows(path), 0
    try:
        with _opened(path) as lines:
            for count, line in enumerate(lines, 1):
                rows.add(line, count)
    except UnicodeDecodeError:
        raise DamagedError(f"{path} is not a libsvm file: after line {count} it is not text") from None
    except ValueError:
        raise DamagedError(f"{path}:{count} is not a line of a libsvm file") from None
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise DamagedError(f"{path} cannot be read: {error}") from None
    return rows


def _opened(path: Path) -> IO[str]:
    if path.suffix == ".bz2":
        return bz2.open(path, "rt")
    return lzma.open(path, "rt") if path.suffix == ".xz" else path.open()


def _number(text: str) -> float:
    found = float(text)
    if not math.isfinite(found):
        raise ValueError
    return found


def _file(config: Config, name: str, split: str) -> Path:
    folder = Path(config.data_dir)
    addresses = _addresses(name, split)
    path = _there(folder, name, split)
    if path is None and config.data_download:
        path = _fetched(folder, name, split, addresses)
    if path is not None:
        return path
    wanted = folder / PurePosixPath(addresses[0]).name
    near = [one.name for one in folder.glob("*")] if folder.is_dir() else []
    if not config.data_download:
        raise MissingError(
            f"{wanted} does not exist", did_you_mean(wanted.name, near, "data_download: true fetches it")
        )
    hint = did_you_mean(name, FILES, f"put it at {wanted}; {SITE} has the names")
    raise MissingError(f"{SITE} has no {split} split of {name!r}", hint)


def _addresses(name: str, split: str) -> list[str]:
    """Where a split may lie below the site, the likeliest first."""
    suffix = SUFFIXES.get(split, f".{split}")
    known = _known(name, split)
    if known is None and name not in FILES:
        return [f"{kind}/{name}{suffix}{end}" for kind in KINDS for end in ("", *PACKED)]
    if FILES.get(name, "").startswith("multilabel/"):
        raise SpecError(
            f"libsvm/{name} has several labels for an example", hint="the trainer takes one for each"
        )
    address = known or FILES[name]
    usual = next((end for end in PACKED if address.endswith(end)), "")
    stem = _stem(address) + ("" if known else suffix)
    return [stem + end for end in dict.fromkeys((usual, "", *PACKED))]


def _known(name: str, split: str) -> str | None:
    """A split's address, where the library knows it: test sets have names of their own there."""
    return FILES.get(name if split == "train" else f"{name}_{split}")


def _there(folder: Path, name: str, split: str) -> Path | None:
    """The file in the data folder: as it is called here, or on the site."""
    suffix, known = SUFFIXES.get(split, f".{split}"), _known(name, split)
    stems = [name + suffix]
    if known or name in FILES:
        stems.append(PurePosixPath(_stem(known) if known else _stem(FILES[name]) + suffix).name)
    places = (folder / (stem + end) for stem in stems for end in ENDS)
    return next((place for place in places if place.is_file()), None)


def _stem(address: str) -> str:
    return next((address.removesuffix(end) for end in PACKED if address.endswith(end)), address)


def _fetched(folder: Path, name: str, split: str, addresses: list[str]) -> Path | None:
    lock = PurePosixPath(_stem(addresses[0])).name
    with alone(folder / f".{lock}.lock"):
        path = _there(folder, name, split)  # by whoever was first
        if path is not None:
            return path
        for address in addresses:
            place = folder / PurePosixPath(address).name
            if fetch(f"{SITE}/{address}", place):
                return place
    return None
