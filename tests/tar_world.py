"""Pictures larger than memory, in small: tar shards in WebDataset's layout, whose colour is their class, and
bytes in files."""

from __future__ import annotations

import io
import json
import random
import tarfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

import train_world

CLASSES = tuple(train_world.COLOURS)
Members = Iterable[tuple[str, bytes]]


def tarred(members: Members, form: int = tarfile.PAX_FORMAT) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=form) as tar:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return data.getvalue()


def jpeg(number: int, size: tuple[int, int] = (16, 16), end: str = "JPEG") -> bytes:
    data = io.BytesIO()
    picture = train_world.picture(CLASSES[number % len(CLASSES)], random.Random(number), size)
    picture.save(data, end)
    return data.getvalue()


def examples(numbers: Sequence[int], size: tuple[int, int] = (16, 16), *, cls: bool = True) -> Members:
    """Pictures and their classes, as `.cls` or in a `.json`."""
    for number in numbers:
        target = number % len(CLASSES)
        yield f"{number:06d}.jpg", jpeg(number, size)
        if cls:
            yield f"{number:06d}.cls", str(target).encode()
        else:
            yield f"{number:06d}.json", json.dumps({"label": target, "url": "x"}).encode()


def shards(count: int, each: int, first: int = 0) -> dict[str, bytes]:
    """So many shards of a split, with so many examples in each."""
    starts = range(first, first + count * each, each)
    return {f"{n:04d}.tar": tarred(examples(range(at, at + each))) for n, at in enumerate(starts)}


def dataset(train: int = 3, each: int = 8) -> dict[str, bytes]:
    """Keys and bytes of a set with two splits."""
    found = {f"train/{name}": data for name, data in shards(train, each).items()}
    return {**found, **{f"test-{name}": data for name, data in shards(1, 6, first=1000).items()}}


def write(root: Path, files: dict[str, bytes]) -> Path:
    for key, data in files.items():
        (root / key).parent.mkdir(parents=True, exist_ok=True)
        (root / key).write_bytes(data)
    return root


def raw(root: Path, counts: dict[str, int], sides: tuple[int, ...] = (8, 8, 3)) -> None:
    """Splits of `bytes/PATH`, with three classes."""
    chance = np.random.RandomState(1)
    for split, count in counts.items():
        (root / split).mkdir(parents=True)
        np.save(root / split / "images.npy", chance.randint(0, 256, (count, *sides)).astype(np.uint8))
        np.save(root / split / "labels.npy", np.arange(count) % 3)
