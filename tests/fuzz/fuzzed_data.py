"""Bytes from elsewhere: archives, tensors, data sets, packed points, frames, printed lines."""

from __future__ import annotations

import bz2
import hashlib
import io
import os
import shutil
import struct
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from fuzz_harness import Breach, Target, bent, damaged

import tar_world
from hostler.records.series import metrics
from hostler.records.series.picker import Picker
from hostler.records.series.points import Point, PointFolder, pack, survey
from hostler.remote import bytecode, frames
from hostler.remote.frames import Frame
from hostler.remote.install import install
from hostler.sdk.checkpoint import safetensors, typed
from hostler.sdk.checkpoint.safetensors import TensorSlot
from hostler.spec.job import MetricSource
from hostler.train.config import Config
from hostler.train.data import libsvm, mapped, npz, shards, tfrecord
from hostler.train.data.tfrecord import _masked
from hostler.train.models import weights
from hostler.worker.prepare.unpack import unpack

CANARY = "outside"


def tarred(mode: str) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode=mode) as tar:  # type: ignore[call-overload]
        for name, text in (("a", b"text"), ("sub/b", b"x" * 600)):
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(text), 0o755
            tar.addfile(info, io.BytesIO(text))
        for name, kind, target in (
            ("link", tarfile.SYMTYPE, "sub/b"),
            ("hard", tarfile.LNKTYPE, "a"),
            ("up", tarfile.SYMTYPE, "../outside"),
        ):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, target
            tar.addfile(info)
    return data.getvalue()


def zipped() -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("a", "text")
        made.writestr("sub/b", "x" * 600)
        link = zipfile.ZipInfo("link")
        link.external_attr = 0o120777 << 16
        made.writestr(link, "sub/b")
    return data.getvalue()


def _unpack(data: bytes, folder: Path) -> None:
    """What lies beside the target is left as it is, and nothing in the target leads out."""
    place = folder / "place"
    shutil.rmtree(place, ignore_errors=True)
    target = place / "deep" / "target"
    target.mkdir(parents=True)
    for path in (place / CANARY, place / "deep" / CANARY):
        path.write_text(CANARY)
    archive = place / "archive"
    archive.write_bytes(data)
    try:
        unpack(archive, target, what="it")
    finally:
        _stayed_inside(place, target)


def _stayed_inside(place: Path, target: Path) -> None:
    beside = {"archive", CANARY, "deep", f"deep/{CANARY}", "deep/target"}
    for root, folders, names in os.walk(place):
        for path in (Path(root, name) for name in (*folders, *names)):
            inside = path != target and path.is_relative_to(target)
            if not inside and str(path.relative_to(place)) not in beside:
                raise Breach(f"{path} is new outside the target")
            if inside and path.is_file() and not path.is_symlink() and path.stat().st_mode & 0o6000:
                raise Breach(f"{path} has {path.stat().st_mode:o}")
    for path in (place / CANARY, place / "deep" / CANARY):
        if path.read_text() != CANARY:
            raise Breach(f"{path} was written to")


SOURCES = {"library/__init__.py": "x = 1\n", "library/one.py": "value = 1\n"}


def bytecodes() -> bytes:
    """As a worker leaves it, with a name that leads out besides."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as made:
        for name in ("library/__pycache__/__init__", "library/__pycache__/one", "../__pycache__/one"):
            made.writestr(f"{name}.{bytecode.tag()}.pyc", bytes(range(200)))
    return data.getvalue()


def _bytecode(data: bytes, folder: Path) -> None:
    """The sources are installed whatever came with them, and nothing else but their bytecode."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as made:
        for name, text in SOURCES.items():
            made.writestr(name, text)
    library = target.getvalue()
    shutil.rmtree(folder / "cache", ignore_errors=True)
    (folder / "cache").mkdir(mode=0o700)
    sha = hashlib.sha256(library).hexdigest()
    place = Path(install(folder / "cache", sha, lambda: library, lambda: data))
    found = {path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file()}
    may = {f"library/__pycache__/{name}.{bytecode.tag()}.pyc" for name in ("__init__", "one")}
    if not {*SOURCES} <= found <= {*SOURCES} | may or [*(folder / "cache").iterdir()] != [place]:
        raise Breach(f"{found} is there")
    if any((place / name).read_text() != text for name, text in SOURCES.items()):
        raise Breach("a source is another")


