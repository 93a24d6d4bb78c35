"""`folder/PATH`: pictures as `PATH/<split>/<class>/…`, of any depth below the class."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from hostler.errors import DamagedError, SpecError
from hostler.spec.nearest import did_you_mean
from hostler.train.config import PILLOW, Config
from hostler.train.data import pictures
from hostler.train.data.encoded import Encoded, unreadable
from hostler.train.data.sources import folder, wanted
from hostler.train.data.split import Data, Items
from hostler.train.library import need

ENDS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".ppm", ".pgm", ".tif", ".tiff")


def load(config: Config, name: str) -> Data:
    need("PIL", "pillow", config.dataset)
    root = folder(config, name, "folder/PATH, in data_dir, with a folder for each split")
    places = {ours: _split(root, theirs) for ours, theirs in wanted(config).items()}
    classes = _folders(places["train"])
    made: dict[str, Items] = {}
    for ours, place in places.items():
        files = Files(place, classes, ours)
        made[ours] = files if config.decoder == PILLOW else FileBytes(files)
    return pictures.build(made, tuple(classes), config)


class Files:
    """(picture, class) by index, in the order of their names."""

    def __init__(self, place: Path, classes: Sequence[str], split: str) -> None:
        number = {name: at for at, name in enumerate(classes)}
        unknown = [name for name in _folders(place) if name not in number]
        if unknown:
            raise SpecError(
                f"split {split!r} has a class {unknown[0]!r} that train does not have",
                did_you_mean(unknown[0], classes, f"each folder of {place} is a class"),
            )
        self.files = [
            (str(path), number[name]) for name in _folders(place) for path in _pictures(place / name)
        ]

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        from PIL import Image

        path, target = self.files[index]
        try:
            with Image.open(path) as picture:
                picture.load()
                return picture, target
        except (OSError, SyntaxError, ValueError) as error:
            raise DamagedError(f"{path} cannot be read as a picture: {error}") from None


class FileBytes(Encoded):
    """The same, as they lie on the disk."""

    def __init__(self, files: Files) -> None:
        self._paths = [path for path, _ in files.files]
        self.targets = torch.tensor([target for _, target in files.files], dtype=torch.long)

    def read(self, chosen: Sequence[int]) -> list[bytes]:
        return [self._bytes(index) for index in chosen]

    def name(self, index: int) -> str:
        return self._paths[index]

    def _bytes(self, index: int) -> bytes:
        try:
            return Path(self._paths[index]).read_bytes()
        except OSError as error:
            raise unreadable(self._paths[index], error.strerror) from None


def _split(root: Path, name: str) -> Path:
    if (root / name).is_dir():
        return root / name
    raise SpecError(
        f"{root} has no split {name!r}", did_you_mean(name, _folders(root), f"it has {_listed(root)}")
    )


def _folders(place: Path) -> list[str]:
    return sorted(path.name for path in place.iterdir() if path.is_dir() and not path.name.startswith("."))


def _pictures(place: Path) -> list[Path]:
    paths = [p for p in place.rglob("*") if p.suffix.lower() in ENDS and not p.name.startswith(".")]
    return sorted(p for p in paths if p.is_file())


def _listed(root: Path) -> str:
    return ", ".join(_folders(root)[:10]) or "no folders"
