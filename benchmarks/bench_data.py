"""Pictures from a disk: an epoch that reads them, against the least that decoding or copying them takes.

Without a GPU nothing is trained. Batches are taken from the trainer's feed as fast as it gives them; the
floor is as many bare processes or threads, which decode the same files, or copy the same rows, and keep
nothing. With a GPU an epoch of ResNet-50 is trained: the floor is the same epoch on pictures that lie on the
device, or what decoding takes alone where that is longer. All pictures are in the page cache: the disk is not
measured. Turns of a source and of its floor alternate, and the first of each does not count; on a CPU each of
them starts the trainer's processes or threads anew.
"""

from __future__ import annotations

import io
import multiprocessing
import os
import statistics
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from row import Row

MODELS = Path(__file__).resolve().parent / "rate_models.py"
NEEDED = ("torch", "PIL", "numpy")
DISTINCT, SIZE, SIDE, BATCH, CLASSES = 64, (320, 256), 224, 128, 8
STEPS = 48  # of an epoch
TURNS, WARM = 4, 1
BOUND = 1 / 0.95
WORKERS = os.cpu_count() or 1


@dataclass(frozen=True)
class Source:
    """A data set on the disk, and how long its decoder or a copy takes alone."""

    name: str
    dataset: str
    more: dict[str, object]
    alone: Callable[[Path], float]


def main() -> list[Row]:
    if any(find_spec(name) is None for name in NEEDED):
        print(f"bench_data: needs {', '.join(NEEDED)}; not measured", file=sys.stderr)
        return []
    import torch

    with tempfile.TemporaryDirectory(prefix="hostler-bench-") as name, _inside(Path(name)):
        files = written(Path(name), BATCH * STEPS)
        sources = _sources(files)
        if torch.cuda.is_available():
            return [_trained(source, Path(name)) for source in sources]
        return [_read(source, Path(name)) for source in sources]


def _sources(files: Sequence[Path]) -> list[Source]:
    found = [
        Source("a folder of JPEG, by Pillow", "folder/jpeg", {}, lambda _: _processes(files)),
        Source("bytes in a file", "bytes/raw", {}, _copied),
        Source("tar shards, by Pillow", "tar/shards", {}, lambda _: _threads(files, _by_pillow)),
    ]
    if _torchvision_decodes():
        more: dict[str, object] = {"decoder": "torchvision"}
        alone = _alone_on_the_device if _has_gpu() else lambda files: _threads(files, _by_torchvision)
        found.append(Source("a folder of JPEG, by torchvision", "folder/jpeg", more, lambda _: alone(files)))
    return found


def _read(source: Source, root: Path) -> Row:
    """An epoch of batches that nobody uses."""
    import torch

    from hostler.train.configfile import make
    from hostler.train.parts import assemble
    from hostler.train.ranks import TrainRanks

    parts = assemble(make(_config(source, model="linear")), torch.device("cpu"), TrainRanks())
    times, floors = list[float](), list[float]()
    for turn in range(TURNS):
        began = time.perf_counter()
        for step in range(turn * parts.order.steps, (turn + 1) * parts.order.steps):
            parts.feed.at(step)
        times.append(time.perf_counter() - began)
        parts.feed.close()  # what it reads ahead would be in the floor
        floors.append(source.alone(root))
    return _row(f"an epoch from {source.name}, to that alone", times, floors)


def _trained(source: Source, root: Path) -> Row:
    """An epoch of ResNet-50, in turns with one on the device."""
    from hostler.trainer import experiment_generator

    config = _config(
        source,
        model=f"{MODELS}:resnet_50_bytes",
        compile=True,
        amp="bf16",
        channels_last=True,
        deterministic=False,
    )
    times, floors = list[float](), list[float]()
    held = {**config, "dataset": f"{MODELS}:large_bytes", "data_on_device": None, "decoder": "pillow"}
    steps = {"steps_per_epoch": STEPS, "model_output_dim": 1000}
    ours = experiment_generator({**config, **steps, "output_dir": "ours"})
    theirs = experiment_generator({**held, **steps, "output_dir": "theirs"})
    for _ in range(TURNS):
        times.append(_next(ours))
        floors.append(max(_next(theirs), source.alone(root)))
    return _row(
        f"ResNet-50 from {source.name}, to pictures on the device or the decoder alone", times, floors
    )


def _next(epochs: Iterator[Any]) -> float:
    began = time.perf_counter()
    next(epochs)
    return time.perf_counter() - began


def _row(name: str, times: Sequence[float], floors: Sequence[float]) -> Row:
    ours, floor = (statistics.median(some[WARM:]) for some in (times, floors))
    count = BATCH * STEPS
    print(f"bench_data: {name}: {count / ours:,.0f} and {count / floor:,.0f} pictures/s", file=sys.stderr)
    return Row(name, ours, floor, BOUND, "s")