def tensors() -> bytes:
    slots = [
        TensorSlot("w", "F32", (2, 3), lambda view: None),
        TensorSlot("b", "I64", (2,), lambda view: None),
        TensorSlot("none", "F16", (0, 4), lambda view: None),
    ]
    plan = safetensors.plan(slots)
    return plan.header + bytes(plan.size)


def _tensors(data: bytes, folder: Path) -> None:
    for tensor in safetensors.parse(memoryview(data)).values():
        bytes(tensor.data)


def _weights(data: bytes, folder: Path) -> object:
    path = folder / "w.safetensors"
    path.write_bytes(data)
    return weights.read(str(path))


STATE = {
    "epoch": 3,
    "list": [1, 2.5, None, True, "x"],
    "tuple": (1, {"deep": b"bytes"}),
    "keys": {1: "a", (2, 3): "b"},
    "set": {1, 2},
    "big": 10**30,
    "nan": float("nan"),
}


def _typed_state(tree: Any, folder: Path) -> object:
    return typed.decode(tree)


LIBSVM = b"+1 1:0.5 3:2 # c\n-1 2:1e-3 10:4\n0 \n2.5 1:1 2:2\n"


def _libsvm(data: bytes, folder: Path) -> object:
    for old in folder.glob("set*"):
        old.unlink()
    name = "set.bz2" if data.startswith(b"BZh") else "set"
    (folder / name).write_bytes(data)
    (folder / "set.t").write_bytes(LIBSVM)
    splits = {"train": "train", "test": "test"}
    config = Config(data_dir=str(folder), data_download=False, data_splits_map=splits)
    return libsvm.load(config, "set")


def _npz(data: bytes, folder: Path) -> object:
    (folder / "set.npz").write_bytes(data)
    return npz.load(Config(data_dir=str(folder)), "set.npz")


def arrays() -> bytes:
    data = io.BytesIO()
    x, y = np.arange(12, dtype=np.float32).reshape(4, 3), np.array([0, 1, 0, 1])
    np.savez(data, x_train=x, y_train=y, x_test=x[:2], y_test=y[:2], x_val=x[:2], y_val=y[:2])
    return data.getvalue()


def saved(array: np.ndarray) -> bytes:
    data = io.BytesIO()
    np.save(data, array)
    return data.getvalue()


PIXELS, NUMBERS = saved(np.arange(96, dtype=np.uint8).reshape(4, 4, 2, 3)), saved(np.array([0, 1, 0, 1]))


def _byte_files(data: bytes, folder: Path) -> object:
    place = folder / "set" / "train"
    place.mkdir(parents=True, exist_ok=True)
    labels = b"<i8" in data
    (place / mapped.PICTURES).write_bytes(PIXELS if labels else data)
    (place / mapped.LABELS).write_bytes(data if labels else NUMBERS)
    config = Config(data_dir=str(folder), data_splits_map={"train": "train"}, data_on_device=False)
    split = mapped.load(config, "set").splits["train"]
    return [split[place] for place in range(len(split))]


def _tar_shard(data: bytes, folder: Path) -> object:
    (folder / "set").mkdir(exist_ok=True)
    (folder / "set" / "train.tar").write_bytes(data)
    nowhere = str(folder / "set" / "train.tar")  # no index is kept
    config = Config(data_dir=nowhere, data_splits_map={"train": "train"}, data_on_device=False, image_size=8)
    split = shards.load(config, str(folder / "set")).splits["train"]
    return [split[place] for place in range(len(split))]


def records() -> bytes:
    def one(data: bytes) -> bytes:
        head = struct.pack("<Q", len(data))
        return head + struct.pack("<I", _masked(head)) + data + struct.pack("<I", _masked(data))

    return one(b"first") + one(b"") + one(b"x" * 40)


