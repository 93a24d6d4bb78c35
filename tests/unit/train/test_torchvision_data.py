from __future__ import annotations

import gzip
import hashlib
import multiprocessing
import pickle
import struct
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
import torch

import train_world as world
from hostler.errors import MissingError, SpecError
from hostler.train.data import sources
from hostler.train.data.split import Arrays

NAMES = [f"{which}-{what}" for which in ("train", "t10k") for what in ("images-idx3", "labels-idx1")]


@pytest.fixture(autouse=True)
def library() -> None:
    world.needs("torchvision")


def idx(values: np.ndarray[Any, Any]) -> bytes:
    """The format of MNIST's files."""
    return struct.pack(f">BBBB{values.ndim}I", 0, 0, 8, values.ndim, *values.shape) + values.tobytes()


def mnist(root: Path) -> dict[str, bytes]:
    """Twenty pictures and ten."""
    chance = np.random.default_rng(1)
    files = {}
    for which, count in (("train", 20), ("t10k", 10)):
        pictures = chance.integers(0, 255, (count, 28, 28), dtype=np.uint8)
        files[f"{which}-images-idx3-ubyte"] = idx(pictures)
        files[f"{which}-labels-idx1-ubyte"] = idx((np.arange(count) % 10).astype(np.uint8))
    for name, value in files.items():
        root.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(value)
    return files


def test_mnist_is_read_from_the_disk_and_lies_in_memory(tmp_path: Path) -> None:
    mnist(tmp_path / "MNIST/raw")
    data = sources.load(
        world.config(dataset="torchvision/mnist", data_dir=str(tmp_path), data_download=False)
    )
    assert isinstance(data.splits["train"], Arrays)
    assert data.input_shape == (1, 28, 28)
    assert data.n_classes == 10
    assert [len(one) for one in data.splits.values()] == [20, 10]
    assert data.splits["test"].y.tolist() == list(range(10))


def test_its_former_name_leads_there_too(tmp_path: Path) -> None:
    mnist(tmp_path / "MNIST/raw")
    found = world.config(dataset="timm/torch/mnist", data_dir=str(tmp_path), data_download=False)
    assert len(sources.load(found).splits["train"]) == 20


def test_cifar_is_read_channels_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from torchvision.datasets import CIFAR10

    monkeypatch.setattr(CIFAR10, "_check_integrity", lambda self: True)  # the sums of the real files
    base = tmp_path / "cifar-10-batches-py"
    base.mkdir()
    rows = np.random.default_rng(1).integers(0, 255, (4, 3072), dtype=np.uint8)
    for name in [*(f"data_batch_{n}" for n in range(1, 6)), "test_batch"]:
        (base / name).write_bytes(pickle.dumps({"data": rows, "labels": [0, 1, 2, 3]}))
    names = ["plane", "car", "bird", "cat"]
    meta = pickle.dumps({"label_names": names})
    (base / "batches.meta").write_bytes(meta)
    monkeypatch.setitem(CIFAR10.meta, "md5", hashlib.md5(meta).hexdigest())
    data = sources.load(world.config(dataset="torchvision/cifar10", data_dir=str(tmp_path)))
    assert data.classes == tuple(names)
    assert torch.equal(data.splits["test"].x[2], torch.from_numpy(rows[2].reshape(3, 32, 32)))


def test_a_set_of_files_is_loaded_as_pictures(tmp_path: Path) -> None:
    world.folder(tmp_path / "eurosat/2750", {".": 2})
    found = world.config(
        dataset="torchvision/eurosat", data_dir=str(tmp_path), data_download=False,
        data_splits_map={"train": "train"},
    )  # fmt: skip
    data = sources.load(found)
    assert data.classes == ("cat", "dog", "fish")
    assert len(data.splits["train"]) == 6


@pytest.mark.parametrize(
    ("name", "said"),
    [("cifar11", "did you mean 'cifar10"), ("mnist", "has no split 'val'"), ("kinetics", "frames_per_clip")],
)
def test_what_torchvision_has_not_is_said(tmp_path: Path, name: str, said: str) -> None:
    splits = {"train": "train", "val": "val"}
    found = world.config(dataset=f"torchvision/{name}", data_dir=str(tmp_path), data_splits_map=splits)
    with pytest.raises(SpecError, match=said):
        sources.load(found)


def test_missing_data_set_is_reported_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="is not there") as caught:
        sources.load(world.config(dataset="torchvision/mnist", data_dir=str(tmp_path), data_download=False))
    assert "\n" not in str(caught.value)


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A site that MNIST is fetched from, and what was asked of it."""
    from torchvision.datasets import MNIST

    site, asked, sums = tmp_path / "site", [], []
    site.mkdir()
    for name, value in mnist(tmp_path / "made").items():
        packed = gzip.compress(value)
        (site / f"{name}.gz").write_bytes(packed)
        sums.append((f"{name}.gz", hashlib.md5(packed).hexdigest()))

    class Site(SimpleHTTPRequestHandler):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given, directory=str(site))

        def log_message(self, *given: Any) -> None:
            if self.command == "GET":
                asked.append(self.path)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setattr(MNIST, "mirrors", [f"http://127.0.0.1:{server.server_port}/"])
    monkeypatch.setattr(MNIST, "resources", sums)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    yield asked
    server.shutdown()
    server.server_close()


def fetch(root: str) -> int:
    return len(sources.load(world.config(dataset="torchvision/mnist", data_dir=root)).splits["train"])


def test_a_set_is_fetched_once_however_many_ask(tmp_path: Path, mirror: list[str]) -> None:
    fetch(str(tmp_path / "alone"))
    once = sorted(mirror)
    assert {name.strip("/") for name in once} == {f"{name}-ubyte.gz" for name in NAMES}
    mirror.clear()
    with multiprocessing.get_context("fork").Pool(3) as pool:
        assert pool.map(fetch, [str(tmp_path / "data")] * 6, chunksize=1) == [20] * 6
    assert sorted(mirror) == once


def test_silent_site_is_reported_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from torchvision.datasets import MNIST

    monkeypatch.setattr(MNIST, "mirrors", ["http://127.0.0.1:9/"])
    with pytest.raises(MissingError, match="cannot be fetched"):
        fetch(str(tmp_path))