def _config(source: Source, **more: object) -> dict[str, Any]:
    return {
        "dataset": source.dataset,
        "data_dir": ".",
        "data_splits_map": {"train": "train"},
        "data_on_device": False,
        "image_size": SIDE,
        "batch_size": BATCH,
        "num_workers": WORKERS,
        "train_length": TURNS,
        "base_lr": 0.001,
        "seed_model": 1,
        "seed_training": 1,
        **source.more,
        **more,
    }


# The floors: as many processes or threads as the trainer has.


def _processes(files: Sequence[Path]) -> float:
    shares = [[str(path) for path in files[place::WORKERS]] for place in range(WORKERS)]
    with multiprocessing.get_context("fork").Pool(WORKERS) as pool:
        pool.map(_shared, [[]] * WORKERS)  # they are there
        began = time.perf_counter()
        pool.map(_shared, shares, chunksize=1)
        return time.perf_counter() - began


def _shared(paths: Sequence[str]) -> None:
    for path in paths:
        _by_pillow(Path(path).read_bytes())


def _threads(files: Sequence[Path], decode: Callable[[bytes], object]) -> float:
    held = [path.read_bytes() for path in files]
    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(len, held[:WORKERS]))
        began = time.perf_counter()
        for _ in pool.map(decode, held):
            pass
        return time.perf_counter() - began


def _by_pillow(data: bytes) -> object:
    from PIL import Image, ImageOps

    return ImageOps.fit(
        Image.open(io.BytesIO(data)).convert("RGB"), (SIDE, SIDE), method=Image.Resampling.BICUBIC
    )


def _by_torchvision(data: bytes) -> object:
    import torch
    from PIL import Image, ImageOps
    from torchvision.io import decode_jpeg

    x = decode_jpeg(torch.frombuffer(bytearray(data), dtype=torch.uint8), mode="RGB")
    picture = Image.fromarray(x.permute(1, 2, 0).numpy())
    return ImageOps.fit(picture, (SIDE, SIDE), method=Image.Resampling.BICUBIC)


def _alone_on_the_device(files: Sequence[Path]) -> float:
    import torch
    from torchvision.io import decode_jpeg

    tensors = [torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.uint8) for path in files]
    torch.cuda.synchronize()
    began = time.perf_counter()
    for first in range(0, len(tensors), BATCH):
        decode_jpeg(tensors[first : first + BATCH], mode="RGB", device="cuda")
    torch.cuda.synchronize()
    return time.perf_counter() - began


def _copied(root: Path) -> float:
    """Rows in a random order, each into memory that is there."""
    import numpy as np

    rows = np.load(root / "raw/train/images.npy", mmap_mode="r")
    size = rows[0].nbytes
    order = np.random.RandomState(1).permutation(len(rows))
    file = os.open(root / "raw/train/images.npy", os.O_RDONLY)

    def copy(chosen: Any) -> None:
        memory = bytearray(size)
        for row in chosen:
            os.preadv(file, [memory], rows.offset + int(row) * size)

    with ThreadPoolExecutor(WORKERS) as pool:
        began = time.perf_counter()
        list(pool.map(copy, [order[place::WORKERS] for place in range(WORKERS)]))
        took = time.perf_counter() - began
    os.close(file)
    return took


def _has_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


def _torchvision_decodes() -> bool:
    from hostler.errors import MachineError
    from hostler.train.data.jpeg import JpegDecoder

    try:
        JpegDecoder(3)
    except MachineError as error:
        print(f"bench_data: {error}", file=sys.stderr)
        return False
    return True


def written(root: Path, count: int) -> list[Path]:
    """So many pictures three times: a folder, bytes, shards. Few are distinct."""
    import numpy as np

    distinct = [_picture(number) for number in range(DISTINCT)]
    folders = [root / "jpeg/train" / f"{number:04d}" for number in range(CLASSES)]
    for folder in folders:
        folder.mkdir(parents=True)
    files = [folders[place % CLASSES] / f"{place:06d}.jpg" for place in range(count)]
    for place, path in enumerate(files):
        path.write_bytes(distinct[place % DISTINCT])
    (root / "shards").mkdir()
    with tarfile.open(root / "shards/train.tar", "w") as tar:
        for place, path in enumerate(files):
            for end, data in (("jpg", path.read_bytes()), ("cls", str(place % CLASSES).encode())):
                info = tarfile.TarInfo(f"{place:06d}.{end}")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    (root / "raw/train").mkdir(parents=True)
    np.save(root / "raw/train/images.npy", np.zeros((count, 3, SIDE, SIDE), np.uint8))
    np.save(root / "raw/train/labels.npy", np.arange(count) % CLASSES)
    return files


def _picture(number: int) -> bytes:
    """Soft colours, about as large as a photograph of this size."""
    import numpy as np
    from PIL import Image

    small = np.random.RandomState(number).randint(0, 256, (SIZE[1] // 4, SIZE[0] // 4, 3)).astype(np.uint8)
    data = io.BytesIO()
    Image.fromarray(small).resize(SIZE, Image.Resampling.BICUBIC).save(data, "JPEG", quality=90)
    return data.getvalue()


@contextmanager
def _inside(folder: Path) -> Iterator[None]:
    """Runs of the trainer leave a store where they are."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
