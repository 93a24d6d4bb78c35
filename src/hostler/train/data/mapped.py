"""`bytes/PATH`: pictures as bytes in `PATH/<split>/images.npy`, their classes in `labels.npy` beside it.

The file may be larger than any memory. Only its header is mapped: rows are read into the batch by `preadv`.
A mapping would end the process with SIGBUS where a file gets shorter or a disk fails, and its pages would
count as memory of the process.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from tokenize import TokenError
from typing import Any
from weakref import finalize

import numpy as np
import torch

from hostler.errors import DamagedError, MissingError, SpecError
from hostler.frozen import dataclass
from hostler.spec.nearest import did_you_mean
from hostler.train.config import MOST_CLASSES, Config
from hostler.train.data.ahead import held
from hostler.train.data.npz import PIXELS, scaled
from hostler.train.data.pictures import MEMORY
from hostler.train.data.sources import folder, wanted
from hostler.train.data.split import IMAGES, Arrays, Data, Gathered, Items, room

PICTURES, LABELS = "images.npy", "labels.npy"
LAYOUT = "numpy.save of uint8 of the shape N×H×W×C, N×C×H×W or N×H×W"
CHANNELS = (1, 3)
_UNREADABLE = (ValueError, OSError, EOFError, TypeError, SyntaxError, TokenError, OverflowError, MemoryError)


def load(config: Config, name: str) -> Data:
    root = folder(config, name, "bytes/PATH, in data_dir, with a folder for each split")
    splits = {ours: _split(root, theirs, config) for ours, theirs in wanted(config).items()}
    shape, classes = splits["train"].shape, int(splits["train"].targets.max()) + 1
    for ours, one in splits.items():
        if one.shape != shape:
            raise SpecError(
                f"{one.path}: pictures of {_sides(one.shape)}, but train has {_sides(shape)}",
                hint="save all splits in one shape",
            )
        if int(one.targets.max()) >= classes:
            raise SpecError(
                f"split {ours!r} of {config.dataset} has the class {int(one.targets.max())}",
                hint=f"the classes of train are 0 to {classes - 1}",
            )
    ready: dict[str, Arrays | Items] = dict(splits)
    if config.data_on_device is not False and sum(one.bytes for one in splits.values()) <= MEMORY:
        ready = {ours: held(one, torch.device("cpu"), 0) for ours, one in splits.items()}
    return Data(ready, shape, classes, IMAGES, scaled, pixels=PIXELS)


@dataclass(frozen=True)
class Rows:
    """Pictures of one file, one after the other."""

    first: int  # byte of the file
    sides: tuple[int, ...]  # of one as it lies there
    last: bool  # its channels come last

    @property
    def size(self) -> int:
        return int(np.prod(self.sides))


class Mapped(Gathered):
    """Pictures of a file, read when they are asked for. `channels_last`: batches stay in that layout where
    the file has it."""

    quick = True

    def __init__(self, path: Path, rows: Rows, targets: torch.Tensor, *, channels_last: bool) -> None:
        self.path, self._rows, self.targets = path, rows, targets
        self._stays_last = channels_last
        high, wide, deep = rows.sides if rows.last else (*rows.sides[1:], rows.sides[0])
        self.shape = (deep, high, wide)
        try:
            self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise MissingError(f"{path} cannot be read: {error.strerror}") from None
        finalize(self, os.close, self._file)

    def gather(self, chosen: Sequence[int], device: torch.device) -> torch.Tensor:
        x = room((len(chosen), *self._rows.sides), device)
        memory = x.view(-1).numpy().data
        size = self._rows.size
        for place, index in enumerate(chosen):
            self._read(index, memory[place * size : (place + 1) * size])
        return x

    def arrived(self, x: torch.Tensor) -> torch.Tensor:
        if not self._rows.last:
            return x
        first = x.permute(0, 3, 1, 2)
        return first if self._stays_last else first.contiguous()

    def _read(self, index: int, into: memoryview) -> None:
        at, done = self._rows.first + index * self._rows.size, 0
        try:
            while done < len(into) and (count := os.preadv(self._file, [into[done:]], at + done)):
                done += count
        except OSError as error:
            raise _damaged(self.path, f"picture {index} cannot be read: {error.strerror}") from None
        if done < len(into):
            raise _damaged(self.path, f"it ends inside picture {index}; it was longer when the run began")


def _split(root: Path, name: str, config: Config) -> Mapped:
    place = root / name
    if not place.is_dir():
        known = sorted(path.name for path in root.iterdir() if path.is_dir())
        hint = did_you_mean(name, known, f"it has {', '.join(known[:10]) or 'no folders'}")
        raise SpecError(f"{root} has no split {name!r}", hint)
    path = place / PICTURES
    rows, count = _rows(path)
    targets = _targets(place / LABELS)
    if len(targets) != count:
        raise SpecError(
            f"{place}: {PICTURES} has {count} pictures and {LABELS} {len(targets)} classes",
            hint="save both from the same examples",
        )
    if not count:
        raise SpecError(f"split {name!r} of {config.dataset} has no examples")
    return Mapped(path, rows, targets, channels_last=config.channels_last)


def _rows(path: Path) -> tuple[Rows, int]:
    """Where the pictures of a file lie, and how many they are."""
    array = _opened(path)
    if array.dtype != np.uint8:
        raise SpecError(f"{path} holds {array.dtype}, not bytes", hint=LAYOUT)
    if array.ndim not in (3, 4) or 0 in array.shape[1:]:
        raise SpecError(f"{path} has the shape {_sides(array.shape)}", hint=LAYOUT)
    if not array.flags.c_contiguous:
        raise SpecError(f"{path} is in Fortran's order", hint="numpy.save(PATH, numpy.ascontiguousarray(x))")
    count, *sides = array.shape
    if array.ndim == 3:
        return Rows(array.offset, (1, *sides), last=False), count
    if sides[0] not in CHANNELS and sides[2] not in CHANNELS:
        raise SpecError(
            f"{path} has pictures of {_sides(sides)}: neither their first nor their last side is 1 or 3",
            hint=LAYOUT,
        )
    return Rows(array.offset, tuple(sides), last=sides[0] not in CHANNELS), count


def _targets(path: Path) -> torch.Tensor:
    array = _opened(path)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise SpecError(
            f"{path} holds {array.dtype} of the shape {_sides(array.shape)}",
            hint="a whole number for each picture: its class, from 0",
        )
    targets = torch.from_numpy(array.astype(np.int64))
    wrong = ((targets < 0) | (targets >= MOST_CLASSES)).nonzero()
    if len(wrong):
        place = int(wrong[0])
        raise SpecError(
            f"{path}: the class of picture {place} is {array[place]}", hint="classes are numbered from 0"
        )
    return targets


def _opened(path: Path) -> Any:
    """The array of a file, mapped; the file has as many bytes as its header says."""
    if not path.is_file():
        raise MissingError(f"{path} does not exist", hint=f"bytes/PATH: {PICTURES} and {LABELS} of a split")
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
        whole = path.stat().st_size
    except _UNREADABLE as error:
        if isinstance(error, OSError) and error.strerror:
            raise MissingError(f"{path} cannot be read: {error.strerror}") from None
        raise _damaged(path, "it is not a .npy file, or an incomplete one") from None
    if not isinstance(array, np.memmap):
        raise _damaged(path, "it holds several arrays")
    if array.offset + array.nbytes != whole:
        wants = array.offset + array.nbytes
        raise _damaged(path, f"it has {whole:,} bytes, and its header says {wants:,}")
    return array


def _sides(shape: Sequence[int]) -> str:
    return "×".join(map(str, shape)) or "no sides"


def _damaged(path: Path, why: str) -> DamagedError:
    return DamagedError(f"{path} is damaged: {why}", hint=f"copy or save it again: {LAYOUT}")