def _tfrecord(data: bytes, folder: Path) -> object:
    path = folder / "data.tfrecord"
    path.write_bytes(data)
    return [record.read() for record in tfrecord.index([tfrecord.Shard(path)])]


POINTS = pack([Point(step, 0.5, {"loss": 1 / step, "acc": step * 0.1}) for step in range(1, 6)])
SETS = (
    struct.pack("<IBH4s", 6, 1, 0, b"loss")
    + struct.pack("<IBHH", 4, 3, 0, 0)
    + struct.pack("<IBHdqd", 26, 4, 0, 0.5, 3, 0.25)
)


def _points(data: bytes, folder: Path) -> None:
    path = folder / "metrics.bin"
    path.write_bytes(data)
    survey(path)
    reader = PointFolder(path)
    while reader.read():
        pass


def _fragment(data: bytes, folder: Path) -> object:
    return metrics._decode(data, "runs/x/metrics/1-0-0")


def _frame(data: bytes, folder: Path) -> None:
    source = io.BytesIO(data)
    try:
        while frames.read(source):
            pass
    except (ValueError, RecursionError):  # whoever reads takes these for the end of the connection
        return


def framed() -> bytes:
    sink = io.BytesIO()
    for frame in (Frame({"op": "get", "key": "a", "id": 1}, b"body"), Frame({"id": 2}), Frame({}, b"x" * 50)):
        frames.write(sink, frame)
    return sink.getvalue()


def _printed(data: bytes, folder: Path) -> None:
    picker = Picker(MetricSource())
    for at in range(0, len(data), 37):
        picker.feed(data[at : at + 37], at * 1.0)
    picker.settle()
    picker.close(1e6)


LINES = b"""{"step": 1, "loss": 0.5, "nested": {"a": [1, 2]}}
Epoch 1/10 - loss: 0.5 - val_loss: 0.6
{'loss': 0.5, 'learning_rate': 1e-05, 'epoch': 1.0}
[3]\ttrain-rmse:0.5\teval-rmse:0.6
 50%|#####     | 5/10 [00:01<00:01,  5.00it/s, loss=0.5]\r100%|##########| 10/10
step 100: train loss 4.2, val loss 4.3
"""

TARGETS = (
    Target(
        "archive",
        "archives: tar, gz, bz2, xz, zip",
        lambda: damaged([*(tarred(mode) for mode in ("w", "w:gz", "w:bz2", "w:xz")), zipped()]),
        _unpack,
    ),
    Target("bytecode", "bytecode that a worker left", lambda: damaged([bytecodes()]), _bytecode),
    Target("safetensors", "tensor files, by hand", lambda: damaged([tensors()]), _tensors),
    Target("weights", "the same as weights of a model", lambda: damaged([tensors()]), _weights),
    Target(
        "state",
        "state of a checkpoint, with its types",
        lambda: bent([typed.Encoder().encode(STATE)]),
        _typed_state,
    ),
    Target("libsvm", "libsvm files", lambda: damaged([LIBSVM, bz2.compress(LIBSVM)]), _libsvm),
    Target("npz", "npz files", lambda: damaged([arrays()]), _npz),
    Target(
        "byte-files",
        "pictures as bytes in `.npy` files, and their classes",
        lambda: damaged([PIXELS, NUMBERS]),
        _byte_files,
    ),
    Target(
        "tar-shard",
        "tar shards of pictures",
        lambda: damaged([tar_world.tarred(tar_world.examples(range(2), cls=one)) for one in (True, False)]),
        _tar_shard,
    ),
    Target("tfrecord", "TFRecord files", lambda: damaged([records()]), _tfrecord),
    Target("points", "packed points of a run's process", lambda: damaged([POINTS, SETS]), _points),
    Target(
        "fragment",
        "packed points of a store",
        lambda: damaged([metrics.fragment({"attempt": 1, "start": 0}, data) for data in (POINTS, SETS)]),
        _fragment,
    ),
    Target("frames", "frames of the far end of an ssh connection", lambda: damaged([framed()]), _frame),
    Target("printed", "lines that a script prints", lambda: damaged([LINES]), _printed),
)
